"""Keys, tokens and passwords go into a server and come out nowhere: not in the database, the logs, the process list,
the lists and the screens. With a real keeper, on a stand-in for vLLM."""

import json
import os
import stat
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from engine.keeper.places import keeper_places
from engine.processes.ports import free_port
from engine.processes.process import command_line as process_line
from engine.processes.process import markers
from store.database import open_reader
from store.location import database_file
from store.records import ServerRecord
from tests.engine.server_stand_in import STAND_IN
from tui.cli import main
from tui.servers.log_tail import LogTail
from tui.servers.server_text import command_line, details

KEY, TOKEN, PASSWORD = "k3y-of-this-server", "hf_abcdefghijklmnopqrstuvwxyz0123456789", "pa55word-of-mine"
SECRETS = (KEY, TOKEN, PASSWORD)
DYING = f"""
import sys
print("ValueError: User-specified max_model_len (999999) is greater than the derived max_model_len of "
      "https://me:{PASSWORD}@hub/x with token={KEY} and {TOKEN}", flush=True)
sys.exit(1)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A data directory, under an umask that lets everybody read, and the environment of a stand-in."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    info = tmp_path / "packages" / "vllm-0.25.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.25.1\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))
    monkeypatch.setenv("LLMTUNE_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("MODE", "gentle")
    for name in ("VLLM_API_KEY", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    before = os.umask(0)
    yield tmp_path / "data"
    os.umask(before)


def vllm(folder: Path, text: str) -> str:
    script = folder / "vllm"
    script.write_text(f"#!{sys.executable}\n{text}")
    script.chmod(0o755)
    return str(script)


def start(folder: Path, text: str) -> int:
    return main(
        [
            "server", "start", "chat", "--vllm", vllm(folder, text), "--", str(folder / "model"),
            "--served-model-name", "m", "--port", str(free_port("127.0.0.1", 8650)),
            "--api-key", KEY, "--hf-token", TOKEN,
            "--otlp-traces-endpoint", f"http://me:{PASSWORD}@127.0.0.1:4317",
        ]
    )  # fmt: skip


def row(place: Path) -> ServerRecord:
    with open_reader(database_file(place)) as reader:
        return reader.servers()[0]


def told(place: Path) -> str:
    """All that is kept and shown of the server, as one text."""
    with open_reader(database_file(place)) as reader:
        (server,) = reader.servers()
        events = reader.events()
    lines = LogTail(server.log_path).read().lines
    return "\n".join(map(str, (server, events, command_line(server), details(server, datetime.now(UTC)), lines)))


def found_in_files(place: Path) -> list[str]:
    """Where a secret stands in a file of ours. Of a server's log the command's line is ours, and vLLM's all others."""
    found = []
    for file in (each for each in place.rglob("*") if each.is_file()):
        data = file.read_bytes()
        if file.name == "server-1.log":
            data = b"\n".join(line for line in data.splitlines() if line.startswith(b"# "))
            assert b"# " in data
        found += [f"{secret} in {file}" for secret in SECRETS if secret.encode() in data]
    return found


def test_secrets_reach_the_server_and_nothing_else(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        assert start(tmp_path, STAND_IN) == 0
        assert main(["server", "list", "--json"]) == 0
        assert main(["server", "logs", "chat"]) == 0
        server = row(place)
        assert stat.S_IMODE(keeper_places(place, "server", 1).socket.stat().st_mode) == 0o600
        environ = Path(f"/proc/{server.pid}/environ").read_bytes()
        assert f"VLLM_API_KEY={KEY}".encode() in environ
        assert f"HF_TOKEN={TOKEN}".encode() in environ
        assert b"LLMTUNE_SECRET" not in environ
        lines = [process_line(pid) or "" for pid, marker in markers().items() if marker == server.marker]
        assert any("serve" in line for line in lines)
        assert not [line for line in lines if KEY in line or TOKEN in line]

        assert main(["server", "restart", "chat"]) == 0
        again = row(place)
        assert again.pid != server.pid
        assert f"VLLM_API_KEY={KEY}".encode() in Path(f"/proc/{again.pid}/environ").read_bytes()
    finally:
        main(["server", "stop", "chat"])
    shown = capsys.readouterr()
    everything = shown.out + shown.err + told(place)
    assert [secret for secret in SECRETS if secret in everything] == []
    assert "http://me:***@127.0.0.1:4317" in command_line(row(place))
    assert found_in_files(place) == []
    # vLLM prints its arguments, as the stand-in does; what it gets by its environment is not among them.
    log = Path(row(place).log_path).read_text()
    assert '"argv": ' in log
    assert KEY not in log
    assert TOKEN not in log
    modes = {each: stat.S_IMODE(each.stat().st_mode) for each in (place, *place.rglob("*"))}
    assert {mode for each, mode in modes.items() if each.is_file()} == {0o600}
    assert {mode for each, mode in modes.items() if each.is_dir()} == {0o700}


def test_secrets_that_a_failing_server_prints_are_not_passed_on(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start(tmp_path, DYING) == 1
    main(["server", "logs", "chat"])
    main(["server", "list", "--all", "--json"])
    deadline = time.monotonic() + 20
    while row(place).state != "failed" and time.monotonic() < deadline:
        time.sleep(0.05)
    main(["explain", row(place).log_path])
    shown = capsys.readouterr()
    assert "999999" in shown.err
    everything = shown.out + shown.err + told(place)
    assert [secret for secret in SECRETS if secret in everything] == []
    assert found_in_files(place) == []


def test_a_copied_line_does_not_start_a_server_with_stars_for_a_key(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script, model = vllm(tmp_path, STAND_IN), str(tmp_path / "model")
    assert main(["server", "start", "--vllm", script, "--", model, "--otlp-traces-endpoint", "http://me:***@h"]) == 1
    assert "type it anew" in capsys.readouterr().err


def test_a_mistyped_line_is_told_without_its_key(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["server", "start", "chat", "--api-key", KEY])
    assert KEY not in capsys.readouterr().err


def test_a_foreign_servers_password_is_not_shown(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"http://me:{PASSWORD}@127.0.0.1:9"
    assert main(["snapshot", "--url", url, "--json"]) in (1, 2)
    shown = capsys.readouterr()
    assert PASSWORD not in shown.out + shown.err
    if shown.out:
        json.loads(shown.out)
