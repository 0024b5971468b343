"""Folders: room by a real trial allocation, on a file system that is really full; who may write; what survives."""

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.preflight import allocation
from engine.preflight.allocation import Trial, try_allocation
from engine.preflight.check import GIB
from engine.preflight.places import Place, PlaceReading, Use, place_check, places, read_place
from store.file_system import Mount, read_mounts
from tests.mounting import mounted
from tests.store.rights import unwritable

VOLUME, ROOT, MEMORY = Mount(Path("/data"), "ext4"), Mount(Path("/"), "overlay"), Mount(Path("/data"), "tmpfs")
FUSE = Mount(Path("/data"), "fuse.mfs")
MIB = 2**20


def reading(use: Use = "data", **fields: object) -> PlaceReading:
    place = Place(use, Path("/data/llmtune"), "--data-dir")
    base = PlaceReading(place, Path("/data"), VOLUME, True, 100 * GIB, 10**6, Trial(GIB, GIB))
    return replace(base, **fields)  # type: ignore[arg-type]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path | None]:
    """A file system of 8 MiB where one may be mounted (as root); elsewhere None."""
    with mounted(tmp_path / "small", "size=8m,nr_inodes=50") as folder:
        yield folder


def test_what_is_had_is_given_back(tmp_path: Path) -> None:
    free = shutil.disk_usage(tmp_path).free
    assert try_allocation(tmp_path, 8 * MIB, 5.0) == Trial(8 * MIB, 8 * MIB)
    assert list(tmp_path.iterdir()) == []
    assert shutil.disk_usage(tmp_path).free > free - 8 * MIB


def test_a_really_full_disk(small_disk: Path | None) -> None:
    if small_disk is None:
        return  # without the right to mount, the injected errors below stand for it
    assert try_allocation(small_disk, 4 * MIB, 5.0).error is None
    over = try_allocation(small_disk, 64 * MIB, 5.0)
    assert over.error == errno.ENOSPC
    assert 4 * MIB <= over.got <= 8 * MIB
    with (small_disk / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(b"x" * 65536)
    found = read_place(Place("data", small_disk / "llmtune", "--data-dir"), read_mounts(), {})
    assert found.trial is not None
    assert found.trial.error == errno.ENOSPC
    check = place_check(found, in_container=False)
    assert check.state == "problem"
    assert "full: 0 MiB free" in check.found
    assert sorted(each.name for each in small_disk.iterdir()) == ["filler"]


def test_a_disk_without_inodes(small_disk: Path | None) -> None:
    if small_disk is None:
        return  # without the right to mount, the injected reading below stands for it
    with contextlib.suppress(OSError):
        for number in range(100):
            (small_disk / str(number)).touch()
    check = place_check(read_place(Place("data", small_disk, "--data-dir"), read_mounts(), {}), in_container=False)
    assert check.state == "problem"
    assert "inodes" in check.found


def test_where_nothing_can_be_reserved_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(allocation, "_reserve", refuse)
    assert try_allocation(tmp_path, 3 * MIB + 5, 5.0) == Trial(3 * MIB + 5, 3 * MIB + 5)
    assert try_allocation(tmp_path, GIB, 0.0) == Trial(GIB, 0)


def test_a_quota_is_told_by_its_errno(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, start: int, length: int) -> None:
        if start >= 64 * MIB:
            raise OSError(errno.EDQUOT, "over quota")

    monkeypatch.setattr(allocation, "_reserve", refuse)
    assert try_allocation(tmp_path, GIB, 5.0) == Trial(GIB, 64 * MIB, errno.EDQUOT)


def test_a_file_system_without_nameless_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def no_tmpfile(path: str, flags: int, *rest: int, **more: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "not supported")
        return real(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", no_tmpfile)
    assert try_allocation(tmp_path, MIB, 5.0).error is None
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_by_one_who_is_killed_in_the_middle(tmp_path: Path) -> None:
    code = f"""
import os, time
from pathlib import Path
from engine.preflight import allocation
def slowly(*_):
    print("has it", flush=True)
    time.sleep(60)
allocation._reserve = slowly
allocation.try_allocation(Path({str(tmp_path)!r}), 2**20, 60)
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"has it\n"
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert list(tmp_path.iterdir()) == []


def test_the_folder_itself_is_not_made(tmp_path: Path) -> None:
    found = read_place(Place("models", tmp_path / "a" / "b", "HF_HOME"), read_mounts(), {})
    assert (found.there, found.writable) == (tmp_path, True)
    assert found.trial is not None
    assert not (tmp_path / "a").exists()


def test_trials_on_one_file_system_wait_for_each_other(tmp_path: Path) -> None:
    turns: dict[int, threading.Lock] = {}
    read_place(Place("data", tmp_path, ""), (), turns)
    (turn,) = turns.values()
    with turn:
        waiting = threading.Thread(target=read_place, args=(Place("scratch", tmp_path, ""), (), turns), daemon=True)
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
    waiting.join(5.0)
    assert not waiting.is_alive()


def test_a_folder_that_may_not_be_written() -> None:
    folder = Path(f"/tmp/llmtune-test-unwritable-{os.getpid()}")
    folder.mkdir()
    try:
        with unwritable(folder):
            found = read_place(Place("data", folder, "--data-dir"), read_mounts(), {})
    finally:
        folder.rmdir()
    assert not found.writable
    assert place_check(found, in_container=False).state == "problem"


@pytest.mark.parametrize(
    ("use", "fields", "state", "told"),
    [
        ("data", {}, "ok", "1.0 GiB had on trial"),
        ("data", {"mount": FUSE}, "ok", "rollback journal (truncate)"),
        ("data", {"free": GIB // 2}, "warning", "only 0.5 GiB free"),
        ("models", {"free": 9 * GIB}, "warning", "only 9.0 GiB free"),
        ("data", {"trial": Trial(GIB, 300 * MIB, errno.EDQUOT)}, "problem", "a quota lets 0.3 GiB be written"),
        ("models", {"trial": Trial(GIB, 0, errno.EDQUOT)}, "warning", "a quota lets 0 MiB"),
        ("data", {"trial": Trial(GIB, 0, errno.ENOSPC)}, "problem", "though `df` shows 100.0 GiB free: a quota"),
        ("data", {"trial": Trial(GIB, 0, errno.ENOSPC), "free": 0}, "problem", "full: 0 MiB free"),
        ("data", {"trial": Trial(GIB, 0, errno.ENOSPC), "inodes": 0}, "problem", "inodes"),
        ("compiled", {"trial": Trial(GIB, 0, errno.EIO)}, "problem", "Input/output error"),
        ("data", {"writable": False, "refused": errno.EROFS, "trial": None}, "problem", "Read-only file system"),
        ("models", {"writable": False, "trial": None}, "warning", "permission denied"),
        ("compiled", {"writable": False, "trial": None}, "warning", "permission denied"),
        ("scratch", {"writable": False, "trial": None}, "problem", "permission denied"),
        ("scratch", {"mount": FUSE}, "warning", "not a local disk"),
        ("scratch", {"mount": MEMORY}, "ok", ""),
        ("data", {"mount": MEMORY}, "warning", "in memory"),
        ("models", {"mount": ROOT}, "warning", "goes when the container is recreated"),
        ("compiled", {"mount": ROOT}, "warning", "compiles anew"),
        ("data", {"mount": None}, "warning", "results and logs go with it"),
    ],
)
def test_a_place_in_three_states(use: Use, fields: dict[str, object], state: str, told: str) -> None:
    check = place_check(reading(use, **fields), in_container=True)
    assert check.state == state
    assert told in check.found
    assert bool(check.advice) == (state != "ok")


def test_a_root_disk_stays_where_there_is_no_container() -> None:
    assert place_check(reading(mount=Mount(Path("/"), "ext4")), in_container=False).state == "ok"


def test_the_places_are_those_that_vllm_reads() -> None:
    home = {"HOME": "/home/me"}

    def paths(environ: dict[str, str]) -> dict[str, str]:
        return {place.use: str(place.path) for place in places(Path("/d"), "why", {**home, **environ})}

    assert paths({}) == {
        "data": "/d", "models": "/home/me/.cache/huggingface/hub",
        "compiled": "/home/me/.cache/vllm", "scratch": "/tmp",
    }  # fmt: skip
    assert paths({"XDG_CACHE_HOME": "/c"})["compiled"] == "/c/vllm"
    assert paths({"HF_HOME": "/hf"})["models"] == "/hf/hub"
    assert paths({"HF_HOME": "/hf", "HF_HUB_CACHE": "/hub"})["models"] == "/hub"
    assert paths({"VLLM_CACHE_ROOT": "/v", "TMPDIR": "/t"}).items() >= {"compiled": "/v", "scratch": "/t"}.items()
    assert [place.use for place in places(None, "", home)] == ["models", "compiled", "scratch"]
