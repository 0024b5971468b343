"""How a verdict is reached, in three sentences, and what the numbers of a report mean."""

from tuning.document import Heading, Paragraph, Part, Table
from tuning.figures import metric_title
from tuning.metric_meaning import meaning
from tuning.records import RUN_METRICS
from tuning.reporting.material import Material


def method_parts(material: Material) -> list[Part]:
    decide = material.plan.decide
    sessions, margin = 100 * decide.error, 100 * decide.smallest_effect
    three = (
        "Each block launches the default and every candidate still in play afresh, in random order; a launch counts "
        "once, by the mean over its runs, and is compared with the default of its own block, so that drift falls on "
        "all alike. After each block from the second on a difference is held against a bar that allows for every "
        f"candidate, every look and every deciding workload, so that in at most {sessions:g} of 100 sessions any "
        f"candidate is called better that is not; whose interval lies within ±{margin:g} % is equivalent, who breaks "
        "a limit cannot win, and who is decided is launched no more. "
        "Undecided says that noise is too large for so few launches, not that there is no difference."
    )
    intervals = (
        "Intervals of the deciding metric against the default are those of the bar: they hold at all looks together "
        "and agree with the verdicts. All others are of each number alone, not corrected for looking at many: behind "
        f"a difference the {100 * (1 - decide.error):g} % t interval of paired logs over blocks, behind a level that "
        "over launches; with two launches they are wide."
    )
    where = (
        "With sources, and how often it was right in simulated sessions: docs/verdict.md of llmtune; the design: "
        "docs/method.md."
    )
    parts: list[Part] = [Heading("How the verdict is reached"), Paragraph(three)]
    return [*parts, Paragraph(intervals), Paragraph(where)]


def meaning_parts(material: Material) -> list[Part]:
    """The definitions of the metrics that any table shows."""
    shown = {metric for workload in material.plan.workloads for metric in material.metrics(workload.name)}
    rows = tuple((metric_title(metric), meaning(metric)) for metric in RUN_METRICS if metric in shown)
    if not rows:
        return []
    return [
        Heading("What the numbers mean"),
        Paragraph("As vllm bench serve measures them; other tools mean other things by the same words."),
        Table(("metric", "meaning"), rows),
    ]
