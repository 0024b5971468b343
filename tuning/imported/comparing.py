"""One configuration against another, only as far as files can carry it.

An interval needs at least two units (launches or stretches) on one side; then Welch's (B. L. Welch, Biometrika 34,
1947, 28-35), on the logs, with Satterthwaite's degrees of freedom; where the other side has one unit, with the scatter
of the side that has more. Its confidence is 1 - 0.05 / comparisons (Bonferroni). With one unit on both sides there is
none: how far runs of one configuration lie apart elsewhere in these files is told instead.

"differs" is said only of launches that something names, two or more on each side. Stretches may all be of one launch,
whose scatter is smaller than that between launches, and one launch may scatter more than those of the other side: an
interval that excludes 0 is then "beyond the scatter" and no more. In 2,000 made-up imports without any effect (three
metrics, SD 1 %) "differs" came up in 2.0 % (2 launches a side), 2.9 % (3), 2.4 % (13 configurations of 4) and 5.7 %
(4 a side, one of them three times as noisy). With a noisier single launch on one side it would have been 23 %.

Nothing here was randomised, so a difference may be that of the day, which no arithmetic on the files can tell.
"""

import math
import re
from collections.abc import Sequence
from datetime import datetime

from tuning.counting import counted, span_text
from tuning.figures import effect_text, metric_title, percent
from tuning.imported.records import Comparison, Configuration, Figure, Repeat, Verdict
from tuning.records import Effect
from tuning.statistics import Estimate, bounds, difference, mean, mean_estimate

METRICS = ("total_tok_per_s", "mean_ttft_ms", "mean_itl_ms")
_BASELINE = re.compile(r"\b(?:baseline|default|base|vanilla|before|control|reference|stock)\b", re.IGNORECASE)
_ERROR = 0.05


def in_order(configurations: Sequence[Configuration]) -> tuple[Configuration, ...]:
    """By the start of their first runs, but first the one that the others are held against: called like a baseline, or
    else measured most often, or else first."""

    def begun(each: Configuration) -> datetime:
        return min((run.started for run in each.runs if run.started), default=datetime.max)

    def rank(each: Configuration) -> tuple[bool, bool, int, int]:
        return (not each.counted, not _BASELINE.search(each.label), -len(each.units), -each.counted)

    ordered = sorted(configurations, key=begun)
    first = min(ordered, key=rank, default=None)
    return tuple(([first] if first else []) + [each for each in ordered if each is not first])


def repeats(configurations: Sequence[Configuration]) -> list[Repeat]:
    """The configurations that have two units or more, for each metric that is compared."""
    found = []
    for each in configurations:
        for metric in METRICS:
            shown = each.figures.get(metric)
            if shown is None or shown.basis == "runs" or min(shown.values) <= 0:
                continue
            found.append(Repeat(each.label, metric, max(shown.values) / min(shown.values) - 1, each.span_s))
    return found


def compare(configurations: Sequence[Configuration], known: Sequence[Repeat]) -> tuple[Comparison, ...]:
    """The others against the first, by each of METRICS. `known` are the repeats of all workloads, nearest first."""
    against, *others = configurations if configurations else (None,)
    pairs = [
        (metric, other, of_other, of_first)
        for other in others
        for metric in METRICS
        if against is not None
        and (of_other := other.figures.get(metric)) is not None
        and (of_first := against.figures.get(metric)) is not None
        and min(*of_other.values, *of_first.values) > 0
    ]
    if against is None:
        return ()
    with_interval = sum(max(_units(a), _units(b)) > 1 for _, _, a, b in pairs)
    confidence = 1 - _ERROR / max(with_interval, 1)
    return tuple(_compared(metric, other, against, a, b, confidence, known) for metric, other, a, b in pairs)


def _compared(
    metric: str,
    other: Configuration,
    against: Configuration,
    of_other: Figure,
    of_first: Figure,
    confidence: float,
    known: Sequence[Repeat],
) -> Comparison:
    effect = math.expm1(_log_mean(of_other) - _log_mean(of_first))
    low, high = _welch(of_other, of_first, confidence)
    verdict: Verdict = "says nothing"
    if low is None or high is None:
        counts = _counts(of_other, of_first, _named(other) and _named(against))
        told = _yardstick(metric, effect, known)
        text, reason = f"{_size(effect, counts)}. {told[0].upper()}{told[1:]}", _yardstick(metric, None, known)
    else:
        proven = _proven(of_other) and _proven(of_first)
        verdict = "not told apart" if low <= 0 <= high else "differs" if proven else "beyond the scatter"
        reason = _units_text(of_other, of_first)
        text = f"{interval_text(effect, low, high)}, {verdict} ({reason})"
    title = metric_title(metric)
    return Comparison(metric, other.label, against.label, effect, low, high, verdict, f"{title}: {text}", reason)


def _welch(a: Figure, b: Figure, confidence: float) -> tuple[float | None, float | None]:
    """Bounds of the ratio − 1, None where neither side has two units."""
    one, other = _estimate(a), _estimate(b)
    if one.se is not None and other.se is not None:
        apart = difference(one, other)
    else:
        known, n = (one, _units(a)) if one.se is not None else (other, _units(b))
        # The scatter of the side that has more, for the one unit of the other side too.
        se = None if known.se is None else known.se * math.sqrt(n + 1)
        apart = Estimate(one.value - other.value, se, known.df)
    found = bounds(apart, confidence)
    if found is None or max(map(abs, found)) > 700:  # beyond what exp can hold: two units of which one is nearly 0
        return None, None
    return math.expm1(found[0]), math.expm1(found[1])


def _estimate(figure: Figure) -> Estimate:
    """The log mean; without a standard error where the units are runs of one server."""
    if _units(figure) > 1:
        return mean_estimate([math.log(value) for value in figure.values])
    return Estimate(_log_mean(figure), None, 0.0)


def _log_mean(figure: Figure) -> float:
    return mean([math.log(value) for value in figure.values])


def _units(figure: Figure) -> int:
    return 1 if figure.basis == "runs" else figure.units


def interval_text(effect: float, low: float | None, high: float | None) -> str:
    """`+1.4 % [−0.3, +3.1]`."""
    return effect_text(Effect(0, effect, low, high))


def _proven(figure: Figure) -> bool:
    """Whether its scatter is that between launches."""
    return figure.basis == "launches" and figure.units > 1


def _units_text(a: Figure, b: Figure) -> str:
    basis = "launches" if {a.basis, b.basis} <= {"launches", "runs"} else "stretches"
    text = f"{_units(a)} and {_units(b)} {basis}"
    if min(_units(a), _units(b)) == 1:
        text += ", the scatter of the side that has more taken for both"
    return text if basis == "launches" else f"{text}, which may be of one launch"


def _counts(a: Figure, b: Figure, launches: bool) -> str:
    if a.runs == b.runs == 1:
        return "one run each"
    server = "on one launch each" if launches else "on one server each as far as can be told"
    return f"{counted(a.runs, 'run')} against {b.runs}, {server}"


def _named(each: Configuration) -> bool:
    return all(run.launch is not None for unit in each.units for run in unit)


def _size(effect: float, counts: str) -> str:
    apart = percent(abs(effect)).lstrip("+")
    return f"{counts}, {apart} apart ({percent(effect)})"


def _yardstick(metric: str, effect: float | None, known: Sequence[Repeat]) -> str:
    """What repeats say of a difference without an interval; without an `effect`, of any."""
    repeat = next((each for each in known if each.metric == metric), None)
    if repeat is None:
        return (
            "nothing here shows how far two launches of one configuration lie apart, so this says nothing; measure "
            "both again after restarts"
        )
    when = f" {span_text(repeat.span_s)} apart" if repeat.span_s else ""
    seen = f"runs of one configuration ({repeat.label}){when} differ by {percent(repeat.apart).lstrip('+')}"
    if effect is None:
        return f"{seen}: what differs by less says nothing, and what differs by more rests on one server each"
    if abs(math.log1p(effect)) <= math.log1p(repeat.apart):
        return f"{seen}, so this says nothing"
    return f"{seen}; this is more, but rests on one server each, and so is no proof"
