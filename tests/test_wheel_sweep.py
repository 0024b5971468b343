"""The wheel in an environment of its own, vLLM in another, the working folder in neither."""

import json
import os
import subprocess
import venv
from pathlib import Path

import pytest

from engine.processes.process import marked
from engine.records import Installation
from store.database import open_reader
from store.location import database_file
from tests.wheel import build_wheel

pytestmark = pytest.mark.long

PLAN = """
name = "from the wheel"
model = "{model}"

[server]
enforce-eager = true
max-model-len = 512
gpu-memory-utilization = 0.1

[grid]
max-num-seqs = [4]

[[workload]]
name = "chat"
dataset = "random"
input_len = 32
output_len = 16
requests = 16
max_concurrency = 2
warmup = 1
repeats = 2

[decide]
blocks = 1
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a fresh environment that holds the wheel, with its dependencies as the metadata names them."""
    folder = tmp_path_factory.mktemp("env")
    wheel = build_wheel(tmp_path_factory.mktemp("build"))
    venv.create(folder, with_pip=True)
    subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", wheel], check=True, cwd=folder)
    return folder / "bin"


def ask(installed: Path, cwd: Path, *arguments: str, timeout: float = 60) -> str:
    """What `llmtune` of that environment prints. Nothing of the checkout is on its path."""
    environ = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [installed / "llmtune", *arguments],
        cwd=cwd,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_runs(installed: Path, tmp_path: Path) -> None:
    assert "sweep" in ask(installed, tmp_path, "--help")
    assert ask(installed, tmp_path, "--version").startswith("llmtune 0.")
    assert "nothing has been recorded" in ask(installed, tmp_path, "sessions")
    modules = "import tui.app, engine.bench.client, tuning.keeper"
    subprocess.run([installed / "python", "-c", modules], check=True, cwd=tmp_path)


@pytest.mark.vllm
def test_a_sweep(installed: Path, installation: Installation, model_dir: Path, tmp_path: Path) -> None:
    place, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "plan.toml").write_text(PLAN.format(model=model_dir.resolve()))
    told = ask(
        installed, elsewhere, "sweep", "../plan.toml", "--json",
        "--vllm", installation.path, "--data-dir", str(place), timeout=420,
    )  # fmt: skip
    *_, last = (json.loads(line) for line in told.splitlines())
    assert last["type"] == "result"
    assert [row["candidate"]["label"] for row in last["results"]] == ["default", "seqs 4"]
    with open_reader(database_file(place)) as reader:
        session = reader.find_session("last")
        assert session.state == "done"
        runs, servers = reader.runs(1), reader.servers()
    # On two busy cores the load generator may be late; a run that is rejected for that was made whole all the same.
    made = {(run.candidate, run.kind) for run in runs if run.state == "done" or "load generator" in str(run.reason)}
    assert made == {(candidate, kind) for candidate in (0, 1) for kind in ("warmup", "measured")}
    assert not [run.reason for run in runs if run.state != "done" and "load generator" not in str(run.reason)]
    assert not any(marked(server.marker) for server in servers)
    assert "from the wheel" in ask(installed, elsewhere, "report", "last", "--data-dir", str(place))
    assert list(elsewhere.iterdir()) == []
