"""What is said of two sessions, for a person: the parts of a document."""

from collections.abc import Iterator, Sequence

from engine.text import clean
from store.clock import parse_utc
from tuning.compared.records import (
    CandidateComparison,
    Level,
    MetricComparison,
    Own,
    SessionComparison,
    Summary,
    Word,
    WorkloadComparison,
)
from tuning.compared.sentence import change_text
from tuning.counting import counted
from tuning.document import Heading, Paragraph, Part, Points, Table
from tuning.figures import ABSENT, figure, metric_title, percent

LABEL_CELLS = 20  # so that the table of a metric has room in 80 cells
DEFAULT = "the default itself"
_SHORT: dict[Word, str] = {"not told apart": "?", "says nothing": ABSENT}


def parts(compared: SessionComparison, *, all_metrics: bool = False, wide: bool = False) -> list[Part]:
    """The comparison: the sentence first, then what differs around the two, then each workload. `all_metrics`: also
    those that decide nothing. `wide`: each effect with the interval for itself, for a file or a wide terminal."""
    a, b = compared.a, compared.b
    found: list[Part] = [
        Heading(f"Session {_named(a)} (A) against {_named(b)} (B)", 1),
        Paragraph(compared.sentence, strong=True),
        Points((_introduced(a), _introduced(b))),
    ]
    if compared.environment:
        found += _lines("The environments differ:", compared.environment)
    else:
        found.append(Paragraph("The environments do not differ in what was recorded of them."))
    found += _lines("The defaults are not the same server:", compared.defaults)
    for workload in compared.workloads:
        found += _workload_parts(workload, all_metrics, wide)
    if compared.workloads:
        only = {"A": compared.only_a, "B": compared.only_b}
        lines = [
            *compared.refused,
            *compared.unmeasured,
            *(f"candidates of {letter} alone: {', '.join(labels)}" for letter, labels in only.items() if labels),
        ]
        if lines:
            found += [Heading("Not compared"), Points(tuple(lines))]
    found += [Heading("What this can say, and what not"), Points(compared.notes)]
    if compared.workloads:
        found.append(Paragraph(_method(compared, wide)))
    return found


def _named(one: Summary) -> str:
    return f'{one.id} "{clean(one.name, 60)}"'


def _introduced(one: Summary) -> str:
    state = "" if one.state == "done" else f"{one.state}, "
    blocks = f"{one.blocks} of {counted(one.blocks_planned, 'block')}"
    said = f" {clean(one.sentence, 400)}" if one.sentence else ""
    return f"{one.letter}: {state}{blocks}, {_span(one.began, one.ended)} UTC.{said}"


def _span(began: str, ended: str | None) -> str:
    if ended is None:
        return f"begun {_minute(began)}"
    first, last = _minute(began), _minute(ended)
    return f"{first} to {last[11:] if last[:10] == first[:10] else last}"


def _minute(at: str) -> str:
    return parse_utc(at).strftime("%Y-%m-%d %H:%M")


def _workload_parts(workload: WorkloadComparison, all_metrics: bool, wide: bool) -> Iterator[Part]:
    yield Heading(clean(workload.label, 120))
    if workload.notes:
        yield Points(workload.notes)
    for metric in workload.metrics:
        if metric.decides or all_metrics:
            yield _table(metric, wide)


def _table(metric: MetricComparison, wide: bool) -> Table:
    header = ("vs its own default", "in A", "in B", "B against A", "")
    rows = [_candidate_row(each, wide) for each in metric.candidates]
    base = metric.baseline
    level = _level_text if wide else _short_level_text
    rows.append((DEFAULT, level(base.a), level(base.b), change_text(base.difference), _word(base.word, wide, "*")))
    role = "" if metric.decides else ", which decides nothing: each interval for itself, no verdict"
    return Table(header, tuple(rows), frozenset({1, 2}), f"{metric_title(metric.metric)}{role}")


def _candidate_row(each: CandidateComparison, wide: bool) -> tuple[str, ...]:
    own = _own_text if wide else _short_own_text
    label = clean(each.label, 60 if wide else LABEL_CELLS)
    return (label, own(each.a), own(each.b), change_text(each.difference), _word(each.word, wide))


def _word(word: Word | None, wide: bool, mark: str = "") -> str:
    if word is None:
        return ""
    return (word if wide else _SHORT.get(word, word)) + mark


def _own_text(own: Own) -> str:
    """`+1.4 % [−0.3, +3.1], n 4 ✓`: the sign is that of the session's verdict."""
    return f"{change_text(own.effect)}, n {own.launches} {_sign(own)}"


def _short_own_text(own: Own) -> str:
    """`+1.4 % ✓`."""
    return f"{percent(own.effect.change)} {_sign(own)}"


def _sign(own: Own) -> str:
    return own.shown[:1] if own.shown else " "


def _level_text(level: Level) -> str:
    """`27,245 [26,900, 27,590], n 4`."""
    interval = "" if level.low is None or level.high is None else f" [{figure(level.low)}, {figure(level.high)}]"
    return (
        f"{figure(level.mean)}{interval}, n {level.blocks}  "  # stands under the effects, which have a sign behind them
    )


def _short_level_text(level: Level) -> str:
    return f"{figure(level.mean)}  "


def _method(compared: SessionComparison, wide: bool) -> str:
    sure = f"{100 * (1 - compared.error):g} %"
    alone = f", with its {sure} interval for itself; n counts launches" if wide else ""
    words = "" if wide else "; ?: neither, so not told apart; –: too few launches"
    family = ""
    if compared.comparisons:
        family = f", those of the {counted(compared.comparisons, 'deciding difference')} at {sure} for all together"
    sentences = [
        f"In A and in B: the candidate against the default of that session{alone}, and the sign of its session's "
        "verdict.",
        "B against A: (1 + effect in B)/(1 + effect in A) − 1.",
        "The launch is the unit; intervals are Student's t on the logs with Satterthwaite's degrees of freedom"
        f"{family}.",
        f"“differs”: the interval excludes 0; “agrees”: it lies within ±{100 * compared.margin:g} %{words}.",
    ]
    if any(metric.baseline.word for workload in compared.workloads for metric in workload.metrics):
        units = "n counting blocks" if wide else "a block counting once"
        sentences.append(
            f"* of the levels themselves, {units}; time and machine are in it: no effect of what was changed."
        )
    return " ".join(sentences)


def _lines(title: str, lines: Sequence[str]) -> list[Part]:
    return [Paragraph(title), Points(tuple(lines))] if lines else []
