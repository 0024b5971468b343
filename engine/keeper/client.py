"""Asking a keeper. Blocking calls: the screens make them in worker threads."""

import json
import socket
from pathlib import Path
from typing import Any

from engine.keeper.lock import is_held
from engine.keeper.places import KeeperKind, keeper_places
from engine.records import EngineError


class KeeperGone(EngineError):
    """No keeper is alive for this session or server."""


class KeeperRefused(EngineError):
    """The keeper answered that it will not."""


def is_running(data_dir: Path, kind: KeeperKind, number: int) -> bool:
    """Whether a living keeper holds this session's or server's lock."""
    return is_held(keeper_places(data_dir, kind, number).lock)


def answers(data_dir: Path, kind: KeeperKind, number: int) -> bool:
    """Whether a keeper accepts commands; a socket that a killed one left behind does not."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        return connection.connect_ex(str(keeper_places(data_dir, kind, number).socket)) == 0


def call(
    data_dir: Path, kind: KeeperKind, number: int, command: str, *, timeout_s: float = 10.0, **arguments: Any
) -> dict[str, Any]:
    """Send one command, return its answer without `ok`. Raises KeeperGone, KeeperRefused."""
    place = keeper_places(data_dir, kind, number).socket
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_s)
        try:
            connection.connect(str(place))
            connection.sendall(json.dumps({"command": command, **arguments}).encode() + b"\n")
            line = connection.makefile("rb").readline()
        except TimeoutError as error:
            raise KeeperRefused(f"the keeper of {kind} {number} did not answer within {timeout_s:g} s") from error
        except OSError as error:
            raise KeeperGone(f"no keeper runs for {kind} {number}") from error
    if not line.endswith(b"\n"):
        raise KeeperGone(f"the keeper of {kind} {number} ended before it answered")
    answer: dict[str, Any] = json.loads(line)
    if not answer.pop("ok", False):
        raise KeeperRefused(str(answer.get("error", "refused without a reason")))
    return answer
