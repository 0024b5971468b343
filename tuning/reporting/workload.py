"""A workload's part of a report: verdicts, limits and what users of the server would notice, with pictures."""

from collections.abc import Sequence

from tuning.document import Heading, Paragraph, Part, Table
from tuning.figures import ABSENT, effect_text, figure, metric_title, summary_text
from tuning.judged import LimitJudgement, WorkloadJudgement
from tuning.judgement.limit_judging import limit_title
from tuning.judgement.pareto import THROUGHPUTS, default_latency, pareto
from tuning.judgement.verdict_words import verdict_text
from tuning.limited_by import agreed, example
from tuning.records import CandidateResult, Workload
from tuning.reporting.load import load_text
from tuning.reporting.material import USUAL_METRIC, Material
from tuning.reporting.pictures import course_picture, forest_picture, trade_picture
from tuning.scheduling.schedule import BASELINE

# What users of a server notice, of those that are not the deciding metric.
NOTICED = (
    "total_tok_per_s",
    "output_tok_per_s",
    "goodput_per_s",
    "mean_ttft_ms",
    "p99_ttft_ms",
    "mean_tpot_ms",
    "p99_itl_ms",
)
_LEGEND = {
    "better": "✓ better: its advantage is no noise",
    "worse": "✗ worse: its disadvantage is no noise",
    "equivalent": "≈ equivalent: whatever difference there is lies within ±{margin:g} %",
    "undecided": "? undecided, with about how many more blocks would decide it: not shown to differ, nor to be alike",
    "infeasible": "⊘ infeasible: it breaks a limit, however fast it is",
    "failed": "! failed: it did not start",
    "dropped": "– dropped: left out by hand",
}
_IMPLAUSIBLE = (
    "? gain implausible: undecided too, but an advantage of {:g} % or more is unlikely, so it is launched no more"
)
_LEVEL = (
    "A level is the geometric mean over launches of what a run says: of a p99 that is the mean of the runs' p99s, not "
    "the p99 of all requests together. A limit is judged like a verdict, so that near it nothing is decided."
)
_STATES = {
    "holds": "✓ holds",
    "broken": "✗ broken",
    "implausible": "✗ implausible",
    "undecided": "? undecided",
}


def workload_parts(material: Material, workload: Workload, at: int) -> list[Part]:
    """`at` numbers the workload within the page."""
    name = workload.name
    judged = material.judged(name)
    role = f"decided by {metric_title(material.metric(name))}" if name in material.result.metric else "decides nothing"
    return [
        Heading(f"{name}: {role}"),
        Paragraph(load_text(workload)),
        _verdicts(material, name, judged),
        *([Paragraph(_legend(judged))] if judged is not None and not material.calibration else []),
        *forest_picture(material, name, at),
        *_limits(material, name, judged),
        *_noticed(material, name),
        *_trade(material, name, at),
        *course_picture(material, name, at),
        *_limited(material.results(name)),
    ]


def _verdicts(material: Material, name: str, judged: WorkloadJudgement | None) -> Table:
    metric = material.metric(name)
    limited = material.judgement is not None and bool(material.judgement.deciding.limits)
    header = ["candidate", *(["verdict"] if judged else []), "vs default", metric_title(metric), "launches"]
    header += [*(["limits"] if limited else []), *(["settled"] if judged else [])]
    rows = []
    for each in material.by_effect(name):
        index, summary = each.candidate.index, each.summaries.get(metric)
        of = None if judged is None else judged.candidates.get(index)
        row = [each.candidate.label]
        if judged is not None:
            row.append("baseline" if index == BASELINE else verdict_text(of, judged.rules, judged.blocks))
        row.append("baseline" if index == BASELINE else effect_text(material.deciding_effect(each)))
        row += [summary_text(summary), str(summary.n if summary else 0)]
        if limited:
            row.append(limits_text(of.limits if of else (), name))
        if judged is not None:
            after = f"after block {of.block}" if of and of.block else ""
            row.append(": ".join(filter(None, (after, of.why if of else ""))) or ABSENT)
        rows.append(tuple(row))
    numbers = frozenset(header.index(column) for column in ("vs default", metric_title(metric), "launches"))
    return Table(tuple(header), tuple(rows), numbers, f"Against the default on {metric_title(metric)}")


def limits_text(limits: Sequence[LimitJudgement], workload: str) -> str:
    """`✓ all hold`, `✗ 1 broken`, `? 2 undecided`: the worst that is true of one of this workload."""
    states = [each.verdict.state for each in limits if each.workload == workload and each.verdict is not None]
    broken = sum(state in ("broken", "implausible") for state in states)
    undecided = states.count("undecided")
    if broken:
        return f"✗ {broken} broken"
    return f"? {undecided} undecided" if undecided else "✓ all hold" if states else ABSENT


def _state(limit: LimitJudgement) -> str:
    return "? not measured" if limit.verdict is None else _STATES[limit.verdict.state]


def _legend(judged: WorkloadJudgement | None) -> str:
    if judged is None:
        return ""
    of = [each for index, each in judged.candidates.items() if index != BASELINE]
    words = {each.verdict for each in of}
    said = [text.format(margin=100 * judged.rules.margin) for word, text in _LEGEND.items() if word in words]
    if any(each.found is not None and each.found.state == "implausible" for each in of):
        said.append(_IMPLAUSIBLE.format(100 * judged.rules.smallest_effect))
    return f"{'. '.join(said)}." if said else ""


def _limits(material: Material, name: str, judged: WorkloadJudgement | None) -> list[Part]:
    """A column for each limit of this workload: its state and the level that was held against it."""
    if judged is None:
        return []
    rows = []
    wanted: dict[str, None] = {}
    for each in material.by_effect(name):
        of = judged.candidates.get(each.candidate.index)
        here = {limit_title(limit.limit): limit for limit in (of.limits if of else ()) if limit.workload == name}
        wanted |= dict.fromkeys(here)
        rows.append((each.candidate.label, here))
    if not wanted:
        return []
    cells = tuple((label, *(_held(here.get(text)) for text in wanted)) for label, here in rows)
    if all(cell == _STATES["holds"] for row in cells for cell in row[1:]):
        return [Paragraph(f"Every configuration keeps every limit: {', '.join(wanted)}.")]
    return [Table(("candidate", *wanted), cells, caption="Limits"), Paragraph(_LEVEL)]


def _held(limit: LimitJudgement | None) -> str:
    if limit is None or limit.verdict is None or limit.verdict.level is None:
        return ABSENT if limit is None else _state(limit)
    found = limit.verdict
    if found.level == 0 and found.low is None:
        return _state(limit)
    interval = "" if found.low is None or found.high is None else f" [{figure(found.low)}, {figure(found.high)}]"
    near = f",\n{limit.near}" if limit.near else ""
    return f"{_state(limit)}:\n{figure(found.level)}{interval}{near}"


def _noticed(material: Material, name: str) -> list[Part]:
    measured = material.metrics(name)
    shown = [metric for metric in NOTICED if metric in measured and metric != material.metric(name)]
    if not shown:
        return []
    rows = [
        (each.candidate.label, *(_with_effect(each, metric) for metric in shown)) for each in material.by_effect(name)
    ]
    header = ("candidate", *map(metric_title, shown))
    return [
        Table(header, tuple(rows), frozenset(range(1, len(header))), "What else users notice, and against the default")
    ]


def _with_effect(each: CandidateResult, metric: str) -> str:
    summary, effect = each.summaries.get(metric), effect_text(each.effects.get(metric))
    mean = figure(summary.mean if summary else None)
    return mean if each.candidate.index == BASELINE or effect == ABSENT else f"{mean}\n({effect})"


def _trade(material: Material, name: str, at: int) -> list[Part]:
    results = material.results(name)
    limits = () if material.judgement is None else material.judgement.deciding.limits
    metrics = [limit.metric for limit in limits if limit.workload in (None, name)]
    deciding = material.metric(name)
    latency = default_latency(results, [deciding, *metrics])
    throughput = deciding if deciding in THROUGHPUTS else USUAL_METRIC
    if latency is None or material.calibration:
        return []
    points = pareto(results, throughput, latency)
    front = [point.label for point in points if point.optimal]
    if len(points) < 2:
        return []
    both = f"{metric_title(throughput)} and {metric_title(latency)}"
    said = f"No configuration beats these in both {both}, by their means: {', '.join(front)}."
    return [Paragraph(said), *trade_picture(points, throughput, latency, at)]


def _limited(results: list[CandidateResult]) -> list[Part]:
    """What limited each candidate's runs, whole, by the newest run of those that agree."""
    rows = tuple(
        (each.candidate.label, agreed(each.limited_by), example(each.limited_by)) for each in results if each.limited_by
    )
    header = ("candidate", "limited by", "in full, by the newest run that says so")
    return [Table(header, rows, caption="What limited the server")] if rows else []
