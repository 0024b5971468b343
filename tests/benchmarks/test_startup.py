"""What a person waits for before anything is on the screen. Times are of this machine and printed, never judged here:
the goals (0.4 s for `--help`, 0.8 s to the first paint) are for an idle one."""

import fcntl
import os
import pty
import select
import signal
import statistics
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.benchmark

ROUNDS = 7
PAINT_TIMEOUT_S = 30.0
CLI = [sys.executable, "-m", "tui.cli"]
ROOT = Path(__file__).resolve().parents[2]


def wall(command: list[str]) -> float:
    begun = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
    return time.perf_counter() - begun


def first_paint(command: list[str], text: bytes) -> float:
    """Seconds from exec to the first bytes that contain `text`, on a terminal of 80x24."""
    begun = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.environ["TERM"] = "xterm-256color"
        os.execv(command[0], command)
    try:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        seen = b""
        while text not in seen:
            left = begun + PAINT_TIMEOUT_S - time.perf_counter()
            ready, _, _ = select.select([terminal], [], [], max(0.0, left))
            assert ready, f"nothing like {text!r} within {PAINT_TIMEOUT_S:g} s; seen: {seen[-500:]!r}"
            seen += os.read(terminal, 65536)
        return time.perf_counter() - begun
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def medians(**what: Callable[[], float]) -> dict[str, float]:
    """The median of each over some rounds, taken in turns so that a slow moment hits all of them."""
    times: dict[str, list[float]] = {name: [] for name in what}
    for measure in what.values():
        measure()  # the first round fills the file cache and compiles
    for _ in range(ROUNDS):
        for name, measure in what.items():
            times[name].append(measure())
    return {name: statistics.median(values) for name, values in times.items()}


def test_help_and_first_paint() -> None:
    found = medians(
        bare=lambda: wall([sys.executable, "-c", "pass"]),
        help=lambda: wall([*CLI, "--help"]),
        paint=lambda: first_paint(CLI, b"Servers"),
    )
    bare = found["bare"]
    print(f"\npython -c pass     {bare * 1000:6.0f} ms")
    print(f"llmtune --help     {found['help'] * 1000:6.0f} ms  {found['help'] / bare:5.1f} times that   (goal 400 ms)")
    print(
        f"llmtune, painted   {found['paint'] * 1000:6.0f} ms  {found['paint'] / bare:5.1f} times that   (goal 800 ms)"
    )
