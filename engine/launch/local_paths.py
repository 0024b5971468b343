"""Paths among a server's settings, made absolute: it runs in its log's folder, not where the person typed them."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.launch.command import flag_name

# Flags of `vllm serve` whose value may be a file or folder. Of other flags no value is taken for one, though a file of
# its name (say "auto") may lie about.
PATH_FLAGS = frozenset(
    {
        "chat-template", "config", "download-dir", "hf-config-path", "lora-modules", "reasoning-parser-plugin",
        "ssl-ca-certs", "ssl-certfile", "ssl-keyfile", "tokenizer", "tool-parser-plugin",
    }
)  # fmt: skip


def absolute_flags(flags: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """`flags` with the paths among them that exist, seen from `folder`, made absolute; `name=path` keeps its name."""
    return {name: _absolute(value, folder) if flag_name(name) in PATH_FLAGS else value for name, value in flags.items()}


def _absolute(value: Any, folder: Path) -> Any:
    if isinstance(value, list | tuple):
        return [_absolute(each, folder) for each in value]
    if not isinstance(value, str):
        return value
    name, equals, path = value.rpartition("=")
    found = folder / os.path.expanduser(path)
    try:
        return f"{name}{equals}{os.path.abspath(found)}" if path and found.exists() else value
    except (OSError, ValueError):  # a template written out on the command line, no path at all
        return value
