"""Where the data lies and what is found there, for all commands."""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from store.errors import NotFound
from store.location import data_dir, database_file
from tui.output import complain

if TYPE_CHECKING:
    from engine.samples.foreign_record import ForeignRecords
    from store.reader import Reader


def data_place(args: argparse.Namespace) -> Path:
    """The data directory."""
    return data_dir(args.data_dir, os.environ).path


@contextmanager
def keeping(args: argparse.Namespace) -> Iterator[Path]:
    """The data directory, where something new is kept in the block; afterwards, what the place may lose is told on
    standard error. Not if nothing was kept: an error has its one line for itself."""
    place = data_dir(args.data_dir, os.environ)
    yield place.path
    if place.warning:
        complain(place.warning)


@contextmanager
def reading(place: Path) -> Iterator["Reader"]:
    """The database, to read. Raises NotFound where nothing has been recorded yet."""
    from store.database import open_reader

    if not database_file(place).exists():
        raise NotFound(f"nothing has been recorded in {place} yet: start a sweep, or give another --data-dir")
    with open_reader(database_file(place)) as reader:
        yield reader


@contextmanager
def recording(place: Path) -> Iterator["ForeignRecords"]:
    """Where samples of servers that are not ours are kept. Raises StoreError."""
    from engine.samples.foreign_record import WRITE_WITHIN_S, ForeignRecords
    from store.database import open_writer

    with open_writer(database_file(place), timeout_s=WRITE_WITHIN_S) as writer:
        yield ForeignRecords(writer)
