"""The looks of a whole session: one after each complete block, in each of its deciding workloads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tuning.judged import Deciding
from tuning.launch_values import Blocks
from tuning.verdict.look import look
from tuning.verdict.records import BASELINE, FINAL_STATES, LaunchValue, Look, Rules, Verdict


@dataclass(slots=True)
class Course:
    """One deciding workload. `found` is each candidate's last verdict, `block` (from 0) that of the look it is of."""

    looks: list[Look] = field(default_factory=list)
    found: dict[int, Verdict] = field(default_factory=dict)
    block: dict[int, int] = field(default_factory=dict)
    final: set[int] = field(default_factory=set)
    values: list[LaunchValue] = field(default_factory=list)  # that were looked at


def rules_at(rules: Rules, added: Mapping[int, int], block: int) -> Rules:
    """Those of the look after `block`: with the candidates that were added by then."""
    return replace(rules, candidates=rules.candidates + sum(joined <= block for joined in added.values()))


def workload_course(
    values: Sequence[LaunchValue],
    deciding: Deciding,
    workload: str,
    candidates: Sequence[int],
    added: Mapping[int, int],
    blocks: Blocks,
) -> Course:
    """Look after each complete block that has a launch of the baseline.

    A candidate is looked at in the blocks that were drawn for it, until it is decided; what it gives after that is left
    out, as in the simulations. In a calibration nobody is ever decided: each look tells more of the noise.
    """
    course, rules = Course(), deciding.rules[workload]
    for block in blocks.complete:
        now = [value for value in values if value.block == block and value.configuration not in course.final]
        course.values += now
        if not any(value.configuration == BASELINE for value in now):
            continue
        if len(course.looks) == rules.blocks:
            break
        in_play = [
            index
            for index in candidates
            if index not in course.final and added.get(index, 0) <= block <= blocks.last.get(index, -1)
        ]
        seen = look(course.values, rules_at(rules, added, block), in_play, deciding.prior.get(workload))
        course.looks.append(seen)
        for index, verdict in seen.verdicts.items():
            course.found[index] = verdict
            course.block[index] = block
            if verdict.state in FINAL_STATES and not deciding.calibration:
                course.final.add(index)
    return course
