"""From a pattern's groups to numbers, and from numbers and words to a sentence."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from engine.failures.rule import Numbers

_GIB = {"KiB": 2.0**-20, "MiB": 2.0**-10, "GiB": 1.0}


def named_numbers(values: Mapping[str, str]) -> Numbers:
    """Groups that are numbers, under their names; sizes in GiB."""
    return dict(_named_numbers(values))


def _named_numbers(values: Mapping[str, str]) -> Iterator[tuple[str, float | int]]:
    for name, value in values.items():
        if name.endswith("_size") and value[-3:] in _GIB:
            yield name.removesuffix("_size") + "_gib", round(float(value[:-3]) * _GIB[value[-3:]], 3)
        elif re.fullmatch(r"-?\d{1,15}(?:\.\d{1,9})?", value):
            number = float(value)
            whole = number.is_integer() and not name.endswith("_gib")
            yield name, int(number) if whole else number


def fill(template: str, values: Mapping[str, Any]) -> str:
    """The template with its fields; a part in double brackets only where all its fields are there."""

    def part(match: re.Match[str]) -> str:
        names = re.findall(r"\{(\w+)\}", match[1])
        return match[1] if all(name in values for name in names) else ""

    return re.sub(r"\[\[(.*?)\]\]", part, template).format_map(values)
