import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.database import open_reader, open_writer
from store.reader import Reader
from store.writer import Writer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store" / "llmtune.db"


@pytest.fixture
def writer(path: Path) -> Iterator[Writer]:
    with open_writer(path) as opened:
        yield opened


@pytest.fixture
def reader(writer: Writer) -> Iterator[Reader]:
    with open_reader(writer.path) as opened:
        yield opened


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user can enter; pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="llmtune-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)
