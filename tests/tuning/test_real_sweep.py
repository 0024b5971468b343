"""A sweep from the command line on a real vLLM: killed at the worst moments, resumed, reported."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.keeper.client import call, is_running
from engine.processes.process import identify, marked
from engine.records import Installation
from engine.stop import end_leftovers
from store.database import open_reader
from store.records import RunRecord, ServerRecord, SessionRecord
from tuning.plans.plan_file import read_plan
from tuning.sessions import create_session, start_keeper

PLAN = """
name = "small"
model = "{model}"

[server]
enforce-eager = true
max-model-len = 512
gpu-memory-utilization = 0.1
max-num-seqs = 8

[server.env]
HF_HUB_OFFLINE = "1"
SWEEP_TOKEN = "tell-nobody"

[grid]
gpu-memory-utilization = [0.15]

[[workload]]
name = "chat"
dataset = "random"
input_len = 32
output_len = 8
requests = 8
max_concurrency = 4
warmup = 1
repeats = 2

[[workload]]
name = "prefix"
dataset = "prefix_repetition"
prefix_len = 256
suffix_len = 16
num_prefixes = 2
output_len = 8
ignore_eos = true
requests = 8
max_concurrency = 4
warmup = 1
repeats = 1

[decide]
blocks = 1
"""


def llmtune(data_dir: Path, *arguments: str, timeout: float = 60, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "tui.cli", *arguments, "--data-dir", str(data_dir)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **environ},
    )


def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.2)


class Store:
    """What the database says, asked anew each time."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / "llmtune.db"

    def session(self) -> SessionRecord:
        with open_reader(self.path) as reader:
            return reader.find_session("last")

    def runs(self) -> list[RunRecord]:
        with open_reader(self.path) as reader:
            return reader.runs(self.session().id, with_raw=True)

    def servers(self) -> list[ServerRecord]:
        with open_reader(self.path) as reader:
            return reader.servers(session_id=self.session().id)


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """A data directory; what its keepers left running when a test failed is ended, by its markers."""
    folder = tmp_path / "data"
    yield folder
    store = Store(folder)
    if not store.path.exists():
        return
    session = store.session()
    keeper = identify(session.keeper_pid) if session.keeper_pid else None
    if keeper is not None and keeper.start_ticks == session.keeper_start_ticks:
        os.kill(keeper.pid, signal.SIGKILL)
    for marker in [session.raw["bench_marker"], *(server.marker for server in store.servers())]:
        asyncio.run(end_leftovers(None, None, marker, [], 5.0))


@pytest.mark.vllm
def test_a_sweep_that_is_killed_everywhere_loses_nothing(
    tmp_path: Path, data_dir: Path, installation: Installation, model_dir: Path
) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.format(model=model_dir))
    store = Store(data_dir)

    # The terminal program starts the sweep and is killed at once.
    follower = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tui.cli",
            "sweep",
            str(plan),
            "--headless",
            "--vllm",
            installation.path,
            "--data-dir",
            str(data_dir),
        ],
        stdin=subprocess.DEVNULL,
    )
    wait_for(lambda: store.path.exists() and bool(store.servers()), 60, "a server was started")
    follower.send_signal(signal.SIGKILL)
    follower.wait()
    session_id = store.session().id
    assert session_id is not None
    assert is_running(data_dir, "session", session_id)
    assert llmtune(data_dir, "sessions").stdout.count("running") == 1

    # The keeper itself is killed in the midst of a measured run, with one run done.
    def in_the_second_run() -> bool:
        states = [run.state for run in store.runs() if run.kind == "measured"]
        return "done" in states and states[-1] == "running"

    wait_for(in_the_second_run, 400, "a measured run after the first")
    first = next(run for run in store.runs() if run.state == "done" and run.kind == "measured")
    keeper_pid = store.session().keeper_pid
    assert keeper_pid is not None
    os.kill(keeper_pid, signal.SIGKILL)
    wait_for(lambda: not is_running(data_dir, "session", session_id), 10, "the keeper is dead")
    orphaned = store.servers()[-1]
    assert marked(orphaned.marker), "the server outlives its keeper"

    forgotten = llmtune(data_dir, "resume", str(session_id))
    assert forgotten.returncode == 1
    assert "export SWEEP_TOKEN with its value" in forgotten.stderr
    resumed = llmtune(data_dir, "resume", str(session_id), SWEEP_TOKEN="tell-nobody")
    assert resumed.returncode == 0, resumed.stderr
    wait_for(lambda: not marked(orphaned.marker), 60, "the leftover server is ended")

    followed = llmtune(data_dir, "attach", str(session_id), "--headless", timeout=600)
    assert followed.returncode == 0, followed.stdout + followed.stderr

    # Every planned run has one result, the one from before the kill among them, and no secret is kept.
    assert store.session().state == "done"
    runs = store.runs()
    counted = Counter(
        (run.candidate, run.workload, run.repeat) for run in runs if run.kind == "measured" and run.state == "done"
    )
    planned = {(candidate, *what) for candidate in (0, 1) for what in (("chat", 0), ("chat", 1), ("prefix", 0))}
    assert counted == dict.fromkeys(planned, 1)
    assert first in runs
    assert b"tell-nobody" not in store.path.read_bytes()

    # The raw result is whole, the metrics follow from it, and the prefixes were found in the cache.
    for run in runs:
        if run.state == "done":
            result = run.raw["result"]
            assert run.metrics["total_tok_per_s"] == pytest.approx(result["total_token_throughput"])
            assert run.metrics["mean_ttft_ms"] == pytest.approx(result["mean_ttft_ms"])
            assert run.metrics["output_tokens"] == 64
            assert run.metrics["error_rate"] == 0
            assert run.limited_by is not None
            assert run.raw["limit"]["sentence"] in run.limited_by
    prefix_hits = [run.metrics["prefix_hit_perc"] for run in runs if run.workload == "prefix" and run.state == "done"]
    assert all(hits is not None and hits > 20 for hits in prefix_hits)

    # The KV cache follows the utilization, and no process of ours is left.
    tokens = {
        server.raw["cell"]["candidate"]: server.facts["kv_cache_tokens"]
        for server in store.servers()
        if server.ready_at is not None
    }
    assert tokens[1] > 1.3 * tokens[0]
    assert not [server for server in store.servers() if marked(server.marker)]

    report = llmtune(data_dir, "report", str(session_id), "--format", "json")
    assert report.returncode == 0, report.stderr
    told = json.loads(report.stdout)
    assert told["schema"] == 1
    assert llmtune(data_dir, "report", str(session_id), "--format", "md").stdout.count("| default") >= 2
    again = llmtune(data_dir, "resume", str(session_id))
    assert again.returncode == 2
    assert "is done" in again.stderr


@pytest.mark.vllm
def test_pause_skip_and_stop_reach_a_running_sweep(data_dir: Path, installation: Installation, model_dir: Path) -> None:
    text = PLAN.format(model=model_dir)
    parsed = read_plan(text)
    session_id = create_session(data_dir, parsed, text, installation)
    start_keeper(data_dir, session_id, parsed.server_env)
    store = Store(data_dir)
    assert call(data_dir, "session", session_id, "status")["paused"] is False
    assert llmtune(data_dir, "skip", str(session_id), "0").returncode == 1
    added = call(data_dir, "session", session_id, "add", settings={"max-num-seqs": 4})
    assert added["candidate"] == 2
    assert llmtune(data_dir, "skip", str(session_id), "2").returncode == 0
    assert llmtune(data_dir, "pause", str(session_id)).returncode == 0
    wait_for(lambda: store.session().state == "paused", 120, "it holds")
    stopped = llmtune(data_dir, "stop", str(session_id))
    assert stopped.returncode == 0, stopped.stderr
    wait_for(lambda: not is_running(data_dir, "session", session_id), 60, "the keeper has ended")
    assert store.session().state == "stopped"
    assert all(not marked(server.marker) for server in store.servers())
