"""The adapters that a vLLM server holds by its flags: `--lora-modules name=path`, or JSON (vLLM's LoRAParserAction)."""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from store.records import ServerRecord

FLAG = "lora-modules"


def modules(value: Any) -> tuple[tuple[str, str], ...]:
    """Names and paths in a value of `--lora-modules`: `name=path`, or JSON with `name` and `path`."""
    items = value if isinstance(value, list | tuple) else [value]
    return tuple(found for item in items if (found := _module(item)) is not None)


def modules_of(server: ServerRecord) -> dict[str, str]:
    """Name → folder of the adapters that a server was started with, or has loaded since: then its keeper has changed
    the flags that a restart takes."""
    spec = server.raw.get("spec")
    flags = spec.get("flags") if isinstance(spec, dict) else None
    kept = flags.get(FLAG) if isinstance(flags, dict) else None
    return dict(modules(kept if isinstance(kept, str | list) else _words_after(f"--{FLAG}", server.command)))


def real_folder(path: str) -> str:
    """A path of `--lora-modules` as the folder that vLLM reads: `~` and links followed."""
    return os.path.realpath(os.path.expanduser(path))


def _words_after(flag: str, command: Sequence[str]) -> list[str]:
    """What a command line gives to a flag of several values: `--flag a b`, `--flag=a`."""
    found: list[str] = []
    taking = False
    for word in command:
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            taking = name == flag
            found += [value] if taking and equals else []
        elif taking:
            found.append(word)
    return found


def _module(item: Any) -> tuple[str, str] | None:
    if isinstance(item, str) and item.lstrip().startswith("{"):
        try:
            item = json.loads(item)
        except (ValueError, RecursionError):
            return None
    if isinstance(item, Mapping):
        return (str(item["name"]), str(item.get("path") or "")) if item.get("name") else None
    if not isinstance(item, str):
        return None
    name, is_one, path = item.partition("=")
    return (name, path) if name and is_one else None
