"""`llmtune import PATH...`: results that were measured elsewhere, and what can be said of them. Needs no server."""

import argparse
import json
import os.path
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.text import clean
from store.clock import utc_now
from store.database import open_reader, open_writer
from store.errors import StoreError
from store.location import database_file
from store.private_files import write_private
from store.records import ImportFileRecord
from tui.commands.places import data_place, keeping
from tui.format import local_minute
from tui.output import SCHEMA, UsageError, columns, complain, say, say_json
from tuning.document import as_markdown, as_text
from tuning.imported.analysis import analyse
from tuning.imported.finding import find
from tuning.imported.keeping import file_of, record_of
from tuning.imported.names import compiled
from tuning.imported.reading import read_file
from tuning.imported.records import FileResults, ImportReport, Refused
from tuning.imported.report import parts
from tuning.imported.report_json import to_json

DONE, FAILED, USAGE = 0, 1, 2


def run(args: argparse.Namespace) -> int:
    form = _form(args)
    if args.names is not None:
        try:
            compiled(args.names)
        except ValueError as error:
            raise UsageError(f"--names {args.names}: {error}") from None
    if args.kept:
        files = [file_of(record) for record in _kept_of(args)]
        _print(analyse(files, **_options(args)), form, args)
        return DONE
    if not args.paths:
        _list(_kept(args), form)
        return DONE
    return _import(args, form)


def _import(args: argparse.Namespace, form: str) -> int:
    """Read, keep and report. What cannot be kept is reported on all the same."""
    found = find(args.paths)
    if found.missing:
        raise UsageError(f"{clean(found.missing[0])} is not there: name result files, or folders of them")
    files: list[FileResults] = []
    refused = list(found.refused)
    for path in found.files:
        results, trouble = read_file(path)
        if results is not None:
            files.append(results)
        if trouble is not None:
            refused.append(trouble)
    if not files and form != "json":
        return _nothing(refused, found.left_alone)
    report = analyse(files, refused, left_alone=found.left_alone, **_options(args))
    lost: StoreError | None = None
    if files:
        try:
            report = replace(report, kept=_keep(args, files))
        except StoreError as error:
            lost = error
    _print(report, form, args)
    if lost is not None:
        complain(f"nothing was kept: {lost}")
        return FAILED
    return DONE if files else USAGE


def _nothing(refused: Sequence[Refused], left_alone: int) -> int:
    for each in refused[:20]:
        complain(f"{clean(each.path, 200)}: {each.reason}")
    others = (
        f" ({left_alone:,} of other names were not looked at; name a file itself to have it read)" if left_alone else ""
    )
    if len(refused) != 1 or left_alone:
        complain(f"no result of `vllm bench serve` in {len(refused):,} files{others}")
    return USAGE


def _keep(args: argparse.Namespace, files: Sequence[FileResults]) -> dict[str, int]:
    new = 0
    with keeping(args) as place, open_writer(database_file(place)) as writer:
        for file in files:
            new += writer.insert_new_file(record_of(file, utc_now()))
    return {"new": new, "known": len(files) - new}


def _kept(args: argparse.Namespace, with_raw: bool = False) -> list[ImportFileRecord]:
    path = database_file(data_place(args))
    if not path.exists():
        return []
    with open_reader(path) as reader:
        return reader.import_files(with_raw)


def _kept_of(args: argparse.Namespace) -> list[ImportFileRecord]:
    """What is kept of the paths given, which need not be there any more; of all without one."""
    wanted = [os.path.abspath(path) for path in args.paths]
    kept = _kept(args, with_raw=True)
    found = [
        record
        for record in kept
        if not wanted or any(record.path == path or record.path.startswith(path.rstrip("/") + "/") for path in wanted)
    ]
    if not found:
        of = f" of {clean(' '.join(args.paths), 200)}" if kept else ""
        raise UsageError(f"nothing is kept{of}: `llmtune import` lists what is, `llmtune import PATH` reads files")
    return found


def _list(records: Sequence[ImportFileRecord], form: str) -> None:
    if form == "json":
        keys = ("id", "path", "runs", "size", "imported_at", "content_hash")
        say_json({"files": [{key: getattr(record, key) for key in keys} for record in records]})
        return
    if not records:
        say("nothing was imported yet: llmtune import PATH reads results of `vllm bench serve`")
        return
    rows = [[str(record.runs), local_minute(record.imported_at), clean(record.path)] for record in records]
    for line in columns(["runs", "imported", "file"], rows, frozenset({0})):
        say(line)
    say("llmtune import --kept reports on all of them, --kept PATH on those there")


def _print(report: ImportReport, form: str, args: argparse.Namespace) -> None:
    if form == "json":
        document = to_json(report, args.raw)
        if args.out is None:
            say_json(document)
            return
        text = json.dumps({"schema": SCHEMA, **document}, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    else:
        text = as_markdown(parts(report, whole=True)) if form == "md" else as_text(parts(report))
    if args.out is None:
        say(text.rstrip("\n"))
        return
    try:
        write_private(Path(args.out), text)
    except OSError as error:
        raise UsageError(f"{args.out} cannot be written: {error.strerror}") from None


def _options(args: argparse.Namespace) -> dict[str, Any]:
    return {"names": args.names, "apart": args.apart, "ignore": args.ignore}


def _form(args: argparse.Namespace) -> str:
    form: str = args.format or ("json" if args.json else "text")
    if args.json and form != "json":
        raise UsageError(f"--json and --format {form} contradict each other")
    return form
