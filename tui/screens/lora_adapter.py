"""One version of an adapter: its files, what vLLM makes of it, and what was measured of it."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import work

from engine.records import EngineError
from lora.adapters.importing import examine
from lora.adapters.registry import require_unchanged
from store.records import AdapterRecord, EvaluationRecord
from tui.legend import Number
from tui.lora.details import AdapterDetails
from tui.lora.documents import adapter_parts
from tui.lora.examined import examined_lines, installed
from tui.lora.source import LoraSource
from tui.screens.document import DocumentScreen
from tuning.document import Part

if TYPE_CHECKING:
    from store.reader import Reader

Found = tuple[AdapterDetails, tuple[EvaluationRecord, ...]]


class AdapterScreen(DocumentScreen):
    """To read; its files are looked at once, in a thread."""

    LEGEND: ClassVar[tuple[Number, ...]] = (
        Number("loss", "mean of -log p of the answers' tokens, in nats, on data it was not trained on"),
        Number("[ ]", "95 % interval of the difference over records; one that holds 0 shows no difference"),
        Number("perplexity", "e to the loss"),
        Number("size", "of all its files, in MB of 10^6 bytes"),
    )

    def __init__(self, adapter_id: int) -> None:
        super().__init__()
        self._number = adapter_id
        self._source = LoraSource(self.app.data_dir, lambda _: "left")
        self._found: Found | None = None
        self._examined: tuple[str, ...] | str | None = None
        self._looking = False

    def refresh_from_store(self, reader: "Reader") -> Found | None:
        """The version, its other versions, its evaluations."""
        details = self._source.read(reader, ("adapter", self._number)).details
        if not isinstance(details, AdapterDetails):
            return None
        return details, tuple(reader.evaluations(self._number))

    def show(self, snapshot: Found | None) -> None:
        """Draw it where it is another."""
        if snapshot is None:
            self.say(f"there is no adapter {self._number}", error=True)
        elif snapshot != self._found:
            self._found = snapshot
            if not self._looking:
                self._looking = True
                self._look(snapshot[0].adapter)
            self.redraw()

    def parts(self, width: int) -> Sequence[Part]:
        """All of it."""
        return adapter_parts(*self._found, self._examined) if self._found is not None else ()

    @work(thread=True, group="examine", description="looks at an adapter's files")
    def _look(self, adapter: AdapterRecord) -> None:
        found: tuple[str, ...] | str
        try:
            folder = require_unchanged(self.app.data_dir, adapter)
            examined = examine(folder, adapter.base_model, installed(self.app.vllm), os.environ)
            found = tuple(" ".join(line.split()) for line in examined_lines(adapter.label, examined))
        except (EngineError, OSError) as error:
            found = str(error)
        self.later(self._looked, found)

    def _looked(self, found: tuple[str, ...] | str) -> None:
        self._examined = found
        self.redraw()
