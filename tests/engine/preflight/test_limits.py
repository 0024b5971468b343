"""Memory with and without a container's limit, and what else the kernel allows."""

from pathlib import Path

import pytest

from engine.preflight.check import GIB
from engine.preflight.limits import LimitsReading, limits_checks, read_limits
from engine.preflight.memory import MemoryReading, memory_check, read_memory

MEMINFO = "MemTotal:       65536000 kB\nMemFree: 1000 kB\nMemAvailable:   32768000 kB\nHugePages_Total:       0\n"
PLENTY = LimitsReading(files=None, locked=None, shared=64 * GIB, shared_free=64 * GIB)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "meminfo").write_text(MEMINFO)
    (tmp_path / "proc" / "self" / "cgroup").write_text("0::/pod/main\n")
    return tmp_path / "proc"


def write(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n")


def test_the_tightest_limit_of_cgroup_v2_counts_without_page_cache(proc: Path, tmp_path: Path) -> None:
    root = tmp_path / "cg"
    write(root)
    write(root / "pod", memory__max=16 * GIB, memory__current=15 * GIB, memory__stat=f"anon 5\ninactive_file {4 * GIB}")
    write(root / "pod" / "main", memory__max="max", memory__current=15 * GIB, memory__events="oom 2\noom_kill 1")
    reading = read_memory(proc, root)
    assert (reading.total, reading.available) == (65536000 * 1024, 32768000 * 1024)
    assert (reading.limit, reading.limit_used, reading.kills) == (16 * GIB, 11 * GIB, 1)
    check = memory_check(reading)
    assert check.state == "warning"
    assert "5.0 GiB of 16.0 GiB of this container's limit" in check.found


def test_cgroup_v1_whose_path_is_the_hosts(proc: Path, tmp_path: Path) -> None:
    (proc / "self" / "cgroup").write_text("12:cpu,cpuacct:/docker/ab\n9:memory:/docker/ab\n1:name=systemd:/docker/ab\n")
    write(
        tmp_path / "cg" / "memory", memory__limit_in_bytes=8 * GIB, memory__usage_in_bytes=7 * GIB,
        memory__stat=f"inactive_file 5\ntotal_inactive_file {GIB}",
    )  # fmt: skip
    reading = read_memory(proc, tmp_path / "cg")
    assert (reading.limit, reading.limit_used) == (8 * GIB, 6 * GIB)


def test_no_limit_at_all(proc: Path, tmp_path: Path) -> None:
    (proc / "self" / "cgroup").write_text("9:memory:/\n")
    write(tmp_path / "cg" / "memory", memory__limit_in_bytes=2**63 - 4096, memory__usage_in_bytes=7)
    assert read_memory(proc, tmp_path / "cg").limit is None
    assert read_memory(proc, tmp_path / "none").limit is None


@pytest.mark.parametrize(
    ("reading", "state"),
    [
        (MemoryReading(64 * GIB, 32 * GIB), "ok"),
        (MemoryReading(64 * GIB, 32 * GIB, 128 * GIB, GIB), "ok"),
        (MemoryReading(64 * GIB, 5 * GIB), "warning"),
        (MemoryReading(64 * GIB, 32 * GIB, kills=2), "warning"),
        (MemoryReading(64 * GIB, 32 * GIB, 8 * GIB, 7 * GIB), "problem"),
    ],
)
def test_memory_in_three_states(reading: MemoryReading, state: str) -> None:
    check = memory_check(reading)
    assert check.state == state
    assert bool(check.advice) == (state != "ok")


@pytest.mark.parametrize(("files", "state"), [(None, "ok"), (65536, "ok"), (4096, "warning"), (256, "problem")])
def test_open_files(files: int | None, state: str) -> None:
    check = limits_checks(LimitsReading(files, None, 64 * GIB, 64 * GIB), gpus=1)[0]
    assert (check.name, check.state) == ("open files", state)


def test_locked_memory_matters_between_gpus() -> None:
    little = LimitsReading(None, 64 * 1024, 64 * GIB, 64 * GIB)
    assert [limits_checks(little, gpus)[1].state for gpus in (0, 1, 2)] == ["ok", "ok", "warning"]
    assert limits_checks(PLENTY, 8)[1].state == "ok"


@pytest.mark.parametrize(
    ("shared", "free", "gpus", "state"),
    [
        (64 * GIB, 64 * GIB, 8, "ok"),
        (GIB // 16, GIB // 16, 1, "ok"),
        (GIB // 16, GIB // 16, 2, "problem"),
        (8 * GIB, GIB // 2, 1, "warning"),
        (None, None, 1, "warning"),
        (None, None, 2, "problem"),
    ],
)
def test_shared_memory(shared: int | None, free: int | None, gpus: int, state: str) -> None:
    check = limits_checks(LimitsReading(None, None, shared, free), gpus)[2]
    assert (check.name, check.state) == ("shared memory", state)


def test_the_limits_of_this_machine(tmp_path: Path) -> None:
    here = read_limits()
    assert here.files is None or here.files > 0
    assert read_limits(tmp_path / "none").shared is None
