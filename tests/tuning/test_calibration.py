"""A/A sessions: what they are made of, and to whom their noise is told."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tuning.sessions
from store.clock import utc_now
from store.database import open_reader, open_writer
from store.location import database_file
from store.records import LaunchRecord, RunRecord, SessionRecord
from tests.tuning.examples import plan, prefix_workload, random_workload
from tests.tuning.test_sessions import INSTALLATION, MACHINE
from tuning.judgement.calibration import calibration, prior_noise, with_blocks
from tuning.judgement.deciding import session_deciding
from tuning.records import Decide, Plan, PlanError
from tuning.scheduling.seeds import uniform
from tuning.sessions import create_session
from tuning.verdict.records import Prior

PLAN = plan(
    workloads=(random_workload(repeats=1), prefix_workload(repeats=1)),
    server_env={"HF_TOKEN": "hf_abcdefghijklmnopqrstuvwxyz012345", "HF_HOME": "/data"},
)
NOISE = 0.01

Calibrated = Callable[..., int]
Prior_ = Callable[..., tuple[dict[str, Prior], str | None]]


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning.sessions, "describe_machine", lambda model, installation: dict(MACHINE))


@pytest.fixture
def calibrated(tmp_path: Path) -> Calibrated:
    """Makes an A/A session with its rows, and returns its id."""

    def make(of: Plan = PLAN, blocks: int = 6, **fields: Any) -> int:
        session_id = create_session(tmp_path, calibration(of, blocks), "", INSTALLATION)
        with open_writer(database_file(tmp_path)) as writer:
            drawn = []
            for block in range(blocks):
                drawn.append([{"block": block, "position": at, "candidate": at, "slot": 0} for at in (0, 1)])
                for index in (0, 1):
                    launch_id = writer.insert(LaunchRecord(session_id, block, index, index, 0, 1, "done"))
                    for workload in of.workloads:
                        value = 1000 * (1 + NOISE * uniform(5, block, index, workload.name))
                        writer.insert(
                            RunRecord(session_id, launch_id, block, index, 0, workload.name, "measured", 0, 1, "done",
                                      metrics={"total_tok_per_s": value, "mean_ttft_ms": value})
                        )  # fmt: skip
            with open_reader(database_file(tmp_path)) as reader:
                raw = {**reader.session(session_id).raw, "blocks": drawn}
            writer.update(
                SessionRecord, session_id, **{"state": "done", "finished_at": utc_now(), "raw": raw, **fields}
            )
        return session_id

    return make


@pytest.fixture
def prior(tmp_path: Path) -> Prior_:
    def of(wanted: Plan = PLAN, **machine: Any) -> tuple[dict[str, Prior], str | None]:
        with open_writer(database_file(tmp_path)), open_reader(database_file(tmp_path)) as reader:
            kept = replace(
                wanted,
                server_env={name: "***" if name == "HF_TOKEN" else each for name, each in wanted.server_env.items()},
            )
            return prior_noise(reader, kept, {**MACHINE, **machine})

    return of


def test_the_a_a_session_of_a_plan_has_its_server_and_workloads_and_six_blocks() -> None:
    made = calibration(PLAN)
    assert (made.calibrate, made.decide.blocks, made.name) == (True, 6, "knobs A/A")
    assert replace(made, calibrate=False, name=PLAN.name, decide=PLAN.decide) == PLAN
    assert calibration(PLAN, 3).decide.blocks == 3


@pytest.mark.parametrize("blocks", [0, 1, 14])
def test_so_many_blocks_that_nothing_comes_of_them_are_refused(blocks: int) -> None:
    with pytest.raises(PlanError, match="2 to 13 blocks"):
        with_blocks(PLAN, blocks)


def test_a_session_knows_the_noise_that_was_found_of_its_server_here(calibrated: Calibrated, tmp_path: Path) -> None:
    number = calibrated()
    session_id = create_session(tmp_path, PLAN, "", INSTALLATION)
    with open_reader(database_file(tmp_path)) as reader:
        deciding = session_deciding(reader.session(session_id), PLAN)
    assert deciding.prior_source == f"A/A session {number}"
    assert set(deciding.prior) == {"chat", "prefix"}
    assert all(0.001 < each.sd < 0.006 and each.df == 5 for each in deciding.prior.values())
    assert len(deciding.bars["chat"]) == 1
    assert deciding.rules["chat"].candidates == 2


def test_the_newest_that_is_finished_tells(calibrated: Calibrated, prior: Prior_) -> None:
    calibrated(blocks=4)
    newest = calibrated(blocks=5)
    calibrated(state="stopped")
    found, source = prior()
    assert source == f"A/A session {newest}"
    assert found["chat"].df == 4


def test_nothing_is_known_of_another_server_model_or_machine(calibrated: Calibrated, prior: Prior_) -> None:
    calibrated()
    nothing: tuple[dict[str, Prior], None] = ({}, None)
    assert prior(replace(PLAN, server={"max-num-seqs": 32})) == nothing
    assert prior(replace(PLAN, model="org/other")) == nothing
    assert prior(replace(PLAN, server_env={"HF_HOME": "/other"})) == nothing
    assert prior(driver="590.2") == nothing
    assert prior(calibration(PLAN)) == nothing  # finds it anew
    assert prior()[1] is not None


def test_of_several_workloads_those_that_are_the_same_are_known(calibrated: Calibrated, prior: Prior_) -> None:
    calibrated()
    longer = replace(PLAN.workloads[0], requests=80)
    assert set(prior(replace(PLAN, workloads=(longer, PLAN.workloads[1])))[0]) == {"prefix"}
    other = replace(PLAN, decide=Decide(metric={"chat": "mean_ttft_ms", "prefix": "total_tok_per_s"}))
    assert set(prior(other)[0]) == {"prefix"}


def test_numbers_of_two_machines_tell_nothing(calibrated: Calibrated, prior: Prior_, tmp_path: Path) -> None:
    number = calibrated()
    with open_writer(database_file(tmp_path)) as writer, open_reader(database_file(tmp_path)) as reader:
        raw = {**reader.session(number).raw, "earlier_environments": [{}]}
        writer.update(SessionRecord, number, raw=raw)
    assert prior() == ({}, None)
