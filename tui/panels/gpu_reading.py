"""The GPUs of a sample as the panel shows them, read from its JSON, which may hold anything."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.numbers import finite
from engine.samples.sample_record import kept_gpus
from engine.samples.window import Window
from engine.text import clean
from store.records import SampleRecord

_TEXT_W = 120


@dataclass(frozen=True, slots=True)
class ProcessNow:
    """A process on a GPU; its name is clean."""

    pid: int
    name: str = ""
    used_gib: float | None = None


@dataclass(frozen=True, slots=True)
class GpuNow:
    """One GPU, each figure alone None where it cannot be read. `key` finds it in other samples. Its texts are clean."""

    index: str = ""
    key: Hashable = None
    model: str = ""
    used_gib: float | None = None
    reserved_gib: float | None = None
    free_gib: float | None = None
    total_gib: float | None = None
    util_perc: float | None = None
    mem_util_perc: float | None = None
    power_w: float | None = None
    limit_w: float | None = None
    temp_c: float | None = None
    slowdown_c: float | None = None
    sm_mhz: float | None = None
    sm_max_mhz: float | None = None
    mem_mhz: float | None = None
    mem_max_mhz: float | None = None
    throttled: tuple[str, ...] | None = None  # () is not throttled
    pcie_in_mib_per_s: float | None = None
    pcie_out_mib_per_s: float | None = None
    pcie_gen: float | None = None
    pcie_gen_max: float | None = None
    pcie_width: float | None = None
    pcie_width_max: float | None = None
    ecc_errors: float | None = None
    ecc_corrected: float | None = None
    mig: bool = False
    processes: tuple[ProcessNow, ...] = ()
    error: str = ""

    @property
    def usable_gib(self) -> float | None:
        """What CUDA calls the total, and what gpu-memory-utilization is a share of: without what the driver keeps."""
        return None if self.total_gib is None else self.total_gib - (self.reserved_gib or 0.0)

    def budget_gib(self, utilization: float | None) -> float | None:
        """What vLLM plans with at this gpu-memory-utilization (a share)."""
        usable = self.usable_gib
        return None if usable is None or utilization is None else utilization * usable


def gpus_of(sample: SampleRecord | None) -> tuple[GpuNow, ...]:
    """The GPUs in the server's own order. Where a sample has none singly, the sums over those that it uses."""
    if sample is None:
        return ()
    if listed := kept_gpus(sample):
        return tuple(_gpu(one) for one in listed)
    used, util, power = (
        finite(sample.gpu_mem_used_gib),
        finite(sample.gpu_util_perc),
        finite(sample.gpu_power_w),
    )
    if used is None and util is None and power is None:
        return ()
    return (GpuNow(used_gib=used, util_perc=util, power_w=power),)


def process_counts(sample: SampleRecord | None) -> list[int]:
    """How many processes are on each GPU; [] where no GPU was kept singly."""
    return [len(on_it) if isinstance(on_it := gpu.get("processes"), list) else 0 for gpu in kept_gpus(sample)]


def note_of(sample: SampleRecord | None) -> str:
    """Why there is no GPU, or what is wrong with one; "" where nothing is said."""
    said = sample.raw.get("gpu_note") if sample is not None else None
    return clean(said, 200) if isinstance(said, str) else ""


def util_of(sample: SampleRecord, key: Hashable) -> float | None:
    """The utilization of the GPU of that key in another sample; of all together where `key` is None."""
    return finite(sample.gpu_util_perc) if key is None else _figure_of(sample, key, "util_perc")


def power_of(sample: SampleRecord, key: Hashable) -> float | None:
    """The same of its power in watts."""
    return finite(sample.gpu_power_w) if key is None else _figure_of(sample, key, "power_w")


def _figure_of(sample: SampleRecord, key: Hashable, name: str) -> float | None:
    return next((finite(one.get(name)) for one in kept_gpus(sample) if _key(one) == key), None)


def energy_j(window: Window, key: Hashable = None) -> float | None:
    """What a GPU took over the window, or those of the server together: the difference of its counter, which counts on
    while a server starts anew. None where it fell (the driver was loaded anew) or was not read twice."""

    def read(sample: SampleRecord) -> float | None:
        return finite(sample.gpu_energy_j) if key is None else _figure_of(sample, key, "energy_j")

    return window.difference(read)


def energy_per_token(window: Window) -> float | None:
    """Joules of the server's GPUs for each token generated in the window, as a run's energy_j_per_token."""
    joules, tokens = energy_j(window), window.increase(lambda sample: finite(sample.generation_tokens))
    return None if joules is None or not tokens else joules / tokens


def _key(gpu: Mapping[str, Any]) -> Hashable:
    return str(gpu.get("uuid") or gpu.get("index"))


def _gpu(gpu: Mapping[str, Any]) -> GpuNow:
    reasons, processes = gpu.get("throttle_reasons"), gpu.get("processes")

    def number(name: str) -> float | None:
        return finite(gpu.get(name))

    return GpuNow(
        index=_text(str(gpu.get("index", "")), 6),
        key=_key(gpu),
        model=_text(gpu.get("name")).removeprefix("NVIDIA ").removeprefix("GeForce "),
        used_gib=number("mem_used_gib"),
        reserved_gib=number("mem_reserved_gib"),
        free_gib=number("mem_free_gib"),
        total_gib=number("mem_total_gib"),
        util_perc=number("util_perc"),
        mem_util_perc=number("mem_util_perc"),
        power_w=number("power_w"),
        limit_w=number("power_limit_w"),
        temp_c=number("temp_c"),
        slowdown_c=number("temp_slowdown_c"),
        sm_mhz=number("sm_clock_mhz"),
        sm_max_mhz=number("sm_clock_max_mhz"),
        mem_mhz=number("mem_clock_mhz"),
        mem_max_mhz=number("mem_clock_max_mhz"),
        throttled=tuple(_text(reason, 40) for reason in reasons[:12]) if isinstance(reasons, list) else None,
        pcie_in_mib_per_s=number("pcie_rx_mib_per_s"),
        pcie_out_mib_per_s=number("pcie_tx_mib_per_s"),
        pcie_gen=number("pcie_gen"),
        pcie_gen_max=number("pcie_gen_max"),
        pcie_width=number("pcie_width"),
        pcie_width_max=number("pcie_width_max"),
        ecc_errors=number("ecc_errors"),
        ecc_corrected=number("ecc_corrected"),
        mig=gpu.get("mig") is True,
        processes=tuple(_processes(processes)),
        error=_text(gpu.get("error")),
    )


def _processes(listed: object) -> list[ProcessNow]:
    """Most memory first."""
    found = [
        ProcessNow(one["pid"], _text(one.get("name")), finite(one.get("used_gib")))
        for one in (listed if isinstance(listed, list) else [])
        if isinstance(one, Mapping) and isinstance(one.get("pid"), int)
    ]
    return sorted(found, key=lambda one: -(one.used_gib or 0.0))


def _text(value: object, limit: int = _TEXT_W) -> str:
    return clean(str(value)[: 4 * limit], limit) if isinstance(value, str) else ""
