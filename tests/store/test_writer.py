import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from store.database import open_reader, open_writer
from store.errors import NotFound, StoreError
from store.file_system import Mount
from store.reader import Reader
from store.records import LaunchRecord, RunRecord, SampleRecord, ServerRecord, SessionRecord
from store.writer import Writer
from tests.store.examples import a_launch, a_run, a_sample, a_server, a_session, an_event, an_import_file, fill


def test_insert_answers_the_id_under_which_it_reads_back(writer: Writer, reader: Reader) -> None:
    first, second = writer.insert(a_session()), writer.insert(a_session(name="other"))
    assert first != second
    assert reader.session(second) == a_session(name="other", id=second)


def test_update_sets_only_what_is_given(writer: Writer, reader: Reader) -> None:
    id = writer.insert(a_session())
    writer.update(SessionRecord, id, state="done", message=None, raw={"a": [1]})
    assert reader.session(id) == a_session(id=id, state="done", message=None, raw={"a": [1]})
    writer.update(SessionRecord, id)
    assert reader.session(id).state == "done"


def test_update_of_metrics_keeps_the_others(writer: Writer, reader: Reader) -> None:
    session_id, _, _, run_id = fill(writer)
    writer.update(RunRecord, run_id, state="rejected", metrics={"error_rate": 0.5})
    run = reader.runs(session_id)[0]
    assert (run.state, run.metrics["error_rate"], run.metrics["p99_ttft_ms"]) == ("rejected", 0.5, 469.0)


def test_update_without_such_a_row_or_field(writer: Writer) -> None:
    with pytest.raises(NotFound, match="no server 9"):
        writer.update(ServerRecord, 9, state="stopped")
    with pytest.raises(ValueError, match="colour"):
        writer.update(ServerRecord, 9, colour="red")


def test_a_row_must_belong_to_something(writer: Writer) -> None:
    with pytest.raises(StoreError, match="was its session deleted"):
        writer.insert(a_launch(77))


def test_a_transaction_is_all_or_nothing(writer: Writer, reader: Reader) -> None:
    def two_and_an_error() -> None:
        with writer.transaction():
            writer.insert(a_session())
            with writer.transaction():
                writer.insert(a_session())
            raise KeyError("mine")

    with pytest.raises(KeyError):
        two_and_an_error()
    assert reader.sessions() == []
    with writer.transaction():
        writer.insert(a_session())
        writer.insert(a_session())
        assert reader.sessions() == []
    assert len(reader.sessions()) == 2


def test_samples_are_one_commit(writer: Writer, reader: Reader) -> None:
    fill(writer)
    with pytest.raises(StoreError):
        writer.insert_samples([a_sample(), a_sample(), a_sample(server_id=99)])
    assert len(reader.samples()) == 2
    writer.insert_samples([])
    writer.insert_samples([a_sample() for _ in range(40)])
    assert len(reader.samples()) == 42


def test_delete_takes_all_that_belongs_to_a_session_and_nothing_else(writer: Writer, reader: Reader) -> None:
    other = fill(writer, name="other")
    by_hand = writer.insert(a_server())
    session_id, server_id, _, run_id = fill(writer)
    writer.delete_session(session_id)
    assert [session.name for session in reader.sessions()] == ["other"]
    assert [server.id for server in reader.servers()] == [other[1], by_hand]
    assert (reader.launches(session_id), reader.runs(session_id)) == ([], [])
    assert (reader.samples(server_id=server_id), reader.samples(run_id=run_id)) == ([], [])
    assert (reader.events(session_id=session_id), reader.events(server_id=server_id)) == ([], [])
    assert (len(reader.samples()), len(reader.events()), len(reader.runs(other[0]))) == (2, 2, 1)


def test_a_running_session_is_not_deleted(writer: Writer, reader: Reader) -> None:
    session_id, *_ = fill(writer, state="running")
    with pytest.raises(StoreError, match=f"Session {session_id} is running: stop it first"):
        writer.delete_session(session_id)
    assert len(reader.runs(session_id)) == 1
    with pytest.raises(NotFound):
        writer.delete_session(99)


def test_a_server_row_goes_without_the_results_of_its_launch(writer: Writer, reader: Reader) -> None:
    session_id, server_id, *_ = fill(writer)
    writer._connection.execute("DELETE FROM server WHERE id = ?", (server_id,))
    assert [launch.server_id for launch in reader.launches(session_id)] == [None]
    assert len(reader.runs(session_id)) == 1


def test_threads_that_write_at_once_all_land(writer: Writer, reader: Reader) -> None:
    session_id = writer.insert(a_session())
    errors: list[BaseException] = []

    def write(number: int) -> None:
        try:
            for turn in range(100):
                with writer.transaction():
                    launch_id = writer.insert(a_launch(session_id, block=number, position=turn))
                    writer.insert(a_run(session_id, launch_id, block=number, repeat=turn))
                writer.insert_samples([a_sample(), a_sample()])
                writer.update(LaunchRecord, launch_id, state="ready")
                assert len(reader.launches(session_id)) > 0
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    launches = reader.launches(session_id)
    assert {(launch.block, launch.position) for launch in launches} == {(b, t) for b in range(4) for t in range(100)}
    assert {launch.state for launch in launches} == {"ready"}
    assert len(reader.runs(session_id)) == 400
    assert len(reader.samples()) == 800


_KILLED_WRITER = """
import sys
from pathlib import Path
from store.database import open_writer
from store.file_system import Mount
from tests.store.examples import a_session
writer = open_writer(Path(sys.argv[1]), mounts=(Mount(Path("/"), sys.argv[2]),))
for number in range(20):
    writer.insert(a_session(name=f"kept {number}", raw={"text": "x" * 5000}))
writer._connection.execute("PRAGMA cache_size = 5")  # so that the unfinished transaction reaches the file
with writer.transaction():
    writer._connection.execute("UPDATE session SET name = 'lost', raw = '{}'")
    for _ in range(200):
        writer.insert(a_session(name="lost", raw={"text": "y" * 5000}))
    print("in the middle", flush=True)
    sys.stdin.readline()
"""


def kill_in_mid_transaction(path: Path, file_system: str) -> None:
    """Leaves 20 sessions called `kept …` and the journal of an unfinished transaction."""
    arguments = [sys.executable, "-c", _KILLED_WRITER, str(path), file_system]
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline() == b"in the middle\n"
        os.kill(victim.pid, signal.SIGKILL)
        victim.wait(timeout=30)
    journal = path.with_name(path.name + ("-wal" if file_system == "ext4" else "-journal"))
    assert journal.stat().st_size > 0


@pytest.mark.parametrize("file_system", ["ext4", "nfs4"])
@pytest.mark.parametrize("next_to_open", ["reader", "writer"])
def test_a_writer_killed_in_mid_transaction_loses_nothing_committed(
    file_system: str, next_to_open: str, path: Path
) -> None:
    kill_in_mid_transaction(path, file_system)
    if next_to_open == "writer":
        with open_writer(path, mounts=(Mount(Path("/"), file_system),)) as writer:
            writer.insert_samples([SampleRecord("2026-11-30T10:00:00.000Z")])
    with open_reader(path) as reader:
        assert [session.name for session in reader.sessions()] == [f"kept {number}" for number in range(20)]
        assert reader._connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


def test_a_reader_that_was_there_before_goes_on_after_the_kill(path: Path) -> None:
    with open_writer(path, mounts=(Mount(Path("/"), "nfs4"),)), open_reader(path) as reader:
        kill_in_mid_transaction(path, "nfs4")
        assert len(reader.sessions()) == 20


def test_events_keep_text_as_it_is(writer: Writer, reader: Reader) -> None:
    writer.insert(an_event(text="[bold]'; DROP TABLE event; --"))
    assert reader.events()[0].text == "[bold]'; DROP TABLE event; --"


def test_a_file_is_kept_once_whatever_it_is_called(writer: Writer, reader: Reader) -> None:
    assert writer.insert_new_file(an_import_file())
    assert not writer.insert_new_file(an_import_file(path="/results/copy.json"))
    assert writer.insert_new_file(an_import_file(path="/results/b.json", content_hash="6a" * 32))
    assert [file.path for file in reader.import_files()] == ["/results/a.json", "/results/b.json"]
    assert [file.raw for file in reader.import_files()] == [{}, {}]
    assert reader.import_files(with_raw=True)[0].raw == {"results": [{"completed": 300}]}
