"""`llmtune attach SESSION`: follow a session that was started before."""

import argparse

from tui.commands.places import data_place, reading
from tui.commands.sweep import watch


def run(args: argparse.Namespace) -> int:
    place = data_place(args)
    with reading(place) as reader:
        session_id = reader.find_session(args.session).id
    assert session_id is not None
    return watch(args, place, session_id)
