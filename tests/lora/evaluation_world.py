"""A data directory for evaluations under real keepers, with a stand-in for the script that measures."""

from pathlib import Path

from lora.adapters.registry import Origin, register
from lora.data.lines import example_line
from lora.evaluations.evaluating import create_evaluation, start_evaluation
from lora.evaluations.evaluation import EvaluationSettings
from lora.evaluations.own_data import own_data
from lora.process.process_life import PROGRESS
from lora.records import Example, Message
from store.database import open_reader, open_writer
from store.evaluation_job import EvaluationJobRecord
from store.location import database_file
from store.records import AdapterRecord, EvaluationRecord, EventRecord
from tests.lora import stand_in_evaluation
from tests.lora.kept_world import KeptWorld
from tests.lora.made_adapters import write_adapter

QUESTIONS = ("one", "two", "three", "four", "five", "six")


class EvaluationWorld(KeptWorld[EvaluationJobRecord]):
    """With the adapter `made@1` and conversations."""

    kind = "evaluation"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, stand_in_evaluation.__file__)
        self.file = folder / "validation.jsonl"
        examples = [
            Example((Message("user", text), Message("assistant", text.upper())), line)
            for line, text in enumerate(QUESTIONS, 1)
        ]
        self.file.write_text("".join(map(example_line, examples)))
        write_adapter(folder / "made")
        with open_writer(database_file(self.place)) as writer:
            register(writer, self.place, folder / "made", "made", Origin(base_model=str(self.model)))

    def adapter(self) -> AdapterRecord:
        with open_reader(database_file(self.place)) as reader:
            return reader.adapter("made@1")

    def made(self, settings: EvaluationSettings = EvaluationSettings(max_length=77)) -> int:  # noqa: B008
        with open_reader(database_file(self.place)) as reader:
            data = own_data(reader, self.place, self.adapter(), file=str(self.file))
        return create_evaluation(self.place, self.adapter(), str(self.model), data, self.python, settings)

    def begin(self, **script: object) -> int:
        self.play(**script)
        number = self.made()
        start_evaluation(self.place, number, self.environ)
        return number

    def job(self, number: int) -> EvaluationJobRecord:
        return self.row(number)

    def row(self, number: int) -> EvaluationJobRecord:
        with open_reader(database_file(self.place)) as reader:
            return reader.evaluation_job(number)

    def results(self) -> list[EvaluationRecord]:
        with open_reader(database_file(self.place)) as reader:
            return reader.evaluations()

    def events(self, number: int) -> list[EventRecord]:
        with open_reader(database_file(self.place)) as reader:
            return reader.events(evaluation_id=number, limit=None)

    def progress(self, number: int) -> Path:
        return self.place / self.job(number).path / PROGRESS
