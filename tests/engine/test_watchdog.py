"""What counts as standing still."""

import asyncio
import itertools
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.processes.process import identify
from engine.processes.watchdog import activity, until_still
from engine.records import ProcessIdentity


async def test_what_moves_is_waited_for_and_what_stops_is_told() -> None:
    values = itertools.chain(range(20), itertools.repeat(20))
    began = time.monotonic()
    await asyncio.wait_for(until_still(lambda: next(values), still_s=0.1, every_s=0.01), 5)
    assert time.monotonic() - began > 0.25

    moving = asyncio.create_task(until_still(itertools.count().__next__, still_s=0.05, every_s=0.01))
    await asyncio.sleep(0.3)
    assert not moving.done()
    moving.cancel()


@pytest.fixture
def sleeper() -> Iterator[ProcessIdentity]:
    """A process that has read a file and now waits."""
    code = "import sys\nfor line in sys.stdin:\n    open(line.strip(), 'rb').read()\n    print('read', flush=True)"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    identity = identify(process.pid)
    assert identity is not None
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{__file__}\n")
    process.stdin.flush()
    assert process.stdout.readline() == "read\n"
    yield identity
    process.kill()
    process.communicate()


def test_reading_and_logging_are_activity_and_waiting_is_not(sleeper: ProcessIdentity, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    before = activity([sleeper], log)
    assert before[2] > 0
    time.sleep(0.1)
    assert activity([sleeper], log) == before
    log.write_text("a line\n")
    assert activity([sleeper], log)[0] == 7


def test_a_process_that_is_another_now_counts_as_nothing(sleeper: ProcessIdentity, tmp_path: Path) -> None:
    another = ProcessIdentity(sleeper.pid, sleeper.start_ticks + 1, sleeper.boot_id)
    assert activity([another], tmp_path / "none.log") == (0, 0, 0)
