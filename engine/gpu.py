"""NVIDIA GPUs as NVML shows them, one typed reading. No GPU, no driver or no NVML at all is a normal state.

Indices are NVML's: physical, in PCI order, whatever CUDA_VISIBLE_DEVICES says (`visible_indices` translates).
NVML's documentation: https://docs.nvidia.com/deploy/nvml-api/
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.records import GpuProcess, GpuReading, GpuSample
from engine.text import clean
from store.clock import utc_now

GIB = 2.0**30

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
)

# PCIe throughput is measured over 20 ms a call and ECC counters hardly change: both are kept for a while.
SLOW_FIELDS_TTL_S = 10.0


def load_nvml() -> Any:
    """The `pynvml` module of nvidia-ml-py. Raises ImportError where that is not installed."""
    import pynvml

    return pynvml


@dataclass(frozen=True, slots=True)
class _Device:
    index: int
    handle: Any
    uuid: str | None
    name: str | None


@dataclass(frozen=True, slots=True)
class _Slow:
    read_at: float
    pcie_rx_mib_per_s: float | None
    pcie_tx_mib_per_s: float | None
    ecc_errors: float | None


class GpuReader:
    """Reads all GPUs; NVML is started at the first reading and its handles are kept until `close`.

    Each field is asked on its own: what one GPU does not support is None, the rest is read. Readings of several
    threads wait for each other. `nvml` replaces the pynvml module, `clock` (monotonic seconds) and `now` (UTC ISO 8601)
    the time.
    """

    def __init__(
        self,
        nvml: Any = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], str] = utc_now,
    ) -> None:
        self._nvml = nvml
        self._clock = clock
        self._now = now
        self._lock = threading.Lock()
        self._unsupported: tuple[type[Exception], ...] = ()
        self._devices: tuple[_Device, ...] | None = None
        self._slow: dict[int, _Slow] = {}
        self._driver: str | None = None
        self._cuda: str | None = None
        self._note: str | None = None

    def read(self) -> GpuReading:
        """All GPUs now. Never raises for what NVML says: `note` is one line where there is nothing to read."""
        with self._lock:
            if self._devices is None:
                self._devices = self._open()
            gpus = tuple(self._sample(device) for device in self._devices)
            note = self._note
        if gone := [
            gpu.index for gpu in gpus if gpu.mem_total_gib is None and gpu.temp_c is None and gpu.util_perc is None
        ]:
            note = f"GPU {', '.join(map(str, gone))} does not answer NVML; `nvidia-smi` may say why."
        return GpuReading(self._now(), self._clock(), gpus, self._driver, self._cuda, note)

    def close(self) -> None:
        """Let NVML go; a further reading starts it again."""
        with self._lock:
            if self._devices:
                self._ask("nvmlShutdown")
            self._devices, self._note, self._slow = None, None, {}

    def _open(self) -> tuple[_Device, ...]:
        try:
            self._nvml = self._nvml or load_nvml()
        except ImportError:
            self._note = "GPU not readable: the module pynvml (package nvidia-ml-py) is not installed."
            return ()
        # The second is raised where a function of pynvml is newer than the driver.
        mismatch = getattr(self._nvml, "NVMLLibraryMismatchError", self._nvml.NVMLError)
        self._unsupported = (self._nvml.NVMLError, mismatch)
        try:
            self._nvml.nvmlInit()
            count = self._nvml.nvmlDeviceGetCount()
        except self._nvml.NVMLError as error:
            self._note = _why_not(error)
            return ()
        self._driver = _text(self._ask("nvmlSystemGetDriverVersion"))
        version = self._ask("nvmlSystemGetCudaDriverVersion_v2")
        self._cuda = f"{version // 1000}.{version % 1000 // 10}" if isinstance(version, int) else None
        if not count:
            self._note = "No GPU: the NVIDIA driver is there but shows none."
        handles = ((index, self._ask("nvmlDeviceGetHandleByIndex", index)) for index in range(count))
        return tuple(
            _Device(
                index,
                handle,
                _text(self._ask("nvmlDeviceGetUUID", handle)),
                _text(self._ask("nvmlDeviceGetName", handle)),
            )
            for index, handle in handles
        )

    def _ask(self, function: str, *arguments: Any, **options: Any) -> Any:
        """What one NVML function answers; None where it is not supported here or this pynvml does not know it."""
        call = getattr(self._nvml, function, None)
        if call is None:
            return None
        try:
            return call(*arguments, **options)
        except self._unsupported:
            return None

    def _first(self, functions: Sequence[str], handle: Any) -> Any:
        """What the first of several functions answers that answers at all."""
        return next((answer for function in functions if (answer := self._ask(function, handle)) is not None), None)

    def _number(self, function: str, *arguments: Any, scale: float = 1.0) -> float | None:
        answer = self._ask(function, *arguments)
        return answer * scale if isinstance(answer, int | float) else None

    def _sample(self, device: _Device) -> GpuSample:
        handle, nvml = device.handle, self._nvml
        total, used, free, reserved = self._memory(handle)
        use = self._ask("nvmlDeviceGetUtilizationRates", handle)
        slow = self._slow_fields(device)
        return GpuSample(
            index=device.index,
            uuid=device.uuid,
            name=device.name,
            mem_total_gib=total,
            mem_used_gib=used,
            mem_reserved_gib=reserved,
            mem_free_gib=free,
            util_perc=None if use is None else float(use.gpu),
            mem_util_perc=None if use is None else float(use.memory),
            power_w=self._number("nvmlDeviceGetPowerUsage", handle, scale=1e-3),  # NVML: mW
            power_limit_w=self._number("nvmlDeviceGetEnforcedPowerLimit", handle, scale=1e-3),
            energy_j=self._number("nvmlDeviceGetTotalEnergyConsumption", handle, scale=1e-3),  # NVML: mJ
            sm_clock_mhz=self._number("nvmlDeviceGetClockInfo", handle, getattr(nvml, "NVML_CLOCK_SM", 1)),
            mem_clock_mhz=self._number("nvmlDeviceGetClockInfo", handle, getattr(nvml, "NVML_CLOCK_MEM", 2)),
            temp_c=self._number("nvmlDeviceGetTemperature", handle, getattr(nvml, "NVML_TEMPERATURE_GPU", 0)),
            throttle_reasons=self._throttle_reasons(handle),
            pcie_rx_mib_per_s=slow.pcie_rx_mib_per_s,
            pcie_tx_mib_per_s=slow.pcie_tx_mib_per_s,
            ecc_errors=slow.ecc_errors,
            processes=self._processes(handle),
        )

    def _memory(self, handle: Any) -> tuple[float | None, float | None, float | None, float | None]:
        """Total, used, free, reserved in GiB. The first version of NVML's call counts what the driver reserves as used,
        the second has it apart; only where that is missing the first is taken, and reserved is then None."""
        version = getattr(self._nvml, "nvmlMemory_v2", None)
        memory = None if version is None else self._ask("nvmlDeviceGetMemoryInfo", handle, version=version)
        memory = memory if memory is not None else self._ask("nvmlDeviceGetMemoryInfo", handle)
        if memory is None:
            return None, None, None, None
        reserved = getattr(memory, "reserved", None)
        return (
            memory.total / GIB,
            memory.used / GIB,
            memory.free / GIB,
            None if reserved is None else reserved / GIB,
        )

    def _throttle_reasons(self, handle: Any) -> tuple[str, ...] | None:
        # The second is its name before driver 535.
        names = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
        bits = self._first(names, handle)
        return None if bits is None else tuple(word for bit, word in THROTTLE_REASONS if bits & bit)

    def _slow_fields(self, device: _Device) -> _Slow:
        kept, now = self._slow.get(device.index), self._clock()
        if kept is not None and now - kept.read_at < SLOW_FIELDS_TTL_S:
            return kept
        nvml, handle = self._nvml, device.handle
        pcie = "nvmlDeviceGetPcieThroughput"  # KiB/s
        slow = _Slow(
            now,
            self._number(pcie, handle, getattr(nvml, "NVML_PCIE_UTIL_RX_BYTES", 1), scale=1 / 1024),
            self._number(pcie, handle, getattr(nvml, "NVML_PCIE_UTIL_TX_BYTES", 0), scale=1 / 1024),
            self._number(
                "nvmlDeviceGetTotalEccErrors",
                handle,
                getattr(nvml, "NVML_MEMORY_ERROR_TYPE_UNCORRECTED", 1),
                getattr(nvml, "NVML_VOLATILE_ECC", 0),
            ),
        )
        self._slow[device.index] = slow
        return slow

    def _processes(self, handle: Any) -> tuple[GpuProcess, ...]:
        """Compute processes. In a container their numbers may be the host's, or the list empty."""
        name = "nvmlDeviceGetComputeRunningProcesses"
        found = self._first((name, f"{name}_v2"), handle) or ()
        return tuple(
            GpuProcess(
                process.pid,
                None if process.usedGpuMemory is None else process.usedGpuMemory / GIB,
                _text(self._ask("nvmlSystemGetProcessName", process.pid)),
            )
            for process in found
        )


def visible_indices(environ: Mapping[str, str], gpus: Sequence[GpuSample] = ()) -> tuple[int, ...] | None:
    """The physical indices that CUDA_VISIBLE_DEVICES lets a process use, in its order; None where it is not set (all).

    UUIDs, which may be shortened as CUDA allows, are looked up among `gpus`. As in CUDA the list ends at its first
    entry that names no GPU; an entry for a MIG slice is passed over, since its GPU's figures are not the slice's.
    Numbers are taken as PCI order, which is CUDA's own with CUDA_DEVICE_ORDER=PCI_BUS_ID or where all GPUs are alike.
    """
    listed = environ.get("CUDA_VISIBLE_DEVICES")
    if listed is None:
        return None
    indices: list[int] = []
    for entry in (part.strip() for part in listed.split(",")):
        if entry.startswith("MIG-"):
            continue
        index = _index(entry, gpus)
        if index is None:
            break
        if index not in indices:
            indices.append(index)
    return tuple(indices)


def _index(entry: str, gpus: Sequence[GpuSample]) -> int | None:
    if entry.isdecimal() and len(entry) < 6:
        index = int(entry)
        return index if not gpus or any(gpu.index == index for gpu in gpus) else None
    matches = [gpu.index for gpu in gpus if entry.startswith("GPU-") and gpu.uuid and gpu.uuid.startswith(entry)]
    return matches[0] if len(matches) == 1 else None


def _text(answer: Any) -> str | None:
    """Names are bytes in old versions of pynvml."""
    if isinstance(answer, bytes):
        answer = answer.decode("utf-8", "replace")
    return clean(answer) if isinstance(answer, str) else None


def _why_not(error: Exception) -> str:
    said = clean(str(error))
    match type(error).__name__:
        case "NVMLError_LibraryNotFound" | "NVMLError_DriverNotLoaded":
            return f"No GPU: no NVIDIA driver here ({said})."
        case "NVMLError_LibRmVersionMismatch":
            return f"GPU not readable: driver and library differ ({said}); reboot, or start the container anew."
        case "NVMLError_NoPermission":
            return f"GPU not readable: no permission ({said}); start the container with access to the GPU."
        case _:
            return f"GPU not readable: {said}."
