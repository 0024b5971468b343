"""A keeper's term of office, from its command line to the last word in its row; alike for all kinds of keepers."""

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.keeper.hold import only_keeper
from engine.keeper.journal import KEEPER_PATIENCE_S, Journal
from engine.keeper.places import KeeperKind
from engine.processes.process import identify
from engine.records import EngineError
from store.clock import utc_now
from store.database import open_reader, open_writer
from store.errors import StoreError
from store.location import database_file
from store.reader import Reader
from store.records import EventLevel
from store.writer import Writer


@dataclass(frozen=True, slots=True)
class Term:
    """What a keeper works with; `socket` is where it is to answer."""

    data_dir: Path
    socket: Path
    writer: Writer
    reader: Reader


@contextmanager
def term(data_dir: Path, kind: KeeperKind, number: int) -> Iterator[Term]:
    """Be the one keeper of that row; what is known of it must be read within. Raises EngineError where another is,
    StoreError."""
    database = database_file(data_dir)
    with (
        only_keeper(data_dir, kind, number) as socket,
        open_writer(database, timeout_s=KEEPER_PATIENCE_S) as writer,
        open_reader(database) as reader,
    ):
        yield Term(data_dir, socket, writer, reader)


def whose_term() -> dict[str, Any]:
    """The fields of a row that name this process as its keeper."""
    myself = identify(os.getpid())
    return {"keeper_pid": os.getpid(), "keeper_start_ticks": myself.start_ticks if myself else None}


def taken_over(started_at: str | None) -> dict[str, Any]:
    """The fields of a row that say that we run it from now on; `started_at` is when an earlier keeper did."""
    fields = {"state": "running", "message": None, "finished_at": None, "started_at": started_at or utc_now()}
    return fields | whose_term()


async def close_row(
    journal: Journal,
    kind: type[Any],
    number: int,
    state: str,
    message: str,
    more: Callable[[], Mapping[str, Any]] = dict,
) -> None:
    """The last event, then the state, with the fields that `more` then has: who follows a row looks no further once it
    has ended. What was not written is told."""
    if journal.lost:
        message = f"{message}; not written: {', '.join(dict.fromkeys(journal.lost))}".removeprefix("; ")
    level: EventLevel = "error" if state == "failed" else "info"
    said = message if message.startswith(state) else f"{state}: {message}".removesuffix(": ")
    await journal.event(said, level)
    await journal.update(kind, number, state=state, message=message or None, finished_at=utc_now(), **more())


def run_keeper(keep: Callable[[Path, int], Coroutine[Any, Any, None]]) -> int:
    """What `python -m KEEPER DATA_DIR NUMBER` does; its exit status. An error is one line of the keeper's log."""
    try:
        asyncio.run(keep(Path(sys.argv[1]), int(sys.argv[2])))
    except (EngineError, StoreError) as error:
        print(error, flush=True)
        return 1
    return 0
