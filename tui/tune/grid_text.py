"""The grid as the editor writes it: a flag with its values a line, single candidates beside them. No widgets here."""

import itertools
import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from engine.text import clean
from tuning.records import Plan, PlanError

DEFAULT = "default"


def parse_points(text: str) -> tuple[dict[str, tuple[Any, ...]], tuple[dict[str, Any], ...]]:
    """(dimensions, single candidates) of the editor's lines.

    `max-num-seqs: default 64 256` is a dimension, its values separated by blanks or commas; `default` leaves the flag
    out. `+ max-num-seqs=64 block-size=32` is one candidate more. `#` starts a comment. Raises PlanError, one line a
    mistake.
    """
    grid: dict[str, tuple[Any, ...]] = {}
    single: list[dict[str, Any]] = []
    mistakes: list[str] = []
    for at, line in enumerate(text.splitlines(), start=1):
        stripped = line.split("#", 1)[0].strip()
        if not stripped:
            continue
        try:
            if stripped.startswith("+"):
                single.append(settings_of(stripped[1:]))
                continue
            flag, values = _dimension(stripped)
        except PlanError as error:
            mistakes.append(f"grid line {at}: {error}")
            continue
        if flag in grid:
            mistakes.append(f"grid line {at}: {flag} stands there twice; put all its values on one line")
        grid[flag] = values
    if mistakes:
        raise PlanError("\n".join(mistakes))
    return grid, tuple(single)


def _dimension(line: str) -> tuple[str, tuple[Any, ...]]:
    flag, colon, rest = line.partition(":")
    flag = flag.strip().lstrip("-").replace("_", "-")
    if not colon or not flag or " " in flag:
        raise PlanError("write a flag, a colon and its values, e.g. max-num-seqs: default 64 256")
    words = _words(rest if "{" in rest else rest.replace(",", " "))
    if not words:
        raise PlanError(f"{flag} has no values")
    return flag, tuple(_value(word) for word in words)


def points_text(plan: Plan) -> str:
    """The editor's lines for a plan's grid or candidates; the inverse of `parse_points`."""
    dimensions = plan.grid or dimensions_of(plan.explicit_candidates)
    if dimensions:
        return "\n".join(f"{flag}: {' '.join(map(_quoted, values))}" for flag, values in dimensions.items())
    return "\n".join("+ " + settings_text(settings) for settings in plan.explicit_candidates)


def dimensions_of(candidates: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Any, ...]] | None:
    """The dimensions whose product these candidates are, the empty one being the baseline; None where they are no
    product and so have no lines in the editor."""
    fullest_first = sorted(candidates, key=len, reverse=True)
    flags = dict.fromkeys(flag for settings in fullest_first for flag in settings)
    dimensions = {
        flag: tuple(dict.fromkeys(value_text(each.get(flag)) for each in ({}, *candidates))) for flag in flags
    }
    typed = {flag: tuple(_value(text) for text in values) for flag, values in dimensions.items()}
    same = len(candidates) == len(product_of(typed)) and all(each in candidates for each in product_of(typed))
    return typed if candidates and same else None


def product_of(dimensions: Mapping[str, tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Every point of the dimensions, without the one that leaves out all flags: that is the baseline."""
    points = itertools.product(*dimensions.values())
    made = [{flag: at for flag, at in zip(dimensions, point, strict=True) if at != DEFAULT} for point in points]
    return [settings for settings in made if settings]


def settings_of(text: str) -> dict[str, Any]:
    """One candidate as a person types it: `max-num-seqs=128 gpu-memory-utilization=0.93`. Raises PlanError."""
    settings: dict[str, Any] = {}
    for word in _words(text):
        flag, equals, value = word.partition("=")
        flag = flag.lstrip("-").replace("_", "-")
        if not equals or not flag or not value:
            raise PlanError(f"{clean(word, 60)}: write flag=value, e.g. max-num-seqs=128")
        settings[flag] = _value(value)
    if not settings:
        raise PlanError("write at least one setting, e.g. max-num-seqs=128")
    return settings


def settings_text(settings: Mapping[str, Any]) -> str:
    """What `settings_of` reads."""
    return " ".join(f"{flag}={_quoted(value)}" for flag, value in settings.items())


def value_text(value: Any) -> str:
    """One setting's value as the grid line and the table show it; None is the server's own default."""
    if value is None:
        return DEFAULT
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, dict | list) else str(value)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise PlanError(f"a quote is not closed: {error}") from None


def _quoted(value: Any) -> str:
    return shlex.quote(value_text(value))


def _value(word: str) -> Any:
    if word.lower() in ("true", "false"):
        return word.lower() == "true"
    if word.startswith(("{", "[")):
        try:
            return json.loads(word)
        except ValueError:
            return word
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word
