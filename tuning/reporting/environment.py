"""The machine that a session was measured on."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from store.records import SessionRecord
from tuning.document import Heading, Part, Table
from tuning.environment_change import differences
from tuning.figures import ABSENT, figure
from tuning.reporting.values import as_value

_NAMES = {
    "vllm": "vLLM",
    "vllm_path": "vLLM at",
    "python": "Python of llmtune",
    "kernel": "kernel",
    "processor": "processor",
    "cores": "cores",
    "memory_gib": "memory GiB",
    "driver": "NVIDIA driver",
    "cuda": "CUDA of the driver",
    "gpu_note": "GPU",
    "model": "model",
    "model_hash": "model's hash",
}


def machine(environment: Mapping[str, Any]) -> str:
    """`2 × NVIDIA H200, vLLM 0.33.0`; of a machine without a GPU its processor; "" where nothing is known."""
    gpus = _gpus(environment)
    names = [str(gpu.get("name") or "GPU") for gpu in gpus]
    parts = [f"{names.count(name)} × {name}" if names.count(name) > 1 else name for name in dict.fromkeys(names)]
    if not gpus and environment.get("processor"):
        parts.append(f"{environment['processor']}, {environment.get('cores') or ABSENT} cores, no GPU")
    if environment.get("vllm"):
        parts.append(f"vLLM {environment['vllm']}")
    return ", ".join(parts)


def environment_parts(environment: Mapping[str, Any]) -> list[Part]:
    rows = []
    for key, value in environment.items():
        if key == "gpus" and _gpus(environment):
            rows += [(f"GPU {gpu.get('index', at)}", _gpu(gpu)) for at, gpu in enumerate(_gpus(environment))]
        elif key != "gpu_note" or value:
            rows.append((_NAMES.get(str(key), str(key)), ABSENT if value is None else as_value(value)))
    return [Heading("Environment"), Table(("what", "value"), tuple(rows))] if rows else []


def machine_changes(session: SessionRecord) -> list[str]:
    """What differed each time that the session went on elsewhere, a line each; [] for one machine."""
    earlier = [each for each in session.raw.get("earlier_environments", []) if isinstance(each, Mapping)]
    pairs = pairwise([*earlier, session.environment])
    return [f"It went on on another machine: {'; '.join(found)}" for pair in pairs if (found := differences(*pair))]


def _gpus(environment: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    gpus = environment.get("gpus")
    return [gpu for gpu in gpus if isinstance(gpu, Mapping)] if isinstance(gpus, list) else []


def _gpu(gpu: Mapping[str, Any]) -> str:
    parts = [str(gpu.get("name") or ABSENT)]
    for key, unit in (("mem_gib", " GiB"), ("limit_w", " W at most")):
        if isinstance(value := gpu.get(key), int | float):
            parts.append(f"{figure(value)}{unit}")
    if gpu.get("uuid"):
        parts.append(str(gpu["uuid"]))
    return ", ".join(parts)
