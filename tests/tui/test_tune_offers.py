"""What would start in place of a candidate that did not: read with the session, and put into the field of `a`."""

from dataclasses import replace
from pathlib import Path

from textual.widgets import Input

from store.database import open_reader, open_writer
from store.location import database_file
from store.records import LaunchRecord, SessionRecord
from tests.tui.test_tune import SMALL, Keeper, app_on, keeper, on_tune, until  # noqa: F401 - a fixture
from tests.tui.tune_session import session_in
from tui.tune.tune_source import read_view
from tui.widgets.ask_line import AskLine


def offer(place: Path, number: int) -> None:
    """Candidate 3 of the session failed; candidate 2 was not tried because of it."""
    with open_writer(database_file(place)) as writer, open_reader(database_file(place)) as reader:
        failed = next(each for each in reader.launches(number) if each.state == "failed")
        assert failed.id is not None
        writer.update(LaunchRecord, failed.id, raw={"offer": {"gpu-memory-utilization": 0.93}})
        session = reader.session(number)
        out = {**session.raw["out"], "2": "not tried: it would fail as candidate 3 did (oom_graph)"}
        writer.update(SessionRecord, number, raw={**session.raw, "out": out})


def test_an_offer_is_read_unless_it_is_a_candidate_already(tmp_path: Path) -> None:
    number = session_in(tmp_path, finished=False)
    offer(tmp_path, number)
    with open_reader(database_file(tmp_path)) as reader:
        session = reader.session(number)
        view = read_view(reader, session, lambda _: True, "2026-11-30T12:00:00.000Z")
        assert view.offers == ((3, {"gpu-memory-utilization": 0.93}),)
        assert view.foregone == ((2, "not tried: it would fail as candidate 3 did (oom_graph)"),)
        assert view.dropped == frozenset()
        added = {"index": 4, "label": "x", "settings": {"gpu-memory-utilization": 0.93}}
        known = replace(session, candidates=[*session.candidates, added])
        assert read_view(reader, known, lambda _: True, "2026-11-30T12:00:00.000Z").offers == ()


async def test_the_field_holds_the_offer_for_the_candidate_on_whose_row_one_stands(
    tmp_path: Path,
    keeper: Keeper,  # noqa: F811
) -> None:
    number = session_in(tmp_path / "data", finished=False)
    offer(tmp_path / "data", number)
    async with app_on(tmp_path).run_test(size=SMALL) as pilot:
        await on_tune(pilot, "measuring")
        await pilot.press("down", "down", "down", "a")
        await until(pilot, lambda: isinstance(pilot.app.screen, AskLine))
        assert pilot.app.screen.query_one(Input).value == "gpu-memory-utilization=0.93"
        await pilot.press("enter")
        await until(pilot, lambda: len(keeper.heard) == 1)
    assert keeper.heard == [(number, "add", {"settings": {"gpu-memory-utilization": 0.93}})]
