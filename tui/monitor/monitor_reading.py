"""What the Monitor reads of the store, on the poller's thread."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from engine.keeper.client import is_running
from store.clock import format_utc, parse_utc
from store.errors import NotFound
from store.records import ServerRecord
from tui.monitor.watched import DENSE_S, Watched
from tui.monitor.watching import Key, OurReading, Wanted

if TYPE_CHECKING:
    from store.reader import Reader

EVENTS = 50
MARGIN_S = 10.0  # the first difference of a window is taken from a sample before it


@dataclass(frozen=True, slots=True)
class MonitorSnapshot:
    """Our servers that run, and the one that was asked for where it ended; `shown` is that one, or who took over."""

    asked: Key | None = None
    readings: tuple[OurReading, ...] = ()
    shown: int | None = None
    followed: int | None = None


def read_servers(reader: "Reader", wanted: Wanted, now: datetime, data_dir: Path) -> MonitorSnapshot:
    """Of each server that runs the samples that are not known yet, and the events of the shown one."""
    servers = reader.servers(active=True)
    shown, followed = _shown(reader, servers, wanted)
    if shown is not None and all(server.id != shown.id for server in servers):
        servers = [*servers, shown]
    readings = tuple(
        _reading(
            reader, server, server is shown or (shown is not None and server.id == shown.id), wanted, now, data_dir
        )
        for server in servers
    )
    return MonitorSnapshot(wanted.shown, readings, shown.id if shown is not None else None, followed)


def _shown(reader: "Reader", servers: list[ServerRecord], wanted: Wanted) -> tuple[ServerRecord | None, int | None]:
    """The chosen server, also after it stopped; but of a sweep that is followed, the launch that runs now."""
    if isinstance(wanted.shown, str):
        return None, None
    if wanted.shown is None:
        ready = [server for server in servers if server.state == "ready"]
        return next(iter([*ready, *servers]), None), None
    server = next((server for server in servers if server.id == wanted.shown), None)
    if server is not None:
        return server, server.session_id
    try:
        server = reader.server(wanted.shown)
    except NotFound:  # its session was deleted
        return next(iter(servers), None), None
    if server.session_id is not None and server.session_id == wanted.followed:
        return next((other for other in servers if other.session_id == server.session_id), server), wanted.followed
    return server, wanted.followed


def _reading(
    reader: "Reader",
    server: ServerRecord,
    is_shown: bool,
    wanted: Wanted,
    now: datetime,
    data_dir: Path,
) -> OurReading:
    assert server.id is not None
    window_s = wanted.window_s if is_shown else min(wanted.window_s, DENSE_S)
    end = parse_utc(server.stopped_at) if server.stopped_at else now
    oldest = format_utc(end - timedelta(seconds=window_s + MARGIN_S))
    known = wanted.read_to.get(server.id)
    since = known if known is not None and known > oldest else oldest
    samples = reader.samples(server_id=server.id, since=since)
    if not samples and known is None:  # for how long it has been silent
        samples = reader.samples(server_id=server.id, limit=1)
    filled = None
    if known is None:
        filled = Watched(now.timestamp(), server_id=server.id)
        filled.reach(window_s)
        filled.fill(samples)
        samples = []
    return OurReading(
        server,
        _is_kept(data_dir, server),
        tuple(samples),
        filled,
        tuple(reader.events(server_id=server.id, limit=EVENTS)) if is_shown else (),
    )


def _is_kept(data_dir: Path, server: ServerRecord) -> bool:
    """Whether the keeper lives that samples it: that of its session, or its own."""
    if server.session_id is not None:
        return is_running(data_dir, "session", server.session_id)
    return server.id is not None and is_running(data_dir, "server", server.id)
