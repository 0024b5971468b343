"""`llmtune lora stop TRAINING`: end a training after the step in hand."""

import argparse

from engine.keeper.client import is_running
from engine.text import clean
from lora.process_life import Life
from lora.training import stop_training
from tui.commands.places import data_place, reading
from tui.output import UsageError, say, say_json


def run(args: argparse.Namespace) -> int:
    place = data_place(args)
    with reading(place) as reader:
        training = reader.training(args.training)
    assert training.id is not None
    over = training.state in ("done", "stopped", "failed")
    if over and not is_running(place, "training", training.id) and Life.left(training) is None:
        raise UsageError(f"training {training.id} is {training.state}: there is nothing to stop")
    message = clean(stop_training(place, training.id), 500)
    if args.json:
        say_json({"training": training.id, "message": message})
    else:
        say(f"training {training.id}: {message}")
    return 0
