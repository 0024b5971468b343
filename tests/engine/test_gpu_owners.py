"""Whose a process on a GPU is, with real processes: recorded, descended, marked, another's, and not to be seen."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.gpu_owners import (
    ANOTHER,
    EVALUATION,
    STRANGE_SERVER,
    TRAINING,
    UNSEEN,
    Owner,
    OwnerLook,
    find_owners,
    held_by,
    pids_of,
)
from engine.processes import process as process_module
from engine.processes.process import boot_id, descendants, identify, opens_gpu
from engine.records import GpuProcess
from store.records import SampleRecord, ServerRecord

SLEEP = "import time; time.sleep(60)"
PARENT = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}]); {SLEEP}"
AT = "2026-11-30T10:00:00.000Z"


def on_gpu(pid: int) -> bool:
    return True


@pytest.fixture
def family(request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    """The pids of a parent and its child, with the marker that the test asks for."""
    marker = getattr(request, "param", None)
    environ = {name: value for name, value in os.environ.items() if name != "LLMTUNE_SERVER"}
    environ |= {"LLMTUNE_SERVER": marker} if marker else {}
    parent = subprocess.Popen([sys.executable, "-c", PARENT], env=environ)
    deadline = time.monotonic() + 10
    while not (children := descendants(parent.pid)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    yield parent.pid, children[0].pid
    for pid in (children[0].pid, parent.pid):
        os.kill(pid, 9)
    parent.wait()


def row(pid: int | None, **changed: object) -> ServerRecord:
    identity = identify(pid) if pid else None
    record = ServerRecord(
        "chat\x1b[31m", "ready", "m", "127.0.0.1", 8000, [], {}, "s.log", "a-marker",
        pid=pid, start_ticks=identity.start_ticks if identity else None, boot_id=boot_id(), id=3,
    )  # fmt: skip
    return replace(record, **changed)  # type: ignore[arg-type]


OURS = Owner("ours", "our server 3, chat")


def test_a_server_and_what_descends_from_it_are_ours(family: tuple[int, int]) -> None:
    parent, child = family
    found = find_owners([parent, child, os.getpid(), 2**22 + 1], [row(parent)], on_gpu)
    assert found == {parent: OURS, child: OURS, os.getpid(): ANOTHER, 2**22 + 1: ANOTHER}


def test_an_orphan_is_ours_by_what_was_recorded(family: tuple[int, int]) -> None:
    _, child = family
    identity = identify(child)
    assert identity is not None
    orphan = row(None, descendants=[[child, identity.start_ticks]])
    assert find_owners([child], [orphan], on_gpu) == {child: OURS}


def test_a_pid_that_was_given_to_another_process_is_not_ours(family: tuple[int, int]) -> None:
    parent, child = family
    identity = identify(parent)
    assert identity is not None
    for record in (
        row(parent, start_ticks=identity.start_ticks - 1),
        row(parent, boot_id="an earlier boot"),
        row(None, descendants=[[child, 1]]),
    ):
        assert find_owners([parent, child], [record], on_gpu) == {parent: ANOTHER, child: ANOTHER}


@pytest.mark.parametrize(
    ("family", "server"),
    [
        ("a-marker", "our server 3, chat"),
        ("another-marker", STRANGE_SERVER),
        ("training-5c", TRAINING),
        ("evaluation-5c", EVALUATION),
    ],
    indirect=["family"],
)
def test_a_marker_tells_it_before_anything_was_recorded(family: tuple[int, int], server: str) -> None:
    for pid in family:
        assert find_owners([pid], [row(None)], on_gpu) == {pid: Owner("ours", server)}


def test_a_pid_of_the_host_is_never_taken_for_ours(family: tuple[int, int]) -> None:
    """In a container NVML may tell the host's pids. One of them may be the number of our own server here."""
    parent, _ = family
    assert find_owners([parent], [row(parent)]) == {parent: UNSEEN}
    assert find_owners([parent], [row(parent)], lambda pid: False) == {parent: UNSEEN}
    assert find_owners([parent], [row(parent)], lambda pid: None) == {parent: ANOTHER}


def test_a_process_on_a_gpu_has_its_device_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_module, "_PROC", tmp_path)
    for pid, target in ((7, "/dev/nvidia0"), (8, "/dev/null"), (9, "/dev/dxg")):
        (tmp_path / str(pid) / "fd").mkdir(parents=True)
        (tmp_path / str(pid) / "fd" / "3").symlink_to(target)
    assert [opens_gpu(pid) for pid in (7, 8, 9, 10)] == [True, False, True, False]


def sample(*pids: object) -> SampleRecord:
    return SampleRecord(AT, raw={"gpus": [{"index": 0, "processes": [{"pid": pid} for pid in pids]}, {"index": 1}]})


def test_a_look_is_kept_until_something_changes() -> None:
    asked: list[int] = []
    now = [0.0]

    def watch(pid: int) -> bool:
        asked.append(pid)
        return False

    look = OwnerLook(watch, lambda: now[0])
    for _ in range(3):
        assert look.of(sample(11, 12), ()) == {11: UNSEEN, 12: UNSEEN}
    assert sorted(asked) == [11, 12]
    look.of(sample(11), ())
    look.of(sample(11), [row(None)])
    assert len(asked) == 4
    now[0] = 11.0
    look.of(sample(11), [row(None)])
    assert len(asked) == 5


@pytest.mark.parametrize(
    "raw",
    [{}, {"gpus": None}, {"gpus": ["x"]}, {"gpus": [{"processes": "x"}]}, {"gpus": [{"processes": [7, {"pid": "9"}]}]}],
)
def test_samples_without_pids(raw: dict[str, object]) -> None:
    assert pids_of(SampleRecord(AT, raw=raw)) == []
    assert pids_of(None) == []


@pytest.mark.parametrize(
    ("process", "owner", "said"),
    [
        (GpuProcess(693, 133.8, "VLLM::EngineCore"), OURS, "pid 693 (VLLM::EngineCore, our server 3, chat) 133.8 GiB"),
        (GpuProcess(693, None, None), UNSEEN, "pid 693 (not visible from here)"),
        (GpuProcess(693, 1.0, "[/x]\x1b[2J"), ANOTHER, "pid 693 ([/x]) 1.0 GiB"),
        (GpuProcess(693, 1.0), None, "pid 693 1.0 GiB"),
    ],
)
def test_a_holder_in_words(process: GpuProcess, owner: Owner | None, said: str) -> None:
    assert held_by(process, owner) == said
