"""The commands that open the screens, on a real pseudo-terminal."""

import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time
from pathlib import Path

import pytest

from tests.tui.recorded import record

ROOT = Path(__file__).resolve().parents[2]
LEAVES_ALTERNATE_SCREEN = b"\x1b[?1049l"
TIMEOUT_S = 30.0


class Terminal:
    """A command on a terminal of 80x24. What it writes is in `seen`."""

    def __init__(self, *arguments: str) -> None:
        self.seen = b""
        self.pid, self._end = pty.fork()
        if self.pid == 0:
            os.chdir(ROOT)
            os.environ["TERM"] = "xterm-256color"
            os.execv(sys.executable, [sys.executable, "-m", "tui.cli", *arguments])
        fcntl.ioctl(self._end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))

    def wait_for(self, text: bytes) -> None:
        give_up = time.monotonic() + TIMEOUT_S
        while text not in self.seen:
            assert self._read(give_up - time.monotonic()), f"{text!r} did not come; seen: {self.seen[-2000:]!r}"

    def press(self, keys: bytes) -> None:
        os.write(self._end, keys)

    def end(self) -> int:
        """The exit status, once it has ended."""
        give_up = time.monotonic() + TIMEOUT_S
        while self._read(give_up - time.monotonic()):
            pass
        os.close(self._end)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._end], [], [], max(0.0, seconds))
        try:
            more = os.read(self._end, 65536) if ready else b""
        except OSError:  # how Linux says that the other end was closed
            more = b""
        self.seen += more
        return bool(more)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LLMTUNE_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


def test_llmtune_alone_opens_the_screens_also_on_an_empty_machine(place: Path) -> None:
    terminal = Terminal()
    terminal.wait_for(b"Servers")
    terminal.press(b"q")
    assert terminal.end() == 0


def test_the_results_stay_in_the_terminal_when_the_screen_is_left(place: Path) -> None:
    record(place)
    terminal = Terminal("attach", "last", "--no-mouse")
    terminal.wait_for(b"small")
    assert b"\x1b[?1000h" not in terminal.seen, "the mouse was to be left alone"
    terminal.press(b"q")
    assert terminal.end() == 0
    after = terminal.seen.rpartition(LEAVES_ALTERNATE_SCREEN)[2]
    assert b"seqs 4" in after
    assert b"llmtune report 1" in after


def test_a_session_without_a_keeper_says_how_to_go_on(place: Path) -> None:
    record(place, state="paused")
    terminal = Terminal("attach", "last")
    terminal.wait_for(b"small")
    terminal.press(b"q")
    assert terminal.end() == 0
    assert b"llmtune resume 1" in terminal.seen.rpartition(LEAVES_ALTERNATE_SCREEN)[2]
