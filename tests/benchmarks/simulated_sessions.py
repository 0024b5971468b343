"""Whole sessions on machines whose truth is known: blocks in random order, looks, leaving, launches done again.

What judges is `tuning.verdict` itself, called as a sweep calls it; nothing here decides anything.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from tests.benchmarks.simulated_noise import WRONG, Draws
from tuning.scheduling.schedule import block_cells
from tuning.verdict.design import baseline_launches
from tuning.verdict.look import look
from tuning.verdict.records import FINAL_STATES, LaunchValue, Rules, Verdict

POWER_AT = (0.01, 0.02, 0.03, 0.05)


@dataclass(slots=True)
class Played:
    """One session as it ended: the last verdict of each candidate in each workload, and what it took."""

    verdicts: dict[tuple[int, int], Verdict] = field(default_factory=dict)  # (workload, candidate)
    launches: int = 0
    missed_above: bool = False  # some interval, at some look, lay wholly below its truth
    missed_below: bool = False
    unequal: bool = False  # the session said so at a look


def play(draws: Draws, session: int, rules: Rules) -> Played:
    """Play `session` of `draws` to its end; `rules.workloads` may be less than were drawn (each then has its own)."""
    setting, played = draws.setting, Played()
    truth = draws.effects
    in_play = {workload: set(range(1, setting.candidates + 1)) for workload in range(setting.workloads)}
    values: dict[int, list[LaunchValue]] = {workload: [] for workload in in_play}
    whole = setting.blocks * (setting.candidates + baseline_launches(setting.candidates))
    for block in range(setting.blocks):
        playing = set().union(*in_play.values())
        if not playing:
            break
        for configuration, measured in _block(draws, session, block, playing, played, whole):
            for workload, candidates in in_play.items():
                if configuration == 0 or configuration in candidates:
                    values[workload].append(LaunchValue(block, configuration, float(measured[workload])))
        if block == 0:
            continue
        for workload, candidates in in_play.items():
            if not candidates:
                continue
            seen = look(values[workload], rules, candidates)
            played.unequal |= bool(seen.unequal)
            for candidate, verdict in seen.verdicts.items():
                played.verdicts[workload, candidate] = verdict
                if not verdict.suspect and verdict.low is not None and verdict.high is not None:
                    played.missed_above |= verdict.high < np.expm1(truth[candidate])
                    played.missed_below |= verdict.low > np.expm1(truth[candidate])
                if verdict.state in FINAL_STATES:
                    candidates.discard(candidate)
    return played


def _block(
    draws: Draws, session: int, block: int, playing: set[int], played: Played, whole: int
) -> Iterator[tuple[int, np.ndarray]]:
    """The launches of a block that count, each with its value in every workload; those done again come last."""
    cells = block_cells(session, block, playing, baseline_launches(len(playing)))
    wrong = -1
    if draws.wrong_block[session] == block:
        places = [at for at, cell in enumerate(cells) if draws.setting.wrong == "anywhere" or cell.candidate == 0]
        wrong = places[int(draws.wrong_place[session] * len(places))]
    again = []
    for at, cell in enumerate(cells):
        if draws.counted[session, block, cell.candidate, cell.slot]:
            again.append(at)
    order = [at for at in range(len(cells)) if at not in again]
    baseline_missing = all(draws.counted[session, block, 0, cell.slot] == 2 for cell in cells if cell.candidate == 0)
    played.launches += len(again)
    for at in [*order, *again]:
        cell = cells[at]
        drift = draws.drift(session, min(1.0, played.launches / whole))
        played.launches += 1
        fate = draws.counted[session, block, cell.candidate, cell.slot]
        # A block without any launch of the baseline compares nothing: it is launched until one counts.
        if fate < 2 or (cell.candidate == 0 and baseline_missing):
            value = draws.launches[session, block, cell.candidate, cell.slot] + drift
            yield cell.candidate, value + (WRONG if at == wrong else 0.0)
