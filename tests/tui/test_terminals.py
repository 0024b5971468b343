"""The monitor in the terminals that people have: few colours or none, no locale, tmux, a line that is lost. A process
each: locale, TERM and the number of colours are read once, when Python and Textual begin."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.lying_exporter import LyingExporter, exporter_thread
from tests.terminal import Terminal
from tui.terminal import LostTerminal

ROOT = Path(__file__).resolve().parents[2]
SMALL, LARGE = (80, 24), (140, 45)
PLACES: dict[str, dict[str, str | None]] = {
    "256 colours": {"TERM": "xterm-256color", "LANG": "C.UTF-8"},
    "TERM=screen": {"TERM": "screen"},
    "TERM=xterm": {"TERM": "xterm"},
    "TERM=linux": {"TERM": "linux"},
    "NO_COLOR": {"NO_COLOR": "1"},
    "LANG=C": {"LANG": "C", "LC_ALL": None, "LC_CTYPE": None},
    "LC_ALL=POSIX": {"LC_ALL": "POSIX"},
    "no such locale": {"LC_ALL": "xx_YY.UTF-8"},
    "LLMTUNE_ASCII": {"LLMTUNE_ASCII": "1"},
    "GNU screen without a locale": {"TERM": "screen", "STY": "1.pts", "LANG": "C", "LC_ALL": None, "LC_CTYPE": None},
    "no environment": {"LANG": None, "LC_ALL": None, "LC_CTYPE": None, "COLORTERM": None, "TERM": "xterm"},
}
ASCII = ("TERM=linux", "LLMTUNE_ASCII", "GNU screen without a locale")
ANSWERS, SILENT = r"● answers", r"✗ silent"
NOTHING_BETWEEN: dict[str, str | None] = dict.fromkeys(("COLORTERM", "TMUX", "STY", "LLMTUNE_ASCII", "NO_COLOR"))
FEW_COLOURS = ("TERM=screen", "TERM=xterm", "TERM=linux")
MORE_THAN_16 = re.compile(rb"\x1b\[[0-9;]*[34]8;[25];")
"""SGR for 256 and for direct colours (xterm's ctlseqs, "Character Attributes")."""


def command(url: str) -> list[str]:
    return [sys.executable, "-m", "tui.cli", "monitor", "--url", url]


@pytest.fixture(scope="module")
def exporter() -> Iterator[LyingExporter]:
    with exporter_thread() as served:
        yield served


Open = Callable[..., Terminal]


@pytest.fixture
def open_monitor(exporter: LyingExporter, tmp_path: Path) -> Iterator[Open]:
    """Starts a monitor on a terminal, of an address or of the exporter's."""
    with ExitStack() as stack:

        def start(size: tuple[int, int] = SMALL, url: str = exporter.url, **env: str | None) -> Terminal:
            places = {"LLMTUNE_DATA_DIR": str(tmp_path / "data"), "LLMTUNE_RUNTIME_DIR": str(tmp_path / "run")}
            return stack.enter_context(Terminal(command(url), size, {**NOTHING_BETWEEN, **places, **env}, ROOT))

        yield start


@pytest.mark.parametrize("place", PLACES)
def test_it_starts_says_the_state_and_leaves_by_q(place: str, open_monitor: Open) -> None:
    terminal = open_monitor(**PLACES[place])
    terminal.wait_for(r"\* answers" if place in ASCII else ANSWERS)
    terminal.wait_for(r"output +[\d,.]+/s +" + ("[_.~=+*#-]" if place in ASCII else "[▁▂▃▄▅▆▇█]"))
    assert "\\u" not in terminal.screen, "characters written out as code"
    assert terminal.screen.isascii() == (place in ASCII)
    if place in FEW_COLOURS:
        assert not MORE_THAN_16.search(terminal.seen)
    terminal.press(b"q")
    assert terminal.ended() == 0
    assert b"\x1b[?1049l" in terminal.seen, "the terminal is as it was before"


def test_states_differ_without_colour(open_monitor: Open) -> None:
    """By word and glyph, within two intervals and a request's patience; and it comes back."""
    with exporter_thread() as served:
        terminal = open_monitor(url=served.url, NO_COLOR="1")
        terminal.wait_for(ANSWERS)
        served.behave("refuse")
        terminal.wait_for(SILENT, timeout_s=8)
        assert "● answers" not in terminal.screen
        served.behave("answer")
        terminal.wait_for(ANSWERS, timeout_s=8)
        terminal.press(b" ")
        terminal.wait_for(r"‖ frozen", timeout_s=8)


def test_a_terminal_that_cannot_place_its_cursor_is_told_what_to_use(open_monitor: Open) -> None:
    terminal = open_monitor(TERM="dumb")
    assert terminal.ended(20) == 2
    terminal.wait_for(r"llmtune snapshot --watch 1")
    assert b"\x1b[" not in terminal.seen


def test_a_lost_line_ends_it(open_monitor: Open) -> None:
    """Closing the terminal is what sshd does when the connection is gone: SIGHUP, and nobody reads any more."""
    terminal = open_monitor()
    terminal.wait_for(ANSWERS)
    terminal.hang_up()
    assert terminal.ended(20) in (128 + signal.SIGHUP, -signal.SIGHUP)


def test_a_terminal_that_is_gone_is_said_once_and_takes_everything() -> None:
    end, other = os.openpty()
    file, told = os.fdopen(other, "w"), []
    lost = LostTerminal(file, lambda: told.append(True))
    lost.write("there")
    lost.flush()
    os.close(end)
    for _ in range(100):  # more than Textual's queue holds
        assert lost.write("gone") == 4
        lost.flush()
    assert told == [True]


if shutil.which("tmux"):

    @pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "140x45"])
    def test_in_tmux(size: tuple[int, int], exporter: LyingExporter, tmp_path: Path) -> None:
        def tmux(*words: str) -> str:
            own = ["tmux", "-S", str(tmp_path / "socket"), "-f", str(tmp_path / "tmux.conf")]
            environ = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
            done = subprocess.run([*own, *words], check=True, capture_output=True, text=True, cwd=ROOT, env=environ)
            return done.stdout

        (tmp_path / "tmux.conf").write_text("set -g status off\n")
        places = {"LLMTUNE_DATA_DIR": str(tmp_path / "data"), "LLMTUNE_RUNTIME_DIR": str(tmp_path / "run")}
        given = [word for name, value in places.items() for word in ("-e", f"{name}={value}")]
        columns, lines = size
        tmux("-u", "new-session", "-d", "-x", str(columns), "-y", str(lines), *given, *command(exporter.url))
        try:
            until(lambda: tmux("capture-pane", "-p"), ANSWERS)
            screen = until(lambda: tmux("capture-pane", "-p"), r"q quit *\n?\Z")
            assert len(screen.splitlines()) == lines, "no line was lost to a scroll"
            assert screen.startswith(" llmtune ")
            tmux("send-keys", "q")
            until(lambda: str(has_session(tmux)), "False")
        finally:
            if has_session(tmux):
                tmux("kill-server")


def has_session(tmux: Callable[..., str]) -> bool:
    try:
        return bool(tmux("list-sessions"))
    except subprocess.CalledProcessError:  # the server ends with its last session
        return False


def until(look: Callable[[], str], pattern: str, timeout_s: float = 30.0) -> str:
    give_up = time.monotonic() + timeout_s
    while not re.search(pattern, found := look()):
        assert time.monotonic() < give_up, f"no {pattern!r}:\n{found}"
        time.sleep(0.1)
    return found
