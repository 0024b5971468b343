"""Servers as lines: the list, a start or stop followed step by step, a log from its end."""

import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from engine.text import clean, redact
from store.records import ServerRecord
from tui.commands.keeper_watch import KeeperWatch
from tui.commands.places import reading
from tui.format import local_minute, started_by
from tui.metric_text import number
from tui.output import UsageError, complain, say
from tuning.figures import duration_text

LOOK_EVERY_S = 0.3
TAIL_CHUNK = 256 * 1024
ENDED = ("stopped", "failed")
STAGE_WORDS = {
    "spawned": "process started",
    "loading": "vLLM loads",
    "weights": "weights loaded",
    "compile": "compiled",
    "kv_cache": "KV cache made",
    "graphs": "CUDA graphs captured",
    "listening": "listening",
}


def server_json(server: ServerRecord) -> dict[str, Any]:
    """One server for `--json`. Its environment is redacted where it is kept already."""
    keys = (
        "id", "name", "state", "model", "served_name", "host", "port", "command", "env", "log_path", "session_id",
        "vllm_version", "pid", "started_at", "ready_at", "stopped_at", "exit_code", "failure_class", "failure", "facts",
    )  # fmt: skip
    return {**{key: getattr(server, key) for key in keys}, "url": server.url}


def server_rows(servers: Iterable[ServerRecord], kept: Mapping[int | None, bool]) -> list[list[str]]:
    """Rows of the list; a server whose keeper is gone says so, since nobody knows then whether it still runs."""
    return [
        [
            str(server.id),
            clean(server.name, 40),
            server.state if kept[server.id] or server.state in ENDED else f"{server.state}, no keeper",
            server.url,
            clean(Path(server.model).name, 40),
            local_minute(server.started_at),
            started_by(server),
        ]
        for server in servers
    ]


def follow_start(place: Path, server_id: int, *, quiet: bool, since: str | None = None) -> int:
    """Tell the stages of a start until the server is ready (0) or has failed (1). Ctrl-C leaves it loading (130).

    `since` is the `started_at` of the life before, where the server is being restarted.
    """
    told: str | None = None
    begun = time.monotonic()
    keeper = KeeperWatch(place, "server", server_id)
    try:
        while True:
            with reading(place) as reader:
                server = reader.server(server_id)
            fresh = since is None or (server.started_at is not None and server.started_at > since)
            stage = str(server.facts.get("stage", ""))
            if fresh and server.state == "ready":
                tokens = server.facts.get("kv_cache_tokens")
                room = f", KV cache of {number(tokens)} tokens" if tokens else ""
                if not quiet:
                    say(f"ready after {duration_text(time.monotonic() - begun)}{room}")
                return 0
            if fresh and server.state in ENDED:
                complain(clean(server.failure or f"the server stopped before it was ready: {server.log_path}", 500))
                return 1
            if stage and stage != told and not quiet:
                told = stage
                say(f"{duration_text(time.monotonic() - begun):>8}  {STAGE_WORDS.get(stage, clean(stage, 80))}")
            if keeper.gone():
                complain(f"the keeper of server {server_id} is gone: `llmtune server logs {server_id}` shows its log")
                return 1
            time.sleep(LOOK_EVERY_S)
    except KeyboardInterrupt:
        complain(
            f"the server goes on loading: `llmtune server list` shows it, `llmtune server stop {server_id}` ends it"
        )
        return 130


def follow_stop(place: Path, server_id: int) -> int:
    """Until the server has stopped (0) or its keeper is gone without that (1)."""
    keeper = KeeperWatch(place, "server", server_id)
    while True:
        with reading(place) as reader:
            server = reader.server(server_id)
        if server.state in ENDED:
            return 0
        if keeper.gone():
            complain(f"the keeper of server {server_id} ended without having stopped it (process {server.pid})")
            return 1
        time.sleep(LOOK_EVERY_S)


def last_lines(path: Path, count: int) -> list[str]:
    """The last lines of a log, cleaned and without secrets, reading no more than they need. Raises UsageError."""
    try:
        with path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            tail = b""
            while size > 0 and tail.count(b"\n") <= count:
                step = min(size, TAIL_CHUNK)
                size = log.seek(size - step)
                tail = log.read(step) + tail
    except OSError as error:
        raise UsageError(f"the log {path} cannot be read: {error.strerror}") from None
    lines = tail.decode("utf-8", errors="replace").splitlines()
    return [redact(clean(line)) for line in lines[max(0, len(lines) - count) :]]


def follow_log(place: Path, server_id: int, path: Path) -> int:
    """Print what is added to a log until its server has ended."""
    with path.open("rb") as log:
        log.seek(0, os.SEEK_END)
        unfinished = b""
        while True:
            with reading(place) as reader:
                ended = reader.server(server_id).state in ENDED
            *whole, unfinished = (unfinished + log.read()).split(b"\n")
            for line in whole:
                say(redact(clean(line.decode("utf-8", errors="replace"))))
            if ended:
                return 0
            time.sleep(LOOK_EVERY_S)
