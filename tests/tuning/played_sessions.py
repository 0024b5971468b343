"""Sessions on machines whose truth is known, as rows of a store: blocks are drawn, launched and judged as a sweep does.

Every draw hangs on its own place only, so that the same session with a row more or less is else the same.
"""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from store.records import LaunchRecord, RunRecord, SessionRecord
from tests.tuning.examples import launch, random_workload, run, session
from tests.tuning.examples import plan as example_plan
from tuning.judged import Judgement
from tuning.judgement.deciding import KEY, deciding_json, deciding_of
from tuning.judgement.judging import judge
from tuning.judgement.leaving import JUDGED
from tuning.plans.grid import candidates
from tuning.records import Decide, Plan
from tuning.scheduling.schedule import BASELINE, block_cells
from tuning.verdict.design import baseline_launches
from tuning.verdict.records import Prior

LEVEL = 20_000.0


@dataclass(frozen=True)
class Truth:
    """Log effects by (workload, candidate) or by candidate, noise (log scale), of some candidates another, drift a
    block, and a launch that is wrong by so much: (block, candidate, slot) → log."""

    effects: Mapping[Any, float] = field(default_factory=dict)
    launch_sd: float = 0.01
    run_sd: float = 0.005
    noisier: Mapping[int, float] = field(default_factory=dict)
    drift: float = 0.0
    wrong: Mapping[tuple[int, int, int], float] = field(default_factory=dict)
    p99: float = 400.0

    def metrics(self, seed: int, cell: tuple[int, int, int], workload: str, repeat: int) -> dict[str, float | None]:
        block, candidate, _ = cell
        draw = random.Random(f"{seed} {cell} {workload}")
        effect = self.effects.get((workload, candidate), self.effects.get(candidate, 0.0))
        log = math.log(LEVEL) + effect + draw.gauss(0, self.launch_sd * self.noisier.get(candidate, 1.0))
        log += block * self.drift + self.wrong.get(cell, 0.0)
        log += random.Random(f"{seed} {cell} {workload} {repeat}").gauss(0, self.run_sd)
        rate = math.exp(log)
        return {
            "total_tok_per_s": rate,
            "output_tok_per_s": rate / 3,
            "p99_ttft_ms": self.p99 * LEVEL / rate,
            "error_rate": 0.0,
            "preemptions": 0.0,
        }


@dataclass(frozen=True)
class Played:
    """A session as it stands in the store. `judged`: what was said after each block, if anything was."""

    session: SessionRecord
    plan: Plan
    launches: list[LaunchRecord]
    runs: list[RunRecord]
    judged: tuple[Judgement, ...] = ()

    def judge(self) -> Judgement:
        return judge(self.session, self.plan, self.launches, self.runs)

    def until(self, blocks: int) -> "Played":
        """The same after so many blocks."""
        drawn = self.session.raw["blocks"][:blocks]
        return replace(
            self,
            session=replace(self.session, raw={**self.session.raw, "blocks": drawn}),
            launches=[each for each in self.launches if each.block < blocks],
            runs=[each for each in self.runs if each.block < blocks],
        )

    def with_runs(self, change: Callable[[RunRecord], RunRecord]) -> "Played":
        return replace(self, runs=[change(each) for each in self.runs])


def plan_of(k: int = 3, blocks: int = 4, workloads: tuple[str, ...] = ("chat",), **decide: Any) -> Plan:
    return example_plan(
        workloads=tuple(random_workload(name) for name in workloads),
        grid={"max-num-seqs": tuple(range(100, 100 + k))},
        decide=Decide(blocks=blocks, **decide),
    )


def play(
    plan: Plan,
    truth: Truth | None = None,
    seed: int = 1,
    *,
    kept: bool = True,
    leaving: bool = True,
    state: str = "running",
    prior: Mapping[str, Prior] | None = None,
) -> Played:
    """To its end. `kept`: what decides is kept with the session, as of today; `leaving`: who is judged is launched no
    more."""
    truth = truth or Truth()
    points, _ = candidates(plan)
    raw: dict[str, Any] = {"blocks": []}
    if kept:
        raw[KEY] = deciding_json(deciding_of(plan, points, prior, "A/A session 12" if prior else None))
    played = Played(session(plan, points, raw=raw), plan, [], [])
    said: list[Judgement] = []
    for block in range(plan.decide.blocks):
        in_play = {point.index for point in points} - {BASELINE} - {int(index) for index in raw.get("out", {})}
        if not in_play:
            break
        add_block(played, truth, block, in_play, seed)
        if leaving:
            said.append(played.judge())
            out = raw.setdefault("out", {})
            for index, why in said[-1].leaves.items():
                out.setdefault(str(index), f"{JUDGED}: {why}")
    return replace(played, session=replace(played.session, state=state), judged=tuple(said))  # type: ignore[arg-type]


def add_block(played: Played, truth: Truth, block: int, in_play: set[int], seed: int) -> None:
    cells = block_cells(seed, block, in_play, baseline_launches(len(in_play)))
    played.session.raw["blocks"].append([asdict(cell) for cell in cells])
    for cell in cells:
        add_launch(played, truth, (block, cell.candidate, cell.slot), cell.position, seed)


def add_launch(played: Played, truth: Truth, cell: tuple[int, int, int], position: int, seed: int) -> None:
    number = len(played.launches) + 1
    block, candidate, slot = cell
    played.launches.append(launch(block, candidate, slot=slot, position=position, number=number))
    for workload in played.plan.workloads:
        for repeat in range(workload.repeats):
            metrics = truth.metrics(seed, cell, workload.name, repeat)
            played.runs.append(
                run(
                    block,
                    candidate,
                    slot=slot,
                    launch_id=number,
                    workload=workload.name,
                    repeat=repeat,
                    metrics=metrics,
                    id=len(played.runs) + 1,
                )
            )
