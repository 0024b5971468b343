"""One GPU at one moment as JSON: in `llmtune snapshot --json` and, shorter, in the samples of the store."""

from typing import Any

from engine.records import GpuSample


def gpu_json(gpu: GpuSample) -> dict[str, Any]:
    """The object, units in its keys, absent as None."""
    return {
        "index": gpu.index,
        "uuid": gpu.uuid,
        "name": gpu.name,
        "mem_total_gib": gpu.mem_total_gib,
        "mem_used_gib": gpu.mem_used_gib,
        "mem_reserved_gib": gpu.mem_reserved_gib,
        "mem_free_gib": gpu.mem_free_gib,
        "util_perc": gpu.util_perc,
        "mem_util_perc": gpu.mem_util_perc,
        "power_w": gpu.power_w,
        "power_limit_w": gpu.power_limit_w,
        "energy_j": gpu.energy_j,
        "sm_clock_mhz": gpu.sm_clock_mhz,
        "mem_clock_mhz": gpu.mem_clock_mhz,
        "temp_c": gpu.temp_c,
        "throttle_reasons": None if gpu.throttle_reasons is None else list(gpu.throttle_reasons),
        "pcie_rx_mib_per_s": gpu.pcie_rx_mib_per_s,
        "pcie_tx_mib_per_s": gpu.pcie_tx_mib_per_s,
        "ecc_errors": gpu.ecc_errors,
        "sm_clock_max_mhz": gpu.sm_clock_max_mhz,
        "mem_clock_max_mhz": gpu.mem_clock_max_mhz,
        "temp_slowdown_c": gpu.temp_slowdown_c,
        "pcie_gen": gpu.pcie_gen,
        "pcie_gen_max": gpu.pcie_gen_max,
        "pcie_width": gpu.pcie_width,
        "pcie_width_max": gpu.pcie_width_max,
        "ecc_corrected": gpu.ecc_corrected,
        "mig": gpu.mig,
        "error": gpu.error,
        "processes": [
            {"pid": process.pid, "used_gib": process.used_gib, "name": process.name} for process in gpu.processes
        ],
    }


def gpu_kept(gpu: GpuSample) -> dict[str, Any]:
    """The object as a row of the store keeps it each second: without what is absent, to a tenth of a MiB."""
    kept = {name: _rounded(value) for name, value in gpu_json(gpu).items() if value is not None}
    kept["processes"] = [
        {name: _rounded(value) for name, value in process.items() if value is not None} for process in kept["processes"]
    ]
    return kept


def _rounded(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value
