"""How much measurements scattered, and how many launches that took."""

from tuning.counting import counted
from tuning.document import Heading, Paragraph, Part, Points, Table
from tuning.figures import size_percent
from tuning.judgement.judging import OVER
from tuning.reporting.material import Material
from tuning.scheduling.launch_counts import LaunchCounts, launch_counts
from tuning.verdict.boundary import FIRST_LOOK


def noise_parts(material: Material) -> list[Part]:
    parts: list[Part] = []
    judgement = material.judgement
    if judgement is not None and any(each.blocks >= FIRST_LOOK for each in judgement.workloads.values()):
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
        blocks, candidates = material.plan.decide.blocks, len(material.candidates) - 1
        counts = launch_counts(material.launches, blocks, candidates)
        over = material.session.state in OVER
        parts.append(Paragraph(launches_text(counts, blocks, candidates, over)))
    return [Heading("Noise and launches"), *parts] if parts else []


def sd_text(sd: float | None) -> str:
    """Of logs, so a share: `0.9 %`."""
    return size_percent(sd)


def launches_text(counts: LaunchCounts, blocks: int, candidates: int, over: bool) -> str:
    """`41 launches, 32 % fewer than the 60 that …`. `over`: none will follow."""
    extra = counts.starts - counts.used
    starts = (
        f" ({counted(extra, 'more start')} of some of them; {counts.failed} failed)" if extra or counts.failed else ""
    )
    spared = round(100 * counts.spared)
    against = f"{spared} % fewer than the" if spared and over else "of the"
    made = f"{counted(counts.used, 'launch', 'launches')}{starts}{'' if over else ' so far'}"
    most = (
        f"{counts.full} that it could come to: {counted(blocks, 'block')} of {counted(candidates, 'candidate')}, and "
        "of the default as many as they need"
    )
    grid = f" Each configuration once a block would be {counts.grid}." if counts.grid != counts.full else ""
    return f"{made}, {against} {most}.{grid}"
