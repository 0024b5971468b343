"""`llmtune lora resume TRAINING`: go on with a training that stopped, failed, or lost its keeper."""

import argparse

from engine.keeper.client import is_running
from lora.process_life import Life
from lora.training import start_keeper
from tui.commands.places import data_place, reading
from tui.output import UsageError, say, say_json


def run(args: argparse.Namespace) -> int:
    place = data_place(args)
    with reading(place) as reader:
        training = reader.training(args.training)
    assert training.id is not None
    if training.state == "done":
        raise UsageError(f"training {training.id} is done: `llmtune lora list` shows its adapter")
    if is_running(place, "training", training.id):
        message = "runs already"
    else:
        alone = Life.left(training) is not None
        start_keeper(place, training.id)
        message = "is followed again: its trainer went on alone" if alone else "goes on from its newest checkpoint"
    if args.json:
        say_json({"training": training.id, "message": message})
    else:
        say(f"training {training.id} {message}: `llmtune lora attach {training.id}` shows it")
    return 0
