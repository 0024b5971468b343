"""A whole sweep with secrets in its plan: they reach server and benchmark, and no file, report or process list."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.processes.process import command_line
from tests.faults.stand_in_vllm import make_installation, make_model
from tests.faults.world import PLAN, World, until

KEY, TOKEN, PASSWORD = "k3y-of-this-server", "hf_abcdefghijklmnopqrstuvwxyz0123456789", "pa55word-of-mine"
SECRETS = (KEY, TOKEN, PASSWORD)
ENV = f"""
[server.env]
HF_TOKEN = "{TOKEN}"  # the token {TOKEN}
VLLM_API_KEY = "{KEY}"
HTTPS_PROXY = "http://me:{PASSWORD}@proxy:3128"
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    _, environ = make_installation(tmp_path / "vllm")
    made = World(tmp_path / "data", {**environ, "STAND_IN_LOAD_S": "1"})
    before = os.umask(0)  # everybody could read what is made without a mode
    yield made
    os.umask(before)
    made.clean_up()


def test_secrets_of_a_plan_stand_in_nothing_that_is_kept_or_shown(world: World, tmp_path: Path) -> None:
    text = PLAN.format(model=make_model(tmp_path / "model"), blocks=1).replace("[2, 4, 6]", "[2]")
    plan = tmp_path / "plan.toml"
    plan.write_text(text.replace("repeats = 3", "repeats = 1").replace("\n[grid]", f"{ENV}\n[grid]"))
    terminal = world.follow("sweep", str(plan), "--headless", "--vllm", str(tmp_path / "vllm" / "bin" / "vllm"))
    lines: dict[int, str] = {}
    environments: dict[str, bytes] = {}

    def both_seen() -> bool:
        if not world.started():
            return False
        for part, process in world.tree().items():
            lines[process.pid] = command_line(process.pid) or ""
            try:
                environments[part] = Path(f"/proc/{process.pid}/environ").read_bytes()
            except OSError:
                continue  # it has just ended
        return {"api", "bench"} <= environments.keys()

    until(both_seen, 60, "server and benchmark run")
    until(lambda: world.session().state == "done", 60, "the sweep is done")
    assert terminal.wait(timeout=20) == 0
    for part, variable in (("api", "VLLM_API_KEY"), ("bench", "OPENAI_API_KEY"), ("api", "HF_TOKEN")):
        assert f"{variable}={TOKEN if variable == 'HF_TOKEN' else KEY}".encode() in environments[part]
    shown = "\n".join(lines.values())
    for arguments in (
        ("report", "1"), ("report", "1", "--format", "json"), ("report", "1", "--format", "csv"),
        ("sessions", "--json"), ("server", "list", "--all", "--json"), ("server", "logs", "1"), ("doctor", "--json"),
    ):  # fmt: skip
        told = world.llmtune(*arguments)
        assert told.stdout, arguments
        shown += told.stdout + told.stderr
    assert world.llmtune("report", "1", "--out", str(world.data_dir / "report.md")).returncode == 0
    assert [secret for secret in SECRETS if secret in shown] == []
    files = [each for each in world.data_dir.rglob("*") if each.is_file()]
    assert len(files) > 4
    assert [(secret, each) for each in files for secret in SECRETS if secret.encode() in each.read_bytes()] == []
    assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}
    assert all(stat.S_IMODE(each.stat().st_mode) == 0o700 for each in world.data_dir.rglob("*") if each.is_dir())
