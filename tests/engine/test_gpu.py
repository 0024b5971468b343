import dataclasses
import math
import sys
import threading
from typing import Any

import pytest

from engine.gpus import gpu as gpu_module
from engine.gpus.gpu import LOOK_FOR_LOST_S, START_AGAIN_S, GpuReader
from engine.gpus.gpu_fields import SLOW_FIELDS_TTL_S
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
    NVMLError_Uninitialized,
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
                sm_clock_max_mhz=1980.0,
                mem_clock_max_mhz=3201.0,
                temp_slowdown_c=87.0,
                pcie_gen=4.0,
                pcie_gen_max=5.0,
                pcie_width=8.0,
                pcie_width_max=16.0,
                ecc_corrected=12.0,
                mig=False,
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
    "nvmlDeviceGetTotalEccErrors": ("ecc_errors", "ecc_corrected"),
    "nvmlDeviceGetMaxClockInfo": ("sm_clock_max_mhz", "mem_clock_max_mhz"),
    "nvmlDeviceGetTemperatureThreshold": ("temp_slowdown_c",),
    "nvmlDeviceGetCurrPcieLinkGeneration": ("pcie_gen",),
    "nvmlDeviceGetMaxPcieLinkGeneration": ("pcie_gen_max",),
    "nvmlDeviceGetCurrPcieLinkWidth": ("pcie_width",),
    "nvmlDeviceGetMaxPcieLinkWidth": ("pcie_width_max",),
    "nvmlDeviceGetMigMode": ("mig",),
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
        (0x4 | 0x10000, ("power cap", "reason 0x10000")),  # one that a later driver may have
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


def test_without_a_driver_the_library_s_module_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.gpus.nvml.LIBRARY", "libnot-there.so.1")
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    clock = Clock()
    gpus = reader(None, clock)
    assert gpus.read().note == "No GPU: no NVIDIA driver here (NVML Shared Library Not Found)."
    assert "pynvml" not in sys.modules
    monkeypatch.setattr(gpu_module, "load_nvml", FakeNvml)  # it was installed meanwhile
    clock.seconds += START_AGAIN_S
    reading = gpus.read()
    assert (reading.note, bool(reading.gpus)) == (None, True)


def test_the_module_of_nvidia_ml_py_is_read_without_raising() -> None:
    gpus = GpuReader()
    reading = gpus.read()
    gpus.close()
    assert reading.gpus or reading.note


FAST = 9  # calls that one GPU costs each second


def test_a_reading_is_cheap_and_dear_fields_are_spread_over_readings() -> None:
    nvml, clock = FakeNvml(count=8), Clock()
    gpus = reader(nvml, clock)
    gpus.read()
    for _ in range(5):
        clock.seconds += 1
        before = sum(nvml.calls.values())
        gpus.read()
        assert sum(nvml.calls.values()) - before == 8 * FAST
    clock.seconds += SLOW_FIELDS_TTL_S
    for _ in range(8):
        before = nvml.calls["nvmlDeviceGetPcieThroughput"]
        gpus.read()
        assert nvml.calls["nvmlDeviceGetPcieThroughput"] - before == 2  # one GPU's, though all are due
    before = sum(nvml.calls.values())
    gpus.read()
    assert sum(nvml.calls.values()) - before == 8 * FAST


def test_a_gpu_that_tells_nothing_is_named() -> None:
    nvml = FakeNvml(count=2)
    gpus = reader(nvml)
    gpus.read()
    nvml.broken = set(FIELDS)
    assert gpus.read().note == "GPU 0, 1 cannot be read (it does not answer); `nvidia-smi` may say why."


def test_a_gpu_that_falls_off_the_bus_leaves_the_others_and_comes_back() -> None:
    nvml, clock = FakeNvml(count=3), Clock()
    gpus = reader(nvml, clock)
    whole = gpus.read()
    nvml.lost = {1}
    for _ in range(3):
        clock.seconds += 1
        reading = gpus.read()
        assert reading.note == "GPU 1 cannot be read (GPU is lost); `nvidia-smi` may say why."
        assert reading.gpus[1] == GpuSample(1, uuid="GPU-11111111-0000", name="NVIDIA H200", error="GPU is lost")
        assert (reading.gpus[0], reading.gpus[2]) == (whole.gpus[0], whole.gpus[2])
    assert nvml.calls["nvmlInit"] == 1
    nvml.lost = set()
    assert (gpus.read().gpus, gpus.read().note) == (whole.gpus, None)


def test_a_lost_gpu_is_looked_for_by_a_new_start_and_the_others_keep_their_index() -> None:
    class Shrunk(FakeNvml):
        """A driver that has dropped its GPU 0: what was 1 and 2 stands at 0 and 1."""

        dropped = 0

        def answer_nvmlDeviceGetCount(self) -> int:
            return self.count - self.dropped

        def answer_nvmlDeviceGetHandleByIndex(self, index: int) -> str:
            return f"handle {index + self.dropped}"

    nvml, clock = Shrunk(count=3), Clock()
    gpus = reader(nvml, clock)
    gpus.read()
    nvml.lost, nvml.dropped = {0}, 1
    for _ in range(3):
        clock.seconds += LOOK_FOR_LOST_S
        reading = gpus.read()
        assert [(gpu.index, gpu.uuid, gpu.error is None) for gpu in reading.gpus] == [
            (0, "GPU-00000000-0000", False),
            (1, "GPU-11111111-0000", True),
            (2, "GPU-22222222-0000", True),
        ]
        assert "GPU 0 cannot be read" in str(reading.note)
    assert nvml.calls["nvmlInit"] > 1
    nvml.lost, nvml.dropped = set(), 0
    clock.seconds += LOOK_FOR_LOST_S
    gpus.read()
    clock.seconds += LOOK_FOR_LOST_S
    assert gpus.read().note is None


def test_a_gpu_that_was_lost_before_and_one_that_we_may_not_see() -> None:
    nvml = FakeNvml(count=3)
    nvml.lost, nvml.hidden = {0}, {2}
    reading = reader(nvml).read()
    assert [(gpu.index, gpu.error is None) for gpu in reading.gpus] == [(0, False), (1, True)]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (NVMLError_Uninitialized(), "its driver went away (Uninitialized); llmtune asks again by itself."),
        (NVMLError_LibRmVersionMismatch(), "its driver was replaced under us (RM has detected"),
    ],
)
def test_a_driver_that_goes_under_us_is_one_line_until_it_is_back(error: NVMLError, said: str) -> None:
    nvml, clock = FakeNvml(count=2), Clock()
    gpus = reader(nvml, clock)
    whole = gpus.read()
    nvml.gone = error
    for _ in range(3):
        reading = gpus.read()
        assert reading.gpus == ()
        assert said in str(reading.note)
    nvml.init_error = error
    clock.seconds += START_AGAIN_S
    assert said in str(gpus.read().note)  # still: it is not a machine that never had a driver
    nvml.gone = nvml.init_error = None
    assert gpus.read().gpus == ()  # not asked at each reading
    clock.seconds += START_AGAIN_S
    assert (gpus.read().gpus, gpus.read().note, nvml.calls["nvmlInit"]) == (whole.gpus, None, 3)


def test_a_driver_that_is_loaded_later_is_found() -> None:
    nvml, clock = FakeNvml(init_error=NVMLError_LibraryNotFound()), Clock()
    gpus = reader(nvml, clock)
    assert gpus.read().gpus == ()
    nvml.init_error = None
    clock.seconds += START_AGAIN_S
    assert len(gpus.read().gpus) == 1


def test_closing_does_not_wait_for_an_nvml_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_module, "_CLOSE_WITHIN_S", 0.01)
    asked, release = threading.Event(), threading.Event()

    class Hanging(FakeNvml):
        def answer_nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:
            asked.set()
            release.wait()
            return 40

    gpus = reader(Hanging())
    thread = threading.Thread(target=gpus.read)
    thread.start()
    assert asked.wait(30)
    gpus.close()
    assert thread.is_alive()
    release.set()
    thread.join()


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


def test_a_gpu_without_a_threshold_tells_how_far_it_is() -> None:
    class Hopper(FakeNvml):
        def answer_nvmlDeviceGetMarginTemperature(self, handle: str) -> int:
            return 47

    assert reader(Hopper(broken={"nvmlDeviceGetTemperatureThreshold"})).read().gpus[0].temp_slowdown_c == 87.0
    assert reader(Hopper()).read().gpus[0].temp_slowdown_c == 87.0  # the threshold, where there is one
    assert reader(FakeNvml(broken={"nvmlDeviceGetTemperatureThreshold"})).read().gpus[0].temp_slowdown_c is None


def test_only_finite_numbers_leave() -> None:
    for value in dataclasses.asdict(reader(FakeNvml()).read().gpus[0]).values():
        assert not isinstance(value, float) or math.isfinite(value)
