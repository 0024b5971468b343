"""`llmtune lora serve ADAPTER… [-- vllm flags]`: a server of ours that holds them, or a running one that takes them."""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.exposure import exposure_warnings
from engine.launch.command import served_name
from engine.launch.installation import find_vllm
from engine.launch.model import check_model
from engine.launch.readiness import api_key, base_url
from engine.records import Installation, ServerSpec
from engine.text import clean
from lora.adapters.importing import base_for
from lora.served.running import Running, open_api, put, require_takes
from lora.served.server_api import ServerApi
from lora.served.serving import (
    RUNTIME_LOADING,
    Serving,
    ServingRefused,
    given_rank,
    may_load_at_run_time,
    server_flags,
    to_serve,
)
from store.records import AdapterRecord, ServerRecord
from tui.commands.lora_proof import Proofs
from tui.commands.places import data_place, keeping, reading
from tui.commands.server import by_hand, choose, spec_of
from tui.commands.server_text import follow_start, server_json
from tui.lora.examined import finding_lines
from tui.output import UsageError, complain, say, say_json

DONE, FAILED = 0, 1


def run(args: argparse.Namespace) -> int:
    place = data_place(args)
    with reading(place) as reader:
        adapters = [reader.adapter(word) for word in args.adapters]
    if args.server is not None:
        return _into_running(args, place, adapters)
    return _new_server(args, adapters)


@contextmanager
def findings_told() -> Iterator[None]:
    """All that was found of an adapter that is refused, before the one line that refuses it."""
    try:
        yield
    except ServingRefused as error:
        for label, findings in error.findings:
            complain(f"{label}:")
            for line in finding_lines(findings):
                complain(line)
        raise


def _new_server(args: argparse.Namespace, adapters: list[AdapterRecord]) -> int:
    from engine.hand_servers import start_server

    installation = find_vllm(args.vllm, os.environ)
    spec, serving = _planned(args, adapters, installation)
    name = args.name or adapters[0].name
    with keeping(args) as place:
        if any(server.name == name for server in by_hand(place, active=True)):
            raise UsageError(
                f"a server called {name} is there already: `llmtune lora serve {args.adapters[0]} --server {name}` "
                "loads into it, --name calls a new one otherwise"
            )
        with Proofs(args, place, serving.base, serving.adapters, installation.path) as proofs:
            server_id = start_server(place, installation, spec, name)
            for warning in exposure_warnings(spec, os.environ):
                complain(warning)
            if not args.json:
                _tell_start(serving, spec, server_id, name)
            status = DONE if args.no_wait else follow_start(place, server_id, quiet=args.json)
            with reading(place) as reader:
                record = reader.server(server_id)
            proved: list[dict[str, Any]] = []
            if status == DONE and not args.no_wait:
                with ServerApi(base_url(spec), api_key(spec, os.environ)) as api:
                    proved, all_proved = proofs.make(api, Running(record, api.models()), quiet=args.json)
                status = DONE if all_proved else FAILED
                if not args.json:
                    say(f"{_called(serving)} on {base_url(spec)}: {proofs.in_short(proved)}")
    if args.json:
        say_json({"server": server_json(record), "max_lora_rank": serving.max_rank, "proofs": proved})
    return status


def _planned(
    args: argparse.Namespace, adapters: list[AdapterRecord], installation: Installation
) -> tuple[ServerSpec, Serving]:
    """The server to be started. Raises before anything is, where vLLM would refuse it or serve something else."""
    rest = list(args.rest or ())
    base = base_for(adapters[0], args.base)
    check_model(base)
    given = spec_of([base, *rest])
    with findings_told():
        serving = to_serve(
            data_place(args), adapters, installation, os.environ,
            base=args.base, max_rank=given_rank(given.flags), anyway=args.anyway,
        )  # fmt: skip
    called = given.served_name or _base_name(given, serving)
    spec = replace(given, flags=server_flags(serving, given.flags), served_name=called)
    if may_load_at_run_time(spec, os.environ):
        spec = replace(spec, env={RUNTIME_LOADING: "1", **spec.env})
    else:
        complain("others reach this server without a key, so it takes no adapter while it runs: no quick rollback")
    return spec, serving


def _base_name(given: ServerSpec, serving: Serving) -> str | None:
    """The base by the last part of its path; None where several names are given by a flag."""
    if "served-model-name" in given.flags:
        return None
    name = Path(served_name(given)).name
    return f"{name}-base" if name in {each.name for each in serving.adapters} else name


def _tell_start(serving: Serving, spec: ServerSpec, server_id: int, name: str) -> None:
    for label, findings in serving.notes:
        say(f"{label}:")
        for line in finding_lines(findings):
            say(line)
    say(f"server {server_id} “{name}” on {base_url(spec)}, --max-lora-rank {serving.max_rank}")
    base = f"the base answers as {spec.served_name}" if spec.served_name else "the base answers under its own names"
    say(f"{base}, {_called(serving)}")


def _called(serving: Serving) -> str:
    return ", ".join(f"{each.adapter.label} as {each.name}" for each in serving.adapters)


def _into_running(args: argparse.Namespace, place: Path, adapters: list[AdapterRecord]) -> int:
    if args.rest:
        raise UsageError("flags of vLLM are given when a server starts: leave --server or what follows -- out")
    record = running_server(place, args.server)
    installation = find_vllm(args.vllm or str(record.raw["installation"]["path"]), os.environ)
    with open_api(record, os.environ) as api:
        running = Running(record, api.models())
        with findings_told():
            serving = to_serve(
                place, adapters, installation, os.environ,
                base=args.base, max_rank=running.max_rank, anyway=args.anyway,
            )  # fmt: skip
        for each in serving.adapters:
            require_takes(running, each.adapter, serving.base, anyway=args.anyway)
        with Proofs(args, place, serving.base, serving.adapters, installation.path) as proofs:
            loaded = []
            for each in serving.adapters:
                done = put(place, api, Running(record, api.models()), each)
                loaded.append({"adapter": each.adapter.label, "name": each.name, "seconds": done.seconds})
                for warning in done.warnings:
                    complain(warning)
            proved, all_proved = proofs.make(api, running, quiet=args.json)
            if not args.json:
                took = ", ".join(f"{each['seconds']:.2f} s" for each in loaded)
                on = clean(record.name, 60)
                say(f"{_called(serving)} on {on}, loaded in {took}: {proofs.in_short(proved)}")
    if args.json:
        say_json({"server": server_json(record), "loaded": loaded, "proofs": proved})
    return DONE if all_proved else FAILED


def running_server(place: Path, name: str | None) -> ServerRecord:
    """A server of ours that is ready. Raises UsageError."""
    record = choose(by_hand(place, active=True), name, "running server")
    if record.state != "ready":
        raise UsageError(f"server {record.name} is {record.state}: wait until it is ready (`llmtune server list`)")
    return record
