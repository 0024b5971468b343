"""`llmtune lora import FOLDER`: an adapter that was made elsewhere, and what this vLLM would make of it."""

import argparse
import os
from pathlib import Path

from lora.adapters.adapter_files import AdapterUnfit
from lora.adapters.importing import Examined, ImportRefused, examine, import_adapter, require_base
from lora.adapters.registry import NameUnfit, Registered, check_name, name_from
from lora.adapters.safetensors_header import FileUnfit
from lora.sizes.base_model import BaseUnknown
from store.database import open_writer
from store.location import database_file
from tui.commands.lora_text import adapter_json, examined_json, serve_line
from tui.commands.places import keeping
from tui.lora.examined import examined_lines, installed
from tui.output import UsageError, complain, say, say_json

DONE, FAILED = 0, 1


def run(args: argparse.Namespace) -> int:
    folder = Path(args.folder).expanduser()
    try:
        name = check_name(args.name) if args.name else name_from(folder.resolve().name)
        require_base(args.base)
        examined = examine(folder, args.base, installed(args.vllm), os.environ)
    except (AdapterUnfit, BaseUnknown, FileUnfit, NameUnfit) as error:
        raise UsageError(str(error)) from None
    if args.check:
        _print(args, name, examined)
        return FAILED if examined.prevented else DONE
    try:
        with keeping(args) as place, open_writer(database_file(place)) as writer:
            kept = import_adapter(writer, place, examined, name, anyway=args.anyway, notes=args.notes)
    except ImportRefused as error:
        _print(args, name, examined)
        complain(str(error))
        return FAILED
    _print(args, name, examined, kept, place)
    return DONE


def _print(
    args: argparse.Namespace, name: str, examined: Examined, kept: Registered | None = None, place: Path = Path()
) -> None:
    if args.json:
        adapter = None if kept is None else adapter_json(kept.adapter, place)
        say_json({**examined_json(examined), "adapter": adapter, "new": None if kept is None else kept.new})
        return
    for line in examined_lines(name, examined):
        say(line)
    if kept is not None:
        say(f"{'kept as' if kept.new else 'the same files are there already:'} {kept.adapter.label}")
        say(serve_line(kept.adapter, place, examined.max_rank))
