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
from tuning.compared.wording import change_text
from tuning.document import Heading, Paragraph, Part, Points, Table
from tuning.figures import ABSENT, figure, metric_title, percent
from tuning.imported.words import counted

LABEL_CELLS = 20  # so that the table of a metric has room in 80 cells
DEFAULT = "the default itself"
_SHORT: dict[Word, str] = {"not told apart": "?", "says nothing": ABSENT}


def parts(compared: SessionComparison, whole: bool = False) -> list[Part]:
    """The comparison: the sentence first, then what differs around the two, then each workload. `whole` gives the
    interval of each effect for itself and the metrics that decide nothing: a file is wider than a terminal."""
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
        found += _workload_parts(workload, compared, whole)
    if compared.workloads:
        found += _lines("Not compared:", compared.refused)
        only = {"A": compared.only_a, "B": compared.only_b}
        found += _lines(
            "Candidates of one session alone:",
            [f"{letter}: {', '.join(labels)}" for letter, labels in only.items() if labels],
        )
    found += _lines("What this can say, and what not:", compared.notes)
    if compared.workloads:
        found.append(Paragraph(_method(compared)))
    return found


def _named(one: Summary) -> str:
    return f'{one.id} "{clean(one.name, 60)}"'


def _introduced(one: Summary) -> str:
    ended = f" to {_minute(one.ended)}" if one.ended else ""
    said = f" {clean(one.sentence, 400)}" if one.sentence else ""
    blocks = f"{one.blocks} of {counted(one.blocks_planned, 'block')}"
    return f"{one.letter}: {one.state}, {blocks}, {_minute(one.began)}{ended} UTC.{said}"


def _minute(at: str) -> str:
    return parse_utc(at).strftime("%Y-%m-%d %H:%M")


def _workload_parts(workload: WorkloadComparison, compared: SessionComparison, whole: bool) -> Iterator[Part]:
    yield Heading(clean(workload.label, 120))
    if workload.notes:
        yield Points(workload.notes)
    for metric in workload.metrics:
        if metric.decides or whole:
            yield _table(metric, whole)


def _table(metric: MetricComparison, whole: bool) -> Table:
    header = ("vs its own default", "in A", "in B", "B against A", "")
    rows = [_candidate_row(each, whole) for each in metric.candidates]
    base = metric.baseline
    level = _level_text if whole else _short_level_text
    rows.append((DEFAULT, level(base.a), level(base.b), change_text(base.difference), _word(base.word, whole, "*")))
    role = "" if metric.decides else ", which decides nothing: each interval for itself, no verdict"
    return Table(header, tuple(rows), frozenset({1, 2}), f"{metric_title(metric.metric)}{role}")


def _candidate_row(each: CandidateComparison, whole: bool) -> tuple[str, ...]:
    own = _own_text if whole else _short_own_text
    label = clean(each.label, 60 if whole else LABEL_CELLS)
    return (label, own(each.a), own(each.b), change_text(each.difference), _word(each.word, whole))


def _word(word: Word | None, whole: bool, mark: str = "") -> str:
    if word is None:
        return ""
    return (word if whole else _SHORT.get(word, word)) + mark


def _own_text(own: Own) -> str:
    shown = f", {own.shown}" if own.shown else ""
    return f"{change_text(own.effect)} ({counted(own.launches, 'launch', 'launches')}{shown})"


def _short_own_text(own: Own) -> str:
    """`+1.4 % ✓`: the effect and the sign of the session's verdict."""
    return f"{percent(own.effect.change)} {own.shown[:1] if own.shown else ' '}"


def _level_text(level: Level) -> str:
    interval = "" if level.low is None or level.high is None else f" [{figure(level.low)}, {figure(level.high)}]"
    launches = counted(level.launches, "launch", "launches")
    return f"{figure(level.mean)}{interval} ({launches} in {counted(level.blocks, 'block')})"


def _short_level_text(level: Level) -> str:
    return f"{figure(level.mean)}  "  # stands under the effects, which have a sign behind them


def _method(compared: SessionComparison) -> str:
    own = f"{100 * (1 - compared.error):g} %"
    text = (
        f"In A and in B: the candidate against the default of that session, and its session's verdict. B against A: "
        f"(1 + effect in B)/(1 + effect in A) − 1. The launch is the unit; intervals are Student's t on the logs with "
        f"Satterthwaite's degrees of freedom, those of the {counted(compared.comparisons, 'deciding difference')} at "
        f"{own} for all together. “differs”: the interval excludes 0; “agrees”: it lies within "
        f"±{100 * compared.margin:g} %; ?: neither, so not told apart; –: too few launches. "
    )
    if any(metric.baseline.word for workload in compared.workloads for metric in workload.metrics):
        text += (
            "* of the levels themselves, a block counting once; time and machine are in it, so this is no effect of "
            "what was changed. "
        )
    return text.rstrip()


def _lines(title: str, lines: Sequence[str]) -> list[Part]:
    return [Paragraph(title), Points(tuple(lines))] if lines else []
