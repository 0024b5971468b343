"""What a session says of its candidates, from its rows alone: pure, and recomputed whenever it is asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.text import clean
from store.records import LaunchRecord, RunRecord, SessionRecord
from tuning.figures import metric_title
from tuning.judged import CandidateJudgement, Deciding, Judgement, LimitJudgement, NoiseFound, WorkloadJudgement
from tuning.judgement.candidate_words import found_text, judged_candidate, level_text
from tuning.judgement.deciding import ADDED, KEY, session_deciding
from tuning.judgement.judgement_notes import drift_sentence, session_notes
from tuning.judgement.launch_values import Blocks, log_values, measured, session_blocks
from tuning.judgement.limit_judging import limit_cases, limit_title, limit_workloads
from tuning.judgement.session_looks import Course, SessionCourse, session_course
from tuning.judgement.session_sentence import largest_gain, session_sentence
from tuning.records import Plan
from tuning.scheduling.schedule import BASELINE
from tuning.verdict.calibration import components
from tuning.verdict.records import Drift, Noise

OVER = ("done", "stopped", "failed")  # states of a session that runs no more


def judge(session: SessionRecord, plan: Plan, launches: Sequence[LaunchRecord], runs: Sequence[RunRecord]) -> Judgement:
    """The verdicts after the blocks that are complete; the order of the rows does not matter.

    In a session of an earlier version, which kept launching everybody, and in a calibration the newest look counts.
    """
    deciding = _of_workloads(session_deciding(session, plan), plan)
    blocks = session_blocks(session, plan, launches, runs)
    candidates = sorted(each["index"] for each in session.candidates if each["index"] != BASELINE)
    names = {each["index"]: clean(str(each["label"])) for each in session.candidates} | {BASELINE: "the default"}
    runs = [run for run in runs if run.candidate in names]
    joined = _joined(session, deciding, candidates, blocks)
    limited = [(name, limit.metric) for limit in deciding.limits for name in limit_workloads(limit, plan)]
    found = measured(runs, [*deciding.metric.items(), *limited])
    logs = {workload: found[workload, metric].logs() for workload, metric in deciding.metric.items()}
    leaving = KEY in session.raw and not deciding.calibration
    course = session_course(
        deciding,
        {workload: log_values(of, blocks) for workload, of in logs.items()},
        limit_cases(deciding.limits, plan, found, launches, runs),
        candidates,
        joined,
        blocks,
        leaving,
    )
    out = {int(index): clean(str(why)) for index, why in session.raw.get("out", {}).items()}
    none_yet = tuple(
        LimitJudgement(limit, name, None) for limit in deciding.limits for name in limit_workloads(limit, plan)
    )
    judged: dict[str, WorkloadJudgement] = {}
    for workload, one in course.workloads.items():
        rules = deciding.rules[workload]
        of_candidates = {
            BASELINE: CandidateJudgement(BASELINE, "undecided", limits=course.limits.get(BASELINE, none_yet))
        }
        for index in candidates:
            limits = course.limits.get(index, none_yet)
            of_candidates[index] = judged_candidate(index, course, one, rules, limits, out.get(index))
        judged[workload] = WorkloadJudgement(
            workload=workload,
            metric=deciding.metric[workload],
            rules=rules,
            looks=tuple(one.looks),
            candidates=of_candidates,
            noise=_noise(one, logs[workload], metric_title(deciding.metric[workload])),
            blocks=one.looks[-1].blocks if one.looks else 0,
        )
    winner = None if deciding.calibration else _winner(candidates, judged)
    over = session.state in OVER
    return Judgement(
        sentence=session_sentence(
            deciding, judged, candidates, names, winner, over, len(blocks.begun), len(blocks.complete)
        ),
        deciding=deciding,
        workloads=judged,
        winner=winner,
        leaves={index: _why_leaves(index, course, judged) for index in course.left},
        notes=session_notes(plan, deciding, course, found, blocks, names, joined, over, leaving),
        blocks=blocks.complete,
    )


def _of_workloads(deciding: Deciding, plan: Plan) -> Deciding:
    """Without what names no workload of the plan, in which nothing was measured."""
    names = {workload.name for workload in plan.workloads}
    return replace(deciding, metric={name: metric for name, metric in deciding.metric.items() if name in names})


def _joined(session: SessionRecord, deciding: Deciding, candidates: Sequence[int], blocks: Blocks) -> Mapping[int, int]:
    """Candidate → the block, from 0, that it joined, for those that a person added: indices go on from the plan's."""
    noted = {int(index): int(block) for index, block in session.raw.get(ADDED, {}).items()}
    planned = next((rules.candidates for rules in deciding.rules.values()), 0)
    first: dict[int, int] = {}
    for block, index, _ in blocks.positions:
        first[index] = min(block, first.get(index, block))
    late = {index: first.get(index, len(blocks.begun)) for index in candidates[planned:]}
    return {index: block for index, block in (late | noted).items() if index in candidates}


def _winner(candidates: Sequence[int], judged: Mapping[str, WorkloadJudgement]) -> int | None:
    """Better in a deciding workload, worse in none, and every limit holds; the one with the largest effect."""
    winners = []
    for index in candidates:
        of_index = [one.candidates[index] for one in judged.values()]
        words = {each.verdict for each in of_index}
        held = all(
            limit.verdict is not None and limit.verdict.state == "holds" for each in of_index for limit in each.limits
        )
        if "better" in words and not words & {"worse", "failed", "infeasible"} and held:
            winners.append(index)
    return max(winners, key=lambda index: (largest_gain(index, judged), -index), default=None)


def _why_leaves(index: int, course: SessionCourse, judged: Mapping[str, WorkloadJudgement]) -> str:
    """One line for the session's history: the verdict with its effect, or the limit."""
    several = len(judged) > 1
    if course.left[index][1] == "limit":
        for limit in course.limits[index]:
            if limit.verdict is not None and limit.verdict.state in ("broken", "implausible"):
                title = limit_title(limit.limit, limit.workload)
                broken = limit.verdict.state == "broken"
                return (
                    f"{title} is broken: {level_text(limit)}"
                    if broken
                    else f"{title} hardly holds: {level_text(limit)}"
                )
    parts = []
    for workload, one in judged.items():
        found = one.candidates[index].found
        if found is not None:
            word = "a worthwhile gain is implausible" if found.state == "implausible" else found.state
            where = f" in {workload}" if several else ""
            parts.append(f"{word}, {found_text(found)} {metric_title(one.metric)}{where}")
    return "; ".join(parts)


def _noise(one: Course, logs: Mapping[tuple[int, int, int], Sequence[float]], title: str) -> NoiseFound:
    """Of the newest look. Runs are those of the launches that it is of."""
    noise = one.looks[-1].noise if one.looks else Noise(None, 0.0)
    drift = one.looks[-1].drift if one.looks else Drift()
    seen = {(value.block, value.configuration) for value in one.values}
    parts = components([of for cell, of in sorted(logs.items()) if cell[:2] in seen], noise)
    return NoiseFound(parts.run_sd, parts.launch_sd, noise.sd, noise.df, drift_sentence(drift, title))
