"""`llmtune report SESSION`: a session's results in a format to keep."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from store.records import SessionRecord
from tui.commands.places import data_place, reading
from tui.commands.result_table import result_of
from tui.output import UsageError, say
from tuning.report import markdown, to_csv, to_json

if TYPE_CHECKING:
    from store.reader import Reader


def report_text(reader: "Reader", session: SessionRecord, form: str) -> str:
    """The report in one of the formats `md`, `json`, `csv`."""
    assert session.id is not None
    if form == "md":
        return markdown(result_of(reader, session), session)
    runs = reader.runs(session.id, with_raw=form == "json")
    if form == "csv":
        return to_csv(session, runs)
    return to_json(result_of(reader, session), session, reader.launches(session.id), runs)


def run(args: argparse.Namespace) -> int:
    form = args.format or ("json" if args.json else "md")
    if args.json and form != "json":
        raise UsageError(f"--json and --format {form} contradict each other")
    place = data_place(args)
    with reading(place) as reader:
        session = reader.find_session(args.session)
        text = report_text(reader, session, form)
    if args.out is None:
        say(text.rstrip("\n"))
        return 0
    try:
        Path(args.out).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{args.out} cannot be written: {error.strerror}") from None
    return 0
