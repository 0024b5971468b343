"""A sweep decides as the sessions do whose rates docs/verdict.md tells: the same launches, the same verdicts."""

import math
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.simulated_noise import WRONG, Draws, Setting, draw, mixed
from tests.benchmarks.simulated_sessions import play
from tests.tuning.sweep_world import Metrics, World, world_of
from tuning.judgement.deciding import session_deciding
from tuning.records import Cell, Decide, Plan, PlannedRun, Workload
from tuning.sweeping.controls import Controls
from tuning.verdict.design import baseline_launches
from tuning.verdict.records import Rules


def plan_of(setting: Setting) -> Plan:
    return Plan(
        name=setting.name,
        model="m",
        workloads=tuple(Workload(str(at), "random", 4, warmup=0, repeats=1) for at in range(setting.workloads)),
        explicit_candidates=tuple({"max-num-seqs": 1 + at} for at in range(setting.candidates)),
        decide=Decide(blocks=setting.blocks),
    )


def measure(world: World, draws: Draws, session: int) -> None:
    """Let the sweep's launches read what was drawn for the session."""
    setting = draws.setting
    whole = setting.blocks * (setting.candidates + baseline_launches(setting.candidates))

    def metrics(cell: Cell, run: PlannedRun) -> Metrics:
        moment = min(1.0, (len(world.launched) - 1) / whole)
        value = float(draws.launches[session, cell.block, cell.candidate, cell.slot, int(run.workload)])
        value += draws.drift(session, moment)
        if draws.wrong_block[session] == cell.block:
            cells = len(world.session().raw["blocks"][cell.block])
            value += WRONG if cell.position == int(draws.wrong_place[session] * cells) else 0.0
        return {"total_tok_per_s": math.exp(value)}

    world.metrics_of = metrics
    world.judge = world.judged


@pytest.mark.parametrize(
    "setting",
    [
        Setting("drift and one wrong launch", linear_drift=0.03, wrong="anywhere"),
        Setting("unequal noise", unequal="quarter", quiet=0.5),
        Setting("two workloads", workloads=2, launch_sd=0.004),
        Setting("three candidates", candidates=3),
    ],
    ids=lambda setting: setting.name,
)
async def test_a_sweep_decides_as_it_was_simulated(setting: Setting, tmp_path: Path) -> None:
    draws = draw(setting, mixed(setting.candidates), 3, np.random.default_rng(11))
    rules = Rules(setting.candidates, setting.blocks, workloads=setting.workloads)
    plan = plan_of(setting)
    for session in range(draws.sessions):
        expected = play(draws, session, rules)
        folder = tmp_path / str(session)
        folder.mkdir()
        with world_of(folder, plan, seed=session) as world:
            assert session_deciding(world.session(), plan).rules["0"] == rules
            measure(world, draws, session)
            await world.sweep(Controls()).run()
            judgement = world.judgement()
            found = {
                (int(workload), index): judged.found
                for workload, of in judgement.workloads.items()
                for index, judged in of.candidates.items()
                if judged.found is not None
            }
        assert len(world.launched) == expected.launches
        assert {key: verdict.state for key, verdict in found.items()} == {
            key: verdict.state for key, verdict in expected.verdicts.items()
        }
        for key, verdict in found.items():
            assert verdict.low == pytest.approx(expected.verdicts[key].low)
            assert verdict.high == pytest.approx(expected.verdicts[key].high)
