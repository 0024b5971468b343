"""`llmtune doctor`: the machine, before anything is started."""

import argparse
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Iterable
from dataclasses import asdict

from engine.preflight.bounded import Probe, Unread
from engine.preflight.check import Check, State
from engine.preflight.doctor import examine
from engine.preflight.terminal import TerminalReading
from store.location import data_dir
from tui.output import say, say_json

DATA_DIR_WITHIN_S = 2.0
GLYPHS: dict[State, str] = {"ok": "✔", "warning": "▲", "problem": "✗"}


def run(args: argparse.Namespace) -> int:
    place, why, refused = None, "", None
    chosen = Probe(lambda: data_dir(args.data_dir, os.environ)).answer(time.monotonic() + DATA_DIR_WITHIN_S)
    if isinstance(chosen, Unread):
        refused = Check("disk: data directory", "problem", chosen.why, "name another folder with --data-dir")
    else:
        place, why = chosen.path, chosen.why
    checks = examine(place, why, args.vllm, _terminal(), os.environ)
    if refused is not None:
        checks.append(refused)
    problems, warnings = (sum(check.state == state for check in checks) for state in ("problem", "warning"))
    if args.json:
        told = {"problems": problems, "warnings": warnings, "checks": [asdict(check) for check in checks]}
        say_json({"data_dir": None if place is None else str(place), **told})
    else:
        terminal = _terminal()
        for line in check_lines(checks, None if terminal.size is None else terminal.size[0]):
            say(line)
        say()
        say(_counted(problems, warnings))
    return 1 if problems else 0


def check_lines(checks: Iterable[Check], columns: int | None = None) -> list[str]:
    """Glyph and word, what was found, and below it what to do; wrapped to `columns` where there are that many."""
    kept = list(checks)
    width = max((len(check.name) for check in kept), default=0)
    indent = " " * (width + 13)
    room = max(40, (columns or 0) - len(indent)) if columns else 1_000_000

    def wrapped(text: str, hanging: str = "") -> list[str]:
        return textwrap.wrap(text, room, subsequent_indent=hanging, break_on_hyphens=False) or [""]

    lines: list[str] = []
    for check in kept:
        first, *rest = wrapped(check.found)
        lines.append(f"{GLYPHS[check.state]} {check.state:<8} {check.name:<{width}}  {first}")
        advice = wrapped(f"→ {check.advice}", "  ") if check.advice and check.state != "ok" else []
        lines += [f"{indent}{line}" for line in (*rest, *advice)]
    return lines


def _counted(problems: int, warnings: int) -> str:
    if not problems and not warnings:
        return "nothing stands in the way of a start"
    parts = [
        f"{count} {word}{'' if count == 1 else 's'}" for count, word in ((problems, "problem"), (warnings, "warning"))
    ]
    return ", ".join(parts)


def _terminal() -> TerminalReading:
    size = shutil.get_terminal_size() if sys.stdout.isatty() else None
    return TerminalReading(
        sys.stdout.encoding or "ascii", None if size is None else (size.columns, size.lines), os.environ
    )
