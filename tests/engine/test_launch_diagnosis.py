"""What a failed launch tells beyond its log: numbers for an offer, a class without a log, who holds GPU memory."""

import errno
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from engine.explain import Explanation
from engine.gpu_holders import holders, smallest_total_gib
from engine.gpu_owners import ANOTHER, UNSEEN, Owners
from engine.keeper.journal import Journal
from engine.processes.ports import free_port
from engine.records import GpuProcess, GpuSample, LaunchFailed, LogFacts
from engine.server import Server
from engine.supervise import Supervised
from store.clock import utc_now
from store.database import open_reader, open_writer
from store.reader import Reader
from store.records import ServerRecord
from store.writer import Writer
from tests.engine.server_stand_in import stand_in, stand_in_spec

GPUS = (
    GpuSample(0, mem_total_gib=139.8, processes=(GpuProcess(7, 1.2), GpuProcess(3364, 19.04, "VLLM::EngineCore"))),
    GpuSample(1, mem_total_gib=80.0, processes=(GpuProcess(9, None), GpuProcess(8, 0.01))),
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[tuple[Writer, Reader, int]]:
    with open_writer(tmp_path / "db") as writer, open_reader(tmp_path / "db") as reader:
        record = ServerRecord(
            "s", "starting", "m", "127.0.0.1", 8600, [], {}, str(tmp_path / "s.log"), "m", started_at=utc_now()
        )
        yield writer, reader, writer.insert(record)


def test_holders_are_named_most_memory_first_and_never_ours() -> None:
    def seen(pids: Iterable[int]) -> Owners:
        return {pid: UNSEEN if pid == 7 else ANOTHER for pid in pids}

    assert holders(GPUS, (), seen) == "pid 3364 (VLLM::EngineCore) 19.0 GiB, pid 7 (not visible from here) 1.2 GiB"
    assert holders(GPUS, {3364}, seen) == "pid 7 (not visible from here) 1.2 GiB"
    assert holders(GPUS, {3364, 7}) is None
    assert holders(()) is None
    assert "\x1b" not in (holders((GpuSample(0, processes=(GpuProcess(1, 2.0, "a\x1b[31mb"),)),)) or "")


def test_the_smallest_gpu_decides() -> None:
    assert smallest_total_gib(GPUS) == 80.0
    assert smallest_total_gib((GpuSample(0),)) is None


async def test_a_failure_carries_the_numbers_of_its_log(store: tuple[Writer, Reader, int], tmp_path: Path) -> None:
    installation = stand_in(tmp_path)
    spec = stand_in_spec(tmp_path, "gentle-dies", free_port("127.0.0.1", 8600))
    supervised = await Supervised.start(Journal(store[0]), store[2], installation, spec, tmp_path / "s.log", "d1")
    with pytest.raises(LaunchFailed) as failure:
        await supervised.wait_ready(20)
    await supervised.stop()
    assert failure.value.failure_class == "model_len_invalid"
    assert failure.value.numbers == {"max_model_len": 999999, "longest_model_len": 8192}


async def test_a_failure_for_want_of_memory_names_who_holds_it(
    store: tuple[Writer, Reader, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Explanation("failed", LogFacts(), "free_memory_short", "10 of 140 GiB are free.", "Stop what else runs.")
    monkeypatch.setattr(Server, "explain", lambda self, code: found)
    installation = stand_in(tmp_path)
    spec = stand_in_spec(tmp_path, "gentle-dies", free_port("127.0.0.1", 8600))
    supervised = await Supervised.start(
        Journal(store[0]), store[2], installation, spec, tmp_path / "s.log", "d2", lambda: GPUS
    )
    assert supervised.server.gpu_total_gib == 80.0
    with pytest.raises(LaunchFailed, match=r"GPU memory held: pid 3364 \(VLLM::EngineCore"):
        await supervised.wait_ready(20)
    await supervised.stop()
    assert "3364" in (store[1].server(store[2]).failure or "")


async def test_what_stands_in_the_way_before_there_is_a_process_has_its_class(
    store: tuple[Writer, Reader, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installation = stand_in(tmp_path)
    port = free_port("127.0.0.1", 8600)
    bad = stand_in_spec(tmp_path, "gentle", port, str(tmp_path))
    with pytest.raises(LaunchFailed) as failure:
        await Supervised.start(Journal(store[0]), store[2], installation, bad, tmp_path / "s.log", "d3")
    assert failure.value.failure_class == "checkpoint_invalid"

    def full(path: Path) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("engine.server.open_private", full)
    with pytest.raises(LaunchFailed) as failure:
        await Supervised.start(
            Journal(store[0]), store[2], installation, stand_in_spec(tmp_path, "gentle", port), tmp_path / "s.log", "d4"
        )
    assert failure.value.failure_class == "disk_full"
