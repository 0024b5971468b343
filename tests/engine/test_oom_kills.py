"""Whether a SIGKILL was the kernel's own, for want of memory."""

from pathlib import Path

import pytest

from engine.explain import explain
from engine.processes.oom_kills import killed_since, oom_kills


def write(root: Path, file: str, text: str) -> None:
    (root / file).parent.mkdir(parents=True, exist_ok=True)
    (root / file).write_text(text)


def test_the_counters_of_the_machine_and_of_both_kinds_of_container(tmp_path: Path) -> None:
    write(tmp_path, "proc/vmstat", "nr_free_pages 12\noom_kill 3\n")
    write(tmp_path, "sys/fs/cgroup/memory.events", "low 0\noom 7\noom_kill 2\noom_group_kill 9\n")
    write(tmp_path, "sys/fs/cgroup/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")
    assert sorted(oom_kills(tmp_path).values()) == [1, 2, 3]


def test_a_kernel_without_counters_tells_nothing(tmp_path: Path) -> None:
    write(tmp_path, "proc/vmstat", "nr_free_pages 12\noom_kill many\n")
    assert oom_kills(tmp_path) == {}
    assert killed_since({}, {}) is None
    assert killed_since({"proc/vmstat": 1}, {"sys/fs/cgroup/memory.events": 1}) is None


def test_one_counter_that_rose_is_enough() -> None:
    before = {"proc/vmstat": 1, "sys/fs/cgroup/memory.events": 0}
    assert killed_since(before, before) is False
    assert killed_since(before, before | {"sys/fs/cgroup/memory.events": 1}) is True


@pytest.mark.parametrize(
    ("counted", "failure_class", "said"),
    [
        (True, "host_oom", "(signal 9), because the machine's memory ran out"),
        (None, "host_oom", "(signal 9), most likely because the machine's memory ran out"),
        (False, "interrupted", "(signal 9) by somebody"),
    ],
)
def test_a_killed_server_is_explained_by_what_the_kernel_counts(
    counted: bool | None, failure_class: str, said: str
) -> None:
    found = explain("INFO 11-30 10:00:00 [api_server.py:1] vLLM API server version 0.25.1\n", -9, oom_killed=counted)
    assert found.failure_class == failure_class
    assert said in (found.cause or "")
