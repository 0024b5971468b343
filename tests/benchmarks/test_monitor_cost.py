"""What the monitor costs while it is left open, and how soon a key shows. Printed, judged by nobody: times are of this
machine. The yardstick runs beside it in the same minute, in a terminal of its own: a Textual dashboard that only draws.

    make bench ARGS="-k monitor_cost"            LLMTUNE_BENCH_S=10 for a short one while working

Monitors of others are measured beside them where their commands are on PATH, each at its own default interval.
"""

import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from store.database import open_writer
from store.location import database_file
from tests.terminal import Terminal, Use

pytestmark = pytest.mark.benchmark

ROOT = Path(__file__).resolve().parents[2]
SIZE = (120, 40)
SECONDS = float(os.environ.get("LLMTUNE_BENCH_S", "60"))
SETTLE_S = 6.0  # until everything is imported and painted
PRESSES = 20
GOAL_RATIO, GOAL_KEY_MS = 1.5, 50
PEERS = {
    "vllmstat": ["--url", "{url}"],
    "vllmpytop": ["--url", "{url}"],
    "vllm-htop": ["--url", "{url}"],
    "vllm-dash": ["--url", "{url}", "--db", "{folder}/vllm-mon.db"],  # the command of vllm-mon
    "vllm-top": ["--host", "127.0.0.1", "--port", "{port}"],
    "nvitop": [],
}
WINDOW = re.compile(r"last (\d+ \w+)")


@contextmanager
def exporter(*options: str) -> Iterator[str]:
    """The address of a scripted /metrics that runs meanwhile."""
    command = [sys.executable, "-m", "tests.benchmarks.moving_exporter", *options]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def monitor(url: str, folder: Path) -> Terminal:
    """On a data directory that was there before: the first start of all makes one, with a library that the others do
    not load."""
    open_writer(database_file(folder / "data")).close()
    return Terminal(
        [sys.executable, "-m", "tui.cli", "monitor", "--url", url],
        SIZE,
        {"LLMTUNE_DATA_DIR": str(folder / "data"), "LLMTUNE_RUNTIME_DIR": str(folder / "run")},
        ROOT,
    )


def peers(url: str, folder: Path) -> dict[str, list[str]]:
    """The command lines of those that are installed."""
    words = {"url": url, "port": url.rpartition(":")[2], "folder": str(folder)}
    found = {name: shutil.which(name) for name in PEERS}
    return {name: [at, *(word.format(**words) for word in PEERS[name])] for name, at in found.items() if at}


def test_cost_at_rest(tmp_path: Path) -> None:
    with exporter() as url, ExitStack() as stack:
        running = {
            "llmtune monitor": stack.enter_context(monitor(url, tmp_path)),
            "bare Textual": stack.enter_context(
                Terminal([sys.executable, "-m", "tests.benchmarks.bare_dashboard"], SIZE, cwd=ROOT)
            ),
        }
        for name, command in peers(url, tmp_path).items():
            running[name] = stack.enter_context(Terminal(command, SIZE, cwd=tmp_path))
        time.sleep(SETTLE_S)
        begun = {name: one.use() for name, one in running.items() if one.process.poll() is None}
        time.sleep(SECONDS)
        ended = {name: running[name].use() for name in begun if running[name].process.poll() is None}
        assert {"llmtune monitor", "bare Textual"} <= ended.keys(), running["llmtune monitor"].screen
    print(f"\n{SIZE[0]}x{SIZE[1]}, {SECONDS:g} s, /metrics once a second, no GPU unless this machine has one")
    print(f"{'':<16}  {'CPU':>8} {'to the terminal':>16} {'RSS':>9} {'PSS':>9}")
    for name, use in ended.items():
        cpu, written = rates(begun[name], use)
        print(f"{name:<16}  {cpu:6.2f} % {written / 1000:11.2f} kB/s {use.rss_mib:5.1f} MiB {use.pss_mib:5.1f} MiB")
    for name in running.keys() - ended.keys():
        print(f"{name:<16}  ended by itself: {running[name].screen.strip()[-200:]!r}")
    ours, bare = (rates(begun[name], ended[name]) for name in ("llmtune monitor", "bare Textual"))
    memory = [ended[name] for name in ("llmtune monitor", "bare Textual")]
    print(
        f"ratios to bare    {ours[0] / bare[0]:6.2f}   {ours[1] / bare[1]:11.2f}    "
        f"{memory[0].rss_mib / memory[1].rss_mib:7.2f}   {memory[0].pss_mib / memory[1].pss_mib:7.2f}   "
        f"(goal at most {GOAL_RATIO})"
    )


def rates(first: Use, last: Use) -> tuple[float, float]:
    """CPU in percent of a core, and bytes a second."""
    took = last.at - first.at
    return 100 * (last.cpu_s - first.cpu_s) / took, (last.written - first.written) / took


def test_a_key_while_the_server_hangs(tmp_path: Path) -> None:
    chance = random.Random(4)
    took: list[float] = []
    with exporter("--hang") as url, monitor(url, tmp_path) as terminal:
        terminal.wait_for(r"last \d+ \w+")
        time.sleep(SETTLE_S)
        for _ in range(PRESSES):
            time.sleep(0.3 + chance.random())  # at any moment of a tick and of a request
            before = WINDOW.findall(terminal.screen)[0]
            pressed = time.monotonic()
            terminal.press(b"w")
            took.append(1000 * (terminal.wait_for(rf"last (?!{before})\d+ \w+") - pressed))
    took.sort()
    print(
        f"\n`w` to its effect while the server hangs: median {statistics.median(took):.0f} ms, "
        f"p95 {took[int(0.95 * PRESSES) - 1]:.0f} ms, longest {took[-1]:.0f} ms of {PRESSES} (goal {GOAL_KEY_MS})"
    )
