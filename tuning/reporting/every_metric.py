"""Every metric of every configuration, in tables narrow enough for paper."""

from tuning.document import Heading, Paragraph, Part, Table
from tuning.figures import ABSENT, effect_text, metric_title, summary_text
from tuning.records import CandidateResult
from tuning.reporting.material import Material
from tuning.scheduling.schedule import BASELINE

_COLUMNS = 4  # configurations a table


def every_metric_parts(material: Material) -> list[Part]:
    tables: list[Part] = []
    for workload in material.plan.workloads:
        results = [each for each in material.by_effect(workload.name) if each.summaries]
        metrics = material.metrics(workload.name)
        tables += [_table(workload.name, metrics, few) for few in _split(results)]
    if not tables:
        return []
    said = "The mean over launches with its interval; after a semicolon the difference from the default with its own."
    return [Heading("Every metric"), Paragraph(said), *tables]


def _table(workload: str, metrics: list[str], results: list[CandidateResult]) -> Table:
    header = ("metric", *(each.candidate.label for each in results))
    rows = tuple((metric_title(metric), *(_cell(each, metric) for each in results)) for metric in metrics)
    return Table(header, rows, frozenset(range(1, len(header))), workload)


def _cell(each: CandidateResult, metric: str) -> str:
    level, effect = summary_text(each.summaries.get(metric)), effect_text(each.effects.get(metric))
    return level if each.candidate.index == BASELINE or ABSENT in (level, effect) else f"{level};\n{effect}"


def _split(results: list[CandidateResult]) -> list[list[CandidateResult]]:
    """As few tables as may be, of about as many columns each."""
    tables = -(-len(results) // _COLUMNS)
    columns = -(-len(results) // tables) if tables else 0
    return [results[columns * at : columns * (at + 1)] for at in range(tables)]
