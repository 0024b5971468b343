"""What is said of two sessions, for programs."""

import math
from dataclasses import asdict
from typing import Any

from engine.text import clean
from tuning.compared.records import SessionComparison


def to_json(compared: SessionComparison) -> dict[str, Any]:
    """The comparison as JSON types throughout, under the names of its records; only finite numbers."""
    document: dict[str, Any] = _clean(asdict(compared))
    return document


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {clean(str(key)): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value
