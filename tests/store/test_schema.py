import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from store.database import open_reader, open_writer
from store.errors import NewerDatabase, StoreError
from store.records import AdapterRecord, RunRecord
from store.rows import Record, shape, to_row
from store.schema import STEPS, applied_steps
from store.writer import Writer
from tests.store.examples import (
    a_launch,
    a_run,
    a_sample,
    a_session,
    an_adapter,
    an_evaluation,
    an_evaluation_job,
    an_event,
    an_import_file,
    fill,
)

if TYPE_CHECKING:
    from sqlite_utils import Database

OLDER = STEPS[:1]


def step_999_of_the_future(db: "Database") -> None:
    db.execute("ALTER TABLE session ADD COLUMN colour TEXT")


NEWER = (*STEPS, step_999_of_the_future)


def schema_of(path: Path) -> tuple[set[str], tuple[int, frozenset[str]]]:
    connection = sqlite3.connect(path)
    try:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}, applied_steps(connection)
    finally:
        connection.close()


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_steps_are_numbered_from_one_without_a_gap() -> None:
    assert [int(step.__name__.split("_")[1]) for step in STEPS] == list(range(1, len(STEPS) + 1))


def test_a_blank_file_gets_all_tables(path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    open_writer(path).close()
    names, applied = schema_of(path)
    assert {"session", "launch", "run", "sample", "event", "server", "run_by_session"} <= names
    assert applied == (len(STEPS), frozenset(step.__name__ for step in STEPS))


def test_an_older_file_is_brought_up_to_date_and_keeps_its_rows(path: Path) -> None:
    with open_writer(path, steps=OLDER) as old:
        old.insert(a_session(name="kept"))
    assert "run_by_session" not in schema_of(path)[0]
    with open_writer(path):
        pass
    assert "run_by_session" in schema_of(path)[0]
    with open_reader(path) as reader:
        assert [session.name for session in reader.sessions()] == ["kept"]


def test_a_file_of_the_second_step_keeps_its_runs_and_takes_what_limited_them(path: Path) -> None:
    with open_writer(path, steps=STEPS[:2]) as old:
        fill_old(old)
    with open_writer(path) as writer, open_reader(path) as reader:
        (run,) = reader.runs(1)
        assert (run.limited_by, run.metrics["p99_ttft_ms"]) == (None, 469.0)
        writer.update(RunRecord, 1, limited_by="KV-bound")
        assert [reader.runs(1, with_raw=raw)[0].limited_by for raw in (False, True)] == ["KV-bound"] * 2
        assert len(reader.samples(run_id=1)) == 1


def test_a_file_of_the_third_step_takes_imported_files(path: Path) -> None:
    with open_writer(path, steps=STEPS[:3]) as old:
        fill_old(old, "limited_by")
    with open_writer(path) as writer, open_reader(path) as reader:
        assert reader.import_files() == []
        assert writer.insert_new_file(an_import_file())
        assert [file.path for file in reader.import_files()] == ["/results/a.json"]
        assert len(reader.runs(1)) == 1


def test_a_file_of_the_fourth_step_keeps_its_events_and_takes_adapters(path: Path) -> None:
    with open_writer(path, steps=STEPS[:4]) as old:
        fill_old(old, "limited_by")
        insert_without(old, an_event(session_id=1), "training_id", "evaluation_id")
    with open_writer(path) as writer, open_reader(path) as reader:
        assert [(event.text, event.training_id) for event in reader.events(session_id=1)] == [("started", None)]
        assert (reader.datasets(), reader.trainings(), reader.adapters()) == ([], [], [])
        writer.insert(an_adapter())
        assert [adapter.label for adapter in reader.adapters()] == ["alpaca@1"]


def test_a_file_of_the_fifth_step_keeps_its_adapters_and_takes_their_evaluations(path: Path) -> None:
    with open_writer(path, steps=STEPS[:5]) as old:
        insert_without(old, an_adapter(), "deleted_at")
    with open_writer(path) as writer, open_reader(path) as reader:
        assert [adapter.label for adapter in reader.adapters()] == ["alpaca@1"]
        assert reader.evaluations() == []
        writer.insert(an_evaluation())
        assert [each.difference for each in reader.evaluations(1)] == [-0.8]


def test_a_file_of_the_sixth_step_keeps_its_evaluations_as_work_that_is_done(path: Path) -> None:
    with open_writer(path, steps=STEPS[:6]) as old:
        insert_without(old, an_adapter(), "deleted_at")
        old.insert(an_evaluation(settings={"data": "a file", "max_length": 77}, seconds=3.5))
        old.insert(an_evaluation())
        old._connection.execute("UPDATE evaluation SET settings = 'torn' WHERE id = 2")
    with open_writer(path) as writer, open_reader(path) as reader:
        found = reader.evaluation_job("alpaca@1")
        assert (found.id, found.data) == (2, "")
        (first,) = [job for job in reader.evaluation_jobs(("done",)) if job.id == 1]
        assert (first.name, first.data, first.done, first.records, first.seconds) == ("alpaca@1", "a file", 50, 50, 3.5)
        with writer.transaction():
            number = writer.insert(an_evaluation_job(id=writer.next_evaluation()))
        assert number == 3
        writer.insert(an_event(evaluation_id=number))
        assert [event.text for event in reader.events(evaluation_id=number)] == ["started"]


def test_a_file_of_the_seventh_step_keeps_its_adapters_of_which_none_is_deleted(path: Path) -> None:
    with open_writer(path, steps=STEPS[:7]) as old:
        insert_without(old, an_adapter(), "deleted_at")
        old.insert(an_evaluation_job())
    with open_writer(path) as writer, open_reader(path) as reader:
        assert reader.adapter("alpaca@1").deleted_at is None
        writer.update(AdapterRecord, 1, deleted_at="2026-11-30T12:00:00.000Z")
        assert reader.adapters() == []
        assert [job.name for job in reader.evaluation_jobs()] == ["alpaca@1"]


def fill_old(old: Writer, *has: str) -> None:
    """A session with a run and its sample, as a writer of the second step wrote them, or of a later one that `has` more
    columns."""
    session_id = old.insert(a_session())
    launch_id = old.insert(a_launch(session_id))
    insert_without(old, a_run(session_id, launch_id), *({"limited_by"} - set(has)))
    old.insert_samples([a_sample(run_id=1)])


def insert_without(old: Writer, record: Record, *columns: str) -> None:
    row = {name: value for name, value in to_row(record).items() if name not in columns}
    marks = ", ".join(f":{column}" for column in row)
    with old.transaction():
        old._connection.execute(f"INSERT INTO {shape(type(record)).table} ({', '.join(row)}) VALUES ({marks})", row)


def test_a_reader_has_an_older_file_brought_up_to_date(path: Path) -> None:
    open_writer(path, steps=OLDER).close()
    with open_reader(path) as reader:
        assert reader.sessions() == []
    assert schema_of(path)[1][0] == len(STEPS)


def test_a_step_that_fails_leaves_the_file_as_it_was(path: Path) -> None:
    def step_999_breaks(db: "Database") -> None:
        db.execute("ALTER TABLE session ADD COLUMN colour TEXT")
        db.execute("INSERT INTO no_such_table VALUES (1)")

    with open_writer(path) as writer:
        fill(writer)
    before = schema_of(path)
    with pytest.raises(StoreError, match="no_such_table"):
        open_writer(path, steps=(*STEPS, step_999_breaks))
    assert schema_of(path) == before
    with open_reader(path) as reader:
        assert len(reader.sessions()) == 1


def test_a_newer_file_is_refused_and_not_touched(path: Path) -> None:
    with open_writer(path, steps=NEWER) as newer:
        fill(newer)
    before = contents(path.parent)
    with pytest.raises(NewerDatabase, match="newer llmtune and was left untouched: update llmtune"):
        open_writer(path)
    assert contents(path.parent) == before
    with pytest.raises(NewerDatabase):
        open_reader(path)
    assert contents(path.parent)["llmtune.db"] == before["llmtune.db"]


def test_a_newer_file_with_a_left_over_journal_is_not_touched(path: Path, tmp_path: Path) -> None:
    """What a killed newer program leaves: opened by a writer, the content of the WAL would go into the file."""
    left = tmp_path / "left" / "llmtune.db"
    with open_writer(path, steps=NEWER) as newer:
        fill(newer)
        shutil.copytree(path.parent, left.parent)
    (left.parent / "llmtune.db-shm").unlink()
    before = contents(left.parent)
    assert before["llmtune.db-wal"]
    for open_it in (open_writer, open_reader):
        with pytest.raises(NewerDatabase):
            open_it(left)
        after = contents(left.parent)
        after.pop("llmtune.db-shm", None)  # an index of the WAL, made again by whoever opens it
        assert after == before


def test_an_unknown_step_alone_makes_a_file_newer(path: Path) -> None:
    open_writer(path, steps=NEWER).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {len(STEPS)}")
    connection.close()
    with pytest.raises(NewerDatabase):
        open_writer(path)


def test_the_database_of_another_program_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE recipe (title TEXT)")
    connection.close()
    with pytest.raises(StoreError, match="another program"):
        open_writer(path)
    with pytest.raises(StoreError, match="another program"):
        open_reader(path)
    assert schema_of(path)[0] == {"recipe"}


_OPENS_AND_WRITES = """
import sys
from pathlib import Path
from store.database import open_writer
from store.file_system import Mount
from store.records import EventRecord
sys.stdin.readline()
for _ in range(10):
    with open_writer(Path(sys.argv[1]), mounts=(Mount(Path("/"), sys.argv[2]),)) as writer:
        writer.insert(EventRecord("2026-11-30T10:00:00.000Z", "info", "here"))
"""


@pytest.mark.parametrize("file_system", ["ext4", "nfs4"])
def test_programs_that_open_a_blank_file_at_once_all_succeed(file_system: str, path: Path) -> None:
    arguments = [sys.executable, "-c", _OPENS_AND_WRITES, str(path), file_system]
    programs = [subprocess.Popen(arguments, stdin=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    outcomes = []
    for each in programs:
        assert each.stdin is not None
        each.stdin.write(b"\n")
        each.stdin.flush()
    for each in programs:
        outcomes.append((each.communicate(timeout=60)[1], each.returncode))
    assert outcomes == [(b"", 0)] * 4
    with open_reader(path) as reader:
        assert len(reader.events()) == 40
