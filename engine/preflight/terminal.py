"""Locale and terminal: what the screens need."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.preflight.check import Check

SMALLEST = (80, 24)
# 16 colours by their names, as Rich and so Textual have it (rich/console.py).
_FEW_COLOURS = ("screen", "xterm", "linux", "vt100", "ansi")


@dataclass(frozen=True, slots=True)
class TerminalReading:
    """`encoding` is that of standard output, `size` columns and lines, None where it is no terminal."""

    encoding: str
    size: tuple[int, int] | None
    environ: Mapping[str, str]


def terminal_checks(reading: TerminalReading) -> list[Check]:
    return [_locale(reading), _terminal(reading)]


def _locale(reading: TerminalReading) -> Check:
    environ = reading.environ
    named = next(
        (f"{name}={environ[name]}" for name in ("LC_ALL", "LC_CTYPE", "LANG") if environ.get(name)), "none set"
    )
    found = f"{named}, text is written as {reading.encoding}"
    if reading.encoding.lower().replace("-", "").replace("_", "") == "utf8":
        return Check("locale", "ok", found)
    return Check("locale", "problem", found, "export LC_ALL=C.UTF-8: the screens draw with characters beyond ASCII")


def _terminal(reading: TerminalReading) -> Check:
    if reading.size is None:
        return Check("terminal", "ok", "none here: plain lines work (--headless), the screens need one")
    term = reading.environ.get("TERM", "")
    width, height = reading.size
    found = f"{term or 'TERM is not set'}, {width}x{height}, {_colours(reading.environ)}"
    if "TMUX" in reading.environ:
        found = f"{found}, in tmux"
    if not term or term in ("dumb", "unknown"):
        return Check("terminal", "problem", found, "export TERM=xterm-256color, or use --headless")
    if width < SMALLEST[0] or height < SMALLEST[1]:
        return Check("terminal", "warning", found, f"make it at least {SMALLEST[0]}x{SMALLEST[1]}: some panels are cut")
    if _colours(reading.environ) == "16 colours":
        better = "tmux-256color" if "TMUX" in reading.environ or term == "screen" else "xterm-256color"
        return Check(
            "terminal", "warning", found, f"export TERM={better} for more colours; glyphs and words say the same"
        )
    return Check("terminal", "ok", found)


def _colours(environ: Mapping[str, str]) -> str:
    if environ.get("NO_COLOR"):
        return "no colours (NO_COLOR)"
    if environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return "16 million colours"
    term = environ.get("TERM", "")
    if "256color" in term or term.endswith(("-direct", "kitty")):
        return "256 colours"
    return "16 colours" if term.partition("-")[0] in _FEW_COLOURS else "colours unknown"
