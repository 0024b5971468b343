"""Two sessions in some sentences: their effects, then the levels of their defaults."""

from collections.abc import Sequence
from typing import NamedTuple

from engine.text import clean
from tuning.compared.records import CandidateComparison, Change, MetricComparison, Word, WorkloadComparison
from tuning.counting import counted
from tuning.figures import effect_text, metric_title, percent
from tuning.records import Effect

_MOST_NAMED = 3


class _Row(NamedTuple):
    """A candidate by a deciding metric, and the words that tell it from those of other workloads and metrics."""

    compared: CandidateComparison
    where: str


def change_text(change: Change) -> str:
    """`+1.4 % [−0.3, +3.1]`."""
    return effect_text(Effect(0, change.change, change.low, change.high))


def sentence_of(workloads: Sequence[WorkloadComparison], refused: Sequence[str], margin: float) -> str:
    """What comes first of a comparison. `margin` is the ratio − 1 within which effects agree."""
    if not workloads:
        return f"Not compared: {'; '.join(refused)}."
    deciding = [(workload, metric) for workload in workloads for metric in workload.metrics if metric.decides]
    several = len(deciding) > 1
    rows = [
        _Row(each, f" in {workload.label} by {metric_title(metric.metric)}" if several else "")
        for workload, metric in deciding
        for each in metric.candidates
    ]
    levels = [
        _level_sentence(metric, f" in {workload.label}" if several else "")
        for workload, metric in deciding
        if metric.baseline.word == "differs"
    ]
    return " ".join([*(_effect_sentences(rows, margin) if rows else ["No candidate was measured in both."]), *levels])


def _effect_sentences(rows: Sequence[_Row], margin: float) -> list[str]:
    words = [row.compared.word for row in rows]
    differ = [
        f"{_label(row)} ({percent(row.compared.a.effect.change)} in A, {percent(row.compared.b.effect.change)} in B)"
        for row in rows
        if row.compared.word == "differs"
    ]
    within = f"within {100 * margin:g} %"
    phrases: tuple[tuple[Word, str, str], ...] = (
        ("agrees", f"agrees {within}", f"agree {within}"),
        ("not told apart", "is not told apart", "are not told apart"),
        ("says nothing", "has too few launches to say", "have too few launches to say"),
    )
    found = [f"{len(differ)} differ{'s' if len(differ) == 1 else ''}: {_named(differ)}"] if differ else []
    found += [
        f"{number} {one if number == 1 else several}" for word, one, several in phrases if (number := words.count(word))
    ]
    sentences = [f"Of {counted(len(rows), 'effect')} measured in both, {'; '.join(found)}."]
    if better := [_label(row) for row in rows if row.compared.a.verdict == row.compared.b.verdict == "better"]:
        sentences.append(f"Better than the default in both: {_named(better)}.")
    return sentences


def _level_sentence(metric: MetricComparison, where: str) -> str:
    change = change_text(metric.baseline.difference)
    return f"The default's own {metric_title(metric.metric)}{where}: {change} from A to B, time and machine included."


def _label(row: _Row) -> str:
    return clean(row.compared.label, 40) + row.where


def _named(labels: Sequence[str]) -> str:
    more = len(labels) - _MOST_NAMED
    return ", ".join(labels[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
