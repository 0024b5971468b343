"""The keeper's end of its socket: one JSON object a line asks, one answers.

`{"command": "pause"}` → `{"ok": true, …}` or `{"ok": false, "error": "one line"}`.
"""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from engine.records import EngineError
from store.errors import StoreError

Handler = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]
LONGEST_REQUEST = 64 * 1024


class ControlSocket:
    """Serves commands on a Unix socket of mode 0600. Its owner holds the keeper's lock, so an old socket file at the
    path belongs to nobody and is replaced."""

    def __init__(self, path: Path, commands: Mapping[str, Handler]) -> None:
        self._path = path
        self._commands = commands
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._path.unlink(missing_ok=True)
        # The mode must be right from the moment the socket can be connected to, so it is set by the mask.
        mask = os.umask(0o177)
        try:
            self._server = await asyncio.start_unix_server(self._serve, path=self._path, limit=LONGEST_REQUEST)
        finally:
            os.umask(mask)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                writer.write(json.dumps(await self._answer(line)).encode() + b"\n")
                await writer.drain()
        except (ConnectionError, ValueError):
            # The asker went away, or sent a line longer than any request: nothing to tell it.
            return
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
        except ValueError:
            return {"ok": False, "error": "not a JSON object"}
        if not isinstance(request, dict):
            return {"ok": False, "error": "not a JSON object"}
        handler = self._commands.get(str(request.get("command")))
        if handler is None:
            known = ", ".join(sorted(self._commands))
            return {"ok": False, "error": f"unknown command {request.get('command')!r}; this keeper knows {known}"}
        try:
            return {"ok": True, **await handler(request)}
        except (EngineError, StoreError) as error:
            return {"ok": False, "error": str(error)}
