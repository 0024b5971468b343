"""How much measurements scattered, and how many launches that took."""

from tuning.document import Heading, Paragraph, Part, Points, Table
from tuning.figures import ABSENT
from tuning.imported.words import counted
from tuning.launch_counts import LaunchCounts, launch_counts
from tuning.reporting.material import Material
from tuning.verdict.boundary import FIRST_LOOK


def noise_parts(material: Material) -> list[Part]:
    parts: list[Part] = []
    judgement = material.judgement
    if judgement is not None and judgement.workloads:
        header = (
            "workload",
            "between runs of a launch",
            "between launches",
            "of a launch's mean",
            "degrees of freedom",
        )
        rows = tuple(
            (
                name,
                sd_text(each.noise.run_sd),
                sd_text(each.noise.launch_sd),
                sd_text(each.noise.value_sd),
                f"{each.noise.df:g}",
            )
            for name, each in judgement.workloads.items()
        )
        parts.append(
            Table(header, rows, frozenset({1, 2, 3, 4}), "Noise of the deciding metrics, as standard deviations")
        )
        parts.append(
            Points(
                tuple(
                    f"{name}: {each.noise.drift or 'no drift was seen'}"
                    for name, each in judgement.workloads.items()
                    if each.blocks >= FIRST_LOOK
                )
            )
        )
        source = judgement.deciding.prior_source
        if source:
            parts.append(Paragraph(f"What {source} found of the noise went into it, where the two agree."))
    if material.launches:
        plan = material.plan
        counts = launch_counts(material.launches, plan.decide.blocks, len(material.candidates) - 1)
        parts.append(Paragraph(launches_text(counts, material.session.state)))
    return [Heading("Noise and launches"), *parts] if parts else []


def sd_text(sd: float | None) -> str:
    """Of logs, so a share: `0.9 %`."""
    return ABSENT if sd is None else f"{100 * sd:.2g} %"


def launches_text(counts: LaunchCounts, state: str) -> str:
    """`41 launches in the place of the 60 …`."""
    extra = counts.starts - counts.used
    starts = (
        f" ({counted(extra, 'more start')} of some of them; {counts.failed} failed)" if extra or counts.failed else ""
    )
    so_far = "" if state in ("done", "stopped", "failed") else " so far"
    spared = f": {100 * counts.spared:.0f} % fewer" if counts.spared > 0 and not so_far else ""
    return (
        f"{counts.used} launches{so_far}{starts}, where {counts.full} were planned at most, with nobody leaving and "
        f"the default launched as often as many comparisons need it{spared}. Each configuration once a block would be "
        f"{counts.grid}."
    )
