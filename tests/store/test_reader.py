import threading
from pathlib import Path
from typing import Any

import pytest

from store.database import open_reader
from store.errors import NotFound
from store.reader import Reader, SessionProgress
from store.records import LaunchRecord, RunRecord, SessionRecord
from store.writer import Writer
from tests.store.examples import a_launch, a_run, a_sample, a_server, a_session, an_event, an_import_file, fill


def at(second: int) -> str:
    return f"2026-11-30T10:00:{second:02}.000Z"


def test_sessions_are_found_by_id_name_and_last(writer: Writer, reader: Reader) -> None:
    first = writer.insert(a_session(name="knobs"))
    second = writer.insert(a_session(name="knobs"))
    third = writer.insert(a_session(name="1"))
    assert [session.id for session in reader.sessions()] == [first, second, third]
    assert reader.find_session(str(second)).id == second
    assert reader.find_session("knobs").id == second
    assert reader.find_session("last").id == third
    assert reader.find_session("1").id == first
    for word in ("9", "nobody", "", "٣", "9" * 40, "-1"):
        with pytest.raises(NotFound, match="`llmtune sessions` lists them"):
            reader.find_session(word)


def test_a_name_of_digits_is_found_where_no_id_is(writer: Writer, reader: Reader) -> None:
    id = writer.insert(a_session(name="4096"))
    assert reader.find_session("4096").id == id


def test_nothing_is_last_in_an_empty_store(reader: Reader) -> None:
    with pytest.raises(NotFound):
        reader.find_session("last")


def test_absent_rows_are_named(reader: Reader) -> None:
    with pytest.raises(NotFound, match="no session 3"):
        reader.session(3)
    with pytest.raises(NotFound, match="no server 3"):
        reader.server(3)


def test_servers_by_session_and_by_being_alive(writer: Writer, reader: Reader) -> None:
    session_id = writer.insert(a_session())
    states = ("starting", "ready", "stopping", "stopped", "failed")
    ours = [writer.insert(a_server(session_id, state=state)) for state in states]
    by_hand = writer.insert(a_server())
    assert [server.id for server in reader.servers()] == [*ours, by_hand]
    assert [server.id for server in reader.servers(session_id)] == ours
    assert [server.id for server in reader.servers(active=True)] == [*ours[:3], by_hand]
    assert [server.id for server in reader.servers(session_id, active=True)] == ours[:3]
    assert reader.server(by_hand) == a_server(id=by_hand)


def test_the_newest_servers_and_what_marks_a_change_among_them(writer: Writer, reader: Reader) -> None:
    assert reader.server_marks() == (0, 0)
    servers = [writer.insert(a_server()) for _ in range(3)]
    assert [server.id for server in reader.servers(newest=2)] == servers[1:]
    assert reader.server_marks() == (3, servers[-1])


def test_sessions_in_a_state_and_the_newest(writer: Writer, reader: Reader) -> None:
    assert reader.newest_session() is None
    states = ("waiting", "done", "paused", "running", "waiting")
    waiting, _, paused, running, _ = [writer.insert(a_session(state=state)) for state in states]
    assert [one.id for one in reader.sessions(("running", "paused"))] == [paused, running]
    newest = reader.newest_session()
    assert newest is not None
    assert newest.id == running
    assert len(reader.sessions()) == 5
    assert waiting in [one.id for one in reader.sessions(("waiting",))]


def test_marks_change_when_something_happens_in_the_session_and_only_then(writer: Writer, reader: Reader) -> None:
    session_id, server_id, launch_id, run_id = fill(writer)
    other, *_ = fill(writer)
    seen = [reader.marks(session_id)]
    writer.insert_samples([a_sample(run_id=run_id, server_id=server_id)])
    writer.insert(a_run(other, launch_id))
    writer.insert(an_event(session_id=other))
    assert reader.marks(session_id) == seen[0]
    for change in (
        lambda: writer.insert(a_run(session_id, launch_id, state="running")),
        lambda: writer.update(RunRecord, run_id, state="rejected"),
        lambda: writer.update(LaunchRecord, launch_id, state="failed"),
        lambda: writer.insert(an_event(session_id=session_id)),
        lambda: writer.insert(a_launch(session_id)),
    ):
        change()
        assert reader.marks(session_id) not in seen
        seen.append(reader.marks(session_id))


def test_progress_of_some_sessions(writer: Writer, reader: Reader) -> None:
    first, *_ = fill(writer)
    second, *_ = fill(writer)
    assert list(reader.progress([second])) == [second]
    assert list(reader.progress([])) == []
    assert list(reader.progress()) == [first, second]


def test_a_reader_that_remembers_gives_the_same_record_until_its_row_changes(writer: Writer, path: Path) -> None:
    session_id, server_id, *_ = fill(writer)
    with open_reader(path, remembers=True) as reader:
        session, server = reader.session(session_id), reader.server(server_id)
        writer.insert(an_event(session_id=session_id))
        assert reader.sessions()[0] is session
        assert reader.servers()[0] is server
        writer.update(SessionRecord, session_id, raw={"seconds_used": 3})
        assert reader.session(session_id).raw == {"seconds_used": 3}
        assert reader.runs(session_id)[0] is not reader.runs(session_id)[0]
        writer.delete_session(session_id)
        assert writer.insert(a_session(name="another")) == session_id
        assert reader.session(session_id).name == "another"


def test_runs_of_a_kind_and_with_their_raw_result(writer: Writer, reader: Reader) -> None:
    session_id, _, launch_id, first = fill(writer)
    warmup = writer.insert(a_run(session_id, launch_id, kind="warmup"))
    other_session, *_ = fill(writer)
    assert [run.id for run in reader.runs(session_id)] == [first, warmup]
    assert [run.id for run in reader.runs(session_id, kind="warmup")] == [warmup]
    assert reader.runs(session_id)[0].raw == {}
    assert reader.runs(session_id, with_raw=True)[0].raw == {"completed": 300}
    assert len(reader.runs(other_session)) == 1
    assert [launch.id for launch in reader.launches(session_id)] == [launch_id]


def test_the_evidence_of_runs_without_the_rest_of_their_results(writer: Writer, reader: Reader) -> None:
    session_id, _, launch_id, first = fill(writer)
    found = [{"check": "client", "numbers": {"client_cpu_perc": 97.5}}]
    writer.update(RunRecord, first, raw={"result": {"text": '"evidence"'}, "evidence": found})
    writer.insert(a_run(session_id, launch_id, raw={"result": {"text": '"evidence"'}}))
    assert reader.evidence(session_id) == {first: found}
    assert reader.evidence(fill(writer)[0]) == {}


def test_samples_in_order_since_a_moment_and_the_newest(writer: Writer, reader: Reader) -> None:
    server_id, other = writer.insert(a_server()), writer.insert(a_server())
    writer.insert_samples([a_sample(at=at(second), server_id=server_id) for second in (3, 1, 2, 0)])
    writer.insert_samples([a_sample(at=at(9), server_id=other)])

    def seconds(since: str | None = None, limit: int | None = None) -> list[str]:
        return [sample.at for sample in reader.samples(server_id=server_id, since=since, limit=limit)]

    assert seconds() == [at(0), at(1), at(2), at(3)]
    assert seconds(since=at(1)) == [at(2), at(3)]
    assert seconds(limit=3) == [at(1), at(2), at(3)]
    assert seconds(since=at(0), limit=2) == [at(2), at(3)]
    assert seconds(since=at(3)) == []
    assert reader.samples(limit=1)[0].server_id == other
    assert reader.samples(server_id=server_id)[0].raw == {"gpus": [{"index": 0}]}


def test_samples_spread_over_the_time_there_is(writer: Writer, reader: Reader) -> None:
    server_id, other = writer.insert(a_server()), writer.insert(a_server())
    often = [a_sample(at=at(second), server_id=server_id) for second in range(11)]
    seldom = [a_sample(at=at(second), server_id=server_id) for second in range(20, 60, 10)]
    writer.insert_samples([*often, *seldom, *(a_sample(at=at(second), server_id=other) for second in range(60))])

    def seconds(**how: Any) -> list[str]:
        return [sample.at for sample in reader.samples(server_id=server_id, **how)]

    assert seconds(at_most=6) == [at(0), at(10), at(20), at(30), at(40), at(50)]
    assert seconds(at_most=2) == [at(0), at(50)]
    assert seconds(at_most=15) == seconds()
    assert seconds(until=at(10), at_most=6) == [at(0), at(2), at(4), at(6), at(8), at(10)]
    assert seconds(since=at(3), until=at(5)) == [at(4), at(5)]
    assert reader.samples(server_id=99, at_most=2) == []
    assert reader.samples(server_id=server_id, at_most=2)[0].raw == {"gpus": [{"index": 0}]}


def test_one_run_one_launch_and_the_lines_of_all(writer: Writer, reader: Reader) -> None:
    session_id, _, launch_id, run_id = fill(writer)
    writer.update(RunRecord, run_id, limited_by="KV-bound")
    fill(writer)
    assert reader.run(run_id) == a_run(
        session_id, launch_id, id=run_id, limited_by="KV-bound", metrics=reader.run(run_id).metrics
    )
    assert reader.launch(launch_id).state == "done"
    (line,) = reader.run_lines(session_id)
    assert (line.id, line.kind, line.total_tok_per_s, line.limited_by) == (run_id, "measured", 27223.5, "KV-bound")
    with pytest.raises(NotFound, match="no run 9"):
        reader.run(9)
    with pytest.raises(NotFound, match="no launch 9"):
        reader.launch(9)


def test_events_the_newest_last_and_no_more_than_asked(writer: Writer, reader: Reader) -> None:
    session_id = writer.insert(a_session())
    for number in range(60):
        writer.insert(an_event(session_id=session_id, text=str(number)))
    server_id = writer.insert(a_server())
    writer.insert(an_event(server_id=server_id, text="server"))
    assert [event.text for event in reader.events(session_id, limit=3)] == ["57", "58", "59"]
    assert len(reader.events(session_id)) == 50
    assert len(reader.events(session_id, limit=None)) == 60
    assert [event.text for event in reader.events(server_id=server_id)] == ["server"]
    assert reader.events()[-1].text == "server"


def test_progress_counts_launches_and_measured_runs(writer: Writer, reader: Reader) -> None:
    session_id, _, launch_id, _ = fill(writer)
    writer.insert(a_session())
    writer.insert(a_run(session_id, launch_id, state="rejected"))
    writer.insert(a_run(session_id, launch_id, kind="warmup"))
    writer.insert(a_launch(session_id, state="starting"))
    assert reader.progress() == {
        session_id: SessionProgress(launches={"done": 1, "starting": 1}, runs={"done": 1, "rejected": 1})
    }


def test_version_changes_with_a_commit_and_only_then(writer: Writer, reader: Reader) -> None:
    before = reader.version()
    assert reader.version() == before
    with writer.transaction():
        writer.insert(a_session())
        assert reader.version() == before
    after = reader.version()
    assert after != before
    reader.sessions()
    assert reader.version() == after
    writer.insert_samples([a_sample()])
    assert reader.version() != after


QUESTIONS = {
    "SELECT * FROM run WHERE session_id = 1 AND kind = 'measured' ORDER BY id": "USING INDEX run_",
    "SELECT * FROM launch WHERE session_id = 1 ORDER BY id": "launch_by_session",
    "SELECT * FROM sample WHERE server_id = 1 AND at > 'x' ORDER BY at DESC, id DESC LIMIT 5": "sample_by_server",
    "SELECT * FROM sample WHERE run_id = 1 ORDER BY at, id": "sample_by_run",
    "SELECT * FROM event WHERE session_id = 1 ORDER BY id DESC LIMIT 50": "event_by_session",
    "SELECT * FROM event WHERE server_id = 1 ORDER BY id DESC LIMIT 50": "event_by_server",
    "SELECT * FROM server WHERE state IN ('ready', 'starting') ORDER BY id": "server_by_state",
    "DELETE FROM sample WHERE run_id = 1": "sample_by_run",
    "SELECT session_id, state, COUNT(*) FROM run WHERE kind = 'measured' GROUP BY session_id, state": (
        "COVERING INDEX run_by_session"
    ),
    "SELECT id, limited_by FROM run WHERE session_id = 1": "COVERING INDEX run_limited_by",
    "SELECT * FROM session WHERE state IN ('running', 'paused') ORDER BY id": "session_by_state",
    "SELECT session_id, state, COUNT(*) FROM launch GROUP BY session_id, state": "COVERING INDEX launch_by_session",
}


@pytest.mark.parametrize(("question", "index"), QUESTIONS.items())
def test_a_question_has_its_index(question: str, index: str, writer: Writer) -> None:
    plan = writer._connection.execute(f"EXPLAIN QUERY PLAN {question}").fetchall()
    assert index in plan[0][3]


def test_several_threads_may_ask_one_reader(writer: Writer, reader: Reader) -> None:
    session_id, *_ = fill(writer)
    answers: list[int] = []

    def ask() -> None:
        for _ in range(100):
            answers.append(len(reader.runs(session_id)) + len(reader.sessions()))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [2] * 400


def test_imported_files_are_read_by_their_ids_and_marked_by_their_number(reader: Reader, writer: Writer) -> None:
    assert reader.import_marks() == (0, 0)
    for number in range(3):
        writer.insert_new_file(an_import_file(content_hash=str(number)))
    assert reader.import_marks() == (3, 3)
    assert [each.id for each in reader.import_files(ids=[3, 1, 9])] == [1, 3]
    assert reader.import_files(ids=[]) == []
    assert reader.import_files(with_raw=True, ids=[2])[0].raw == an_import_file().raw
