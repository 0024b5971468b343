"""Following a training: on the screen where there is a terminal, else as lines."""

import argparse
from pathlib import Path

from tui.commands.lora_follow import ENDED, finish, follow
from tui.commands.places import reading
from tui.commands.screens import have_terminal, open_screens
from tui.output import say


def watch(args: argparse.Namespace, place: Path, training_id: int) -> int:
    """Follow a training: on the LoRA screen where there is a terminal and nothing else was asked for, else as lines."""
    if args.headless or args.json or not have_terminal():
        if not args.json:
            say(f"training {training_id}, kept in {place}")
        return follow(place, training_id, as_json=args.json)
    status = open_screens(args, place, training=training_id)
    if status == 0:
        # What came of it stays in the terminal when the screen is gone.
        with reading(place) as reader:
            training = reader.training(training_id)
            if training.state in ENDED:
                return finish(reader, training, False, place)
    return status
