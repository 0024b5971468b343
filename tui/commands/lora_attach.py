"""`llmtune lora attach WORK`: follow a training or an evaluation that was started before."""

import argparse

from tui.commands.lora_eval_follow import follow_evaluation
from tui.commands.lora_meant import meant
from tui.commands.lora_watch import watch
from tui.commands.places import data_place, reading


def run(args: argparse.Namespace) -> int:
    place = data_place(args)
    with reading(place) as reader:
        kind, row = meant(reader, args.work)
    assert row.id is not None
    if kind == "evaluation":
        return follow_evaluation(place, row.id, form="stream" if args.json else "lines")
    return watch(args, place, row.id)
