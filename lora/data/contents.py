"""The text of a field or turn, from what files hold there."""

import json
import math
from collections.abc import Mapping
from typing import Any

from lora.data.decoding import has_bad_byte, has_surrogate
from lora.data.records import Fault, FaultKind
from lora.records import Message, Role

ROLE_NAMES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "prompter": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "bing": "assistant",
    "bard": "assistant",
}
TOOL_ROLES = frozenset({"tool", "function", "function_call", "observation", "ipython"})
_ROLE, _CONTENT = ("role", "from"), ("content", "value", "text")
_TOOL_FIELDS = ("tool_calls", "function_call")


class Unusable(Exception):
    """Why a record gives no conversation."""

    def __init__(self, kind: FaultKind, detail: str = "") -> None:
        super().__init__(kind)
        self.kind, self.detail = kind, detail

    def at(self, line: int) -> Fault:
        return Fault(line, self.kind, self.detail)


def text_of(value: Any, where: str) -> str:
    """A field as text: null is empty, a number its digits, a list of `{"type": "text"}` parts its texts. Raises
    Unusable."""
    if value is None or (isinstance(value, float) and math.isnan(value)):  # pandas writes NaN for what is missing
        return ""
    if isinstance(value, list):
        parts = [part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None for part in value]
        if not all(isinstance(part, str) for part in parts):
            raise Unusable("not_text", where)
        value = "".join(part for part in parts if part is not None)
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise Unusable("not_text", where)
    if has_surrogate(value):
        raise Unusable("encoding" if has_bad_byte(value) else "half_character", where)
    return tidied(value)


def tidied(text: str) -> str:
    """With lines that end as they do here, without blank lines around it and space behind it. Space before it stays
    where it is the indentation of more than one line (code), else ` Paris` would be learnt with a space after the
    template's own."""
    lines = text.rstrip().replace("\r\n", "\n").replace("\r", "\n").split("\n")
    while len(lines) > 1 and not lines[0].strip():
        lines = lines[1:]
    return "\n".join(lines) if len(lines) > 1 else lines[0].strip()


def turn_of(value: Any, number: int) -> Message:
    """One turn of `messages` or `conversations`. Raises Unusable."""
    where = f"turn {number}"
    if not isinstance(value, Mapping):
        raise Unusable("not_text", where)
    role = next((value[name] for name in _ROLE if name in value), None)
    name = role.strip().casefold() if isinstance(role, str) else ""
    if name in TOOL_ROLES or any(value.get(field) for field in _TOOL_FIELDS):
        raise Unusable("tools", where)
    if name not in ROLE_NAMES:
        raise Unusable("unknown_role", f"{where}: {role!r}" if role is not None else f"{where} has none")
    field = next((field for field in _CONTENT if field in value), None)
    if field is None:
        raise Unusable("not_text", f"{where} has no content")
    return Message(ROLE_NAMES[name], text_of(value[field], where))


def turns_of(value: Any) -> list[Message]:
    """The turns of a list, or of the JSON text of one (a field of CSV). Raises Unusable."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise Unusable("not_text", "no JSON list of turns") from None
    if not isinstance(value, list):
        raise Unusable("not_text", "no list of turns")
    turns = [turn_of(each, number) for number, each in enumerate(value, 1)]
    return turns[1:] if turns and turns[0] == Message("system", "") else turns


def unused_of(value: Any) -> set[str]:
    """Names of fields of turns that nothing is made of, as `turn.weight`."""
    if not isinstance(value, list):
        return set()
    known = {*_ROLE, *_CONTENT, *_TOOL_FIELDS}
    return {
        f"turn.{name}"
        for turn in value
        if isinstance(turn, Mapping)
        for name in turn
        if turn[name] and name not in known
    }
