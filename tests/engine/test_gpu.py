import dataclasses
import math
from typing import Any

import pytest

from engine import gpu as gpu_module
from engine.gpu import SLOW_FIELDS_TTL_S, GpuReader, visible_indices
from engine.records import GpuProcess, GpuReading, GpuSample
from tests.engine.fake_nvml import (
    MIB,
    RESERVED,
    TOTAL,
    USED,
    FakeNvml,
    NVMLError,
    NVMLError_LibraryNotFound,
    NVMLError_LibRmVersionMismatch,
)

GIB = 2**30


class Clock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def reader(nvml: Any, clock: Clock | None = None) -> GpuReader:
    return GpuReader(nvml, clock or Clock(), lambda: "2026-11-30T10:00:00.000Z")


def test_every_field_in_its_unit() -> None:
    assert reader(FakeNvml()).read() == GpuReading(
        at="2026-11-30T10:00:00.000Z",
        clock=100.0,
        gpus=(
            GpuSample(
                index=0,
                uuid="GPU-00000000-0000",
                name="NVIDIA H200",
                mem_total_gib=TOTAL / GIB,
                mem_used_gib=USED / GIB,
                mem_reserved_gib=RESERVED / GIB,
                mem_free_gib=(TOTAL - USED - RESERVED) / GIB,
                util_perc=98.0,
                mem_util_perc=41.0,
                power_w=pytest.approx(121.833),
                power_limit_w=pytest.approx(700.0),
                energy_j=pytest.approx(17666.862),
                sm_clock_mhz=1980.0,
                mem_clock_mhz=3201.0,
                temp_c=40.0,
                throttle_reasons=(),
                pcie_rx_mib_per_s=2.0,
                pcie_tx_mib_per_s=0.5,
                ecc_errors=0.0,
                processes=(GpuProcess(693, 133780 * MIB / GIB, "VLLM::EngineCore"), GpuProcess(7, None, None)),
            ),
        ),
        driver="580.159.04",
        cuda="13.0",
        note=None,
    )


FIELDS = {
    "nvmlDeviceGetName": ("name",),
    "nvmlDeviceGetUUID": ("uuid",),
    "nvmlDeviceGetMemoryInfo": ("mem_total_gib", "mem_used_gib", "mem_reserved_gib", "mem_free_gib"),
    "nvmlDeviceGetUtilizationRates": ("util_perc", "mem_util_perc"),
    "nvmlDeviceGetPowerUsage": ("power_w",),
    "nvmlDeviceGetEnforcedPowerLimit": ("power_limit_w",),
    "nvmlDeviceGetTotalEnergyConsumption": ("energy_j",),
    "nvmlDeviceGetClockInfo": ("sm_clock_mhz", "mem_clock_mhz"),
    "nvmlDeviceGetTemperature": ("temp_c",),
    "nvmlDeviceGetPcieThroughput": ("pcie_rx_mib_per_s", "pcie_tx_mib_per_s"),
    "nvmlDeviceGetTotalEccErrors": ("ecc_errors",),
    "nvmlDeviceGetComputeRunningProcesses": ("processes",),
}


@pytest.mark.parametrize("function", FIELDS)
def test_what_a_gpu_does_not_support_is_absent_alone(function: str) -> None:
    whole = dataclasses.asdict(reader(FakeNvml()).read().gpus[0])
    reading = reader(FakeNvml(broken={function})).read()
    found = dataclasses.asdict(reading.gpus[0])
    assert {name for name in found if found[name] != whole[name]} == set(FIELDS[function])
    assert all(found[name] in (None, ()) for name in FIELDS[function])
    assert reading.note is None


def test_throttle_reasons_that_cannot_be_read_are_none() -> None:
    names = {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"}
    assert reader(FakeNvml(broken=names)).read().gpus[0].throttle_reasons is None


@pytest.mark.parametrize("broken", [set(), {"nvmlDeviceGetCurrentClocksEventReasons"}])
@pytest.mark.parametrize(
    ("bits", "words"),
    [
        (0x0, ()),
        (0x1, ()),  # idle
        (0x4, ("power cap",)),
        (0x1 | 0x8 | 0x40, ("hardware slowdown", "hardware thermal")),
        (0x20 | 0x80, ("software thermal", "power brake")),
    ],
)
def test_throttle_reasons_in_words_under_both_names(bits: int, words: tuple[str, ...], broken: set[str]) -> None:
    assert reader(FakeNvml(broken=broken, throttle=bits)).read().gpus[0].throttle_reasons == words


def test_the_first_version_of_memory_info_is_only_a_fallback() -> None:
    class Old(FakeNvml):
        nvmlMemory_v2 = None  # type: ignore[assignment]

    found = reader(Old()).read().gpus[0]
    assert found.mem_used_gib == (USED + RESERVED) / GIB  # that version counts what the driver reserves as used
    assert found.mem_reserved_gib is None


def test_nvml_is_started_once_and_its_handles_are_kept() -> None:
    nvml = FakeNvml(count=2)
    gpus = reader(nvml)
    for _ in range(3):
        assert [gpu.index for gpu in gpus.read().gpus] == [0, 1]
    assert (nvml.calls["nvmlInit"], nvml.calls["nvmlDeviceGetHandleByIndex"], nvml.calls["nvmlDeviceGetName"]) == (
        1,
        2,
        2,
    )
    gpus.close()
    gpus.close()
    assert nvml.calls["nvmlShutdown"] == 1
    assert len(gpus.read().gpus) == 2
    assert nvml.calls["nvmlInit"] == 2


def test_slow_fields_are_read_less_often() -> None:
    nvml, clock = FakeNvml(), Clock()
    gpus = reader(nvml, clock)
    for _ in range(5):
        assert gpus.read().gpus[0].pcie_rx_mib_per_s == 2.0
        clock.seconds += 1
    assert (nvml.calls["nvmlDeviceGetPcieThroughput"], nvml.calls["nvmlDeviceGetPowerUsage"]) == (2, 5)
    clock.seconds += SLOW_FIELDS_TTL_S
    gpus.read()
    assert nvml.calls["nvmlDeviceGetPcieThroughput"] == 4


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (NVMLError_LibraryNotFound(), "No GPU: no NVIDIA driver here (NVML Shared Library Not Found)."),
        (
            NVMLError_LibRmVersionMismatch(),
            "GPU not readable: driver and library differ (RM has detected an NVML/RM version mismatch.); "
            "reboot, or start the container anew.",
        ),
        (NVMLError("odd\n\x1b[31m[/x]"), "GPU not readable: odd [/x]."),
    ],
)
def test_no_driver_is_one_line_and_asked_once(error: NVMLError, said: str) -> None:
    nvml = FakeNvml(init_error=error)
    gpus = reader(nvml)
    for _ in range(2):
        reading = gpus.read()
        assert (reading.gpus, reading.driver, reading.note) == ((), None, said)
    assert nvml.calls["nvmlInit"] == 1
    gpus.close()


def test_a_driver_without_gpus() -> None:
    reading = reader(FakeNvml(count=0)).read()
    assert (reading.gpus, reading.driver) == ((), "580.159.04")
    assert reading.note == "No GPU: the NVIDIA driver is there but shows none."


def test_without_the_library_s_module(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Any:
        raise ImportError("No module named 'pynvml'")

    monkeypatch.setattr(gpu_module, "load_nvml", missing)
    reading = reader(None).read()
    assert reading.gpus == ()
    assert reading.note == "GPU not readable: the module pynvml (package nvidia-ml-py) is not installed."


def test_the_module_of_nvidia_ml_py_is_read_without_raising() -> None:
    gpus = GpuReader()
    reading = gpus.read()
    gpus.close()
    assert reading.gpus or reading.note


def test_a_gpu_that_fell_off_the_bus_is_named() -> None:
    nvml = FakeNvml(count=2)
    gpus = reader(nvml)
    gpus.read()
    nvml.broken = set(FIELDS)
    assert gpus.read().note == "GPU 0, 1 does not answer NVML; `nvidia-smi` may say why."


def test_a_function_newer_than_the_driver_is_absent() -> None:
    class Mismatch(Exception):
        pass

    class Newer(FakeNvml):
        NVMLLibraryMismatchError = Mismatch

        def answer_nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> Any:
            raise Mismatch

        def answer_nvmlDeviceGetComputeRunningProcesses_v2(self, handle: str) -> Any:
            return super().answer_nvmlDeviceGetComputeRunningProcesses(handle)

    assert [process.pid for process in reader(Newer()).read().gpus[0].processes] == [693, 7]


def test_only_finite_numbers_leave() -> None:
    for value in dataclasses.asdict(reader(FakeNvml()).read().gpus[0]).values():
        assert not isinstance(value, float) or math.isfinite(value)


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
