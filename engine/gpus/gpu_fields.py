"""All that NVML tells of one GPU, each field asked on its own, and how often: some calls are dear, some never change.

Asked each time: nine calls of some ten microseconds each. Every SLOW_FIELDS_TTL_S: what takes 20 ms a call (PCIe
throughput is measured over that time) or hardly changes. Once: names and maxima.
"""

from dataclasses import dataclass
from typing import Any

from engine.gpus.nvml import Nvml
from engine.records import GpuProcess, GpuSample

GIB = 2.0**30
SLOW_FIELDS_TTL_S = 10.0

# Bits of nvmlDeviceGetCurrentClocksEventReasons. 0x1, "GPU idle", is left out: an idle GPU is not throttled.
THROTTLE_REASONS: tuple[tuple[int, str], ...] = (
    (0x2, "application clocks"),
    (0x4, "power cap"),
    (0x8, "hardware slowdown"),
    (0x10, "sync boost"),
    (0x20, "software thermal"),
    (0x40, "hardware thermal"),
    (0x80, "power brake"),
    (0x100, "display clocks"),
    (0x200, "board limit"),  # this and the next only of drivers before 450
    (0x400, "reliability"),
)
_IDLE = 0x1
_KNOWN = _IDLE | sum(bit for bit, _ in THROTTLE_REASONS)


@dataclass(frozen=True, slots=True)
class Fixed:
    """What a GPU is, read once."""

    uuid: str | None = None
    name: str | None = None
    sm_clock_max_mhz: float | None = None
    mem_clock_max_mhz: float | None = None
    temp_slowdown_c: float | None = None
    pcie_gen_max: float | None = None
    pcie_width_max: float | None = None


@dataclass(frozen=True, slots=True)
class Slow:
    """What is read every few seconds; `read_at` is monotonic."""

    read_at: float
    power_limit_w: float | None
    pcie_rx_mib_per_s: float | None
    pcie_tx_mib_per_s: float | None
    pcie_gen: float | None
    pcie_width: float | None
    ecc_errors: float | None
    ecc_corrected: float | None
    mig: bool | None
    temp_limit_c: float | None = None  # what the margin now comes to


def read_fixed(nvml: Nvml, handle: Any) -> Fixed:
    """Raises GpuLost and NvmlGone, as the others do."""
    clock = "nvmlDeviceGetMaxClockInfo"
    slowdown = nvml.constant("NVML_TEMPERATURE_THRESHOLD_SLOWDOWN", 1)
    return Fixed(
        uuid=nvml.text("nvmlDeviceGetUUID", handle),
        name=nvml.text("nvmlDeviceGetName", handle),
        sm_clock_max_mhz=nvml.number(clock, handle, nvml.constant("NVML_CLOCK_SM", 1)),
        mem_clock_max_mhz=nvml.number(clock, handle, nvml.constant("NVML_CLOCK_MEM", 2)),
        temp_slowdown_c=nvml.number("nvmlDeviceGetTemperatureThreshold", handle, slowdown),
        pcie_gen_max=nvml.number("nvmlDeviceGetMaxPcieLinkGeneration", handle),
        pcie_width_max=nvml.number("nvmlDeviceGetMaxPcieLinkWidth", handle),
    )


def read_slow(nvml: Nvml, handle: Any, now: float) -> Slow:
    """Takes some 40 ms; `now` is monotonic."""
    pcie, ecc = "nvmlDeviceGetPcieThroughput", "nvmlDeviceGetTotalEccErrors"  # KiB/s; errors
    since_loaded = nvml.constant("NVML_VOLATILE_ECC", 0)
    mig = nvml.ask("nvmlDeviceGetMigMode", handle)  # [now, after the next reset]
    return Slow(
        read_at=now,
        power_limit_w=nvml.number("nvmlDeviceGetEnforcedPowerLimit", handle, scale=1e-3),  # NVML: mW
        pcie_rx_mib_per_s=nvml.number(pcie, handle, nvml.constant("NVML_PCIE_UTIL_RX_BYTES", 1), scale=1 / 1024),
        pcie_tx_mib_per_s=nvml.number(pcie, handle, nvml.constant("NVML_PCIE_UTIL_TX_BYTES", 0), scale=1 / 1024),
        pcie_gen=nvml.number("nvmlDeviceGetCurrPcieLinkGeneration", handle),
        pcie_width=nvml.number("nvmlDeviceGetCurrPcieLinkWidth", handle),
        ecc_errors=nvml.number(ecc, handle, nvml.constant("NVML_MEMORY_ERROR_TYPE_UNCORRECTED", 1), since_loaded),
        ecc_corrected=nvml.number(ecc, handle, nvml.constant("NVML_MEMORY_ERROR_TYPE_CORRECTED", 0), since_loaded),
        mig=bool(mig[0]) if mig else None,
        temp_limit_c=_limit_by_margin(nvml, handle),
    )


def _limit_by_margin(nvml: Nvml, handle: Any) -> float | None:
    """Hopper and later tell no threshold, but how far the nearest one is."""
    margin = nvml.number("nvmlDeviceGetMarginTemperature", handle)
    now = nvml.number("nvmlDeviceGetTemperature", handle, nvml.constant("NVML_TEMPERATURE_GPU", 0))
    return None if margin is None or now is None else now + margin


def read_sample(
    nvml: Nvml, handle: Any, index: int, fixed: Fixed, slow: Slow, names: dict[int, str | None]
) -> GpuSample:
    """The GPU now. `names` keeps the names of its processes from one reading to the next."""
    total, used, free, reserved = _memory(nvml, handle)
    use = nvml.ask("nvmlDeviceGetUtilizationRates", handle)
    clock = "nvmlDeviceGetClockInfo"
    return GpuSample(
        index=index,
        uuid=fixed.uuid,
        name=fixed.name,
        mem_total_gib=total,
        mem_used_gib=used,
        mem_reserved_gib=reserved,
        mem_free_gib=free,
        util_perc=None if use is None else float(use.gpu),
        mem_util_perc=None if use is None else float(use.memory),
        power_w=nvml.number("nvmlDeviceGetPowerUsage", handle, scale=1e-3),  # NVML: mW
        power_limit_w=slow.power_limit_w,
        energy_j=nvml.number("nvmlDeviceGetTotalEnergyConsumption", handle, scale=1e-3),  # NVML: mJ
        sm_clock_mhz=nvml.number(clock, handle, nvml.constant("NVML_CLOCK_SM", 1)),
        mem_clock_mhz=nvml.number(clock, handle, nvml.constant("NVML_CLOCK_MEM", 2)),
        temp_c=nvml.number("nvmlDeviceGetTemperature", handle, nvml.constant("NVML_TEMPERATURE_GPU", 0)),
        throttle_reasons=_throttle_reasons(nvml, handle),
        pcie_rx_mib_per_s=slow.pcie_rx_mib_per_s,
        pcie_tx_mib_per_s=slow.pcie_tx_mib_per_s,
        ecc_errors=slow.ecc_errors,
        processes=_processes(nvml, handle, names),
        sm_clock_max_mhz=fixed.sm_clock_max_mhz,
        mem_clock_max_mhz=fixed.mem_clock_max_mhz,
        temp_slowdown_c=fixed.temp_slowdown_c if fixed.temp_slowdown_c is not None else slow.temp_limit_c,
        pcie_gen=slow.pcie_gen,
        pcie_gen_max=fixed.pcie_gen_max,
        pcie_width=slow.pcie_width,
        pcie_width_max=fixed.pcie_width_max,
        ecc_corrected=slow.ecc_corrected,
        mig=slow.mig,
    )


def _memory(nvml: Nvml, handle: Any) -> tuple[float | None, float | None, float | None, float | None]:
    """Total, used, free, reserved in GiB. The first version of NVML's call counts what the driver reserves as used,
    the second has it apart; only where that is missing the first is taken, and reserved is then None."""
    version = getattr(nvml.module, "nvmlMemory_v2", None)
    memory = None if version is None else nvml.ask("nvmlDeviceGetMemoryInfo", handle, version=version)
    memory = memory if memory is not None else nvml.ask("nvmlDeviceGetMemoryInfo", handle)
    if memory is None:
        return None, None, None, None
    reserved = getattr(memory, "reserved", None)
    return memory.total / GIB, memory.used / GIB, memory.free / GIB, None if reserved is None else reserved / GIB


def _throttle_reasons(nvml: Nvml, handle: Any) -> tuple[str, ...] | None:
    # The second is its name before driver 535.
    names = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
    bits = nvml.first(names, handle)
    if bits is None:
        return None
    known = tuple(word for bit, word in THROTTLE_REASONS if bits & bit)
    return (*known, f"reason {bits & ~_KNOWN:#x}") if bits & ~_KNOWN else known


def _processes(nvml: Nvml, handle: Any, names: dict[int, str | None]) -> tuple[GpuProcess, ...]:
    """Compute processes. In a container their numbers may be the host's, or the list empty."""
    function = "nvmlDeviceGetComputeRunningProcesses"
    found = nvml.first((function, f"{function}_v2"), handle) or ()
    for process in found:
        if process.pid not in names:
            names[process.pid] = nvml.text("nvmlSystemGetProcessName", process.pid)
    return tuple(
        GpuProcess(
            process.pid, None if process.usedGpuMemory is None else process.usedGpuMemory / GIB, names[process.pid]
        )
        for process in found
    )
