"""`llmtune server`, without a server: what is asked for, what is told of rows and logs."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine.launch.command import serve_argv
from engine.records import Installation
from store.database import open_reader, open_writer
from store.records import ServerRecord
from tui.cli import main
from tui.commands import keeper_watch, server_text
from tui.commands.server import choose, spec_of
from tui.commands.server_text import follow_log, follow_start, last_lines
from tui.output import UsageError


def server(**fields: Any) -> ServerRecord:
    known: dict[str, Any] = {
        "name": "chat", "state": "ready", "model": "org/model", "host": "127.0.0.1", "port": 8000, "command": [],
        "env": {}, "log_path": "", "marker": "m", "started_at": "2026-11-30T10:00:00.000Z",
    }  # fmt: skip
    return ServerRecord(**{**known, **fields})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LLMTUNE_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def write(place: Path, *servers: ServerRecord) -> list[int]:
    with open_writer(place / "llmtune.db") as writer:
        return [writer.insert(one) for one in servers]


@pytest.mark.parametrize("lead", [[], ["vllm", "serve"]])
def test_what_stands_behind_the_dashes_is_a_serve_line(lead: list[str]) -> None:
    spec = spec_of([*lead, "org/model", "--max-model-len", "4096", "--port", "8123", "--served-model-name", "a"])
    assert (spec.model, spec.port, spec.served_name) == ("org/model", 8123, "a")
    assert spec.flags == {"max-model-len": 4096}


def test_several_served_names_reach_the_server() -> None:
    spec = spec_of(["org/model", "--port", "8123", "--served-model-name", "a", "b"])
    argv = serve_argv(Installation("vllm", "", ("vllm",), "", "0.32.0"), spec)
    at = argv.index("--served-model-name")
    assert argv[at : at + 3] == ["--served-model-name", "a", "b"]


def test_a_port_is_found_where_none_is_given() -> None:
    assert spec_of(["org/model"]).port >= 8000
    assert spec_of(["org/model"]).host == "127.0.0.1"


@pytest.mark.parametrize(
    "rest", [None, [], ["--max-model-len", "4096"], ["org/model", "--port", "many"], ["org/model", "--port", "0"]]
)
def test_a_line_that_cannot_be_served(rest: list[str] | None) -> None:
    with pytest.raises(UsageError):
        spec_of(rest)


def test_choosing_by_name_by_number_or_as_the_only_one() -> None:
    one, two, three = server(id=1), server(id=2, name="other"), server(id=3)
    assert choose([one, two, three], "chat", "server") == three
    assert choose([one, two], "2", "server") == two
    assert choose([two], None, "server") == two
    with pytest.raises(UsageError, match="say which: chat"):
        choose([one, two], None, "server")


def test_the_list_shows_what_runs_and_what_has_lost_its_keeper(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(place, server(), server(name="old\x1b[2J", state="stopped"), server(name="point", session_id=None))
    assert main(["server", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "ready, no keeper" in lines[1]
    assert main(["server", "list", "--all", "--json"]) == 0
    servers = json.loads(capsys.readouterr().out)["servers"]
    assert [each["state"] for each in servers] == ["ready", "stopped", "ready"]
    assert servers[0]["url"] == "http://127.0.0.1:8000"
    main(["server", "list", "--all"])
    assert "\x1b" not in capsys.readouterr().out


def test_a_server_whose_keeper_is_gone_can_be_stopped_but_not_restarted(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(place, server(pid=4711, marker="nobody has it"))
    assert main(["server", "restart", "chat"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "llmtune server stop chat" in line
    assert main(["server", "stop", "chat"]) == 0
    assert "was gone already" in capsys.readouterr().out
    with open_reader(place / "llmtune.db") as reader:
        assert [each.state for each in reader.servers()] == ["stopped"]


def test_a_start_is_told_until_it_failed(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (number,) = write(place, server(state="starting", facts={"stage": "kv_cache"}))
    monkeypatch.setattr(keeper_watch, "is_running", lambda *_: True)

    def dies(_: float) -> None:
        with open_writer(place / "llmtune.db") as writer:
            writer.update(ServerRecord, number, state="failed", failure="no memory is left for the KV cache")

    monkeypatch.setattr("time.sleep", dies)
    assert follow_start(place, number, quiet=False) == 1
    said = capsys.readouterr()
    assert "KV cache made" in said.out
    assert said.err == "llmtune: no memory is left for the KV cache\n"


def test_the_end_of_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    log.write_bytes("".join(f"line {i} \x1b[31mred\x1b[0m\n" for i in range(1000)).encode() + b"\xff unfinished")
    monkeypatch.setattr(server_text, "TAIL_CHUNK", 64)
    lines = last_lines(log, 3)
    assert lines[:2] == ["line 998 red", "line 999 red"]
    assert lines[2].endswith("unfinished")
    assert len(last_lines(log, 5000)) == 1001
    assert last_lines(log, 0) == []
    with pytest.raises(UsageError, match="cannot be read"):
        last_lines(tmp_path / "none", 3)


def test_following_a_log_ends_with_its_server(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    log.write_text("old\n")
    (number,) = write(place, server())

    def grows(_: float) -> None:
        with log.open("a") as file:
            file.write("new\n")
        with open_writer(place / "llmtune.db") as writer:
            writer.update(ServerRecord, number, state="stopped")

    monkeypatch.setattr("time.sleep", grows)
    assert follow_log(place, number, log) == 0
    assert capsys.readouterr().out == "new\n"


def test_a_server_for_everybody_is_started_with_a_warning(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    monkeypatch.setattr("tui.commands.server.find_vllm", lambda *_: Installation("v", "p", ("v",), "/", "0.25.1"))
    monkeypatch.setattr("engine.hand_servers.start_server", lambda *_: 7)
    line = ["server", "start", "chat", "--no-wait", "--", "org/model", "--port", "8123"]
    assert main(line) == 0
    assert "--api-key" not in capsys.readouterr().err
    assert main([*line, "--host", "0.0.0.0"]) == 0
    assert "anyone who reaches it" in capsys.readouterr().err
    assert main([*line, "--host", "0.0.0.0", "--api-key", "x"]) == 0
    assert "anyone" not in capsys.readouterr().err
