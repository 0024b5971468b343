"""What is said of imported files, for a person: the parts of a document."""

from collections.abc import Sequence

from engine.text import clean
from tuning.counting import counted, span_text
from tuning.document import Heading, Paragraph, Part, Points, Table
from tuning.figures import ABSENT, figure, metric_title, percent
from tuning.imported.comparing import interval_text
from tuning.imported.records import (
    Basis,
    Comparison,
    Configuration,
    Figure,
    ImportReport,
    Load,
    Refused,
    Repeat,
)
from tuning.imported.run_names import place_name
from tuning.records import RUN_METRICS

SHOWN = ("total_tok_per_s", "mean_ttft_ms", "p99_ttft_ms", "mean_itl_ms", "p99_itl_ms")
_LINES = 20  # of refused files and the like; JSON has all

_UNITS: dict[Basis, str] = {
    "launches": "± is over launches",
    "stretches": (
        "~ or * over stretches is over groups of runs between which a restart would have found time; the files do not "
        "say whether there was one, so it may be too narrow"
    ),
    "runs": (
        "~ or * over runs says how these scatter on one server, not where another launch would lie; runs on one server "
        "are not launches"
    ),
}


def parts(report: ImportReport, whole: bool = False) -> list[Part]:
    """The report: what was read, then each workload with what can be said of it first and its table after. `whole`
    gives bounds in place of ± and every metric: a file is wider than a terminal."""
    found: list[Part] = [Heading(_read(report), 1)]
    found += _lines("Not read:", [_refusal(each) for each in report.refused])
    found += _lines("Failed in a sweep:", [_refusal(each) for each in report.failures])
    if report.notes:
        found.append(Points(report.notes))
    for load in report.loads:
        found += _load_parts(load, whole)
    if report.loads:
        found.append(Paragraph(_method(report)))
    return found


def _read(report: ImportReport) -> str:
    line = f"{counted(report.runs, 'run')} in {counted(report.files, 'file')}"
    if report.runs:
        counting = sum(each.counted for load in report.loads for each in load.configurations)
        configurations = sum(len(load.configurations) for load in report.loads)
        line += (
            f", {counting} of which count: {counted(configurations, 'configuration')} "
            f"in {counted(len(report.loads), 'workload')}"
        )
    if report.repeated:
        line += f"; {counted(report.repeated, 'result')} stood in a second file too, counted once"
    if report.left_alone:
        line += f"; {counted(report.left_alone, 'other file')} left alone"
    if report.kept:
        new, known = report.kept.get("new", 0), report.kept.get("known", 0)
        line += f"; kept {counted(new, 'new file')}" + (f", {known} known before" if known else "")
    return line


def _load_parts(load: Load, whole: bool) -> list[Part]:
    found: list[Part] = [Heading(load.label)]
    if load.comparisons:
        found += _comparison_parts(load.comparisons)
    elif len(load.configurations) > 1:
        found.append(Paragraph("Nothing to compare: fewer than two configurations have a run that counts."))
    found += _lines("The same configuration again:", _repeat_lines(load.repeats))
    shown = [metric for metric in SHOWN if any(metric in each.figures for each in load.configurations)]
    text = figure_text if whole else short_figure_text
    header = ("", "runs", *map(metric_title, shown), "")
    rows = tuple(
        (each.label, _runs(each), *(text(each.figures.get(metric)) for metric in shown), _when(each))
        for each in load.configurations
    )
    found.append(Table(header, rows, frozenset({1})))
    found += _lines("Not counted:", _rejected(load))
    if whole:
        found.append(_every_metric(load))
    return found


def _comparison_parts(comparisons: Sequence[Comparison]) -> list[Part]:
    """A sentence for each metric where one configuration stands against another, a table where more do."""
    against = comparisons[0].against
    labels = list(dict.fromkeys(each.label for each in comparisons))
    if len(labels) == 1:
        return [Paragraph(f"{labels[0]} against {against}:"), Points(tuple(each.text for each in comparisons))]
    metrics = list(dict.fromkeys(each.metric for each in comparisons))
    cells = {(each.label, each.metric): _comparison_cell(each) for each in comparisons}
    rows = tuple((label, *(cells.get((label, metric), ABSENT) for metric in metrics)) for label in labels)
    of_reason: dict[str, dict[str, None]] = {}
    for each in comparisons:
        of_reason.setdefault(each.reason, {})[metric_title(each.metric)] = None
    reasons = [f"{', '.join(titles)}: {reason}" for reason, titles in of_reason.items()]
    return [
        Paragraph(f"Against {against}:"),
        Table(("", *map(metric_title, metrics)), rows),
        *_lines("What that rests on:", reasons),
    ]


def _repeat_lines(repeats: Sequence[Repeat]) -> list[str]:
    found: dict[str, list[str]] = {}
    for each in repeats:
        when = f" over {span_text(each.span_s)}" if each.span_s else ""
        apart = percent(each.apart).lstrip("+")
        found.setdefault(f"{each.label}{when}", []).append(f"{metric_title(each.metric)} {apart}")
    return [f"{which}: {', '.join(apart)} apart at most" for which, apart in found.items()]


def _comparison_cell(each: Comparison) -> str:
    mark = "?" if each.verdict == "says nothing" else each.verdict
    return f"{interval_text(each.effect, each.low, each.high)} {mark}"


def _every_metric(load: Load) -> Part:
    metrics = [metric for metric in RUN_METRICS if any(metric in each.figures for each in load.configurations)]
    header = ("metric", *(each.label for each in load.configurations))
    rows = tuple(
        (metric_title(metric), *(figure_text(each.figures.get(metric)) for each in load.configurations))
        for metric in metrics
    )
    return Table(header, rows)


def figure_text(found: Figure | None) -> str:
    """`27,273 [26,851, 27,701]`, with * where the interval is not over launches."""
    if found is None:
        return ABSENT
    if found.low is None or found.high is None:
        return figure(found.mean)
    mark = "" if found.basis == "launches" else "*"
    return f"{figure(found.mean)} [{figure(found.low)}, {figure(found.high)}]{mark}"


def short_figure_text(found: Figure | None) -> str:
    """`27,273 ±1.6 %`: the farther bound, as a share of the mean; `~` in place of `±` where the interval is not
    over launches."""
    if found is None:
        return ABSENT
    if found.low is None or found.high is None or not found.mean:
        return figure(found.mean)
    share = 100 * max(found.high / found.mean - 1, 1 - found.low / found.mean)
    text = ">999" if share > 999 else f"{share:.0f}" if share >= 9.95 else f"{share:.1f}" if share >= 0.05 else "<0.1"
    return f"{figure(found.mean)} {'±' if found.basis == 'launches' else '~'}{text} %"


def _runs(each: Configuration) -> str:
    if each.basis == "runs" or not each.units:
        return str(each.counted)
    return f"{each.counted} in {len(each.units)} {each.basis}"


def _when(each: Configuration) -> str:
    if len(each.units) > 1 and each.span_s:
        return f"over {span_text(each.span_s)}"
    return ""


def _rejected(load: Load) -> list[str]:
    return [
        f"{place_name(run.place)}: {run.rejected}" for each in load.configurations for run in each.runs if run.rejected
    ]


def _method(report: ImportReport) -> str:
    bases = dict.fromkeys(
        found.basis
        for load in report.loads
        for each in load.configurations
        for found in each.figures.values()
        if found.low is not None
    )
    by = ("the sweep's serve parameters" if key == "serve" else key for key in report.told_by)
    told = f"Configurations are told apart by {', '.join(by)}. " if report.told_by else ""
    configurations = [each for load in report.loads for each in load.configurations]
    if not report.told_by and any(len(each.runs) > 1 for each in configurations):
        told = (
            "Nothing here tells configurations apart, so runs of one model and workload are taken for one (vllm bench "
            "serve --metadata KEY=VALUE would tell). "
        )
    elif "file name" in report.told_by and not any(each.basis == "launches" for each in configurations):
        told += "Where file names say which launch a run is of, --names PATTERN has them read so. "
    words = "; ".join(_UNITS[basis] for basis in bases)
    intervals = (
        f"Intervals are Student's t at 95 % on the logs (the farther bound as a share): {words}. " if bases else ""
    )
    if any(each.verdict == "says nothing" for load in report.loads for each in load.comparisons):
        intervals += "? is a difference without an interval, which says nothing. "
    return (
        f"{told}{intervals}Results do not say their order, their dataset or what else ran; none of this is a "
        "randomised comparison, as a sweep of llmtune makes one. Latencies in ms, throughputs a second, as vllm bench "
        "serve defines them."
    )


def _refusal(each: Refused) -> str:
    return f"{clean(each.path, 200)}: {each.reason}"


def _lines(title: str, lines: Sequence[str]) -> list[Part]:
    if not lines:
        return []
    more = [f"and {len(lines) - _LINES:,} more (--json has all)"] if len(lines) > _LINES else []
    return [Paragraph(title), Points((*lines[:_LINES], *more))]
