"""One training: its curves as large as the terminal, where it stands and what happened."""

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from tui.legend import Number
from tui.lora import deeds as lora_deeds
from tui.lora import held
from tui.lora.details import TrainingDetails
from tui.lora.legend import LEGEND
from tui.lora.source import LoraSource
from tui.screens.lora_control import WorkControl
from tui.widgets.lora_details import DetailLines

if TYPE_CHECKING:
    from store.reader import Reader


class TrainingScreen(WorkControl):
    """Follows one training until it ends, and after."""

    LEGEND: ClassVar[tuple[Number, ...]] = LEGEND

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back"),
        Binding("x", "stop", "stop", tooltip="stop the training (asks once); its checkpoints stay"),
        Binding(
            "R",
            "resume",
            "resume",
            tooltip="follow it again where it computes on, else go on from its newest checkpoint",
        ),
    ]

    def __init__(self, training_id: int) -> None:
        super().__init__()
        self._number = training_id
        self._source = LoraSource(self.app.data_dir, partial(held.held_by, self.app.data_dir))
        self._details: TrainingDetails | None = None

    def compose_body(self) -> ComposeResult:
        yield DetailLines(id="details")

    def refresh_from_store(self, reader: "Reader") -> TrainingDetails | None:
        """All of the training; None where there is none of that number."""
        details = self._source.read(reader, ("training", self._number)).details
        return details if isinstance(details, TrainingDetails) else None

    def show(self, snapshot: TrainingDetails | None) -> None:
        """Draw it where it is another."""
        if snapshot is None:
            self.say(f"there is no training {self._number}", error=True)
        elif snapshot is not self._details:
            self._details = snapshot
            self.query_one(DetailLines).show_details(snapshot)
            self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what would do something now."""
        if action not in ("stop", "resume"):
            return True
        found = self._details
        if found is None:
            return False
        return (
            lora_deeds.may_stop(found.training)
            if action == "stop"
            else lora_deeds.may_resume(found.training, found.held)
        )

    def action_stop(self) -> None:
        """Stop it, after a question."""
        if self._details is not None:
            self.ask_stop(self._details.training)

    def action_resume(self) -> None:
        """Go on from the newest checkpoint."""
        if self._details is not None:
            self.resume(self._details.training)
