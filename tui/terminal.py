"""Whether a terminal can draw what we draw, and ASCII in its place where it cannot; what is done when it is gone.

Textual writes UTF-8 whatever the locale says, and so it should: a rented machine has no LANG, and the terminal at the
other end of its SSH draws everything. What cannot is told from what stands between: a tmux whose client did not say
UTF-8 puts `_` for each glyph, GNU screen goes by the locale, the Linux console's font has few of them.
"""

import os
import signal
import subprocess
import unicodedata
from collections.abc import Callable, Mapping
from typing import IO, Any

from textual.driver import Driver

TMUX_PATIENCE_S = 1.0

_GLYPHS = {
    " ▁▂▃▄▅▆▇█": " _.-~=+*#",
    "░▒▓": ".:%",
    "▏▎▍▌▋▊▉▐▕│┃║╎╏┆┇": "|" * 16,
    "▀▔": "^^",
    "─━═╌╍┄┅–—−": "-" * 10,
    "┌┐└┘├┤┬┴┼╭╮╰╯┏┓┗┛╔╗╚╝": "+" * 21,
    "●○◐◌◍■▪•✗✔▶▸▲▼‖·…≤≥±×≈°→←↑↓⏎": "*o~.!#**xv>>^v=..<>~x~'><^v<",
    "“”‘’": "\"\"''",
}


class AsciiTable(dict[int, str]):
    """For `str.translate`: one ASCII character a cell, so that every column stands where it stood."""

    def __init__(self) -> None:
        super().__init__({ord(glyph): plain for pair in _GLYPHS.items() for glyph, plain in zip(*pair, strict=True)})

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if char.isascii() or unicodedata.combining(char):
            plain = char if char.isascii() else ""
        elif 0x2800 <= code < 0x2900:  # Braille, in which charts draw their lines
            plain = " " if code == 0x2800 else "*"
        else:
            plain = "??" if unicodedata.east_asian_width(char) in "WF" else "?"
        self[code] = plain
        return plain


def ask_tmux(pane: str) -> str:
    """What tmux says of its client: `1` where that draws UTF-8, `0` where not, empty where nobody is asked."""
    try:
        asked = subprocess.run(
            ["tmux", "display-message", "-p", "-t", pane, "#{client_utf8}"],
            capture_output=True,
            text=True,
            timeout=TMUX_PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stdout.strip()


def draws_unicode(environ: Mapping[str, str], tmux: Callable[[str], str] = ask_tmux) -> bool:
    """Whether glyphs beyond ASCII reach the person. LLMTUNE_ASCII=1 says that they do not, =0 that they do."""
    if said := environ.get("LLMTUNE_ASCII"):
        return said == "0"
    if environ.get("TMUX"):
        return tmux(environ.get("TMUX_PANE", "")) != "0"
    if environ.get("STY"):
        locale = environ.get("LC_ALL") or environ.get("LC_CTYPE") or environ.get("LANG") or ""
        if locale == "C.UTF-8" and environ.get("LANG", "C") in ("", "C", "POSIX"):
            return False  # Python has put it there itself, in the place of C (PEP 538): screen never saw it
        return "utf-8" in locale.lower() or "utf8" in locale.lower()
    return environ.get("TERM") != "linux"


class LostTerminal:
    """The file that a driver writes to, for as long as there is a terminal at its end; then everything is taken.

    Textual writes on a thread that dies of the first error, with a queue before it that fills up within a second and
    then holds the program for ever: a line that is lost would leave it behind. `gone` is called once, on that thread.
    """

    def __init__(self, file: IO[str], gone: Callable[[], object]) -> None:
        self._file = file
        self._gone = gone
        self._is_there = True

    def write(self, text: str) -> int:
        self._if_there(lambda: self._file.write(text))
        return len(text)

    def flush(self) -> None:
        self._if_there(self._file.flush)

    def fileno(self) -> int:
        return self._file.fileno()

    def _if_there(self, act: Callable[[], object]) -> None:
        if self._is_there:
            try:
                act()
            except OSError:
                self._is_there = False
                self._gone()


def hang_up() -> None:
    """End this program as the loss of its terminal does; a shell under nohup, or one that died, tells nobody."""
    os.kill(os.getpid(), signal.SIGHUP)


def outliving_its_terminal(driver: type[Driver]) -> type[Driver]:
    """The driver, on a file that outlives the terminal at its end."""

    class LastingDriver(driver):  # type: ignore[valid-type, misc]
        _file: Any

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self._file = LostTerminal(self._file, hang_up)

    return LastingDriver


def in_ascii(driver: type[Driver]) -> type[Driver]:
    """The driver, with ASCII for every glyph that it writes."""

    class AsciiDriver(driver):  # type: ignore[valid-type, misc]
        _table = AsciiTable()

        def write(self, data: str) -> None:
            super().write(data.translate(self._table))

    return AsciiDriver
