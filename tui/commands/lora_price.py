"""`llmtune lora price ADAPTER…`: what serving them costs, as a session with a verdict like any other."""

import argparse
import os
from pathlib import Path
from typing import Any

from engine.launch.installation import find_vllm
from engine.launch.model import check_model
from engine.text import clean
from lora.adapters.importing import base_for
from lora.served.serving import given_rank, to_serve
from store.private_files import write_new_private
from tui.commands.lora_serve import findings_told
from tui.commands.places import data_place, reading
from tui.commands.server import spec_of
from tui.commands.sweep import begin, watch
from tui.lora.price import Load, price_plan
from tui.output import UsageError, say, say_json
from tuning.plans.grid import candidates
from tuning.plans.plan_file import plan_toml, read_plan
from tuning.records import Plan

DONE = 0
_SET_HERE = ("enable-lora", "lora-modules", "max-loras", "max-lora-rank")


def run(args: argparse.Namespace) -> int:
    plan = _plan(args)
    text = plan_toml(plan)
    if args.out is not None:
        return _write(args, plan, text)
    return watch(args, *begin(args, plan, text))


def _plan(args: argparse.Namespace) -> Plan:
    place = data_place(args)
    with reading(place) as reader:
        adapters = [reader.adapter(word) for word in args.adapters]
    installation = find_vllm(args.vllm, os.environ)
    base = base_for(adapters[0], args.base)
    check_model(base)
    given: dict[str, Any] = dict(spec_of([base, *(args.rest or ())]).flags)
    with findings_told():
        serving = to_serve(place, adapters, installation, os.environ, base=args.base, max_rank=given_rank(given))
    server = {name: value for name, value in given.items() if name not in _SET_HERE}
    load = Load(args.requests, args.concurrency, args.input_len, args.output_len)
    plan = price_plan(serving, server, load, args.blocks, installation.path)
    return read_plan(plan_toml(plan))  # as a person's own plan is read: the same checks


def _write(args: argparse.Namespace, plan: Plan, text: str) -> int:
    path = Path(args.out).expanduser()
    try:
        write_new_private(path, text)
    except FileExistsError:
        raise UsageError(f"{path} is there already: name another file by --out") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
    labels = [candidate.label for candidate in candidates(plan)[0]]
    if args.json:
        say_json({"plan": str(path), "candidates": labels})
        return DONE
    for label in labels:
        say(f"  {clean(label, 120)}")
    say(f"kept as {clean(str(path))}: llmtune sweep {clean(str(path))} measures it")
    return DONE
