import contextlib
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from store.database import open_reader, open_writer
from store.errors import DamagedStore, NotFound, ReadOnlyStore, StoreError, StoreFull, StoreLocked
from store.file_system import Mount
from store.reader import Reader
from store.records import SessionRecord
from store.rows import Record
from store.writer import Writer
from tests.mounting import mounted
from tests.store.examples import a_run, a_session, an_event, fill
from tests.store.rights import unwritable

NETWORK = (Mount(Path("/"), "fuse.mfs"),)
LOCAL = (Mount(Path("/"), "ext4"),)


def pragma(writer: Writer, name: str) -> Any:
    return writer._connection.execute(f"PRAGMA {name}").fetchone()[0]


def one_line(error: BaseException) -> bool:
    return "\n" not in str(error) and len(str(error)) < 300


def test_a_local_disk_gets_wal(path: Path) -> None:
    with open_writer(path, mounts=LOCAL) as writer:
        assert (pragma(writer, "journal_mode"), pragma(writer, "synchronous")) == ("wal", 1)
        assert pragma(writer, "foreign_keys") == 1
        assert pragma(writer, "busy_timeout") == 30_000


def test_a_network_mount_gets_a_rollback_journal_and_full_sync(path: Path) -> None:
    with open_writer(path, mounts=NETWORK) as writer:
        assert (pragma(writer, "journal_mode"), pragma(writer, "synchronous")) == ("truncate", 2)
        assert pragma(writer, "foreign_keys") == 1
        fill(writer)
        with open_reader(path) as reader:
            before = reader.version()
            writer.insert(a_session())
            assert reader.version() != before
            assert len(reader.sessions()) == 2
    assert sorted(file.name for file in path.parent.iterdir()) == ["llmtune.db", "llmtune.db-journal"]


def test_a_file_that_moves_to_another_kind_of_disk_changes_its_journal(path: Path) -> None:
    with open_writer(path, mounts=LOCAL) as writer:
        fill(writer)
    with open_writer(path, mounts=NETWORK) as writer, open_writer(path, mounts=NETWORK) as second:
        assert pragma(writer, "journal_mode") == "truncate"
        second.insert(a_session())
        writer.insert(a_session())
    with open_writer(path, mounts=LOCAL) as writer, open_reader(path) as reader:
        assert pragma(writer, "journal_mode") == "wal"
        assert len(reader.sessions()) == 3


@pytest.mark.parametrize("open_it", [open_writer, open_reader])
def test_a_wal_file_on_a_disk_without_shared_memory_is_turned(
    open_it: Callable[[Path], Writer | Reader], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's `unix-dotfile` has no shared memory, as some network mounts."""
    with open_writer(path, mounts=LOCAL) as writer:
        fill(writer)
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect

    def connect_without_shared_memory(target: Path | str, **options: Any) -> sqlite3.Connection:
        address = target if isinstance(target, str) else f"{target.as_uri()}?mode=rwc"
        return connect(f"{address}&vfs=unix-dotfile", **(options | {"uri": True}))

    monkeypatch.setattr("store.database.sqlite3.connect", connect_without_shared_memory)
    monkeypatch.setattr("store.database.read_mounts", lambda: NETWORK)
    open_it(path).close()
    with open_writer(path) as writer, open_reader(path) as reader:
        assert pragma(writer, "journal_mode") == "truncate"
        writer.insert(a_session())
        assert len(reader.sessions()) == 2


def test_the_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    open_writer(tmp_path / "a" / "b" / "llmtune.db").close()
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700


def test_a_reader_without_a_file_says_what_to_do_and_makes_none(path: Path) -> None:
    with pytest.raises(NotFound, match=r"Nothing is kept in .* yet: start"):
        open_reader(path)
    assert not path.parent.exists()


def test_a_reader_cannot_write(writer: Writer) -> None:
    with open_reader(writer.path) as reader, pytest.raises(sqlite3.OperationalError):
        reader._connection.execute("DELETE FROM session")


def test_a_read_only_folder_can_be_read_and_not_written(open_folder: Path) -> None:
    path = open_folder / "llmtune.db"
    with open_writer(path) as writer:
        fill(writer)
    with unwritable(open_folder):
        with open_reader(path) as reader:
            assert len(reader.sessions()) == 1
        with pytest.raises(ReadOnlyStore, match=r"cannot be written: make .* writable, or name another") as caught:
            open_writer(path)
        with pytest.raises(ReadOnlyStore):
            open_writer(open_folder / "new.db")
        with pytest.raises(ReadOnlyStore):
            open_writer(open_folder / "below" / "llmtune.db")
    assert one_line(caught.value)


def test_a_read_only_file_with_a_rollback_journal(open_folder: Path) -> None:
    path = open_folder / "llmtune.db"
    open_writer(path, mounts=NETWORK).close()
    with unwritable(open_folder):
        open_reader(path).close()
        with pytest.raises(ReadOnlyStore):
            open_writer(path, mounts=NETWORK)


def test_an_older_file_in_a_read_only_folder_says_so(open_folder: Path) -> None:
    from store.schema import STEPS

    path = open_folder / "llmtune.db"
    open_writer(path, steps=STEPS[:1]).close()
    with unwritable(open_folder), pytest.raises(ReadOnlyStore):
        open_reader(path)


def test_a_place_that_is_no_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"cannot be used .*--data-dir"):
        open_writer(tmp_path / "file" / "llmtune.db")
    (tmp_path / "llmtune.db").mkdir()
    for open_it in (open_writer, open_reader):
        with pytest.raises(StoreError, match="is a folder"):
            open_it(tmp_path / "llmtune.db")


def garbage(path: Path) -> None:
    path.write_bytes(b"this was a database once. " * 400)


def half_of_it(path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb+") as file:
        file.truncate(size // 2)


def the_first_bytes(path: Path) -> None:
    with path.open("rb+") as file:
        file.truncate(50)


def garbage_after_the_header(path: Path) -> None:
    with path.open("rb+") as file:
        file.seek(100)
        file.write(b"\xa5" * (path.stat().st_size - 100))


@pytest.mark.parametrize("break_it", [garbage, half_of_it, the_first_bytes, garbage_after_the_header])
def test_a_damaged_file_is_named_and_kept_as_it_is(break_it: Callable[[Path], None], path: Path) -> None:
    with open_writer(path) as writer:
        fill(writer)
    break_it(path)
    before = path.read_bytes()
    for open_it in (open_writer, open_reader):
        with pytest.raises(DamagedStore, match=r"is damaged .*move it away to start anew") as caught:
            open_it(path)
        assert one_line(caught.value)
    assert path.read_bytes() == before


def test_damage_found_later_is_named_by_the_question_that_met_it(path: Path) -> None:
    with open_writer(path) as writer:
        for _ in range(200):
            fill(writer)
        root = writer._connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'run'").fetchone()[0]
        size = pragma(writer, "page_size")
    with path.open("rb+") as file:
        file.seek((root - 1) * size)
        file.write(b"\xa5" * size)
    with open_reader(path) as reader:
        assert len(reader.sessions()) == 200
        with pytest.raises(DamagedStore):
            reader.runs(1)


def test_a_file_locked_by_another_process(path: Path) -> None:
    open_writer(path).close()
    program = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute('BEGIN IMMEDIATE');"
        "print('held', flush=True); sys.stdin.readline()"
    )
    holder = subprocess.Popen([sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with holder, open_writer(path, timeout_s=0.1) as writer:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StoreLocked, match="held by another process: end what holds it") as caught:
            writer.insert(a_session())
        assert one_line(caught.value)
        with open_reader(path) as reader:
            assert reader.sessions() == []
        holder.communicate(b"\n", timeout=30)
        assert writer.insert(a_session()) == 1


def test_a_writer_waits_for_a_lock_that_goes(path: Path) -> None:
    with open_writer(path) as first, open_writer(path) as second:
        released = threading.Event()

        def hold() -> None:
            with first.transaction():
                first.insert(a_session(name="first"))
                released.wait(0.3)

        holder = threading.Thread(target=hold)
        holder.start()
        second.insert(a_session(name="second"))
        holder.join()
        with open_reader(path) as reader:
            assert {session.name for session in reader.sessions()} == {"first", "second"}


def test_a_full_disk_loses_nothing_that_was_kept(path: Path) -> None:
    """`max_page_count` makes SQLite answer SQLITE_FULL just as a full file system does."""
    with open_writer(path) as writer, open_reader(path) as reader:
        session_id, _, launch_id, _ = fill(writer)
        pages = pragma(writer, "page_count")
        writer._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        run = a_run(session_id, launch_id, raw={"text": "x" * 100_000})
        with pytest.raises(StoreFull, match=r"No space is left .*finished results are kept") as caught:
            writer.insert(run)
        assert one_line(caught.value)
        with pytest.raises(StoreFull):
            insert_together(writer, an_event(session_id=session_id), run)
        assert len(reader.runs(session_id)) == 1
        assert len(reader.events(session_id)) == 1
        writer._connection.execute("PRAGMA max_page_count = 1000000")
        writer.insert(run)
        writer.update(SessionRecord, session_id, state="done")
        assert len(reader.runs(session_id)) == 2


def insert_together(writer: Writer, *records: Record) -> None:
    with writer.transaction():
        for record in records:
            writer.insert(record)


def open_and_insert(path: Path, mounts: tuple[Mount, ...]) -> None:
    with open_writer(path, mounts=mounts) as writer:
        writer.insert(a_session(raw={"text": "x" * 300_000}))


def insert_until_full(writer: Writer) -> int:
    """How many sessions went in before StoreFull."""
    for kept in range(1000):
        try:
            writer.insert(a_session(raw={"text": "x" * 3000}))
        except StoreFull:
            return kept
    raise AssertionError("the disk never became full")


def fill_up(file: Path) -> None:
    with file.open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(b"x" * 1024)


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Any:
    """A file system of 300 KiB where one may be mounted (as root); elsewhere None."""
    with mounted(tmp_path / "tiny", "size=300k") as folder:
        yield folder


@pytest.mark.parametrize("mounts", [LOCAL, NETWORK], ids=["wal", "rollback"])
def test_a_file_system_that_is_really_full(tiny_disk: Path | None, mounts: tuple[Mount, ...]) -> None:
    if tiny_disk is None:
        return  # without the right to mount, the test above stands for it
    path = tiny_disk / "llmtune.db"
    with open_writer(path, mounts=mounts) as writer:
        kept = insert_until_full(writer)
        assert kept > 2
        with open_reader(path) as reader:
            assert len(reader.sessions()) == kept
    fill_up(tiny_disk / "filler")
    with pytest.raises(StoreFull):
        open_and_insert(path, mounts)
    (tiny_disk / "filler").unlink()
    with open_reader(path) as reader:
        assert len(reader.sessions()) == kept
