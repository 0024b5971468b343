"""`llmtune lora stop WORK`: end a training after the step in hand, or an evaluation."""

import argparse

from engine.keeper.client import is_running
from engine.text import clean
from lora.process.process_life import Life
from lora.process.work import OVER, stop_work
from tui.commands.lora_meant import meant
from tui.commands.places import data_place, reading
from tui.output import UsageError, say, say_json


def run(args: argparse.Namespace) -> int:
    place = data_place(args)
    with reading(place) as reader:
        kind, row = meant(reader, args.work)
    assert row.id is not None
    if row.state in OVER and not is_running(place, kind, row.id) and Life.left(row) is None:
        raise UsageError(f"{kind} {row.id} is {row.state}: there is nothing to stop")
    message = clean(stop_work(place, kind, row.id), 500)
    if args.json:
        say_json({kind: row.id, "message": message})
    else:
        say(f"{kind} {row.id}: {message}")
    return 0
