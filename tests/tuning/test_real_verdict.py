"""A verdict on a real vLLM where the truth is known: one sequence at a time against the default, under 16 users."""

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from engine.keeper.client import is_running
from engine.records import Installation
from store.database import open_reader
from store.records import LaunchRecord, RunRecord, SessionRecord
from tests.tuning.test_real_sweep import Store, data_dir, wait_for  # noqa: F401 - a fixture
from tuning.judgement.judging import judge
from tuning.plans.plan_file import read_plan
from tuning.sessions import create_session, start_keeper

PLAN = """
name = "one at a time"
model = "{model}"

[server]
enforce-eager = true
max-model-len = 512
gpu-memory-utilization = 0.1

[server.env]
HF_HUB_OFFLINE = "1"

[grid]
max-num-seqs = [1]

[[workload]]
name = "chat"
dataset = "random"
input_len = 16
output_len = 24
ignore_eos = true
requests = 16
max_concurrency = 16
warmup = 1
repeats = 1

[decide]
blocks = 2
"""


@pytest.mark.vllm
def test_the_default_beats_one_sequence_at_a_time_in_two_blocks(
    data_dir: Path,  # noqa: F811
    installation: Installation,
    model_dir: Path,
) -> None:
    text = PLAN.format(model=model_dir)
    plan = read_plan(text)
    session_id = create_session(data_dir, plan, text, installation)
    start_keeper(data_dir, session_id, plan.server_env)
    store = Store(data_dir)
    wait_for(lambda: store.session().state in ("done", "failed", "stopped"), 600, "the sweep")
    wait_for(lambda: not is_running(data_dir, "session", session_id), 30, "its keeper has ended")
    session = store.session()
    assert session.state == "done", session.message
    with open_reader(store.path) as reader:
        launches, runs = reader.launches(session_id), reader.runs(session_id)
        events = [event.text for event in reader.events(session_id=session_id)]

    found = judge(session, plan, launches, runs).workloads["chat"]
    assert (found.blocks, found.candidates[1].verdict, found.candidates[1].block) == (2, "worse", 2)
    assert len([launch for launch in launches if launch.state == "done"]) == 4
    assert any(text.startswith("candidate 1 leaves: judged after block 2: worse") for text in events), events
    assert session.raw["sentence"] in events

    # The same launches the other way round: tried against one sequence at a time, the default wins.
    turned = judge(turned_round(session), plan, [turn(each) for each in launches], [turn(each) for each in runs])
    assert turned.winner == 1
    assert turned.workloads["chat"].candidates[1].verdict == "better"


Row = TypeVar("Row", LaunchRecord, RunRecord)


def turn(row: Row) -> Row:
    """The row, with the default and its only candidate in each other's place."""
    return replace(row, candidate=1 - row.candidate)


def turned_round(session: SessionRecord) -> SessionRecord:
    blocks = [[{**cell, "candidate": 1 - cell["candidate"]} for cell in block] for block in session.raw["blocks"]]
    return replace(session, raw={**{key: each for key, each in session.raw.items() if key != "out"}, "blocks": blocks})
