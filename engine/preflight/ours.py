"""What llmtune itself left behind: servers, trainings and evaluations that run without a keeper, sessions that stand
still."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.keeper.client import KeeperGone, KeeperRefused, call, is_running
from engine.keeper.places import KeeperKind, runtime_dir
from engine.preflight.check import Check
from engine.preflight.lora_work import OurWork, lora_checks, read_lora_work
from engine.processes.process import boot_id, is_alive, markers
from engine.records import ProcessIdentity
from store.database import open_reader
from store.location import database_file
from store.records import ACTIVE_SERVER_STATES, ServerRecord, SessionRecord

_UNFINISHED = ("waiting", "running", "paused")
_MOST_NAMED = 3
_ANSWER_WITHIN_S = 1.0


@dataclass(frozen=True, slots=True)
class OurServer:
    """A server of this data directory that stands as active in its row or has live processes (`pids`)."""

    id: int
    name: str
    session_id: int | None
    active: bool
    pids: tuple[int, ...]
    kept: bool


@dataclass(frozen=True, slots=True)
class OurSession:
    """A session that is not at its end. `kept`: a living keeper carries it; `blocked` then is what that waits for."""

    id: int
    name: str
    state: str
    kept: bool
    message: str | None = None
    blocked: str | None = None


@dataclass(frozen=True, slots=True)
class OursReading:
    """`strangers` are live processes with a marker of llmtune's that this data directory knows nothing of; `newest`
    is the time of its latest event."""

    servers: tuple[OurServer, ...] = ()
    sessions: tuple[OurSession, ...] = ()
    strangers: tuple[int, ...] = ()
    newest: str | None = None
    lora: tuple[OurWork, ...] = ()

    def names(self) -> dict[int, str]:
        """Whose a process is, by pid."""
        named = {pid: f"our server {server.id}, {server.name}" for server in self.servers for pid in server.pids}
        named |= {pid: f"our {one.kind} {one.id}, {one.name}" for one in self.lora for pid in one.pids}
        return {**dict.fromkeys(self.strangers, "a server of llmtune's, of another data directory"), **named}


def read_ours(data_dir: Path, environ: Mapping[str, str] = os.environ) -> OursReading:
    """From the database, the locks of keepers, and /proc. Raises StoreError; EngineError where the folder for sockets
    and locks cannot be used."""
    runtime_dir(environ)
    marked = markers()
    if not database_file(data_dir).exists():
        return OursReading(strangers=tuple(sorted(marked)))
    with open_reader(database_file(data_dir)) as reader:
        rows, sessions, events = reader.servers(), reader.sessions(), reader.events(limit=1)
        lora = read_lora_work(data_dir, reader, marked)
    known = {row.marker for row in rows if row.marker} | {str(one.raw.get("bench_marker")) for one in sessions}
    lora_pids = {pid for one in lora for pid in one.pids}
    servers = (_server(data_dir, row, marked) for row in rows)
    return OursReading(
        tuple(server for server in servers if server.active or server.pids),
        tuple(_session(data_dir, session) for session in sessions if session.state in _UNFINISHED),
        tuple(sorted(pid for pid, marker in marked.items() if marker not in known and pid not in lora_pids)),
        events[-1].at if events else None,
        lora,
    )


def ours_checks(reading: OursReading) -> list[Check]:
    return [_servers(reading.servers), _sessions(reading.sessions), *lora_checks(reading.lora)]


def _servers(servers: tuple[OurServer, ...]) -> Check:
    left = [server for server in servers if server.pids and not server.kept]
    gone = [server for server in servers if not server.pids and not server.kept]
    up = sum(server.kept and bool(server.pids) for server in servers)
    if left:
        shown = ", ".join(f"{server.id} ({server.name}), pids {_pids(server.pids)}" for server in left[:_MOST_NAMED])
        found = f"{len(left)} run without a keeper: {shown}{' …' if len(left) > _MOST_NAMED else ''}"
        return Check("servers", "warning", found, "; ".join(dict.fromkeys(map(_end, left[:_MOST_NAMED]))))
    found = f"{up} of ours run" if up else "none of ours runs"
    if gone:
        names = ", ".join(f"{server.id} ({server.name})" for server in gone[:_MOST_NAMED])
        found = f"{found}; {names} ended without having been stopped, nothing of it is left"
    return Check("servers", "ok", found)


def _end(server: OurServer) -> str:
    if server.session_id is not None:
        return f"`llmtune resume {server.session_id}` or `stop {server.session_id}` ends what its session left"
    if server.active:
        return f"`llmtune server stop {server.id}` ends what is left of it"
    return f"end it: kill {' '.join(map(str, server.pids))}"


def _pids(pids: tuple[int, ...]) -> str:
    more = " …" if len(pids) > _MOST_NAMED else ""
    return " ".join(map(str, pids[:_MOST_NAMED])) + more


def _sessions(sessions: tuple[OurSession, ...]) -> Check:
    still = [session for session in sessions if not session.kept]
    waiting = [session for session in sessions if session.kept and session.blocked]
    held = [session for session in sessions if session.kept and session.state == "paused"]
    if still:
        shown = ", ".join(f"{session.id} ({session.name}, {session.state})" for session in still[:_MOST_NAMED])
        found = f"{len(still)} stand still without a keeper: {shown}{' …' if len(still) > _MOST_NAMED else ''}"
        return Check("sessions", "warning", found, f"`llmtune resume {still[0].id}` goes on where it broke off")
    if waiting:
        found = f"{waiting[0].id} ({waiting[0].name}) waits: {waiting[0].blocked}"
        return Check("sessions", "warning", found, "put that right: it goes on by itself")
    if held:
        why = f": {held[0].message}" if held[0].message else ""
        found = f"{held[0].id} ({held[0].name}) is paused{why}"
        return Check("sessions", "warning", found, f"`llmtune resume {held[0].id}` goes on with it")
    running = len(sessions)
    return Check("sessions", "ok", f"{running} under way" if running else "none under way")


def _server(data_dir: Path, row: ServerRecord, marked: Mapping[int, str]) -> OurServer:
    assert row.id is not None
    active = row.state in ACTIVE_SERVER_STATES
    pids = {pid for pid, marker in marked.items() if row.marker and marker == row.marker}
    if active:
        boot = row.boot_id or boot_id()
        recorded = [[row.pid, row.start_ticks]] if row.pid is not None and row.start_ticks is not None else []
        for pid, ticks in (*recorded, *row.descendants):
            if pid is not None and ticks is not None and is_alive(ProcessIdentity(pid, ticks, boot)):
                pids.add(pid)
    kind: KeeperKind = "server" if row.session_id is None else "session"
    kept = (active or bool(pids)) and is_running(data_dir, kind, row.id if row.session_id is None else row.session_id)
    return OurServer(row.id, row.name, row.session_id, active, tuple(sorted(pids)), kept)


def _session(data_dir: Path, session: SessionRecord) -> OurSession:
    assert session.id is not None
    kept = is_running(data_dir, "session", session.id)
    blocked = _blocked(data_dir, session.id) if kept else None
    return OurSession(session.id, session.name, session.state, kept, session.message, blocked)


def _blocked(data_dir: Path, session_id: int) -> str | None:
    try:
        blocked = call(data_dir, "session", session_id, "status", timeout_s=_ANSWER_WITHIN_S).get("blocked")
    except (KeeperGone, KeeperRefused):
        return "its keeper does not answer"
    return None if blocked is None else str(blocked)
