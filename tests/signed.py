"""A version of an adapter in the registry, and its files changed by somebody."""

from pathlib import Path

from lora.adapters.registry import Origin, register
from store.database import open_writer
from store.location import database_file
from store.records import AdapterRecord
from tests.lora.made_adapters import write_adapter

CHANGED = r"chat@1 is not what was registered: README.md was added"


def registered(place: Path, made_in: Path) -> AdapterRecord:
    """`chat@1` in the data directory `place`."""
    with open_writer(database_file(place)) as writer:
        return register(writer, place, write_adapter(made_in), "chat", Origin("org/tiny")).adapter


def spoil(folder: Path) -> None:
    (folder / "README.md").write_text("another")
