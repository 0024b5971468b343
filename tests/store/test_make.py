import subprocess
import sys
from pathlib import Path

import pytest

from store.database import open_reader, open_writer
from store.errors import StoreError
from store.make import make_database
from tests.store.examples import a_session


def test_a_database_is_made_and_one_that_exists_is_left(path: Path) -> None:
    make_database(path)
    with open_writer(path) as writer:
        writer.insert(a_session())
    make_database(path)
    with open_reader(path) as reader:
        assert len(reader.sessions()) == 1


def test_what_cannot_be_made_is_said_as_a_writer_says_it(tmp_path: Path) -> None:
    (tmp_path / "llmtune.db").mkdir()
    with pytest.raises(StoreError, match="is a folder where the database should be"):
        make_database(tmp_path / "llmtune.db")


def test_who_has_one_made_does_not_load_what_makes_it(path: Path) -> None:
    code = f"import sys, pathlib, store.make as m; m.make_database(pathlib.Path({str(path)!r})); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert path.exists()
    assert "sqlite_utils" not in loaded
