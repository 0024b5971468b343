"""`llmtune lora show ADAPTER`: one version, whether its files are still those registered, and what vLLM makes of it."""

import argparse
import os
from collections.abc import Sequence
from typing import Any

from engine.signature import SignatureBroken
from engine.text import clean
from lora.adapters.importing import examine_version, require_base
from lora.sizes.base_model import BaseUnknown
from store.records import AdapterRecord, EvaluationRecord
from tui.commands.lora_text import adapter_json, examined_json, serve_line
from tui.commands.places import data_place, reading
from tui.format import local_minute, number, span
from tui.lora.examined import examined_lines, installed, megabytes
from tui.output import UsageError, complain, say, say_json

DONE, FAILED = 0, 1


def run(args: argparse.Namespace) -> int:
    place = data_place(args)
    with reading(place) as reader:
        adapter = reader.adapter(args.adapter)
        evaluated = reader.evaluations(adapter.id)[-1:]
    try:
        require_base(args.base)
        examined = examine_version(place, adapter, args.base, installed(args.vllm), os.environ)
    except BaseUnknown as error:
        raise UsageError(str(error)) from None
    except SignatureBroken as error:
        if args.json:
            say_json({"adapter": adapter_json(adapter, place), "intact": False, "examined": None})
        complain(str(error))
        return FAILED
    if args.json:
        say_json({"adapter": adapter_json(adapter, place), "intact": True, "examined": examined_json(examined)})
    else:
        for line in (*_lines(adapter, evaluated), *examined_lines(adapter.label, examined)):
            say(line)
        say(serve_line(adapter, place, examined.max_rank))
    return FAILED if examined.prevented else DONE


def _lines(adapter: AdapterRecord, evaluated: Sequence[EvaluationRecord]) -> list[str]:
    losses = ", ".join(f"{clean(str(name), 40)} {number(value, 4)}" for name, value in _numbers(adapter.losses))
    from_where = f"training {adapter.training_id}" if adapter.training_id is not None else "made elsewhere"
    if adapter.imported_from:
        from_where += f", imported from {clean(adapter.imported_from)}"
    rows = [
        ("from", f"{from_where}, {local_minute(adapter.created_at)}"),
        ("losses", losses),
        (
            "took",
            "" if adapter.seconds is None else f"{span(adapter.seconds)} on {clean(adapter.gpu or 'the CPU', 80)}",
        ),
        ("data", adapter.data_hash or ""),
        ("signed", f"{adapter.signature} ({megabytes(adapter.size_bytes)} of files, as registered)"),
        ("notes", clean(adapter.notes or "", 300)),
        *(("tested", _evaluated(each)) for each in evaluated),
        ("served", _served(adapter.served)),
    ]
    return [f"{key:<8}{text}" for key, text in rows if text]


def _evaluated(found: EvaluationRecord) -> str:
    interval = "" if found.low is None else f", 95 % from {number(found.low, 4)} to {number(found.high, 4)}"
    losses = f"loss {number(found.adapter_loss, 4)} where its base has {number(found.base_loss, 4)}"
    return f"{losses} ({number(found.difference, 4)}{interval}) on {found.records:,} records"


def _served(found: dict[str, Any]) -> str:
    """What was last proved of it on a server, and when."""
    state = found.get("state")
    return "" if state is None else f"{clean(str(state), 40).replace('_', ' ')}, {local_minute(found.get('at'))}"


def _numbers(values: dict[str, object]) -> list[tuple[str, float]]:
    return [(name, float(value)) for name, value in values.items() if isinstance(value, int | float)]
