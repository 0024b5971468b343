"""A screen from which trainings are stopped and gone on with."""

from textual import work

from engine.records import EngineError
from store.errors import StoreError
from store.records import TrainingRecord
from tui.lora import deeds as lora_deeds
from tui.screens.base import LlmtuneScreen
from tui.widgets.confirm import Confirm


class TrainingControl(LlmtuneScreen):
    """Asks once, asks the keeper, says what came of it."""

    def ask_stop(self, training: TrainingRecord) -> None:
        """Stop it, after a question."""
        if training.id is None:
            return
        number = training.id

        def answered(yes: bool | None) -> None:
            if yes:
                self._stop(number)

        question = f'Stop training {number} "{training.name}"? Its checkpoints stay, R goes on from the newest one.'
        self.app.push_screen(Confirm(question, "stop it"), answered)

    @work(thread=True, group="training", description="asks the training's keeper")
    def _stop(self, number: int) -> None:
        try:
            said = lora_deeds.stop_training(self.app.data_dir, number)
        except (EngineError, StoreError, OSError) as error:
            self.later(self.say, str(error), True)
        else:
            self._went_well(said)

    @work(thread=True, group="training", description="starts a training's keeper")
    def resume(self, number: int) -> None:
        """Go on from the newest checkpoint, or say why not."""
        try:
            said = lora_deeds.resume_training(self.app.data_dir, number)
        except (EngineError, StoreError, OSError) as error:
            self.later(self.say, str(error), True)
        else:
            self._went_well(said)

    def _went_well(self, said: str) -> None:
        self.later(self.say, said)
        self.later(self.app.ask)
