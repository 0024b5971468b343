"""`llmtune lora resume WORK`: go on with a training or an evaluation that stopped, failed, or lost its keeper."""

import argparse

from engine.keeper.client import is_running
from lora.evaluations.evaluating import start_evaluation
from lora.process.process_life import Life
from lora.trainings.training import start_keeper
from tui.commands.lora_meant import meant, word_of
from tui.commands.places import data_place, reading
from tui.output import UsageError, say, say_json

_GOES_ON = {"training": "goes on from its newest checkpoint", "evaluation": "goes on with what is not yet measured"}
_DONE = {"training": "`llmtune lora list` shows its adapter", "evaluation": "`llmtune lora attach {}` shows it"}
_ALONE = {"training": "its trainer went on alone", "evaluation": "it went on alone"}


def run(args: argparse.Namespace) -> int:
    place = data_place(args)
    with reading(place) as reader:
        kind, row = meant(reader, args.work)
    assert row.id is not None
    word = word_of(kind, row.id)
    if row.state == "done":
        raise UsageError(f"{kind} {row.id} is done: {_DONE[kind].format(word)}")
    if is_running(place, kind, row.id):
        message = "runs already"
    else:
        alone = Life.left(row) is not None
        start = start_evaluation if kind == "evaluation" else start_keeper
        start(place, row.id)
        message = f"is followed again: {_ALONE[kind]}" if alone else _GOES_ON[kind]
    if args.json:
        say_json({kind: row.id, "message": message})
    else:
        say(f"{kind} {row.id} {message}: `llmtune lora attach {word}` shows it")
    return 0
