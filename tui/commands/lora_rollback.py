"""`llmtune lora rollback NAME [--to VERSION]`: an earlier version in place of the one that is served, in seconds."""

import argparse
import os
from pathlib import Path
from typing import Any

from engine.launch.installation import find_vllm
from engine.records import EngineError
from engine.text import clean
from lora.records import LoraError
from lora.served.rollback import target_of
from lora.served.running import Running, open_api, put, require_takes, version_of
from lora.served.server_api import ServerApi
from lora.served.serving import to_serve
from store.records import AdapterRecord, ServerRecord
from tui.commands.lora_proof import Proofs
from tui.commands.lora_serve import findings_told, running_server
from tui.commands.places import data_place, reading
from tui.commands.server import by_hand
from tui.commands.server_text import server_json
from tui.output import UsageError, complain, say, say_json

DONE, FAILED = 0, 1


def run(args: argparse.Namespace) -> int:
    place = data_place(args)
    with reading(place) as reader:
        versions = reader.adapters(args.name)
    record = _server(args, place)
    with open_api(record, os.environ) as api:
        running = Running(record, api.models())
        now = _now(place, running, args.name, versions)
        target = target_of(versions, now, args.to)
        return _back(args, place, api, running, now, target)


def _back(
    args: argparse.Namespace,
    place: Path,
    api: ServerApi,
    running: Running,
    now: AdapterRecord | None,
    target: AdapterRecord,
) -> int:
    record = running.record
    installation = find_vllm(args.vllm or str(record.raw["installation"]["path"]), os.environ)
    with findings_told():
        serving = to_serve(
            place, [target], installation, os.environ, base=args.base, max_rank=running.max_rank, anyway=args.anyway
        )
    (wanted,) = serving.adapters
    require_takes(running, target, serving.base, anyway=args.anyway)
    done = put(place, api, running, wanted)
    for warning in done.warnings:
        complain(warning)
    was = f" in place of {now.label}" if now is not None else ""
    if not args.json:
        say(f"{target.label} answers as {wanted.name} on {clean(record.name, 60)}{was}, after {done.seconds:.2f} s")
    proved: list[dict[str, Any]] = []
    all_proved = False
    try:  # it is back already, whatever becomes of the proof
        with Proofs(args, place, serving.base, serving.adapters, installation.path) as proofs:
            proved, all_proved = proofs.make(api, running, quiet=args.json)
    except EngineError as error:
        complain(f"nothing was proved of it: {error}")
    if not args.json:
        say(f"{target.label}{was}, {done.seconds:.2f} s: {Proofs.in_short(proved)}")  # last: what came of it
    else:
        before = None if now is None else now.label
        switch = {"from": before, "to": target.label, "name": wanted.name, "seconds": done.seconds}
        say_json({"server": server_json(record), "rollback": switch, "proofs": proved})
    return DONE if all_proved else FAILED


def _server(args: argparse.Namespace, place: Path) -> ServerRecord:
    """The one that serves the adapter. Raises UsageError."""
    if args.server is not None:
        return running_server(place, args.server)
    found = []
    for record in by_hand(place, active=True):
        if record.state != "ready":
            continue
        try:
            with open_api(record, os.environ) as api:
                if args.name in Running(record, api.models()).adapters:
                    found.append(record)
        except LoraError as error:
            complain(str(error))
    if not found:
        raise UsageError(f"no server of ours serves {args.name}: `llmtune lora serve {args.name}` starts one")
    if len(found) > 1:
        names = ", ".join(clean(each.name, 40) for each in found)
        raise UsageError(f"several servers serve {args.name}, say which by --server: {names}")
    return found[0]


def _now(place: Path, running: Running, name: str, versions: list[AdapterRecord]) -> AdapterRecord | None:
    """The version that is served. Raises UsageError where the server does not serve the adapter at all."""
    folder = running.adapters.get(name)
    if folder is None:
        raise UsageError(
            f"server {running.record.name} does not serve {name}: `llmtune lora serve {name} --server "
            f"{running.record.name}` loads it"
        )
    return version_of(place, folder, versions)
