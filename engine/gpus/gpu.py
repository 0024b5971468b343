"""NVIDIA GPUs as NVML shows them, one typed reading. No GPU, no driver or no NVML at all is a normal state.

Indices are NVML's: physical, in PCI order, whatever CUDA_VISIBLE_DEVICES says (engine.gpus.visible_gpus translates).
"""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from engine.gpus.gpu_fields import SLOW_FIELDS_TTL_S, Fixed, Slow, read_fixed, read_sample, read_slow
from engine.gpus.nvml import GpuLost, Nvml, NvmlGone, load_nvml
from engine.records import GpuReading, GpuSample
from store.clock import utc_now

START_AGAIN_S = 10.0  # after NVML went or did not start
LOOK_FOR_LOST_S = 60.0  # a lost GPU that was reset is found only by an NVML that is started anew
_CLOSE_WITHIN_S = 1.0


@dataclass(slots=True)
class _Device:
    """`handle` None: it was there when NVML was started before, and is not now."""

    index: int
    handle: Any
    fixed: Fixed
    slow: Slow | None = None
    names: dict[int, str | None] = field(default_factory=dict)


class GpuReader:
    """Reads all GPUs; NVML is started at the first reading and its handles are kept until `close`.

    What one GPU does not support is None, the rest is read; one that is lost has its `error`, the others are read. An
    NVML that went (its driver was unloaded or replaced) is started again after a while; a GPU keeps its index through
    that. Readings of several threads wait for each other. `nvml` replaces the pynvml module, `clock` (monotonic
    seconds) and `now` (UTC ISO 8601) the time.
    """

    def __init__(
        self,
        nvml: Any = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], str] = utc_now,
    ) -> None:
        self._module = nvml
        self._clock = clock
        self._now = now
        self._lock = threading.Lock()
        self._nvml: Nvml | None = None
        self._devices: list[_Device] | None = None  # None: NVML is not started
        self._start_at = float("-inf")
        self._lost_since: float | None = None
        self._known: dict[str, tuple[int, Fixed]] = {}  # by UUID
        self._driver: str | None = None
        self._cuda: str | None = None
        self._note: str | None = None

    def read(self) -> GpuReading:
        """All GPUs now. Never raises for what NVML says: `note` is one line where there is something wrong."""
        with self._lock:
            gpus: tuple[GpuSample, ...] = ()
            try:
                self._open_where_due()
                gpus = tuple(self._samples())
                note = self._note or self._silent(gpus)
            except (NvmlGone, GpuLost) as gone:  # the second where NVML says it of no one GPU
                self._stop(str(gone))
                note = self._note
            return GpuReading(self._now(), self._clock(), gpus, self._driver, self._cuda, note)

    def close(self) -> None:
        """Let NVML go; a further reading starts it again. One that hangs in the driver is not waited for."""
        if not self._lock.acquire(timeout=_CLOSE_WITHIN_S):
            return
        try:
            if self._devices is not None:
                self._stop(None)
            self._start_at = float("-inf")
        finally:
            self._lock.release()

    def _open_where_due(self) -> None:
        now = self._clock()
        if self._devices is not None and self._lost_since is not None and now - self._lost_since >= LOOK_FOR_LOST_S:
            self._stop(None)
            self._start_at = now
        if self._devices is None and now >= self._start_at:
            self._devices = self._open()

    def _stop(self, note: str | None) -> None:
        if self._nvml is not None:
            self._nvml.stop()
        self._devices, self._lost_since, self._note = None, None, note
        self._start_at = self._clock() + START_AGAIN_S

    def _open(self) -> list[_Device] | None:
        try:
            self._module = self._module or load_nvml()
        except ImportError:
            self._note = "GPU not readable: the module pynvml (package nvidia-ml-py) is not installed."
            self._start_at = float("inf")
            return None
        nvml = Nvml(self._module)
        try:
            count = nvml.start(again=bool(self._known))
        except NvmlGone as gone:
            self._note, self._start_at = str(gone), self._clock() + START_AGAIN_S
            return None
        self._nvml, self._note = nvml, None
        self._driver = nvml.text("nvmlSystemGetDriverVersion")
        version = nvml.ask("nvmlSystemGetCudaDriverVersion_v2")
        self._cuda = f"{version // 1000}.{version % 1000 // 10}" if isinstance(version, int) else None
        devices = [device for position in range(count) if (device := self._device(nvml, position)) is not None]
        here = {device.index for device in devices}
        devices += [_Device(index, None, fixed) for index, fixed in self._known.values() if index not in here]
        if not devices:
            self._note = "No GPU: the NVIDIA driver is there but shows none."
        return sorted(devices, key=lambda device: device.index)

    def _device(self, nvml: Nvml, position: int) -> _Device | None:
        """The GPU at `position` of NVML's list; None for one that we may not see."""
        try:
            handle = nvml.ask("nvmlDeviceGetHandleByIndex", position)
            if handle is None:
                return None
            fixed = read_fixed(nvml, handle)
        except GpuLost:
            return _Device(position, None, dict(self._known.values()).get(position, Fixed()))
        index = position
        if fixed.uuid is not None:
            index, _ = self._known.setdefault(fixed.uuid, (position, fixed))
        return _Device(index, handle, fixed)

    def _samples(self) -> Iterator[GpuSample]:
        slow_at = min((device.slow.read_at for device in self._devices or () if device.slow), default=0.0)
        for device in self._devices or ():
            # One GPU's slow fields a reading, the oldest: those of eight at once would take a third of a second.
            due = device.slow is None or (
                device.slow.read_at == slow_at and self._clock() - slow_at >= SLOW_FIELDS_TTL_S
            )
            if due and device.slow is not None:
                slow_at = float("inf")
            try:
                yield self._sample(device, due)
            except GpuLost as lost:
                device.slow = None
                self._lost_since = self._clock() if self._lost_since is None else self._lost_since
                yield _lost(device, str(lost))

    def _sample(self, device: _Device, slow_is_due: bool) -> GpuSample:
        if device.handle is None or self._nvml is None:
            raise GpuLost("it is gone from the driver's list")
        if slow_is_due or device.slow is None:
            device.slow = read_slow(self._nvml, device.handle, self._clock())
            device.names.clear()
        sample = read_sample(self._nvml, device.handle, device.index, device.fixed, device.slow, device.names)
        if sample.mem_total_gib is None and sample.temp_c is None and sample.util_perc is None:
            raise GpuLost("it does not answer")
        return sample

    def _silent(self, gpus: tuple[GpuSample, ...]) -> str | None:
        lost = [gpu for gpu in gpus if gpu.error]
        if not lost:
            self._lost_since = None
            return None
        numbers = ", ".join(str(gpu.index) for gpu in lost)
        return f"GPU {numbers} cannot be read ({lost[0].error}); `nvidia-smi` may say why."


def _lost(device: _Device, why: str) -> GpuSample:
    return GpuSample(device.index, uuid=device.fixed.uuid, name=device.fixed.name, error=why)
