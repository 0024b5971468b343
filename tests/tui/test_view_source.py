"""A session that stands still is read once, whoever looks; what happens in it is seen at the next look."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from store.database import open_reader, open_writer
from store.reader import Reader
from store.records import EventRecord, RunRecord, SampleRecord, SessionRecord
from store.writer import Writer
from tests.tui.tune_session import record_session, stamp
from tui.tune.tune_source import KEPT_VIEWS, REREAD_S, ViewSource
from tui.tune.tune_view import TuneView

NOW = stamp(3000)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    with open_writer(tmp_path / "llmtune.db") as opened:
        yield opened


@pytest.fixture
def reader(writer: Writer) -> Iterator[Reader]:
    with open_reader(writer.path, remembers=True) as opened:
        yield opened


def test_a_session_is_read_again_only_when_something_happened(writer: Writer, reader: Reader) -> None:
    number = record_session(writer, finished=False)
    clock = iter(range(1000))
    source = ViewSource(lambda: next(clock) / 1000)

    def look(kept: bool = True) -> TuneView:
        return source.read(reader, reader.session(number), kept, NOW)

    first = look()
    writer.insert_samples([SampleRecord(NOW, run_id=1)])
    assert look() is first
    running = next(run for run in reader.runs(number) if run.state == "running")
    assert running.id is not None
    writer.update(RunRecord, running.id, state="done")
    second = look()
    assert second is not first
    assert (first.run is not None, second.run) == (True, None)
    writer.insert(EventRecord(NOW, "info", "news", session_id=number))
    assert look().events[-1].text == "news"
    assert look(kept=False).keeper_alive is False
    writer.update(SessionRecord, number, state="paused")
    assert look().session.state == "paused"


def test_what_only_passes_is_read_again_now_and_then_while_a_session_goes_on(writer: Writer, reader: Reader) -> None:
    running, done = (record_session(writer, finished=finished) for finished in (False, True))
    now = 0.0
    source = ViewSource(lambda: now)
    before = [source.read(reader, reader.session(number), True, NOW) for number in (running, done)]
    now = REREAD_S
    after = [source.read(reader, reader.session(number), True, stamp(3600)) for number in (running, done)]
    assert after[0].result.seconds_used > before[0].result.seconds_used
    assert after[1] is before[1]


def test_views_of_some_sessions_are_kept(writer: Writer, reader: Reader) -> None:
    numbers = [record_session(writer) for _ in range(KEPT_VIEWS + 1)]
    source = ViewSource()
    views = [source.read(reader, reader.session(number), False, NOW) for number in numbers]
    assert source.read(reader, reader.session(numbers[1]), False, NOW) is views[1]
    assert source.read(reader, reader.session(numbers[0]), False, NOW) is not views[0]
