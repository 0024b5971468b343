"""Tools, ports, locale and terminal, clock: each in its states."""

import os
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from engine.preflight import ports as ports_module
from engine.preflight.clock import clock_check, installed_at
from engine.preflight.ports import PortsReading, ports_check, read_ports
from engine.preflight.terminal import TerminalReading, terminal_checks
from engine.preflight.tools import ToolsReading, read_tools, tools_checks

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def test_tools_are_looked_for_where_vllm_will_look(tmp_path: Path) -> None:
    first, second = tmp_path / "venv", tmp_path / "usr"
    for folder, name in ((first, "ninja"), (second, "ninja"), (second, "gcc"), (second, "mycc"), (second, "g++")):
        folder.mkdir(exist_ok=True)
        (folder / name).touch(0o755)
    read = read_tools(str(first), {"PATH": str(second)})
    assert (read.ninja, read.c, read.cxx) == (str(first / "ninja"), str(second / "gcc"), str(second / "g++"))
    assert read_tools(None, {"PATH": str(second), "CC": "mycc"}).c == str(second / "mycc")
    assert read_tools(None, {"PATH": str(first)}).c is None


def test_tools_in_three_states() -> None:
    states = {
        (cpu, reading): [check.state for check in tools_checks(reading, cpu)]
        for cpu in (False, True)
        for reading in (ToolsReading("n", "cc", "c++", None), ToolsReading(None, None, None, "nvcc"))
    }
    assert list(states.values()) == [["ok", "ok"], ["problem", "warning"], ["ok", "ok"], ["problem", "ok"]]


def test_a_port_that_is_taken_is_told_with_its_holder(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr(ports_module, "FIRST", port)
        monkeypatch.setattr("engine.processes.ports._ANSWER_WITHIN_S", 0.2)  # it takes connections and says nothing
        read = read_ports()
        assert read.listeners == {os.getpid()}
        assert read.free > port
        check = ports_check(read, {})
        assert check.state == "warning"
        assert f"process {os.getpid()}" in check.found
        assert ports_check(read, {os.getpid(): "our server 3, chat"}).state == "ok"
    assert ports_check(PortsReading(8000), {}).state == "ok"


@pytest.mark.parametrize(
    ("encoding", "environ", "state"),
    [("utf-8", {"LANG": "en_US.UTF-8"}, "ok"), ("UTF8", {}, "ok"), ("ascii", {"LC_ALL": "POSIX"}, "problem")],
)
def test_the_locale(encoding: str, environ: dict[str, str], state: str) -> None:
    assert terminal_checks(TerminalReading(encoding, None, environ))[0].state == state


@pytest.mark.parametrize(
    ("size", "environ", "state", "told"),
    [
        (None, {}, "ok", "none here"),
        ((120, 40), {"TERM": "xterm-256color"}, "ok", "256 colours"),
        ((120, 40), {"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "ok", "16 million"),
        ((120, 40), {"TERM": "xterm-256color", "NO_COLOR": "1"}, "ok", "NO_COLOR"),
        ((80, 23), {"TERM": "xterm-256color"}, "warning", "80x23"),
        ((120, 40), {"TERM": "screen", "TMUX": "/tmp/t"}, "warning", "16 colours"),
        ((120, 40), {"TERM": "dumb"}, "problem", "dumb"),
        ((120, 40), {}, "problem", "not set"),
    ],
)
def test_the_terminal(size: tuple[int, int] | None, environ: dict[str, str], state: str, told: str) -> None:
    check = terminal_checks(TerminalReading("utf-8", size, environ))[1]
    assert check.state == state
    assert told in check.found


def test_the_clock() -> None:
    old = NOW - timedelta(days=100)
    assert clock_check(NOW, old, NOW).state == "ok"
    assert clock_check(NOW, old, None).state == "ok"
    assert clock_check(NOW, old, NOW + timedelta(hours=1)).state == "warning"
    assert clock_check(datetime(1970, 1, 1, tzinfo=UTC), old, None).state == "problem"
    assert installed_at(NOW) <= datetime.now(UTC)
