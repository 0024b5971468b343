"""`llmtune lora prepare FILE`: what a file of conversations holds, and, once a person has agreed, a data set of it."""

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from engine.launch.model import check_model
from engine.text import clean
from lora.data.counting import count_tokens
from lora.data.examining import Count, examine
from lora.data.records import Counted, Examination
from lora.data.report import refuse_unusable, report_json, report_lines
from lora.data.writing import NAME, data_hash, file_texts, name_of, write_dataset
from lora.process.training_python import TrainingPython, training_python
from lora.records import MAX_LENGTH, DataUnfit, Example
from store.database import open_reader, open_writer
from store.location import database_file
from store.records import DatasetRecord
from tui.commands.places import data_place, keeping
from tui.output import UsageError, complain, say, say_json

DONE, USAGE = 0, 2


def run(args: argparse.Namespace) -> int:
    name = _name(args)
    try:
        found = _examined(args)
        if not args.json:
            width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
            for line in report_lines(found, width):
                say(line)
        elif not found.usable:
            say_json({"report": report_json(found), "dataset": None})
        refuse_unusable(found)
    except DataUnfit as error:
        raise UsageError(clean(str(error))) from None
    report = report_json(found)
    kept = _kept(args, found, name)
    if kept is not None:
        _tell(args, report, kept, "is kept already as")
        return DONE
    if not args.yes and (args.json or not (sys.stdin.isatty() and sys.stderr.isatty())):
        if args.json:
            say_json({"report": report, "dataset": None})
        complain("nothing was kept: give --yes too, once the report is as you want it")
        return USAGE
    if not args.yes and not _agreed(found, name):
        say("nothing was kept")
        return DONE
    with keeping(args) as place, open_writer(database_file(place)) as writer:
        kept = write_dataset(place, writer, found, name, report)
        _tell(args, report, kept, "is kept as", place)
    return DONE


def _name(args: argparse.Namespace) -> str:
    """Raises UsageError for a name that is no folder's, or that would be taken for a number or for the last one."""
    name: str = name_of(Path(args.file)) if args.name is None else args.name
    if args.name is None and (name.isdigit() or name == "last"):
        return f"data-{name}"
    if not NAME.fullmatch(name) or name.isdigit() or name == "last":
        raise UsageError(f"--name {clean(name, 80)}: use letters, digits, `.`, `_` and `-`, and not a number alone")
    return name


def _examined(args: argparse.Namespace) -> Examination:
    path = Path(os.path.abspath(os.path.expanduser(args.file)))
    count: Count | None = None
    limit: int | None = args.max_length
    model: str | None = args.model
    if model is not None:
        check_model(model)
        local = Path(model).expanduser()
        model = str(local.resolve()) if local.exists() else model  # kept: it is to be found from elsewhere too
        python = training_python(args.python, args.vllm, os.environ)
        count = partial(_count, model, python)
        limit = MAX_LENGTH if limit is None else limit
    elif limit is not None:
        raise UsageError("--max-length counts tokens: give --model too, whose tokenizer counts them")
    return examine(path, share=args.validation, seed=args.seed, max_length=limit, model=model, count=count)


def _count(model: str, python: TrainingPython, examples: Sequence[Example]) -> Counted:
    if sys.stderr.isatty():  # transformers takes seconds to load, and a large file minutes to count
        print(f"counting the tokens of {len(examples):,} conversations", file=sys.stderr, flush=True)
    return count_tokens(examples, model, python, os.environ)


def _kept(args: argparse.Namespace, found: Examination, name: str) -> DatasetRecord | None:
    """The data set of the same name and the same bytes, where there is one and its files are."""
    place = data_place(args)
    if not database_file(place).exists():
        return None
    hashed = data_hash(file_texts(found))
    with open_reader(database_file(place)) as reader:
        same = [one for one in reader.datasets() if one.data_hash == hashed and one.name == name]
    return next((one for one in reversed(same) if (place / one.path).is_dir()), None)


def _agreed(found: Examination, name: str) -> bool:
    """Whether the person at the terminal wants it kept."""
    what = f"{len(found.train):,} train and {len(found.validation):,} validation"
    print(f"Keep {what} as {clean(name)}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _tell(
    args: argparse.Namespace, report: dict[str, Any], kept: DatasetRecord, how: str, place: Path | None = None
) -> None:
    folder = str((place or data_place(args)) / kept.path)
    if args.json:
        dataset = {
            "id": kept.id,
            "name": kept.name,
            "path": folder,
            "data_hash": kept.data_hash,
            "train": kept.train_examples,
            "validation": kept.validation_examples,
            "created_at": kept.created_at,
        }
        say_json({"report": report, "dataset": dataset})
        return
    say(f"{clean(kept.name)} {how} dataset {kept.id} in {clean(folder)}")
