"""What the numbers and words of a verdict mean, for the help of each screen that shows them."""

from typing import Final

from tui.legend import Number

VERDICT_LEGEND: Final = (
    Number("n", "launches measured; the runs on one launch are averaged, so n counts what is independent"),
    Number("vs default", "candidate against default with the interval of the verdict: it holds at every look"),
    Number("✓ better", "better than the default: in 95 of 100 sessions no candidate is called so that is not"),
    Number("✗ worse, left", "worse; it is launched no more, as is all that is decided"),
    Number("≈ equivalent", "within the smallest effect worth having, both ways"),
    Number("? 2 more", "undecided: about so many more blocks would decide it; > 4: more than the session has"),
    Number("? implausible", "undecided, but a gain worth having is implausible; it is launched no more"),
    Number("⊘ infeasible", "breaks a limit, however good its metric is"),
    Number(
        "limits", "✓ kept, ✗ broken, ✗ hardly (that it holds is implausible), ? open; below, of the chosen one, each"
    ),
    Number("noise", "standard deviation between runs of a launch, and between launches beyond that"),
    Number("drift", "a change from block to block that is more than noise; effects are taken within blocks"),
)

PRICE_LEGEND: Final = (
    Number("worth having, %", "the smallest effect that matters, and the margin within which two are equivalent"),
    Number("limits", "what a winner must keep, separated by commas: chat.p99_ttft_ms <= 500, error_rate == 0"),
    Number("finds", "so large a gain is found in 80 of 100 sessions; ✓ where that is as small as is worth having"),
    Number("37, ≤ 60", "expected where nothing differs from the default, and where no candidate leaves early"),
    Number("noise of a launch", "of an earlier session here, best of one that C made; without any it is assumed"),
    Number("time, money", "launches times seconds a launch, plus runs times seconds a run; said from where"),
)

TUNE_LEGEND: Final = (
    Number("block n of m", "a block is one fresh launch of every candidate in play, and one to three of the default"),
    Number("n of m runs", "runs made of those planned, warm-ups too"),
    *VERDICT_LEGEND,
    Number("total tok/s", "the deciding metric: mean over launches. m shows another"),
    Number("p99 TTFT", "the time to the first token that 99 % of requests stayed below, mean over launches"),
    Number("about … left", "launches and runs still planned, each as long as those so far"),
    *PRICE_LEGEND,
)
