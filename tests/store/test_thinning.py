import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from store.clock import format_utc
from store.database import open_reader, open_writer
from store.errors import StoreFull
from store.reader import Reader
from store.records import SampleRecord
from store.thinning import STEPS, Moment, Verdict, judge, peak
from store.writer import Writer
from tests.store.examples import a_launch, a_run, a_server, a_session

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
OUTSIDE = [step for step in STEPS if not step.of_runs]
OF_RUNS = [step for step in STEPS if step.of_runs]


def moment(second: int, tokens: float | None, kv: float = 0.0, **changes: Any) -> Moment:
    usual = Moment(
        id=second, at=NOW + timedelta(seconds=second), server_id=1, run_id=None, totals=(tokens, None),
        gauges={"kv_perc": kv, "running": None},
    )  # fmt: skip
    return replace(usual, **changes)


def sample(age_s: float, tokens: float | None, server_id: int | None = 1, **changes: Any) -> SampleRecord:
    at = format_utc(NOW - timedelta(seconds=age_s))
    usual = SampleRecord(at, server_id=server_id, generation_tokens=tokens, prompt_tokens=tokens, raw={"model": "m"})
    return replace(usual, **changes)


def thin_all(writer: Writer, now: datetime = NOW, at_most: int = 300) -> None:
    while writer.thin(now, at_most):
        pass


# the policy


def test_samples_become_fewer_with_age_and_those_of_runs_stay_finer() -> None:
    for steps in (OUTSIDE, OF_RUNS):
        assert [step.every_s for step in steps] == sorted({step.every_s for step in steps})
        assert [step.after for step in steps] == sorted({step.after for step in steps})
    assert OF_RUNS[0].after > OUTSIDE[0].after
    assert OF_RUNS[-1].every_s <= OUTSIDE[0].every_s
    assert len({step.name for step in STEPS}) == len(STEPS)


def test_a_step_ends_with_a_whole_interval() -> None:
    step = OUTSIDE[1]
    for second in range(0, 130, 7):
        until = step.until(NOW + timedelta(seconds=second))
        assert until.timestamp() % step.every_s == 0
        assert timedelta(0) <= NOW + timedelta(seconds=second) - step.after - until < timedelta(seconds=step.every_s)


def test_the_last_of_an_interval_stays_with_the_largest_gauges() -> None:
    found = judge([moment(second, 10.0 * second, kv=90.0 if second == 3 else 5.0) for second in range(20)], 10)
    assert found.go == (*range(9), *range(10, 19))
    assert found.stay[9] == {"samples": 10, "silent": 0, "peak": {"kv_perc": 90.0}}
    assert found.stay[19]["peak"] == {"kv_perc": 5.0}


def test_a_sample_without_an_answer_gives_way_to_one_with_it() -> None:
    found = judge([moment(0, 1.0), moment(1, 2.0), moment(2, None), moment(3, None)], 10)
    assert (list(found.stay), found.go) == ([1], (0, 2, 3))
    assert (found.stay[1]["samples"], found.stay[1]["silent"]) == (4, 2)
    assert list(judge([moment(0, None), moment(1, None)], 10).stay) == [1]


def test_each_life_of_a_server_keeps_its_last_sample() -> None:
    found = judge([moment(0, 50.0), moment(1, 60.0), moment(2, None), moment(3, 2.0), moment(4, 9.0)], 10)
    assert sorted(found.stay) == [1, 4]


def test_servers_and_runs_are_judged_apart() -> None:
    apart = [moment(0, 1.0), moment(1, 1.0, server_id=2), moment(2, 1.0, run_id=3), moment(3, 1.0, run_id=4)]
    assert judge(apart, 10) == Verdict({}, ())


def test_what_is_to_be_kept_stays() -> None:
    found = judge([moment(second, 1.0, run_id=1) for second in range(5)], 10, frozenset({0}))
    assert (list(found.stay), found.go) == ([4], (1, 2, 3))


def test_thinning_again_adds_up_what_was_told() -> None:
    told = {"samples": 10, "silent": 3, "peak": {"kv_perc": 99.0, "running": 7.0}}
    found = judge([moment(0, 1.0, thinned=told), moment(10, 2.0, kv=40.0)], 60)
    assert found.stay[10] == {"samples": 11, "silent": 3, "peak": {"kv_perc": 99.0, "running": 7.0}}


def test_the_peak_of_a_sample_is_what_was_told_or_its_own() -> None:
    own = SampleRecord("2026-11-30T10:00:00.000Z", kv_perc=5.0, running=2.0)
    assert peak(own, "kv_perc") == 5.0
    thinned = replace(own, raw={"thinned": {"samples": 10, "silent": 0, "peak": {"kv_perc": 97.5}}})
    assert (peak(thinned, "kv_perc"), peak(thinned, "running"), peak(thinned, "waiting")) == (97.5, 2.0, None)
    assert peak(replace(own, raw={"thinned": "what is this"}), "kv_perc") == 5.0


# on a store


def hours(writer: Writer, server_id: int | None, ago: float, length: float, every_s: float = 1.0) -> list[SampleRecord]:
    """So many hours of samples that begin so many hours ago."""
    count = int(length * 3600 / every_s)
    made = [sample(ago * 3600 - every_s * at, every_s * at, server_id, kv_perc=float(at % 97)) for at in range(count)]
    writer.insert_samples(made)
    return made


def growth(samples: Sequence[SampleRecord]) -> float:
    known = [one.generation_tokens for one in samples if one.generation_tokens is not None]
    return known[-1] - known[0]


def test_old_samples_go_and_new_ones_stay_whole(writer: Writer, reader: Reader) -> None:
    by_hand = writer.insert(a_server())
    for hour in (7, 6):  # as they come: those of both, and then the newer ones of both
        for server_id in (by_hand, None):
            hours(writer, server_id, hour, 1)
    thin_all(writer)
    edge = format_utc(NOW - timedelta(hours=6))
    for server_id in (by_hand, None):
        kept = [one for one in reader.samples() if one.server_id == server_id]
        raw = [one for one in kept if one.at >= edge]
        old = [one for one in kept if one.at < edge]
        assert len(raw) == 3600
        assert all("thinned" not in one.raw for one in raw)
        assert len(old) == 360
        assert {one.raw["thinned"]["samples"] for one in old} == {10}
        assert old[-1].raw["model"] == "m"
        assert max(peak(one, "kv_perc") or 0.0 for one in old[:50]) == 96.0


def test_counters_grow_as_they_did_between_the_samples_that_stay(writer: Writer, reader: Reader) -> None:
    server_id = writer.insert(a_server())
    made = {one.at: one.generation_tokens for one in hours(writer, server_id, 6.5, 0.7)}
    thin_all(writer)
    kept = reader.samples(server_id=server_id)
    assert len(kept) < len(made)
    assert all(made[one.at] == one.generation_tokens for one in kept)
    assert growth(kept) >= 0.7 * 3600 - 10


def test_a_run_keeps_its_first_sample_and_all_for_two_days(writer: Writer, reader: Reader) -> None:
    session_id = writer.insert(a_session())
    server_id = writer.insert(a_server(session_id))
    launch_id = writer.insert(a_launch(session_id, server_id=server_id))
    new, old = (writer.insert(a_run(session_id, launch_id)) for _ in range(2))
    for run_id, days in ((old, 3.0), (new, 1.0)):
        writer.insert_samples([sample(86400 * days - at - 2, float(at), server_id, run_id=run_id) for at in range(60)])
    thin_all(writer)
    assert len(reader.samples(run_id=new)) == 60
    thinned = reader.samples(run_id=old)
    assert len(thinned) == 14
    assert growth(thinned) == 59.0
    thin_all(writer, NOW + timedelta(days=90))
    assert len(reader.samples(run_id=old)) == 8
    assert growth(reader.samples(run_id=new)) == 59.0


def test_a_week_takes_a_bounded_number_of_samples(writer: Writer, reader: Reader) -> None:
    server_id = writer.insert(a_server())
    hours(writer, server_id, 7 * 24, 7 * 24, every_s=40.0)
    thin_all(writer, at_most=5000)
    assert len(reader.samples(server_id=server_id)) == 2 * 2160 + 5 * 1440
    assert not writer.thin(NOW)


def test_thinning_goes_on_where_it_was_and_changes_nothing_twice(writer: Writer, reader: Reader) -> None:
    server_id = writer.insert(a_server())
    hours(writer, server_id, 6.2, 0.7)
    thin_all(writer)
    before = reader.samples(server_id=server_id)
    thin_all(writer)
    writer._connection.execute("DELETE FROM thinned")
    thin_all(writer)
    assert reader.samples(server_id=server_id) == before
    thin_all(writer, NOW + timedelta(minutes=30))
    assert len(reader.samples(server_id=server_id)) < len(before)


def test_samples_of_several_servers_are_thinned_in_batches_of_any_size(path: Path) -> None:
    kept = []
    for at_most in (40, 300, 5000):
        with open_writer(path.with_name(f"{at_most}.db")) as writer, open_reader(writer.path) as reader:
            servers = [writer.insert(a_server()) for _ in range(3)]
            writer.insert_samples(
                [sample(6.2 * 3600 - at, float(at), server_id) for at in range(700) for server_id in servers]
            )
            thin_all(writer, at_most=at_most)
            kept.append([(one.server_id, one.at) for one in reader.samples()])
    assert kept[0] == kept[1] == kept[2]
    assert len(kept[0]) == 3 * 70


def test_samples_of_a_clock_that_was_set_back_do_not_stand_in_the_way(writer: Writer, reader: Reader) -> None:
    server_id = writer.insert(a_server())
    writer.insert_samples([sample(-86400 * 300, 1.0, server_id)])
    hours(writer, server_id, 6.1, 0.2)
    thin_all(writer)
    assert len(reader.samples(server_id=server_id)) == 1 + 36 + 360


def test_numbers_that_are_given_again_are_thinned_too(writer: Writer, reader: Reader) -> None:
    by_hand = writer.insert(a_server())
    writer.insert_samples([sample(86400, 1.0, by_hand)])
    session_id = writer.insert(a_session())
    of_session = writer.insert(a_server(session_id))
    writer.insert_samples([sample(8 * 3600 - at, float(at), of_session) for at in range(3600)])
    thin_all(writer)
    writer.delete_session(session_id)
    writer.insert_samples([sample(7 * 3600 - at, float(at), by_hand) for at in range(600)])
    thin_all(writer)
    assert len(reader.samples(server_id=by_hand)) == 61


def test_a_damaged_row_does_not_stand_in_the_way(writer: Writer) -> None:
    server_id = writer.insert(a_server())
    writer.insert_samples([sample(7 * 3600 - at, float(at), server_id) for at in range(40)])
    writer._connection.execute("""UPDATE sample SET raw = '{"thinned":' WHERE id IN (5, 10, 20)""")
    thin_all(writer)
    assert writer._connection.execute("SELECT COUNT(*) FROM sample").fetchone()[0] == 4


def test_the_space_of_samples_that_went_is_used_again(writer: Writer) -> None:
    def pages() -> int:
        return int(writer._connection.execute("PRAGMA page_count").fetchone()[0])

    server_id = writer.insert(a_server())
    raw = {"filler": "x" * 2000}
    old = [sample(10 * 3600 - at, float(at), server_id, raw=raw) for at in range(6000)]
    writer.insert_samples(old)
    full = pages()
    thin_all(writer)
    writer.insert_samples(
        [replace(one, at=format_utc(NOW - timedelta(seconds=at))) for at, one in enumerate(old[600:])]
    )
    assert pages() < full * 1.1


def test_a_full_disk_while_thinning_loses_nothing(writer: Writer, reader: Reader) -> None:
    server_id = writer.insert(a_server())
    writer.insert_samples([sample(7 * 3600 - at, float(at), server_id) for at in range(2000)])
    before = reader.samples(server_id=server_id)
    pages = writer._connection.execute("PRAGMA page_count").fetchone()[0]
    writer._connection.execute(f"PRAGMA max_page_count = {pages}")
    writer._connection.executescript(
        "CREATE TEMP TRIGGER no_room AFTER DELETE ON sample WHEN old.id = 155 BEGIN"
        "  INSERT INTO event (at, level, text, raw) VALUES ('', '', hex(zeroblob(4000000)), '{}'); END"
    )
    with pytest.raises(StoreFull, match="No space is left"):
        thin_all(writer)
    assert reader.samples(server_id=server_id) == before
    writer._connection.execute("DROP TRIGGER no_room")
    thin_all(writer)
    assert len(reader.samples(server_id=server_id)) == 200


_THINS = """
import sys
from datetime import datetime
from pathlib import Path
from store.database import open_writer
with open_writer(Path(sys.argv[1])) as writer:
    print("thins", flush=True)
    while writer.thin(datetime.fromisoformat(sys.argv[2]), 40):
        pass
"""


def thinning_process(path: Path) -> "subprocess.Popen[bytes]":
    arguments = [sys.executable, "-c", _THINS, str(path), NOW.isoformat()]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"thins\n"
    return process


def prepared(path: Path) -> tuple[list[SampleRecord], list[SampleRecord]]:
    """A store of an hour to be thinned: its samples, and what thinning in one go leaves of them."""
    outcomes = []
    for name in (path, path.with_name("undisturbed.db")):
        with open_writer(name) as writer, open_reader(name) as reader:
            server_id = writer.insert(a_server())
            writer.insert_samples([sample(9 * 3600 - at, float(at), server_id) for at in range(3600)])
            outcomes.append(reader.samples())
            if name != path:
                thin_all(writer, at_most=40)
                outcomes.append(reader.samples())
    return outcomes[0], outcomes[2]


def test_thinning_that_is_killed_again_and_again_comes_to_the_same(path: Path) -> None:
    made, wanted = prepared(path)
    moments = random.Random(4)
    exact = {one.at: one.generation_tokens for one in made}
    killed = 0
    for _ in range(8):
        process = thinning_process(path)
        time.sleep(moments.uniform(0.0, 0.06))
        killed += process.poll() is None
        process.kill()
        process.wait()
        with open_reader(path) as reader:
            left = reader.samples()
            assert sum(one.raw.get("thinned", {}).get("samples", 1) for one in left) == len(made)
            assert all(exact[one.at] == one.generation_tokens for one in left)
        check = sqlite3.connect(path)
        assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        check.close()
    assert killed
    with open_writer(path) as writer:
        thin_all(writer, at_most=40)
    with open_reader(path) as reader:
        assert reader.samples() == wanted


def test_two_that_thin_at_once_come_to_the_same(path: Path) -> None:
    _, wanted = prepared(path)
    both = [thinning_process(path) for _ in range(2)]
    assert [process.wait(timeout=60) for process in both] == [0, 0]
    with open_reader(path) as reader:
        assert reader.samples() == wanted


def test_who_reads_while_samples_are_thinned_sees_whole_intervals(path: Path) -> None:
    made, _ = prepared(path)
    wrong: list[int] = []
    looks = 0
    stop = threading.Event()

    def look() -> None:
        nonlocal looks
        with open_reader(path) as reader:
            while not stop.is_set():
                count = sum(one.raw.get("thinned", {}).get("samples", 1) for one in reader.samples())
                looks += 1
                if count != len(made):
                    wrong.append(count)

    thread = threading.Thread(target=look)
    thread.start()
    process = thinning_process(path)
    assert process.wait(timeout=60) == 0
    stop.set()
    thread.join()
    assert looks > 1
    assert wrong == []
