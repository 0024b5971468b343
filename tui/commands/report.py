"""`llmtune report SESSION`: a session's results in a format to keep."""

import argparse
from pathlib import Path

from store.private_files import write_private
from tui.commands.places import data_place, reading
from tui.output import UsageError, say
from tui.sessions.session_files import report_text

FORMATS = ("md", "json", "csv", "html")


def run(args: argparse.Namespace) -> int:
    form = args.format or ("json" if args.json else _form_of(args.out))
    if args.json and form != "json":
        raise UsageError(f"--json and --format {form} contradict each other")
    place = data_place(args)
    with reading(place) as reader:
        text = report_text(reader, reader.find_session(args.session), form)
    if args.out is None:
        say(text.rstrip("\n"))
        return 0
    try:
        write_private(Path(args.out), text)
    except OSError as error:
        raise UsageError(f"{args.out} cannot be written: {error.strerror}") from None
    return 0


def _form_of(out: str | None) -> str:
    """The form that a file's name asks for, Markdown where it asks for none."""
    ending = Path(out or "").suffix.lower().removeprefix(".")
    return ending if ending in FORMATS else "md"
