"""LoRA: trainings with their live loss, adapters and where they are served, the data sets that they are made of."""

import shlex
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.widgets import Input

from store.records import AdapterRecord, TrainingRecord
from tui.legend import Number
from tui.lora import deeds as lora_deeds
from tui.lora import held
from tui.lora.details import AdapterDetails, TrainingDetails
from tui.lora.legend import LEGEND
from tui.lora.lines import KINDS, Kind, matching
from tui.lora.source import LoraSnapshot, LoraSource
from tui.palette import Command
from tui.screens.filtering import FilteringScreen
from tui.screens.lora_adapters import AdapterActions
from tui.screens.lora_control import WorkControl
from tui.widgets.copy import CopyPanel
from tui.widgets.lora_details import DetailLines
from tui.widgets.lora_list import LoraList, LoraSection, shares

if TYPE_CHECKING:
    from lora.process.work import Work
    from store.reader import Reader
    from tui.lora.standing import Held

NONE: dict[Kind, str] = {
    "training": "no training yet: n begins one",
    "adapter": "no adapter yet: a training makes one, i imports one",
    "dataset": "no data set yet: p makes one of a file of conversations",
}
DETAILS_WIDTH = 60  # cells, beside the lists
DETAILS_LEAST = 9  # rows below them
WIDE_FROM = 120


class LoraScreen(FilteringScreen, WorkControl, AdapterActions):
    """Three lists, through which one cursor goes; `enter` opens what lies under it."""

    AUTO_FOCUS = ""  # the lists have nothing to stand on before the first reading

    LEGEND: ClassVar[tuple[Number, ...]] = LEGEND

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "open", tooltip="of an adapter: serve, evaluate, tune with it, roll back; else open"),
        Binding("slash", "filter", "filter", key_display="/", tooltip="only lines with these words; esc shows all"),
        Binding("n", "train", "train", tooltip="the form of a new training, with what it needs and how long it takes"),
        Binding("p", "prepare", "prepare", tooltip="a data set from a file: a report first, then a decision"),
        Binding("i", "import", "import", tooltip="an adapter made elsewhere: what vLLM makes of it, then a decision"),
        Binding("x", "stop", "stop", tooltip="stop the chosen training or evaluation (asks once); what it kept stays"),
        Binding(
            "R",
            "resume",
            "resume",
            tooltip="follow it again where it computes on, else go on from what it kept",
        ),
        # Not in the last line, which has 80 cells.
        Binding("D", "delete", "delete", show=False, tooltip="delete the chosen version of an adapter (asks once)"),
        Binding("y", "copy", "copy", tooltip="the command that follows it, serves it, or trains on it"),
    ]

    DEFAULT_CSS = """
    LoraScreen #lora { height: 1fr; layout: vertical; }
    LoraScreen #lists { height: auto; width: 1fr; }
    LoraScreen #details { height: 1fr; width: 1fr; border-top: solid $panel; }
    LoraScreen.-wide #lora { layout: horizontal; }
    LoraScreen.-wide #lists { height: 1fr; }
    LoraScreen.-wide #details { width: 60; border-top: none; border-left: solid $panel; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._source = LoraSource(self.app.data_dir, partial(held.held_by, self.app.data_dir))
        self._snapshot = LoraSnapshot()
        self._kind: Kind | None = None  # the list that has the cursor
        self._chosen: tuple[Kind, int] | None = None  # read by the poller's thread
        self._seen = False
        self._wanted = self.app.open_training  # the program was opened for it

    def compose_body(self) -> ComposeResult:
        yield self.filter_line("names, models, states")
        with Container(id="lora"):
            with Vertical(id="lists"):
                for kind in KINDS:
                    yield LoraSection(kind, NONE[kind])
            yield DetailLines(id="details")
        yield self.errand_line()

    # what is shown

    def refresh_from_store(self, reader: "Reader") -> LoraSnapshot:
        """The lists, and all that is said of what is chosen."""
        return self._source.read(reader, self._chosen)

    def show(self, snapshot: LoraSnapshot) -> None:
        """Fill what changed."""
        if snapshot is self._snapshot and self._seen:
            return
        self._snapshot = snapshot
        self._seen = True
        self.fill()
        self._choose_wanted()
        self._place_cursor()
        self.refresh_bindings()

    def _choose_wanted(self) -> None:
        """The cursor on the training that the program was opened for, once."""
        trainings = self._list("training")
        if self._wanted in trainings.ids:
            trainings.choose(self._wanted)
            self.set_focus(trainings)
            self._wanted = None

    def _place_cursor(self) -> None:
        """The cursor on the first list that has something, where none has it: at first, and once something is there."""
        focused = self.focused
        if isinstance(focused, Input) or (isinstance(focused, LoraList) and focused.row_count):
            return
        filled: list[Kind] = [kind for kind in KINDS if self._list(kind).row_count]
        self.set_focus(self._list(filled[0]) if filled else None)

    def fill(self) -> None:
        for kind in KINDS:
            lines = self._snapshot.lines(kind)
            self.query_one(f"#section-{kind}", LoraSection).show(matching(lines, self.filter_words), bool(lines))
        self.redraw()
        self._choose()

    def redraw(self) -> None:
        """Share the room, and draw what is said of the chosen one."""
        width, height = self.size.width, self.query_one("#body").size.height
        wide = width >= WIDE_FROM
        counts = [self._list(kind).row_count for kind in KINDS]
        room = height - len(KINDS) - (0 if wide else max(DETAILS_LEAST, height // 2) + 1)
        given = shares(counts, max(room, len(KINDS)))
        for kind, rows in zip(KINDS, given, strict=True):
            section = self.query_one(f"#section-{kind}", LoraSection)
            section.lay_titles(width - DETAILS_WIDTH if wide else width, rows)
        self.query_one(DetailLines).show_details(self._snapshot.details)

    def _list(self, kind: Kind) -> LoraList:
        return self.query_one(f"#{kind}", LoraList)

    @property
    def filtered_list(self) -> LoraList:
        """The list with the cursor; while words are typed, the first that has them."""
        kind = self._kind or "training"
        if not self._list(kind).row_count:
            kind = next((one for one in KINDS if self._list(one).row_count), kind)
        return self._list(kind)

    # the cursor

    @on(events.DescendantFocus)
    def _focused(self, event: events.DescendantFocus) -> None:
        if isinstance(event.widget, LoraList):
            self._kind = event.widget.kind
            self._choose()

    @on(LoraList.Chosen)
    def _choose(self) -> None:
        """Read all of what lies under the cursor, where it is another."""
        id = self._list(self._kind).chosen if self._kind is not None else None
        chosen = (self._kind, id) if self._kind is not None and id is not None else None
        if chosen != self._chosen:
            self._chosen = chosen
            self.refresh_bindings()
            self.app.ask()

    @on(LoraList.Passed)
    def _pass(self, message: LoraList.Passed) -> None:
        """From one list to the next that has lines; the cursor comes in at the near end."""
        at = KINDS.index(message.kind)
        onward = KINDS[at + 1 :] if message.by > 0 else tuple(reversed(KINDS[:at]))
        kind = next((kind for kind in onward if self._list(kind).row_count), None)
        if kind is not None:
            beside = self._list(kind)
            beside.choose(beside.ids[0 if message.by > 0 else -1])
            beside.focus()

    @property
    def _training(self) -> TrainingRecord | None:
        kind, id = self._chosen or (None, 0)
        return self._snapshot.training(id) if kind == "training" else None

    @property
    def _work(self) -> "tuple[Work, Held] | None":
        """The chosen training, or the evaluation of the chosen adapter, and who holds it: asked for on the poller's
        thread."""
        found = self._snapshot.details if self._snapshot.chosen == self._chosen else None
        if isinstance(found, TrainingDetails):
            return found.training, found.held
        if isinstance(found, AdapterDetails) and found.job is not None:
            return found.job, found.held
        return (self._training, "kept") if self._training is not None else None  # more is known in a moment

    @property
    def _adapter(self) -> AdapterRecord | None:
        kind, id = self._chosen or (None, 0)
        return self._snapshot.adapter(id) if kind == "adapter" else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what would do something now."""
        if action not in ("stop", "resume", "open", "copy", "delete"):
            return True
        if action == "delete":
            return self._adapter is not None
        if action in ("stop", "resume"):
            if (found := self._work) is None:
                return False
            return lora_deeds.may_stop(found[0]) if action == "stop" else lora_deeds.may_resume(*found)
        return self._chosen is not None

    def commands(self) -> tuple[Command, ...]:
        """The keys of the moment, by name."""
        return tuple(
            Command(binding.tooltip.capitalize(), f"key {binding.key}", self._runner(binding.action))
            for binding in self.BINDINGS
            if isinstance(binding, Binding) and binding.tooltip and self.check_action(binding.action, ())
        )

    def _runner(self, action: str):  # type: ignore[no-untyped-def]
        return lambda: self.run_action(action)

    # keys

    @on(LoraList.Opened)
    def action_open(self) -> None:
        """A training's curves, what can be done with an adapter, a data set's report."""
        kind, id = self._chosen or (None, 0)
        if kind == "training":
            from tui.screens.lora_training import TrainingScreen

            self.app.push_screen(TrainingScreen(id))
        elif kind == "dataset":
            from tui.screens.lora_dataset import DatasetScreen

            self.app.push_screen(DatasetScreen(id))
        elif (adapter := self._snapshot.adapter(id)) is not None:
            self.ask_adapter(adapter, self._snapshot)

    def action_train(self) -> None:
        """The form, with the chosen data set, or the settings of the chosen training."""
        from tui.screens.lora_form import TrainingFormScreen

        kind, id = self._chosen or (None, 0)
        dataset = id if kind == "dataset" else None
        self.app.push_screen(TrainingFormScreen(dataset, self._training))

    def action_prepare(self) -> None:
        """The form that reads a file."""
        from tui.screens.lora_prepare import PrepareScreen

        self.app.push_screen(PrepareScreen())

    def action_import(self) -> None:
        """The form that looks at an adapter made elsewhere."""
        from tui.screens.lora_import import ImportAdapterScreen

        self.app.push_screen(ImportAdapterScreen())

    def action_stop(self) -> None:
        """Stop the chosen training, or the evaluation of the chosen adapter, after a question."""
        if self._work is not None:
            self.ask_stop(self._work[0])

    def action_resume(self) -> None:
        """A new keeper, which follows what computes on, or goes on from what was kept."""
        if self._work is not None:
            self.resume(self._work[0])

    def action_delete(self) -> None:
        """Delete the chosen version of an adapter, after a question."""
        if self._adapter is not None:
            self.ask_delete(self._adapter)

    def action_copy(self) -> None:
        """A command line that goes on with what is chosen: follows a training, serves an adapter, trains on data."""
        kind, id = self._chosen or (None, 0)
        dataset, adapter = self._snapshot.dataset(id), self._snapshot.adapter(id)
        if kind == "training":
            words = ["lora", "attach", str(id)]
        elif kind == "adapter" and adapter is not None:
            words = ["lora", "serve", adapter.label]
        elif kind == "dataset" and dataset is not None:
            words = ["lora", "train", str(id), *(["--model", dataset.model] if dataset.model else [])]
        else:
            return
        line = shlex.join(["llmtune", *words, "--data-dir", str(self.app.data_dir)])
        self.app.push_screen(CopyPanel(line, "command line"))
