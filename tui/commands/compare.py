"""`llmtune compare A B`: two sessions held against each other."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from store.clock import utc_now
from store.private_files import write_private
from store.records import SessionRecord
from tui.commands.places import data_place, reading
from tui.output import UsageError, say, say_json
from tui.sessions.comparison_files import comparison_text
from tuning.compared.comparing import compare, side_of
from tuning.compared.records import SessionComparison, Side
from tuning.compared.report_json import to_json

if TYPE_CHECKING:
    from store.reader import Reader

DONE, FAILED = 0, 1


def run(args: argparse.Namespace) -> int:
    form = args.format or ("json" if args.json else "text")
    if args.json and form != "json":
        raise UsageError(f"--json and --format {form} contradict each other")
    with reading(data_place(args)) as reader:
        first, second = (reader.find_session(word) for word in (args.a, args.b))
        if first.id == second.id:
            raise UsageError(f"session {first.id} was given twice: name two sessions")
        compared = compare(_side(reader, first), _side(reader, second))
    _print(compared, form, args.out)
    return DONE if compared.workloads else FAILED


def _side(reader: "Reader", session: SessionRecord) -> Side:
    assert session.id is not None
    return side_of(session, reader.launches(session.id), reader.runs(session.id), utc_now())


def _print(compared: SessionComparison, form: str, out: str | None) -> None:
    if form == "json" and out is None:
        say_json(to_json(compared))
        return
    text = comparison_text(compared, form)
    if out is None:
        say(text.rstrip("\n"))
        return
    try:
        write_private(Path(out), text)
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror}") from None
