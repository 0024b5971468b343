"""A data directory for trainings under real keepers, with a stand-in for the trainer."""

from pathlib import Path

from engine.records import ProcessIdentity
from lora.data.writing import data_hash
from lora.records import TrainingSettings
from lora.trainings.training import create_training, start_keeper
from store.clock import utc_now
from store.database import open_reader, open_writer
from store.location import database_file
from store.records import AdapterRecord, DatasetRecord, EventRecord, TrainingRecord
from tests.lora import stand_in_trainer
from tests.lora.kept_world import KeptWorld


class World(KeptWorld[TrainingRecord]):
    """With a data set."""

    kind = "training"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, stand_in_trainer.__file__)
        self.dataset = self._dataset()

    def _dataset(self) -> DatasetRecord:
        texts = {"train.jsonl": '{"messages": []}\n', "validation.jsonl": ""}
        folder = self.place / "datasets" / "1-seven"
        folder.mkdir(parents=True)
        for name, text in texts.items():
            (folder / name).write_text(text)
        record = DatasetRecord("seven", "datasets/1-seven", data_hash(texts), 1, 0, 0, utc_now())
        with open_writer(database_file(self.place)) as writer:
            number = writer.insert(record)
        with open_reader(database_file(self.place)) as reader:
            return reader.dataset(number)

    def begin(self, **script: object) -> int:
        self.play(**script)
        settings = TrainingSettings(str(self.model), 1, epochs=None, steps=8)
        number = create_training(self.place, self.dataset, settings, self.python)
        start_keeper(self.place, number, self.environ)
        return number

    def training(self, number: int) -> TrainingRecord:
        return self.row(number)

    def row(self, number: int) -> TrainingRecord:
        with open_reader(database_file(self.place)) as reader:
            return reader.training(number)

    def events(self, number: int) -> list[EventRecord]:
        with open_reader(database_file(self.place)) as reader:
            return reader.events(training_id=number, limit=None)

    def adapters(self) -> list[AdapterRecord]:
        with open_reader(database_file(self.place)) as reader:
            return reader.adapters()

    def trainer(self, number: int) -> ProcessIdentity:
        return self.process(number)
