"""What a session was measured on, kept beside its numbers."""

import os
import platform
from pathlib import Path
from typing import Any

import psutil

from engine.gpus.gpu import GpuReader
from engine.launch.model import model_hash
from engine.records import Installation


def describe_machine(model: str, installation: Installation) -> dict[str, Any]:
    """Versions, driver, GPUs, processor and model, as JSON. What cannot be read is None."""
    gpus = GpuReader()
    try:
        reading = gpus.read()
    finally:
        gpus.close()
    return {
        "vllm": installation.version,
        "vllm_path": installation.path,
        "python": platform.python_version(),
        "kernel": platform.release(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "driver": reading.driver,
        "cuda": reading.cuda,
        "gpus": [
            {
                "index": gpu.index,
                "name": gpu.name,
                "uuid": gpu.uuid,
                "mem_gib": gpu.mem_total_gib,
                "limit_w": gpu.power_limit_w,
            }
            for gpu in reading.gpus
        ],
        "gpu_note": reading.note,
        "model": model,
        "model_hash": model_hash(model),
    }


def _processor() -> str | None:
    for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return None
