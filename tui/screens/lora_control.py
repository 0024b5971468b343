"""A screen from which trainings and evaluations are stopped and gone on with."""

from typing import TYPE_CHECKING

from textual import work

from engine.records import EngineError
from store.errors import StoreError
from store.records import TrainingRecord
from tui.lora import deeds as lora_deeds
from tui.screens.base import LlmtuneScreen
from tui.widgets.confirm import Confirm

if TYPE_CHECKING:
    from lora.process.work import Work


class WorkControl(LlmtuneScreen):
    """Asks once, asks the keeper, says what came of it."""

    def ask_stop(self, wanted: "Work") -> None:
        """Stop it, after a question."""

        def answered(yes: bool | None) -> None:
            if yes:
                self._stop(wanted)

        if isinstance(wanted, TrainingRecord):
            what, stays = f'training {wanted.id} "{wanted.name}"', "Its checkpoints stay, R goes on from the newest."
        else:
            what, stays = f"evaluation {wanted.id} of {wanted.name}", "What is measured stays, R goes on with the rest."
        self.app.push_screen(Confirm(f"Stop {what}? {stays}", "stop it"), answered)

    @work(thread=True, group="control", description="asks a keeper")
    def _stop(self, wanted: "Work") -> None:
        try:
            said = lora_deeds.stop_work(self.app.data_dir, wanted)
        except (EngineError, StoreError, OSError) as error:
            self.later(self.say, str(error), True)
        else:
            self._went_well(said)

    @work(thread=True, group="control", description="starts a keeper")
    def resume(self, wanted: "Work") -> None:
        """Go on with it, or say why not."""
        try:
            said = lora_deeds.resume_work(self.app.data_dir, wanted)
        except (EngineError, StoreError, OSError) as error:
            self.later(self.say, str(error), True)
        else:
            self._went_well(said)

    def _went_well(self, said: str) -> None:
        self.later(self.say, said)
        self.later(self.app.ask)
