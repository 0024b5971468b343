"""`llmtune lora attach TRAINING`: follow a training that was started before."""

import argparse

from tui.commands.lora_watch import watch
from tui.commands.places import data_place, reading


def run(args: argparse.Namespace) -> int:
    place = data_place(args)
    with reading(place) as reader:
        number = reader.training(args.training).id
    assert number is not None
    return watch(args, place, number)
