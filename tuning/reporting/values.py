"""JSON values as a report has them: clean text and finite numbers only."""

import json
import math
from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass
from typing import Any

from engine.text import clean


def as_value(value: Any) -> str:
    """A text as it is, anything else as JSON on one line."""
    return clean(value if isinstance(value, str) else json.dumps(json_ready(value), ensure_ascii=False))


def json_ready(value: Any) -> Any:
    """JSON types throughout: no control characters but line ends, only finite numbers; records become objects."""
    if isinstance(value, str):
        return "\n".join(clean(line) for line in value.split("\n"))
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: json_ready(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {json_ready(str(key)): json_ready(item) for key, item in value.items()}
    if isinstance(value, Set):
        return [json_ready(item) for item in sorted(value)]
    if isinstance(value, list | tuple):
        return [json_ready(item) for item in value]
    return value
