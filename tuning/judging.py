"""What a session says of its candidates, from its rows alone: pure, and recomputed whenever it is asked for."""

from collections.abc import Sequence

from store.records import LaunchRecord, RunRecord, SessionRecord
from tuning.deciding import ADDED, session_deciding
from tuning.judged import CandidateJudgement, Deciding, Judgement, NoiseFound, Word, WorkloadJudgement
from tuning.launch_values import Blocks, Measured, launch_values, measured_logs, session_blocks
from tuning.records import Plan
from tuning.schedule import BASELINE
from tuning.session_looks import Course, workload_course
from tuning.verdict.calibration import components
from tuning.verdict.records import FINAL_STATES, Noise, Verdict

IMPLAUSIBLE = "a gain of {:g} % or more is implausible; launched no more"


def judge(session: SessionRecord, plan: Plan, launches: Sequence[LaunchRecord], runs: Sequence[RunRecord]) -> Judgement:
    """The verdicts after the blocks that are complete; the order of the rows does not matter."""
    deciding = session_deciding(session, plan)
    blocks = session_blocks(session, launches, runs)
    added = {int(index): int(block) for index, block in session.raw.get(ADDED, {}).items()}
    candidates = [each["index"] for each in session.candidates if each["index"] != BASELINE]
    measured = measured_logs(runs, {workload: [metric] for workload, metric in deciding.metric.items()})
    judged = {}
    for workload, metric in deciding.metric.items():
        found = measured[workload, metric]
        course = workload_course(launch_values(found.logs, blocks), deciding, workload, candidates, added, blocks)
        judged[workload] = _workload(deciding, workload, course, found, blocks, candidates)
    leaves = {
        index: "decided"
        for index in candidates
        if judged and not deciding.calibration and all(_final(one.candidates[index].found) for one in judged.values())
    }
    return Judgement("", deciding, judged, leaves=leaves)


def _final(found: Verdict | None) -> bool:
    return found is not None and found.state in FINAL_STATES


def _workload(
    deciding: Deciding, workload: str, course: Course, measured: Measured, blocks: Blocks, candidates: Sequence[int]
) -> WorkloadJudgement:
    rules = deciding.rules[workload]
    judged = {}
    for index in candidates:
        found = course.found.get(index)
        word: Word = "undecided" if found is None or found.state == "implausible" else found.state
        why = ""
        if found is not None and found.state == "implausible":
            why = IMPLAUSIBLE.format(100 * rules.smallest_effect)
        judged[index] = CandidateJudgement(
            index, word, found, block=course.block[index] + 1 if _final(found) else None, why=why
        )
    return WorkloadJudgement(
        workload,
        deciding.metric[workload],
        rules,
        tuple(course.looks),
        judged,
        _noise(course, measured),
        blocks=course.looks[-1].blocks if course.looks else 0,
    )


def _noise(course: Course, measured: Measured) -> NoiseFound:
    noise = course.looks[-1].noise if course.looks else Noise(None, 0.0)
    seen = {(value.block, value.configuration) for value in course.values}
    runs = [logs for cell, logs in sorted(measured.logs.items()) if cell[:2] in seen]
    parts = components(runs, noise)
    return NoiseFound(parts.run_sd, parts.launch_sd, noise.sd, noise.df)
