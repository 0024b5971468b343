"""What a session did without: who left, what failed to start, which runs were rejected, which points not tried."""

from collections import Counter
from collections.abc import Mapping

from store.records import RunRecord
from tuning.checks.finding import evidence_of, numbers_text
from tuning.counting import counted
from tuning.document import Heading, Paragraph, Part, Points, Table
from tuning.figures import ABSENT
from tuning.judgement.leaving import reason_of
from tuning.reporting.material import Material
from tuning.reporting.values import as_value

_FATES = {"not tried": "Not tried, since they would fail as one before them did:", "skipped": "Left out by hand:"}
_MOST = 40  # lines of a table; CSV and JSON have all


def loss_parts(material: Material) -> list[Part]:
    parts = [*_left(material), *_failed(material), *_rejected(material), *_noted(material), *_skipped(material)]
    return [Heading("What left, failed or was rejected"), *parts] if parts else []


def _left(material: Material) -> list[Part]:
    judgement = material.judgement
    if judgement is None or not judgement.leaves:
        return []
    rows = []
    for index, why in sorted(judgement.leaves.items()):
        blocks = [
            judged.candidates[index].block for judged in judgement.workloads.values() if index in judged.candidates
        ]
        last = max((block for block in blocks if block is not None), default=None)
        rows.append((material.label(index), ABSENT if last is None else str(last), why or ABSENT))
    return [Table(("candidate", "after block", "why"), tuple(rows), frozenset({1}), "Launched no more")]


def _failed(material: Material) -> list[Part]:
    """What failed to start or broke, and apart from it what was never launched or left out by a person."""
    failures = {each.candidate.index: each.failures for each in material.result.results}
    out = {int(index): str(why) for index, why in material.session.raw.get("out", {}).items()}
    said: dict[str, list[str]] = {}
    for index, reasons in failures.items():
        for reason in reasons:
            word = reason_of(reason) if reason == out.get(index) else "did not start"
            said.setdefault(_FATES.get(word, "Failed:"), []).append(f"{material.label(index)}: {reason}")
    return [part for title, lines in said.items() for part in (Paragraph(title), Points(tuple(lines)))]


def _rejected(material: Material) -> list[Part]:
    rejected = [run for run in material.runs if run.state == "rejected"]
    if not rejected:
        return []
    tries = Counter((run.launch_id, run.workload, run.kind, run.repeat) for run in rejected)
    twice = sum(count > 1 for count in tries.values())
    measured = [run for run in material.runs if run.kind == "measured"]
    lost = sum(run.state == "rejected" for run in measured)
    warm = counted(len(rejected) - lost, "warm-up")
    said = (
        f"Rejected: {lost} of {counted(len(measured), 'measured run')}, and {warm}. None of them counts. Each was "
        f"made again once, with other prompts; {counted(twice, 'run was', 'runs were')} rejected again."
    )
    rows = tuple(_run(material, run) for run in rejected[:_MOST])
    more = len(rejected) - len(rows)
    table = Table(("block", "candidate", "workload", "run", "reason", "evidence"), rows, caption="Rejected runs")
    return [Paragraph(said), table, *([Paragraph(f"And {more} more, which CSV and JSON have.")] if more else [])]


def _noted(material: Material) -> list[Part]:
    """What checks found of runs that count all the same, by check, the newest reason of each."""
    found: dict[str, list[str]] = {}
    for run in material.runs:
        if run.state == "done" and run.kind == "measured":
            for finding in evidence_of(run):
                found.setdefault(finding.check, []).append(finding.reason)
    lines = tuple(f"{counted(len(reasons), 'run')}: {reasons[-1]}" for reasons in found.values())
    return (
        [Paragraph("Found of runs that count all the same, by the newest of each kind:"), Points(lines)]
        if lines
        else []
    )


def _run(material: Material, run: RunRecord) -> tuple[str, ...]:
    what = f"{'warm-up' if run.kind == 'warmup' else 'run'} {run.repeat + 1}"
    told = "; ".join(numbers_text(finding) for finding in evidence_of(run) if finding.rejects) or ABSENT
    return str(run.block + 1), material.label(run.candidate), run.workload, what, run.reason or ABSENT, told


def _skipped(material: Material) -> list[Part]:
    kept = material.session.raw.get("left_out")
    points = [each for each in kept if isinstance(each, Mapping)] if isinstance(kept, list) else []
    if not points:
        return []
    lines = [f"{as_value(each.get('settings'))}: {as_value(each.get('reason'))}" for each in points[:_MOST]]
    more = len(points) - len(lines)
    lines += [f"and {more} more"] if more else []
    return [Paragraph("Points of the grid that were left out before any launch:"), Points(tuple(lines))]
