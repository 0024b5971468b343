"""Reads the database on a thread of its own and posts what it found, so that no screen ever waits for a disk."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from textual.message import Message

from tui.messages import GoingOn, StoreFailed, StoreRead

if TYPE_CHECKING:
    from store.reader import Reader

LOOK_S = 0.25  # how often the database is asked whether anything was committed
READ_S = 1.0  # and how often it is read anyway: logs grow and clocks run without a commit


class StoreView(Protocol):
    """A screen as the poller sees it."""

    def refresh_from_store(self, reader: "Reader") -> Any:
        """What the screen needs, as one frozen object. Runs on the poller's thread: touch no widget."""


class Poller:
    """Reads for the screen that is shown whenever the database changed, when asked to, and once a second.

    `current` gives that screen, or None while there is none; `post` must be safe to call from a thread.
    """

    def __init__(
        self, database: Path, current: Callable[[], StoreView | None], post: Callable[[Message], object]
    ) -> None:
        self._database = database
        self._current = current
        self._post = post
        self._wake = threading.Event()
        self._asked = threading.Event()
        self._stopped = threading.Event()

    def ask(self) -> None:
        """Read now: another screen is shown, or another row was chosen."""
        self._asked.set()
        self._wake.set()

    def stop(self) -> None:
        """End `run` within the time of one read."""
        self._stopped.set()
        self._wake.set()

    def run(self) -> None:
        """Poll until stopped. What cannot be read (a store, a keeper's lock) is said, and tried again each second."""
        from engine.records import EngineError
        from store.errors import StoreError

        while not self._stopped.is_set():
            try:
                self._follow()
            except (StoreError, EngineError, OSError) as error:
                self._post(StoreFailed(str(error)))
                self._stopped.wait(READ_S)

    def _follow(self) -> None:
        from store.database import open_reader

        if not self._database.exists():
            from store.make import make_database

            make_database(self._database)
        with open_reader(self._database, remembers=True) as reader:
            seen: int | None = None
            waited = 0.0
            while not self._stopped.is_set():
                version = reader.version()
                if version != seen or waited >= READ_S or self._asked.is_set():
                    self._asked.clear()
                    self._read(reader, version)
                    seen, waited = version, 0.0
                if not self._wake.wait(LOOK_S):
                    waited += LOOK_S
                self._wake.clear()

    def _read(self, reader: "Reader", version: int) -> None:
        view = self._current()
        snapshot = None if view is None else view.refresh_from_store(reader)
        self._post(StoreRead(view, snapshot, version, going_on(reader)))


def going_on(reader: "Reader") -> GoingOn:
    """What runs on its own now; four look-ups in indices, however long the history."""
    return GoingOn(
        sessions=tuple(reader.sessions(("running", "paused"))),
        servers=tuple(server for server in reader.servers(active=True) if server.session_id is None),
        trainings=tuple(reader.trainings(("running",))),
        evaluations=tuple(reader.evaluation_jobs(("running",))),
    )
