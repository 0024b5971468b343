"""What the numbers and words of a verdict mean, for the help of each screen that shows them."""

from typing import Final

from tui.screens.base import Number

VERDICT_LEGEND: Final = (
    Number("n", "launches measured; the runs on one launch are averaged, so n counts what is independent"),
    Number("vs default", "candidate against default with the interval of the verdict: it holds at every look"),
    Number("✓ better", "better than the default: in 95 of 100 sessions no candidate is called so that is not"),
    Number("✗ worse, left", "worse; it is launched no more, as is all that is decided"),
    Number("≈ equivalent", "within the smallest effect worth having, both ways"),
    Number("? 2 more", "undecided: about so many more blocks would decide it; > 4: more than the session has"),
    Number("? implausible", "undecided, but a gain worth having is implausible; it is launched no more"),
    Number("⊘ infeasible", "breaks a limit, however good its metric is"),
    Number("limits", "✓ kept, ✗ broken, ? open; the line below the table has each of the chosen candidate"),
    Number("noise", "standard deviation between runs of a launch, and between launches beyond that"),
    Number("drift", "a change from block to block that is more than noise; effects are taken within blocks"),
)
