import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from engine.processes.ports import free_port
from engine.processes.process import descendants, identify, marked
from engine.stop import StopReport, end_leftovers, find_ours, wait_released

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
FAMILY = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {STUBBORN!r}]); time.sleep(60)"


class Family:
    """A group leader that ends at TERM, and its child that does not."""

    def __init__(self, marker: str) -> None:
        environ = os.environ | {"LLMTUNE_SERVER": marker} if marker else dict(os.environ)
        self.process = subprocess.Popen([sys.executable, "-c", FAMILY], env=environ, start_new_session=True)
        self.pgid = self.process.pid
        deadline = time.monotonic() + 10
        while not descendants(self.pgid) or b"SIG_IGN" not in _cmdline(descendants(self.pgid)[0].pid):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(0.2)  # until the child ignores TERM
        identity = identify(self.pgid)
        assert identity is not None
        self.identity = identity
        (self.child,) = descendants(self.pgid)


def _cmdline(pid: int) -> bytes:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()


@pytest.fixture
def family() -> Iterator[Family]:
    made = Family(f"family-{os.getpid()}")
    yield made
    _end(made)


@pytest.fixture
def strangers() -> Iterator[Family]:
    made = Family("")
    yield made
    _end(made)


def _end(family: Family) -> None:
    for identity in (family.child, family.identity):
        if identify(identity.pid) == identity:
            os.kill(identity.pid, signal.SIGKILL)
    family.process.wait()


async def test_leftovers_are_ended_group_first_and_by_force_where_needed(family: Family) -> None:
    report = await end_leftovers(family.identity, family.pgid, "", [], grace_s=0.3)
    assert set(report.terminated) == {family.identity.pid, family.child.pid}
    assert report.killed == (family.child.pid,)
    assert report.survivors == ()
    assert "2 processes ended" in report.summary()
    assert "1 of them killed" in report.summary()


@pytest.mark.parametrize("by", ["marker", "record"])
async def test_a_child_whose_leader_was_killed_is_found_by_marker_or_record(family: Family, by: str) -> None:
    family.process.kill()
    family.process.wait()
    marker = f"family-{os.getpid()}" if by == "marker" else ""
    recorded = [family.child] if by == "record" else []
    report = await end_leftovers(family.identity, family.pgid, marker, recorded, grace_s=0.1)
    assert report.ended == (family.child.pid,)
    assert marked(f"family-{os.getpid()}") == []


async def test_a_group_and_pids_that_belong_to_others_now_are_left_alone(strangers: Family) -> None:
    earlier = replace(strangers.identity, start_ticks=strangers.identity.start_ticks - 100)
    other_boot = replace(strangers.identity, boot_id="an earlier boot")
    child = replace(strangers.child, start_ticks=strangers.child.start_ticks - 100)
    for identity in (earlier, other_boot, None):
        report = await end_leftovers(identity, strangers.pgid, "no-such-marker", [child], grace_s=0.1)
        assert report.ended == ()
        assert report.terminated == ()
    assert strangers.process.poll() is None
    assert identify(strangers.child.pid) == strangers.child


def test_we_are_never_among_what_is_to_be_ended() -> None:
    myself = identify(os.getpid())
    assert myself is not None
    assert find_ours(None, None, "", [myself]) == []


async def test_released_means_port_free_and_gpu_memory_flat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.stop._GPU_EVERY_S", 0.05)
    readings = iter([19.5, 19.5, 8.0, 3.0, 1.01, 1.0, 1.0, 1.0, 1.0])
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        port = sock.getsockname()[1]
        assert await wait_released("127.0.0.1", port, None, timeout_s=0.3) == (False, None)
    assert await wait_released("127.0.0.1", port, lambda: next(readings)) == (True, True)
    assert next(readings) == 1.0
    assert await wait_released("127.0.0.1", port, lambda: None) == (True, None)
    ever = iter(range(1000))
    assert await wait_released("127.0.0.1", port, lambda: next(ever), timeout_s=0.6) == (True, False)


async def test_gpu_memory_whose_readings_come_and_go_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """While NVML is started anew there is no reading: that is not the same as memory that nobody can read."""
    monkeypatch.setattr("engine.stop._GPU_EVERY_S", 0.05)
    port = free_port("127.0.0.1", 8600)
    readings = iter([19.5, None, None, 19.5, 19.5, None, 19.5, 2.0, 1.0, 1.0, None, 1.0, 1.0, 1.0, 1.0, 7.0])
    assert await wait_released("127.0.0.1", port, lambda: next(readings)) == (True, True)
    assert next(readings) == 7.0
    gone = iter([19.5])
    assert await wait_released("127.0.0.1", port, lambda: next(gone, None), timeout_s=0.6) == (True, False)


async def test_a_driver_that_hangs_holds_up_neither_the_wait_nor_the_loop() -> None:
    release = threading.Event()

    def hang() -> float:
        release.wait(10)
        return 1.0

    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.02)
            ticks += 1

    ticking = asyncio.create_task(tick())
    began = time.monotonic()
    port = free_port("127.0.0.1", 8600)
    assert await wait_released("127.0.0.1", port, hang, timeout_s=0.4) == (True, None)
    ticking.cancel()
    release.set()
    assert time.monotonic() - began < 2
    assert ticks > 5


def test_a_report_says_what_is_still_wrong() -> None:
    report = StopReport(0, 3.14, (1, 2), (2,), survivors=(2,), port_free=False, gpu_flat=False)
    assert report.ended == (1,)
    assert "1 process ended in 3.1 s" in report.summary()
    assert "SIGKILL: 2" in report.summary()
