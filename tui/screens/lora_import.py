"""An adapter that was made elsewhere: what this vLLM makes of it first, then a decision."""

import os
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from engine.text import clean
from lora.adapters.adapter_files import AdapterUnfit
from lora.adapters.importing import Examined, examine, import_adapter
from lora.adapters.registry import check_name, name_from
from store.database import open_writer
from store.location import database_file
from tui.legend import Number
from tui.lora.examined import examined_lines, installed
from tui.screens.lora_looking import Looked, LookingScreen, Values


class ImportAdapterScreen(LookingScreen):
    """As `llmtune lora import` does."""

    FIELDS: ClassVar[tuple[tuple[tuple[str, str, str], ...], ...]] = (
        (("folder", "folder", "the one that holds adapter_config.json"),),
        (("base", "base model", "empty: the one that its config names"),),
        (("name", "name", "empty: the folder's"), ("notes", "notes", "a line for yourself")),
    )
    NOTHING: ClassVar[str] = (
        "enter looks at the adapter: what vLLM would refuse, answer wrongly or silently leave out of it, and which "
        "--max-lora-rank it needs. Nothing is kept until ^s, and one question."
    )
    LEGEND: ClassVar[tuple[Number, ...]] = (
        Number("parameters", "numbers in its tensors"),
        Number("MB", "of 10^6 bytes: its weights"),
        Number("refused", "vLLM does not load it"),
        Number("wrong", "vLLM loads it without a word and answers otherwise than it was trained"),
        Number("no effect", "vLLM loads it and nothing changes"),
    )

    def examine(self, values: Values, width: int, on_progress: Callable[[str], None]) -> Looked:
        """Read its files and hold them against the installed vLLM's rules."""
        if not values["folder"]:
            raise AdapterUnfit("no folder is named: give the one that holds adapter_config.json")
        folder = Path(values["folder"]).expanduser()
        name = check_name(values["name"]) if values["name"] else name_from(folder.resolve().name)
        examined = examine(folder, values["base"] or None, installed(self.app.vllm), os.environ)
        lines = tuple(
            part
            for line in examined_lines(name, examined)
            for part in textwrap.wrap(line, width, subsequent_indent=" " * (13 if line.startswith("  ") else 2))
        )
        if examined.base is None:
            return Looked((*lines, "✗ it does not name its base model: name it above"), None)
        question = f"Keep it as the next version of {name}?"
        deed = "keep it"
        if examined.prevented:
            question = f"This vLLM would not serve it as it was trained. Keep it as the next version of {name} anyway?"
            deed = "keep it anyway"
        return Looked(lines, question, deed, (examined, name))

    def keep(self, looked: Looked, values: Values) -> str:
        """Copy it into the registry."""
        examined: Examined
        examined, name = looked.found
        with open_writer(database_file(self.app.data_dir)) as writer:
            kept = import_adapter(writer, self.app.data_dir, examined, name, anyway=True, notes=values["notes"] or None)
        label = clean(kept.adapter.label, 80)
        return f"kept as {label}" if kept.new else f"the same files are there already: {label}"
