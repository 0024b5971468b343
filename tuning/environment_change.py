"""Whether a session that goes on is still on the machine it was measured on."""

from collections.abc import Mapping
from typing import Any

from engine.text import clean

# What moves a measurement. The kernel and our own Python are kept for the record and do not.
COMPARED = {
    "vllm": "vLLM",
    "driver": "driver",
    "cuda": "CUDA of the driver",
    "processor": "processor",
    "cores": "cores",
    "model_hash": "model",
}
THEN_AND_NOW = "{before} then, {now} now"


def differences(before: Mapping[str, Any], now: Mapping[str, Any], form: str = THEN_AND_NOW) -> list[str]:
    """One line for each thing that differs between two environments of `describe_machine`; empty when none does.

    What one of the two could not read is no difference: nothing is known of it. `form` puts the two beside each other.
    """
    found = [
        f"{name}: {form.format(before=_shown(before[key]), now=_shown(now[key]))}"
        for key, name in COMPARED.items()
        if before.get(key) is not None and now.get(key) is not None and before[key] != now[key]
    ]
    return found + _gpu_differences(before.get("gpus") or [], now.get("gpus") or [], form)


def _gpu_differences(before: list[dict[str, Any]], now: list[dict[str, Any]], form: str) -> list[str]:
    if [_model(gpu) for gpu in before] != [_model(gpu) for gpu in now]:
        return [f"GPUs: {form.format(before=_gpus(before), now=_gpus(now))}"]
    if [gpu.get("uuid") for gpu in before] != [gpu.get("uuid") for gpu in now]:
        return [f"GPUs: other ones of the same kind ({_gpus(now)})"]
    return [
        f"power limit of GPU {old.get('index')}: {form.format(before=_watts(old), now=_watts(new))}"
        for old, new in zip(before, now, strict=True)
        if old.get("limit_w") and new.get("limit_w") and old["limit_w"] != new["limit_w"]
    ]


def _watts(gpu: Mapping[str, Any]) -> str:
    return f"{gpu['limit_w']:g} W"


def _model(gpu: Mapping[str, Any]) -> tuple[Any, Any]:
    return gpu.get("name"), gpu.get("mem_gib")


def _gpus(gpus: list[dict[str, Any]]) -> str:
    return ", ".join(_shown(gpu.get("name") or "unknown") for gpu in gpus) or "none"


def _shown(value: Any) -> str:
    text = clean(str(value), 80)
    return text[:12] if len(text) == 64 else text  # a hash is told apart by its beginning
