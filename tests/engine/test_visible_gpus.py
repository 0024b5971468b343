"""The GPUs that a server sees: numbers, UUIDs, their order, MIG slices, what cannot be known."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.gpus.visible_gpus import as_server_sees, cuda_environ, gpus_used, visible_indices, visible_note
from engine.records import GpuReading, GpuSample
from engine.samples.sample_record import to_record

GPUS = tuple(GpuSample(index, uuid=f"GPU-{index}abc-{index}") for index in range(4))


@pytest.mark.parametrize(
    ("listed", "indices"),
    [
        (None, None),
        ("", ()),
        ("-1", ()),
        ("2", (2,)),
        ("3,1", (3, 1)),
        (" 1 , 0 ", (1, 0)),
        ("0,-1,1", (0,)),  # CUDA stops at the first that is none
        ("0,9,1", (0,)),
        ("1,1", (1,)),
        ("GPU-2abc-2", (2,)),
        ("GPU-2", (2,)),
        ("GPU-2,0", (2, 0)),
        ("GPU-", ()),  # not one GPU's alone
        ("GPU-zzz,0", ()),
        ("MIG-123,1", (1,)),
        ("x" * 10, ()),
    ],
)
def test_visible_devices_as_physical_indices(listed: str | None, indices: tuple[int, ...] | None) -> None:
    environ = {} if listed is None else {"CUDA_VISIBLE_DEVICES": listed}
    assert visible_indices(environ, GPUS) == indices


def test_visible_numbers_need_no_reading() -> None:
    assert visible_indices({"CUDA_VISIBLE_DEVICES": "3,1"}) == (3, 1)


EIGHT = GpuReading("", 0.0, tuple(GpuSample(index, f"GPU-{index}f-{index}", "NVIDIA H200") for index in range(8)))


@pytest.mark.parametrize(
    ("environ", "order"),
    [
        ({}, [0, 1, 2, 3, 4, 5, 6, 7]),
        ({"CUDA_VISIBLE_DEVICES": "7,5,3,1"}, [7, 5, 3, 1]),
        ({"CUDA_VISIBLE_DEVICES": "GPU-6f,GPU-2f-2,0"}, [6, 2, 0]),
        ({"CUDA_VISIBLE_DEVICES": "4", "CUDA_DEVICE_ORDER": "FASTEST_FIRST"}, [4]),
    ],
)
def test_gpus_stand_in_the_order_in_which_the_server_numbers_them(environ: dict[str, str], order: list[int]) -> None:
    seen = as_server_sees(EIGHT, environ)
    assert [gpu.index for gpu in seen.gpus] == order
    assert seen.note is None


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        ("", "its CUDA_VISIBLE_DEVICES is empty"),
        ("-1", "its CUDA_VISIBLE_DEVICES is -1"),
        ("9", "CUDA_VISIBLE_DEVICES=9 names no GPU of this machine."),
        ("\x1b[31m[/x]", "CUDA_VISIBLE_DEVICES=[/x] names no GPU"),
        ("²", "names no GPU"),
        ("MIG-GPU-0f-0/1/0", "MIG slice"),
        ("MIG-7c9fd3c5", "MIG slice"),
    ],
)
def test_a_server_without_a_gpu_of_its_own_says_why(listed: str, said: str) -> None:
    seen = as_server_sees(EIGHT, {"CUDA_VISIBLE_DEVICES": listed})
    assert seen.gpus == ()
    assert said in str(seen.note)


def test_numbers_among_different_gpus_are_doubted_unless_they_are_those_of_the_bus() -> None:
    mixed = (GpuSample(0, name="NVIDIA A2"), GpuSample(1, name="NVIDIA H200"))
    assert "CUDA numbers them by speed" in str(visible_note({"CUDA_VISIBLE_DEVICES": "0"}, mixed))
    assert visible_note({"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, mixed) is None
    assert visible_note({}, mixed) is None


def test_a_lost_gpu_is_told_to_the_server_that_had_it() -> None:
    note = "GPU 1 cannot be read (GPU is lost); `nvidia-smi` may say why."
    reading = GpuReading("", 0.0, (GpuSample(0), GpuSample(1, error="GPU is lost")), note=note)
    assert as_server_sees(reading, {"CUDA_VISIBLE_DEVICES": "1"}).note == note
    assert as_server_sees(reading, {"CUDA_VISIBLE_DEVICES": "0"}).note is None
    nothing = GpuReading("", 0.0, note="No GPU: no NVIDIA driver here (NVML Shared Library Not Found).")
    assert as_server_sees(nothing, {"CUDA_VISIBLE_DEVICES": "0"}) == nothing


def test_a_processs_own_variables_are_read(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "environ").write_bytes(b"A=1\0CUDA_VISIBLE_DEVICES=3,1\0CUDA_DEVICE_ORDER=PCI_BUS_ID\0\xff\0")
    assert cuda_environ(7, tmp_path) == {"CUDA_VISIBLE_DEVICES": "3,1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert cuda_environ(8, tmp_path) == {}


@pytest.mark.parametrize(
    ("flags", "extra", "used"),
    [
        ({}, (), 1),
        ({"tensor-parallel-size": 4}, (), 4),
        ({"tensor_parallel_size": "2", "data-parallel-size": 2, "pipeline-parallel-size": 2}, (), 8),
        ({"data-parallel-size": 16, "data-parallel-size-local": 8}, (), 8),
        ({"tensor-parallel-size": 2, "distributed-executor-backend": "mp"}, (), 2),
        ({"tensor-parallel-size": 2, "distributed-executor-backend": "ray"}, (), None),
        ({"tensor-parallel-size": 2, "nnodes": 2}, (), None),
        ({"tensor-parallel-size": "two"}, (), None),
        ({"tensor-parallel-size": None}, (), None),
        ({}, ("-tp", "2"), None),
        ({}, ("--tensor-parallel-size=2",), None),
        ({}, ("--enforce-eager",), 1),
    ],
)
def test_how_many_gpus_a_server_computes_on(flags: dict[str, Any], extra: tuple[str, ...], used: int | None) -> None:
    assert gpus_used(flags, extra) == used


def test_all_gpus_that_it_sees_are_kept_and_those_that_it_uses_are_summed() -> None:
    """An idle H200 takes 78 W: seven of them would be more than half of what a server on the eighth takes."""
    eight = replace(EIGHT, gpus=tuple(replace(gpu, power_w=612.0 if gpu.index == 7 else 78.0) for gpu in EIGHT.gpus))
    record = to_record(None, as_server_sees(eight, {"CUDA_VISIBLE_DEVICES": "7,6,5"}, gpus_used({})))
    assert record.gpu_power_w == 612.0
    assert [gpu["index"] for gpu in record.raw["gpus"]] == [7, 6, 5]
    assert to_record(None, as_server_sees(eight, {}, 2)).gpu_power_w == 156.0
    assert to_record(None, as_server_sees(eight, {}, None)).gpu_power_w == 612.0 + 7 * 78.0
