"""The form of a new training: what it would come to stands below it at once, and one key begins it."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.worker import get_current_worker

from engine.records import EngineError
from engine.text import clean
from lora.sizes.base_model import BaseModel, BaseUnknown, read_base
from lora.trainings.memory_free import MemoryFree, memory_free
from store.errors import StoreError
from store.records import DatasetRecord, ServerRecord, TrainingRecord
from tui.legend import Number
from tui.lora import deeds as lora_deeds
from tui.lora.cost import Cost, cost_of, cost_rows, question
from tui.lora.form import Wanted, first_form, found_dataset, read_form
from tui.screens.base import LlmtuneScreen
from tui.screens.lora_training import TrainingScreen
from tui.widgets.confirm import Confirm
from tui.widgets.lines import Lines
from tui.widgets.training_form import TrainingFields

if TYPE_CHECKING:
    from store.reader import Reader

ASK_S = 5.0
"""How often the free memory is asked for while the form is open."""


@dataclass(frozen=True, slots=True)
class FormSnapshot:
    """What the form chooses from and goes by, the newest first; `servers` of ours have not ended."""

    datasets: tuple[DatasetRecord, ...] = ()
    trainings: tuple[TrainingRecord, ...] = ()
    servers: tuple[ServerRecord, ...] = ()


class TrainingFormScreen(LlmtuneScreen):
    """`esc` leaves a field, so that single keys are keys again, and then the form."""

    AUTO_FOCUS = ""

    LEGEND: ClassVar[tuple[Number, ...]] = (
        Number("adapter", "numbers that are trained: r × (inputs + outputs) of each target, and their size in float32"),
        Number("%", "of all numbers of the model with its adapter"),
        Number("steps", "updates of the weights: conversations / (batch × accumulate), for each epoch"),
        Number("memory", "needed at the most, in GiB (2^30 bytes), for batches of the longest conversations"),
        Number("held by", "processes that hold memory there, the most first"),
        Number("time", "by the pace of the newest training of the same model, scaled by the tokens of a step"),
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", tooltip="out of the field, so that single keys are keys again; then back"),
        Binding("ctrl+s,S", "start", "start", key_display="^s", tooltip="begin the training, after one question"),
        Binding(
            "ctrl+t,t", "targets", "q,v / all", key_display="^t", tooltip="targets q_proj, v_proj; again: all-linear"
        ),
        Binding("ctrl+n,d", "dataset", "data set", key_display="^n", tooltip="the next data set"),
        Binding(
            "ctrl+g,x", "free", "stop server", key_display="^g", tooltip="stop our server that holds the memory (asks)"
        ),
    ]

    DEFAULT_CSS = """
    TrainingFormScreen #cost { height: 1fr; border-top: solid $panel; }
    """

    def __init__(self, dataset: int | None = None, like: TrainingRecord | None = None) -> None:
        super().__init__()
        self._wanted_dataset = dataset
        self._like = like
        self._snapshot: FormSnapshot | None = None
        self._base: tuple[str, BaseModel | str] | None = None
        self._free: MemoryFree | None = None
        self._asking = False
        self._starting = False
        self._wants_start = False  # the question comes once it is counted
        self._cost = Cost()

    def compose_body(self) -> ComposeResult:
        yield TrainingFields(id="fields")
        yield Lines(id="cost")

    def on_mount(self) -> None:
        self.set_interval(ASK_S, self._ask_memory)

    # what is shown

    def refresh_from_store(self, reader: "Reader") -> FormSnapshot:
        """What the form chooses from."""
        return FormSnapshot(
            tuple(reversed(reader.datasets())), tuple(reversed(reader.trainings())), tuple(reader.servers(active=True))
        )

    def show(self, snapshot: FormSnapshot) -> None:
        """Fill the form at first; later only what it would come to may be another."""
        first = self._snapshot is None
        if snapshot == self._snapshot:
            return
        self._snapshot = snapshot
        if first:
            model = next((server.model for server in reversed(snapshot.servers)), None)
            fields = self.query_one(TrainingFields)
            fields.fill(first_form(snapshot.datasets, self._wanted_dataset, self._like, model))
            fields.query_one("#f-dataset").focus()
        self._ask_memory()
        self._count_anew()

    def redraw(self) -> None:
        """What the form would come to."""
        lines = self.query_one("#cost", Lines)
        lines.show(cost_rows(self._cost, lines.content_size.width))

    @on(TrainingFields.Edited)
    def _count_anew(self) -> None:
        if self._snapshot is None:
            return
        wanted = read_form(self.query_one(TrainingFields).form, self._snapshot.datasets)
        self._count(wanted, self._snapshot)

    @work(thread=True, exclusive=True, group="count", description="counts what the training comes to")
    def _count(self, wanted: Wanted | list[str], snapshot: FormSnapshot) -> None:
        base: BaseModel | str = ""
        if isinstance(wanted, Wanted):
            model = wanted.settings.base_model
            known = self._base
            base = known[1] if known is not None and known[0] == model else _read(model)
            self._base = model, base
        found = cost_of(wanted, base, self._free, snapshot.trainings, snapshot.datasets)
        if not get_current_worker().is_cancelled:  # by a newer one
            self.later(self._counted, found)

    def _counted(self, found: Cost) -> None:
        self._cost = found
        self.redraw()
        self.refresh_bindings()
        if self._wants_start:
            self._wants_start = False
            self._ask_start(found)

    def _ask_memory(self) -> None:
        """Once at a time: a driver may take minutes to answer."""
        if not self._asking and self._snapshot is not None and self.is_up:
            self._asking = True
            self._read_memory(self._snapshot.servers, self._snapshot.trainings)

    @work(thread=True, group="memory", description="asks how much memory is free")
    def _read_memory(self, servers: tuple[ServerRecord, ...], trainings: tuple[TrainingRecord, ...]) -> None:
        try:
            free = memory_free(os.environ, servers, trainings)
        except (EngineError, OSError) as error:
            self.later(self._asked, None, str(error))
        else:
            self.later(self._asked, free, None)

    def _asked(self, free: MemoryFree | None, mistake: str | None) -> None:
        self._asking = False
        if mistake is not None:
            self.say(mistake, error=True)
        if free != self._free:
            self._free = free
            self._count_anew()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A server is stopped only where one of ours holds the memory."""
        return bool(self._cost.stoppable) if action == "free" else True

    # keys

    def action_back(self) -> None:
        """Out of the field, then out of the form."""
        if self.focused is not None:
            self.set_focus(None)
        else:
            super().action_back()

    def action_targets(self) -> None:
        """The user's two layers, or all of them."""
        self.query_one(TrainingFields).turn_targets()

    def action_dataset(self) -> None:
        """The next data set, with its name for the adapter where that was not changed."""
        datasets = self._snapshot.datasets if self._snapshot is not None else ()
        if not datasets:
            return
        fields = self.query_one(TrainingFields)
        now = found_dataset(fields.form.dataset, datasets)
        at = datasets.index(now) + 1 if now is not None else 0
        following = datasets[at % len(datasets)]
        same = [one for one in datasets if one.name == following.name]
        fields.put("dataset", following.name if following is same[0] else str(following.id))

    def action_free(self) -> None:
        """Stop the server of ours that holds the most, after a question."""
        holder = next(iter(self._cost.stoppable), None)
        if holder is None or holder.server_id is None:
            return
        number = holder.server_id

        def answered(yes: bool | None) -> None:
            if yes:
                self._stop(number)

        question = f"Stop server {number} ({clean(holder.name, 100)})? Requests that it is answering are lost."
        self.app.push_screen(Confirm(question, "stop it"), answered)

    @work(thread=True, group="stop", description="stops a server")
    def _stop(self, server_id: int) -> None:
        from engine.hand_servers import stop_server

        try:
            said = stop_server(self.app.data_dir, server_id)
        except (EngineError, StoreError, OSError) as error:
            self.later(self.say, str(error), True)
        else:
            self.later(self.say, said)
            self.later(self._ask_memory)

    def action_start(self) -> None:
        """Count what stands in the form now, ask once with what that will come to, and begin."""
        if not self._starting and self._snapshot is not None:
            self._wants_start = True
            self._count_anew()

    def _ask_start(self, found: Cost) -> None:
        wanted = found.wanted
        if wanted is None:
            self.say(next(iter(found.mistakes), "there is nothing to train yet"), error=True)
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self._starting = True
                self._start(wanted)

        self.app.push_screen(Confirm(question(found), "begin it"), answered)

    @work(thread=True, group="start", description="starts a training")
    def _start(self, wanted: Wanted) -> None:
        try:
            number = lora_deeds.start_training(self.app.data_dir, wanted, self.app.vllm)
        except (EngineError, StoreError, OSError) as error:
            self.later(self._failed, f"it did not begin: {error}")
        else:
            self.later(self._started, number)

    def _failed(self, line: str) -> None:
        self._starting = False
        self.say(line, error=True)

    def _started(self, number: int) -> None:
        """Its curves in the place of the form."""
        self.app.switch_screen(TrainingScreen(number))


def _read(model: str) -> BaseModel | str:
    """The model's layers, or why they are not known."""
    folder = Path(model).expanduser()
    if not folder.is_dir():
        if folder.is_absolute() or model.startswith("."):
            return f"{clean(model, 80)} is not there: name the folder of the base model"
        return f"{clean(model, 80)} is not here as a folder, it is fetched when the training begins"
    try:
        return read_base(folder)
    except BaseUnknown as error:
        return clean(str(error), 300)
