"""`llmtune server start|stop|restart|list|logs`: servers that outlive the terminal they were started from."""

import argparse
import os
import shlex
from pathlib import Path

from engine.exposure import exposure_warnings
from engine.keeper.client import KeeperGone, call, is_running
from engine.launch.command import model_argument, parse_serve, serve_argv, served_name
from engine.launch.installation import find_vllm
from engine.launch.model import check_model
from engine.processes.ports import free_port
from engine.records import EngineError, ServerSpec
from store.errors import NotFound
from store.records import ACTIVE_SERVER_STATES, ServerRecord
from tui.commands.places import data_place, keeping, reading
from tui.commands.server_text import follow_log, follow_start, follow_stop, last_lines, server_json, server_rows
from tui.output import UsageError, columns, complain, say, say_json

HOST = "127.0.0.1"


def run(args: argparse.Namespace) -> int:
    actions = {"start": start, "stop": stop, "restart": restart, "list": listing, "logs": logs}
    return actions[args.action](args)


def servers(place: Path) -> list[ServerRecord]:
    """All servers ever started, none where nothing was recorded."""
    try:
        with reading(place) as reader:
            return reader.servers()
    except NotFound:
        return []


def choose(found: list[ServerRecord], name: str | None, what: str) -> ServerRecord:
    """The server of this name or number, the latest where several were called so; without a name the only one.
    Raises UsageError."""
    if name is not None:
        found = [server for server in found if name in (server.name, str(server.id))]
        if not found:
            raise UsageError(f"no {what} is called {name}: `llmtune server list --all` shows them")
        return found[-1]
    if not found:
        raise UsageError(f"there is no {what}: `llmtune server list --all` shows them")
    if len(found) > 1:
        names = ", ".join(f"{server.name} ({server.id})" for server in found)
        raise UsageError(f"there are several, say which: {names}")
    return found[0]


def by_hand(place: Path, *, active: bool) -> list[ServerRecord]:
    """Servers started by hand; those of a sweep belong to its session."""
    return [s for s in servers(place) if s.session_id is None and (not active or s.state in ACTIVE_SERVER_STATES)]


def spec_of(rest: list[str] | None) -> ServerSpec:
    """What stands behind `--` as a server to start. Raises UsageError."""
    if not rest:
        raise UsageError("say what to serve after --: llmtune server start chat -- MODEL --max-model-len 4096")
    line = rest[2:] if rest[:2] == ["vllm", "serve"] else rest
    try:
        model, flags = parse_serve(shlex.join(["vllm", "serve", *line]))
        check_model(model)
        host = str(flags.pop("host", HOST))
        port = flags.pop("port", None)
        if port is not None and not (str(port).isdecimal() and 1 <= int(port) <= 65535):
            raise UsageError(f"--port {port} is no port: give a number from 1 to 65535")
        # Several names stay a flag; a single one is a field of its own.
        served = None if isinstance(flags.get("served-model-name"), list) else flags.pop("served-model-name", None)
        return ServerSpec(
            model=model_argument(model),
            host=host,
            port=free_port(host) if port is None else int(port),
            flags=flags,
            served_name=None if served is None else str(served),
        )
    except EngineError as error:
        raise UsageError(str(error)) from error


def start(args: argparse.Namespace) -> int:
    from engine.hand_servers import start_server

    spec = spec_of(args.rest)
    name = args.name or Path(served_name(spec)).name
    installation = find_vllm(args.vllm, os.environ)
    serve_argv(installation, spec)  # what no command line can hold is told here, not in the keeper's log
    with keeping(args) as place:
        if any(server.name == name for server in by_hand(place, active=True)):
            raise UsageError(
                f"a server called {name} is there already: give another NAME, or `llmtune server stop {name}`"
            )
        server_id = start_server(place, installation, spec, name)
        for warning in exposure_warnings(spec, os.environ):
            complain(warning)
    if not args.json:
        say(f"server {server_id} “{name}” on http://{spec.host}:{spec.port}, vLLM {installation.version}")
    status = 0 if args.no_wait else follow_start(place, server_id, quiet=args.json)
    if args.json:
        with reading(place) as reader:
            say_json({"server": server_json(reader.server(server_id))})
    return status


def stop(args: argparse.Namespace) -> int:
    from engine.hand_servers import stop_server

    place = data_place(args)
    server = choose(by_hand(place, active=True), args.name, "running server")
    message = stop_server(place, _number(server))
    if not args.json:
        say(message)
    status = follow_stop(place, _number(server))
    return _done(args, place, server, status, "stopped")


def restart(args: argparse.Namespace) -> int:
    place = data_place(args)
    server = choose(by_hand(place, active=True), args.name, "running server")
    _ask(place, server, "restart")
    status = follow_start(place, _number(server), quiet=args.json, since=server.started_at)
    return _done(args, place, server, status, None)


def listing(args: argparse.Namespace) -> int:
    place = data_place(args)
    shown = servers(place) if args.all else [s for s in servers(place) if s.state in ACTIVE_SERVER_STATES]
    kept = {s.id: s.session_id is not None or is_running(place, "server", _number(s)) for s in shown}
    if args.json:
        say_json({"servers": [{**server_json(server), "keeper": kept[server.id]} for server in shown]})
    elif not shown:
        say("no server runs" if not args.all else "no server was started yet")
    else:
        for line in columns(["", "name", "state", "address", "model", "since", "by"], server_rows(shown, kept)):
            say(line)
    return 0


def logs(args: argparse.Namespace) -> int:
    place = data_place(args)
    found = [server for server in servers(place) if server.log_path]  # one that is not ours has no log here
    server = choose(found if args.name else found[-1:], args.name, "server")
    path = Path(server.log_path)
    for line in last_lines(path, max(0, args.lines)):
        say(line)
    return follow_log(place, _number(server), path) if args.follow else 0


def _number(server: ServerRecord) -> int:
    assert server.id is not None
    return server.id


def _ask(place: Path, server: ServerRecord, command: str) -> None:
    try:
        call(place, "server", _number(server), command)
    except KeeperGone:
        raise KeeperGone(
            f"the keeper of server {server.name} is gone: `llmtune server stop {server.name}` ends what it left, "
            f"then start it anew"
        ) from None


def _done(args: argparse.Namespace, place: Path, server: ServerRecord, status: int, words: str | None) -> int:
    if args.json:
        with reading(place) as reader:
            say_json({"server": server_json(reader.server(_number(server)))})
    elif words and status == 0:
        say(f"server {server.id} “{server.name}” {words}")
    return status
