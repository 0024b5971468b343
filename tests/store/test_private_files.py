"""What is made is its owner's alone, under an umask that would let everybody read."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.database import open_reader, open_writer
from store.file_system import Mount
from store.location import data_dir
from store.private_files import make_private_folder, open_private, write_new_private, write_private
from store.records import EventRecord

EVENT = EventRecord("2026-11-30T10:00:00.000Z", "info", "x")


@pytest.fixture(autouse=True, params=[0o000, 0o022], ids=["umask 0", "umask 022"])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("kind", ["ext4", "nfs"], ids=["wal", "rollback"])
def test_the_database_and_what_lies_beside_it(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "data" / "llmtune.db"
    with open_writer(path, mounts=(Mount(Path("/"), kind),)) as writer:
        writer.insert(EVENT)
        with writer.transaction():
            writer.insert(EVENT)
            with open_reader(path):
                found = {each.name: mode(each) for each in path.parent.iterdir()}
    expected = {"llmtune.db", "llmtune.db-wal", "llmtune.db-shm"} if kind == "ext4" else {"llmtune.db"}
    assert expected <= found.keys()
    assert set(found.values()) == {0o600}
    assert mode(path.parent) == 0o700


def test_a_database_that_is_shared_on_purpose_stays_so(tmp_path: Path) -> None:
    path = tmp_path / "llmtune.db"
    open_writer(path).close()
    path.chmod(0o640)
    with open_writer(path) as writer:
        writer.insert(EVENT)
    assert mode(path) == 0o640


def test_the_data_directory(tmp_path: Path) -> None:
    made = data_dir(str(tmp_path / "d"), {}, home=tmp_path).path
    assert mode(made) == 0o700


def test_files(tmp_path: Path) -> None:
    os.close(open_private(tmp_path / "logs" / "a.log"))
    make_private_folder(tmp_path / "exports")
    write_private(tmp_path / "exports" / "a.md", "long text")
    write_private(tmp_path / "exports" / "a.md", "short")
    write_new_private(tmp_path / "plan.toml", "x")
    assert (tmp_path / "exports" / "a.md").read_text() == "short"
    assert [mode(tmp_path / name) for name in ("logs", "exports")] == [0o700, 0o700]
    assert [mode(tmp_path / name) for name in ("logs/a.log", "exports/a.md", "plan.toml")] == [0o600] * 3
    with pytest.raises(FileExistsError):
        write_new_private(tmp_path / "plan.toml", "y")


def test_what_is_no_file_may_be_written_to(tmp_path: Path) -> None:
    before = mode(Path(os.devnull))
    write_private(Path(os.devnull), "x")
    assert mode(Path(os.devnull)) == before
