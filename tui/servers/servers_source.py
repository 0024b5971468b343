"""What the Servers screen shows: read on the poller's thread, again only where something may have changed."""

from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from store.records import ACTIVE_SERVER_STATES, EventRecord, ServerRecord
from tui.servers.log_tail import LogLines, LogTail

if TYPE_CHECKING:
    from store.reader import Reader

LISTED = 200
ENDED_S = 3.0
EVENTS = 20


@dataclass(frozen=True, slots=True)
class ServersSnapshot:
    """The servers, those that run first, then the newest; the log and events of the chosen one."""

    servers: tuple[ServerRecord, ...] = ()
    chosen: int | None = None
    log: LogLines | None = None
    events: tuple[EventRecord, ...] = ()


class ServersSource:
    """For one thread."""

    def __init__(self) -> None:
        self._tail: LogTail | None = None
        self._marks: object = None
        self._read_at = 0.0
        self._ended: list[ServerRecord] = []

    def read(self, reader: "Reader", wanted: int | None) -> ServersSnapshot:
        """The list, and the rest of the server with the id `wanted`; of the first where that is not in the list."""
        servers = self._list(reader)
        chosen = next((server for server in servers if server.id == wanted), next(iter(servers), None))
        if chosen is None or chosen.id is None:
            return ServersSnapshot(servers)
        if chosen.log_path and (self._tail is None or self._tail.path != chosen.log_path):
            self._tail = LogTail(chosen.log_path)
        log = self._tail.read() if self._tail is not None and chosen.log_path else None
        return ServersSnapshot(servers, chosen.id, log, tuple(reader.events(server_id=chosen.id, limit=EVENTS)))

    def _list(self, reader: "Reader") -> tuple[ServerRecord, ...]:
        """The servers to be listed. Those that have ended are read again when another one ends or begins, and now and
        then: what is told of an end may come after it."""
        active = reader.servers(active=True)
        marks = (reader.server_marks(), {server.id for server in active})
        if marks != self._marks or monotonic() >= self._read_at + ENDED_S:
            newest = reader.servers(newest=LISTED)
            self._ended = [server for server in newest if server.state not in ACTIVE_SERVER_STATES]
            self._marks, self._read_at = marks, monotonic()
        return (*reversed(active), *reversed(self._ended))[:LISTED]
