"""Starting a session's keeper again: on which machine, with which secrets."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tuning.sessions
from engine.records import EngineError, Installation
from store.clock import utc_now
from store.database import open_reader, open_writer
from store.location import database_file
from store.records import SessionRecord
from tuning.records import Decide, Plan, Workload
from tuning.sessions import MachineChanged, create_session, start_keeper

INSTALLATION = Installation("/opt/vllm", "/opt/python", ("/opt/vllm",), "/opt", "0.25.1")
PLAN = Plan(
    name="one",
    model="org/model",
    workloads=(Workload("chat", "random", requests=4),),
    explicit_candidates=({"max-num-seqs": 4},),
    server_env={"HF_TOKEN": "hf_abcdefghijklmnopqrstuvwxyz012345", "HF_HOME": "/data"},
    decide=Decide(blocks=1),
)
MACHINE = {"vllm": "0.25.1", "driver": "580.1", "gpus": [], "model_hash": "a" * 64}

Spawned = list[dict[str, Any]]


@pytest.fixture
def spawned(monkeypatch: pytest.MonkeyPatch) -> Spawned:
    """What was started in place of keepers; the machine is MACHINE."""
    found: Spawned = []

    def spawn(data_dir: Path, kind: str, number: int, module: str, environ: dict[str, str]) -> int:
        found.append({"number": number, "environ": environ})
        return 1

    monkeypatch.setattr(tuning.sessions, "spawn_keeper", spawn)
    monkeypatch.setattr(tuning.sessions, "describe_machine", lambda model, installation: dict(MACHINE))
    monkeypatch.setattr(tuning.sessions, "find_vllm", lambda path, environ: INSTALLATION)
    return found


@pytest.fixture
def begun(spawned: Spawned, tmp_path: Path) -> Callable[[], int]:
    """Makes a session that has measured something and whose keeper is gone."""

    def make() -> int:
        session_id = create_session(tmp_path, PLAN, 'HF_TOKEN = "hf_abcdefghijklmnopqrstuvwxyz012345"', INSTALLATION)
        with open_writer(database_file(tmp_path)) as writer:
            writer.update(SessionRecord, session_id, state="running", started_at=utc_now())
        return session_id

    return make


def test_no_secret_is_kept_and_a_resumer_must_have_it(
    begun: Callable[[], int], spawned: Spawned, tmp_path: Path
) -> None:
    session_id = begun()
    assert b"hf_abcdef" not in database_file(tmp_path).read_bytes()
    with pytest.raises(EngineError, match="export HF_TOKEN with"):
        start_keeper(tmp_path, session_id, environ={})
    start_keeper(tmp_path, session_id, environ={"HF_TOKEN": "hf_again"})
    assert "hf_again" in spawned[0]["environ"]["LLMTUNE_SECRET_ENV"]


def test_the_same_machine_is_not_asked_about(begun: Callable[[], int], spawned: Spawned, tmp_path: Path) -> None:
    start_keeper(tmp_path, begun(), environ={"HF_TOKEN": "x"})
    assert len(spawned) == 1


def test_another_machine_is_refused_with_the_difference_until_it_is_accepted(
    begun: Callable[[], int], spawned: Spawned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = begun()
    now = {**MACHINE, "driver": "590.2", "vllm": "0.26.0"}
    newer = replace(INSTALLATION, version="0.26.0")
    monkeypatch.setattr(tuning.sessions, "describe_machine", lambda model, installation: now)
    monkeypatch.setattr(tuning.sessions, "find_vllm", lambda path, environ: newer)
    with pytest.raises(MachineChanged, match="--accept-changes") as refused:
        start_keeper(tmp_path, session_id, environ={"HF_TOKEN": "x"})
    assert refused.value.differences == ["vLLM: 0.25.1 then, 0.26.0 now", "driver: 580.1 then, 590.2 now"]
    assert spawned == []

    start_keeper(tmp_path, session_id, environ={"HF_TOKEN": "x"}, accept_changes=True)
    assert len(spawned) == 1
    with open_reader(database_file(tmp_path)) as reader:
        session = reader.session(session_id)
        events = [event.text for event in reader.events(session_id=session_id)]
    assert session.environment == now
    assert session.raw["earlier_environments"] == [MACHINE]
    assert session.raw["installation"]["version"] == "0.26.0"
    assert "driver: 580.1 then, 590.2 now" in events[-1]


def test_a_session_that_measured_nothing_may_begin_anywhere(
    spawned: Spawned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = create_session(tmp_path, PLAN, "", INSTALLATION)
    monkeypatch.setattr(tuning.sessions, "describe_machine", lambda model, installation: {"vllm": "other"})
    start_keeper(tmp_path, session_id, PLAN.server_env, os.environ)
    assert len(spawned) == 1
