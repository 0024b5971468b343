import os
from collections.abc import Iterable, Sequence
from dataclasses import replace

from engine.discovery import FoundServer
from engine.gpu_owners import ANOTHER, UNSEEN, Owner, Owners, server_name
from engine.preflight.memory import MemoryReading
from engine.processes.process import identify
from engine.records import GpuProcess, GpuReading, GpuSample
from lora.sizes.memory import GIB, MemoryNeeded
from lora.trainings.memory_free import Holder, MemoryFree, in_main_memory, memory_free, on_gpu, shortage
from store.records import ServerRecord
from tests.store.examples import a_server

H200 = GpuSample(
    0, name="NVIDIA H200", mem_total_gib=140.4, mem_free_gib=6.2,
    processes=(GpuProcess(77, 0.01), GpuProcess(78, 3.5, "python"), GpuProcess(693, 130.0, "VLLM::EngineCore")),
)  # fmt: skip
SERVER = a_server(id=3, name="chat", pid=693)
NEEDED = MemoryNeeded(8.3, (("weights", 8.3),))


def reading(*gpus: GpuSample) -> GpuReading:
    return GpuReading("2026-11-30T10:00:00.000Z", 1.0, gpus)


def owners(pids: Iterable[int], servers: Sequence[ServerRecord]) -> Owners:
    return {pid: Owner("ours", server_name(SERVER)) if pid == 693 else ANOTHER for pid in pids}


def test_a_server_of_ours_that_holds_the_gpu_is_named_with_its_number() -> None:
    free = on_gpu(reading(H200), [SERVER], owners)
    assert (free.device, free.gpu, free.free_gib, free.total_gib) == ("GPU 0 (NVIDIA H200)", True, 6.2, 140.4)
    assert free.holders == (
        Holder("pid 693 (VLLM::EngineCore, our server 3, chat) 130.0 GiB", 130.0, 693, 3),
        Holder("pid 78 (python) 3.5 GiB", 3.5, 78),
    )
    said = shortage(NEEDED, free)
    assert said is not None
    assert said.startswith(
        "the training needs about 8.3 GiB, GPU 0 (NVIDIA H200) has 6.2 GiB free of 140.4 GiB; held by pid 693 "
    )
    assert said.endswith("stop that server first, or train with less (--batch, --max-length)")


def test_another_s_process_is_not_ours_to_stop() -> None:
    free = on_gpu(reading(H200), [], lambda pids, servers: dict.fromkeys(pids, UNSEEN))
    assert [holder.server_id for holder in free.holders] == [None, None]
    said = shortage(NEEDED, free)
    assert said is not None
    assert said.endswith("end what holds it, or train with less (--batch, --max-length)")


def test_what_fits_needs_no_words_and_what_cannot_be_read_is_not_guessed() -> None:
    free = on_gpu(reading(replace(H200, mem_free_gib=8.4)), [], owners)
    assert shortage(NEEDED, free) is None
    assert shortage(NEEDED, replace(free, free_gib=None)) is None
    assert on_gpu(reading(GpuSample(1)), []) == MemoryFree("GPU 1", True, None, None)


def test_holders_out_of_sight_are_said_to_be() -> None:
    said = shortage(NEEDED, on_gpu(reading(replace(H200, processes=())), [], owners))
    assert said is not None
    assert "held by processes that cannot be seen from here" in said


def test_more_than_there_is_cannot_be_freed() -> None:
    small = replace(H200, mem_total_gib=8.0, mem_free_gib=7.9, processes=())
    said = shortage(NEEDED, on_gpu(reading(small), [], owners))
    assert said is not None
    assert said.endswith("more than there is at all, take --batch 1, a smaller --max-length, or a smaller model")


def test_main_memory_is_the_container_s_and_servers_hold_it() -> None:
    machine = MemoryReading(total=64 * GIB, available=60 * GIB, limit=24 * GIB, limit_used=20 * GIB)
    found = [FoundServer("http://127.0.0.1:8000", 693), FoundServer("http://127.0.0.1:8001", 700, name="vLLM, tiny")]
    free = in_main_memory(machine, found, [SERVER], lambda pid: {693: 12.0, 700: 4.0}[pid])
    assert (free.device, free.gpu, free.free_gib, free.total_gib) == ("main memory", False, 4.0, 24.0)
    assert free.holders == (
        Holder("pid 693 (our server 3, chat) 12.0 GiB", 12.0, 693, 3),
        Holder("pid 700 (vLLM, tiny) 4.0 GiB", 4.0, 700),
    )


def test_this_machine_answers() -> None:
    assert identify(os.getpid()) is not None
    free = memory_free(os.environ)
    assert free.device
    if not free.gpu:
        assert free.free_gib is not None
        assert free.total_gib is not None
        assert 0 < free.free_gib <= free.total_gib
    own = in_main_memory(MemoryReading(1, 1), [FoundServer("", os.getpid())], [])
    assert all(holder.gib < 64 for holder in own.holders)
