"""What a report reads: tables at once, the rest with the second look, and of a session that goes on now and then."""

from pathlib import Path

from store.database import open_reader, open_writer
from store.location import database_file
from store.records import SessionRecord
from tests.tui.judged_session import keep, with_winner
from tui.sessions.report_source import READ_S, ReportSource
from tui.tune.noise_source import noise_of
from tui.tune.tune_source import ViewSource
from tuning.document import Heading

NOW = "2026-11-30T12:00:00.000Z"


def test_the_tables_need_not_wait_for_the_rest(tmp_path: Path) -> None:
    keep(tmp_path, with_winner())
    source = ReportSource(ViewSource())
    with open_reader(database_file(tmp_path)) as reader:
        session = reader.session(1)
        looks = [source.read(reader, session, False, NOW) for _ in range(3)]
    assert looks[0].parts is None
    assert looks[1].parts is not None
    assert looks[2] is looks[1]
    heads = [part.text for part in looks[1].parts if isinstance(part, Heading)]
    assert heads[0] == "Cost and energy"
    assert "What left, failed or was rejected" in heads
    assert "What the numbers mean" in heads


def test_of_a_session_that_goes_on_they_are_made_now_and_then(tmp_path: Path) -> None:
    keep(tmp_path, with_winner(state="running"))
    now = [0.0]
    source = ReportSource(ViewSource(lambda: now[0]), lambda: now[0])
    with open_reader(database_file(tmp_path)) as reader, open_writer(database_file(tmp_path)) as writer:

        def look() -> object:
            return source.read(reader, reader.session(1), True, NOW).parts

        first, second = look(), look()
        assert first is None
        writer.update(SessionRecord, 1, message="another line")
        assert look() is second
        now[0] += READ_S
        assert look() is not second


def test_a_plan_of_another_shape_says_nothing_of_noise(tmp_path: Path) -> None:
    keep(tmp_path, with_winner())
    with open_writer(database_file(tmp_path)) as writer:
        writer.update(SessionRecord, 1, plan={"model": "m"})
    with open_reader(database_file(tmp_path)) as reader:
        assert noise_of(reader, reader.session(1)) is None
