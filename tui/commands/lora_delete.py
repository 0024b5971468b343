"""`llmtune lora delete NAME@VERSION`: remove the files of one version, once it is agreed and nothing needs them."""

import argparse
import sys

from engine.text import clean
from lora.deletion import delete_version, require_unused
from store.database import open_reader, open_writer
from store.location import database_file
from store.records import AdapterRecord
from tui.commands.places import data_place, reading
from tui.lora.lines import size_text
from tui.output import UsageError, complain, say, say_json

DONE, USAGE = 0, 2


def run(args: argparse.Namespace) -> int:
    place = data_place(args)
    with reading(place) as reader:
        if "@" not in args.adapter:
            raise UsageError(f"say which version, as {_labels(reader.adapters(args.adapter)) or 'NAME@VERSION'}")
        adapter = reader.adapter_ever(args.adapter)
        if adapter.deleted_at is None:
            require_unused(reader, place, adapter, anyway=args.anyway)
        elif not (place / adapter.path).exists():
            reader.adapter(args.adapter)  # says when it was deleted
    if not args.yes and not _agreed(adapter):
        complain("nothing was deleted: --yes does it without asking")
        return USAGE
    database = database_file(place)
    with open_writer(database) as writer, open_reader(database) as reader:
        delete_version(writer, reader, place, adapter, anyway=args.anyway)
    if args.json:
        say_json({"adapter": adapter.label, "deleted": True})
    else:
        say(f"{adapter.label} is deleted; its number is not given again")
    return DONE


def _labels(versions: list[AdapterRecord]) -> str:
    return " or ".join(version.label for version in versions[-5:])


def _agreed(adapter: AdapterRecord) -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    size = size_text(adapter.size_bytes)
    question = f"Delete {clean(adapter.label, 80)} ({size})? Its files are gone for good. [y/N] "
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
