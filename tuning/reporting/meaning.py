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
        "once, by the mean of the logs of its runs, and configurations and blocks are fitted together, so that drift "
        "from block to block falls on all alike. "
        "After each block from the second on a difference is held against a bar that allows for every candidate, every "
        f"look and every deciding workload, so that in at most {sessions:g} of 100 sessions any candidate is called "
        f"better that is not; one whose interval lies within ±{margin:g} % is equivalent, one that breaks a limit "
        "cannot win, and one that is decided is launched no more. "
        "Undecided says that there was too much noise for so few launches, not that there is no difference."
    )
    intervals = (
        "The interval of a difference from the default comes from that fit and is as wide as the bar asks: for the "
        "deciding metric it holds at all looks together and agrees with the verdict; for other metrics it does not "
        "allow for there being many of them, and no launch is set aside. Behind a level stands the "
        f"{100 * (1 - decide.error):g} % t interval over launches, of each number alone; two launches leave it wide."
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
