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
    from store.reader import Reader


def data_place(args: argparse.Namespace, *, warn: bool = False) -> Path:
    """The data directory. `warn`, where something new is to be kept there: say on standard error what it may lose."""
    place = data_dir(args.data_dir, os.environ)
    if warn and place.warning:
        complain(place.warning)
    return place.path


@contextmanager
def reading(place: Path) -> Iterator["Reader"]:
    """The database, to read. Raises NotFound where nothing has been recorded yet."""
    from store.database import open_reader

    if not (database_file(place)).exists():
        raise NotFound(f"nothing has been recorded in {place} yet: start a sweep, or give another --data-dir")
    with open_reader(database_file(place)) as reader:
        yield reader
