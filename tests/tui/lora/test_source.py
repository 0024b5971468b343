"""What the screen reads, and how often."""

from pathlib import Path

from store.database import open_reader, open_writer
from store.location import database_file
from store.writer import Writer
from tests.tui.lora_world import (
    PLANNED,
    an_adapter,
    fill,
)
from tui.lora.details import AdapterDetails
from tui.lora.source import LoraSource


def test_the_source_reads_again_only_what_changed(writer: Writer, data_dir: Path) -> None:
    fill(writer, data_dir)
    source = LoraSource(data_dir, lambda _: "kept")
    with open_reader(database_file(data_dir), remembers=True) as reader:
        first = source.read(reader, ("training", 2))
        assert [line.cells[0] for line in first.training_lines] == ["support-qv", "first"]
        assert [line.cells[0] for line in first.adapter_lines] == ["imported@1", "support-qv@2", "support-qv@1"]
        assert [line.cells[0] for line in first.dataset_lines] == ["tiny", "support"]
        assert first.adapter_lines[1].cells[-1] == "● qwen-lora"
        assert source.read(reader, ("training", 2)) is first
        with (data_dir / "trainings" / "2-support-qv" / "progress.jsonl").open("a") as file:
            file.write('{"kind": "step", "step": 121, "loss": 1.0, "seconds": 182}\n')
        assert source.read(reader, ("training", 2)).training_lines[0].cells[2] == f"121/{PLANNED}"
        with open_writer(database_file(data_dir)) as other:
            other.insert(an_adapter(3))
        assert source.read(reader, ("adapter", 2)).adapter_lines[0].cells[0] == "support-qv@3"
        details = source.read(reader, ("adapter", 2)).details
        assert isinstance(details, AdapterDetails)
        assert [one.version for one in details.versions] == [1, 2, 3]
        assert details.evaluation is not None
        assert source.read(reader, ("adapter", 99)).details is None
