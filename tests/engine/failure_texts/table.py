"""The texts of all themes by name."""

from tests.engine.failure_texts import (
    arguments,
    checkpoint,
    gpu_oom,
    hardware,
    kv_cache,
    lifetime,
    limits,
    lora,
    machine,
)
from tests.engine.failure_texts.text import Text

_THEMES = (kv_cache, gpu_oom, machine, limits, arguments, hardware, checkpoint, lora, lifetime)

TEXTS: dict[str, Text] = {name: text for theme in _THEMES for name, text in theme.TEXTS.items()}
