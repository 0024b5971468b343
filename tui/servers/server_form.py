"""What a person typed to start a server, read into a wish, and the wish carried out. No widgets."""

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from engine.launch.command import parse_serve_line
from engine.records import EngineError, ServerSpec

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Wish:
    """A server to be started. `port` None is the first free one."""

    name: str
    model: str
    host: str = HOST
    port: int | None = None
    served_name: str | None = None
    flags: dict[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)


def read_wish(model_or_line: str, flags: str = "", port: str = "", name: str = "") -> Wish:
    """A model with flags, or a whole `vllm serve …` line; a port that is given wins over the line's.

    Raises EngineError with the one line that says what is wrong.
    """
    text = model_or_line.strip()
    if not text:
        raise EngineError("no model is given: give a model folder, a hub name, or a whole vllm serve line")
    if not _is_command(text):
        text = f"vllm serve {shlex.quote(text)}"
    pasted = parse_serve_line(f"{text} {flags.strip()}")
    rest = dict(pasted.flags)
    host = str(rest.pop("host", HOST))
    of_line = rest.pop("port", None)
    return Wish(
        name=name.strip() or PurePath(pasted.model).name or "server",
        model=pasted.model,
        host=host,
        port=_port(port.strip() or of_line),
        flags=rest,
        env=dict(pasted.env),
    )


def wish_warnings(wish: Wish, environ: Mapping[str, str] = os.environ) -> list[str]:
    """What of it others could reach or see, one line each. Raises EngineError."""
    from engine.exposure import exposure_warnings

    return exposure_warnings(_spec(wish, wish.port or 0), environ)


def start_wish(data_dir: Path, vllm: str | None, wish: Wish, environ: Mapping[str, str] = os.environ) -> int:
    """Start it and return its id. Slow: call it in a thread. Raises EngineError or StoreError, each in one line."""
    from engine.hand_servers import start_server
    from engine.launch.installation import find_vllm
    from engine.processes.ports import free_port

    installation = find_vllm(vllm, environ)
    port = wish.port if wish.port is not None else free_port(wish.host)
    return start_server(data_dir, installation, _spec(wish, port), wish.name)


def _spec(wish: Wish, port: int) -> ServerSpec:
    return ServerSpec(wish.model, wish.host, port, wish.flags, wish.served_name, wish.env)


def _is_command(text: str) -> bool:
    return " serve " in f"{text} " or "vllm.entrypoints" in text


def _port(value: object) -> int | None:
    if value in (None, ""):
        return None
    try:
        return int(str(value))
    except ValueError:
        raise EngineError(
            f"{value} is no port: give a number from 1 to 65535, or nothing for the first free one"
        ) from None
