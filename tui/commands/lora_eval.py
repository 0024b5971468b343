"""`llmtune lora eval ADAPTER`: what it does to answers it never saw, beside its base; kept in the store."""

import argparse
import os
import sys
import textwrap
from typing import Any

from engine.launch.model import check_model
from engine.text import clean
from lora.evaluation import Evaluation, EvaluationSettings, evaluate, evaluation_record
from lora.own_data import OwnData, own_data
from lora.paired_loss import Paired, perplexity
from lora.records import Message
from lora.registry import require_unchanged
from lora.training_python import training_python
from store.database import open_writer
from store.location import database_file
from store.records import AdapterRecord
from tui.commands.places import keeping, reading
from tui.format import number, span
from tui.output import columns, say, say_json

DONE = 0
_ANSWER_LINES = 4
_DIRECTIONS = {
    "better": "the adapter answers its data better than its base",
    "worse": "the adapter answers its data WORSE than its base",
    "undecided": "no difference is shown: the interval holds 0",
}


def run(args: argparse.Namespace) -> int:
    settings = EvaluationSettings(
        prompts=None if args.prompt is None else tuple((Message("user", text),) for text in args.prompt),
        max_length=args.max_length,
        max_new_tokens=args.max_new_tokens,
        quantization=args.quantization,
    )
    with keeping(args) as place:
        with reading(place) as reader:
            adapter = reader.adapter(args.adapter)
            data = own_data(reader, place, adapter, args.dataset, args.data)
        folder = require_unchanged(place, adapter)
        base = args.base or adapter.base_model
        check_model(base)
        python = training_python(args.python, args.vllm, os.environ)
        progress = _Progress(args.json)
        evaluation = evaluate(folder, base, data, python, os.environ, settings, progress.tell)
        progress.end()
        with open_writer(database_file(place)) as writer:
            number_kept = writer.insert(evaluation_record(adapter, data, evaluation, settings))
    if args.json:
        say_json({"evaluation": evaluation_json(adapter, data, evaluation) | {"id": number_kept}})
    else:
        for line in evaluation_lines(adapter, data, evaluation):
            say(line)
    return DONE


class _Progress:
    """One line on a terminal's standard error, written over."""

    def __init__(self, quiet: bool) -> None:
        self._shown = not quiet and sys.stderr.isatty()
        if self._shown:
            print("loading the model", end="", file=sys.stderr, flush=True)

    def tell(self, done: int, of: int) -> None:
        if self._shown:
            print(f"\r{done} of {of} records   ", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._shown:
            print("\r" + " " * 40 + "\r", end="", file=sys.stderr, flush=True)


def evaluation_lines(adapter: AdapterRecord, data: OwnData, evaluation: Evaluation) -> list[str]:
    """The losses as a table, the answers side by side, and last what the losses say."""
    found = evaluation.paired
    left_out = f", {evaluation.left_out} left out as too long" if evaluation.left_out else ""
    on = f"{found.records:,} records, {found.tokens:,} answer tokens of {data.what}{left_out}"
    rows = [
        ["base", number(found.base, 4), number(perplexity(found.base), 2)],
        ["adapter", number(found.adapter, 4), number(perplexity(found.adapter), 2)],
        ["difference", f"{found.difference:+.4f}", f"x {number(perplexity(found.difference), 3)}"],
    ]
    where = f"{evaluation.environment.get('device')}, {evaluation.environment.get('dtype')}"
    return [
        f"{adapter.label} on {on}",
        *columns(["", "loss", "perplexity"], rows, frozenset({1, 2})),
        f"took {span(evaluation.seconds)} on {clean(where, 80)}",
        *(line for answer in evaluation.answers for line in _answer_lines(answer.prompt, answer.base, answer.adapter)),
        "",
        f"{_DIRECTIONS[found.direction]}{_interval(found)}; better on {found.improved} of {found.records} records",
    ]


def evaluation_json(adapter: AdapterRecord, data: OwnData, evaluation: Evaluation) -> dict[str, Any]:
    found = evaluation.paired
    return {
        "adapter": adapter.label,
        "adapter_id": adapter.id,
        "data": data.what,
        "data_hash": data.data_hash,
        "dataset_id": data.dataset_id,
        "records": found.records,
        "left_out": evaluation.left_out,
        "answer_tokens": found.tokens,
        "base": {"loss": found.base, "perplexity": perplexity(found.base)},
        "adapter_losses": {"loss": found.adapter, "perplexity": perplexity(found.adapter)},
        "difference": {"loss": found.difference, "low": found.low, "high": found.high},
        "direction": found.direction,
        "improved": found.improved,
        "seconds": evaluation.seconds,
        "environment": evaluation.environment,
        "answers": [{"prompt": each.prompt, "base": each.base, "adapter": each.adapter} for each in evaluation.answers],
    }


def _interval(found: Paired) -> str:
    if found.low is None or found.high is None:
        return " (a single record has no interval)"
    return f" ({found.difference:+.4f}, 95 % from {found.low:+.4f} to {found.high:+.4f} nats a token)"


def _answer_lines(prompt: str, base: str, adapter: str) -> list[str]:
    lines = [""]
    for who, text in (("asked", prompt), ("base", base), ("adapter", adapter)):
        wrapped = textwrap.wrap(text, 100, max_lines=_ANSWER_LINES, placeholder=" …") or ["(nothing)"]
        lines += [f"  {who if at == 0 else '':<8} {line}" for at, line in enumerate(wrapped)]
    return lines
