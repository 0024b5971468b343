"""Which servers the Monitor watches, which one it shows, and at what pace the others are looked at."""

import socket
from pathlib import Path

from engine.discovery import FoundServer
from store.clock import format_utc
from store.records import SampleRecord
from tests.tui.conftest import NOW, busy_samples, server
from tui.monitor.subject import Look, subject_of
from tui.monitor.watched import Watched
from tui.monitor.watching import FORGET_S, OurReading, Watching
from tui.panels.overview import Overview, overview_rows
from tui.panels.row import text_of

T0 = NOW.timestamp()


def watching(*urls: str) -> Watching:
    return Watching(urls, None, T0)


def reading(folder: Path, id: int, **changes: object) -> OurReading:
    filled = Watched(T0, server_id=id)
    filled.fill(busy_samples(id))
    return OurReading(server(folder, id=id, **changes), kept=True, filled=filled)


def test_a_url_is_shown_first_then_a_ready_server_of_ours(tmp_path: Path) -> None:
    assert watching().current is None
    assert watching("http://a:1", "http://b:1").current == "http://a:1"
    ours = watching()
    ours.take(None, [reading(tmp_path, 1, state="starting"), reading(tmp_path, 2, pid=573)], 2, None, T0)
    assert ours.current == 2
    assert [ours.next(1), ours.next(-1)] == [1, 1]


def test_one_that_was_chosen_stays_until_the_store_says_otherwise(tmp_path: Path) -> None:
    watched = watching("http://a:1")
    one, two = reading(tmp_path, 1), reading(tmp_path, 2, pid=573)
    watched.take(None, [one, two], 1, None, T0)
    watched.choose(2)
    watched.take(None, [one, two], 1, None, T0)  # read before it was chosen
    assert watched.current == 2
    watched.take(2, [one], 1, None, T0)  # its session was deleted: another takes over
    assert watched.current == 1


def test_samples_are_asked_for_from_the_newest_on_and_a_longer_window_anew(tmp_path: Path) -> None:
    watched = watching()
    watched.take(None, [reading(tmp_path, 1)], 1, None, T0)
    assert watched.wanted.read_to == {1: busy_samples(1)[-1].at}
    watched.choose(1)
    watched.set_window(300.0)
    assert watched.wanted.read_to == {}
    assert watched.wanted.window_s == 300.0


def test_a_found_server_is_listed_once_whatever_its_spelling(tmp_path: Path) -> None:
    watched = watching("http://127.0.0.1:8500")
    of_six = reading(tmp_path, 2, port=8001, pid=574, host="::1")
    watched.take(None, [reading(tmp_path, 1, port=8000, pid=572), of_six], 1, None, T0)
    there = (
        FoundServer("http://localhost:8500", 9, {"max-num-seqs": 4}, "m"),
        FoundServer("http://0.0.0.0:8000", 77, {}, "m"),  # ours, by its port
        FoundServer("http://[::1]:8001", 78, {}, "m"),
        FoundServer("http://127.0.0.1:8600", 572, {}, "m"),  # ours, by its process
        FoundServer("http://127.0.0.1:8700", 12, {}, "m"),
    )
    assert [one.url for one in watched.found(there, T0, 0.0)] == ["http://127.0.0.1:8700"]
    assert watched.keys() == [1, 2, "http://127.0.0.1:8500", "http://127.0.0.1:8700"]
    assert watched.foreign["http://127.0.0.1:8500"].knobs.max_num_seqs.value == 4
    assert watched.found(there, T0, 5.0) == []


def test_one_that_is_gone_leaves_the_list_unless_it_is_shown_or_was_given() -> None:
    watched = watching("http://127.0.0.1:8500")
    watched.found((FoundServer("http://127.0.0.1:8700", 12), FoundServer("http://127.0.0.1:8800", 13)), T0, 0.0)
    watched.choose("http://127.0.0.1:8800")
    assert watched.gone(FORGET_S) == []
    assert [one.url for one in watched.gone(FORGET_S + 1)] == ["http://127.0.0.1:8700"]
    assert watched.keys() == ["http://127.0.0.1:8500", "http://127.0.0.1:8800"]


def test_where_they_are_many_the_others_are_looked_at_less_often() -> None:
    few, many = (
        watching(*(f"http://a:{port}" for port in range(4))),
        watching(*(f"http://a:{port}" for port in range(9))),
    )
    few.set_interval(0.5)
    many.set_interval(0.5)
    assert {one.interval_s for one in few.foreign.values()} == {0.5}
    assert [one.interval_s for one in many.foreign.values()] == [0.5, *[5.0] * 8]
    many.choose("http://a:3")
    assert many.foreign["http://a:3"].interval_s == 0.5
    assert many.foreign["http://a:0"].interval_s == 5.0


def test_only_an_address_of_the_person_is_told_the_key() -> None:
    watched = Watching(("http://127.0.0.1:8500",), "secret", T0)
    (found,) = watched.found((FoundServer("http://127.0.0.1:8700", 12),), T0, 0.0)
    assert watched.foreign["http://127.0.0.1:8500"]._api_key == "secret"
    assert found._api_key is None


def test_one_that_turns_out_to_be_ours_is_listed_as_ours_alone(tmp_path: Path) -> None:
    watched = watching()
    there = (FoundServer("http://127.0.0.1:8000", 572),)
    watched.found(there, T0, 0.0)
    assert watched.current == "http://127.0.0.1:8000"
    watched.choose("http://127.0.0.1:8000")
    watched.take("http://127.0.0.1:8000", [reading(tmp_path, 1, port=8000)], None, None, T0)
    assert watched.found(there, T0, 5.0) == []
    assert len(watched.gone(5.0)) == 1
    assert watched.next(1) == 1
    assert watched.keys() == [1]


def test_an_address_of_the_person_is_ours_while_one_of_ours_runs_there(tmp_path: Path) -> None:
    url = "http://localhost:8000"
    watched = watching(url, "http://127.0.0.1:8500")
    assert watched.sampled() == [url, "http://127.0.0.1:8500"]
    watched.take(None, [reading(tmp_path, 1, port=8000)], 1, None, T0)
    assert watched.keys() == [1, "http://127.0.0.1:8500"]
    assert watched.sampled() == ["http://127.0.0.1:8500"]
    assert [watched.current, watched.wanted.shown] == [1, 1]
    assert watched.next(1) == "http://127.0.0.1:8500"
    watched.choose("http://127.0.0.1:8500")
    assert watched.next(1) == 1
    watched.choose(url)  # as it was chosen before it was known for ours
    watched.take(1, [reading(tmp_path, 1, port=8000, state="stopped")], 1, None, T0 + 60)
    assert [watched.current, watched.wanted.shown] == [url, url]
    watched.take(url, [], None, None, T0 + 61)
    assert watched.keys() == [url, "http://127.0.0.1:8500"]
    assert watched.foreign[url].began == T0 + 60


def test_one_of_ours_that_listens_on_all_addresses_has_those_of_this_machine(tmp_path: Path) -> None:
    here = f"http://{socket.gethostname()}:8000"
    watched = watching(here, "http://elsewhere.example:8000", "http://127.0.0.1:8001")
    watched.take(None, [reading(tmp_path, 1, port=8000, host="0.0.0.0")], 1, None, T0)
    assert watched.keys() == [1, "http://elsewhere.example:8000", "http://127.0.0.1:8001"]


def test_a_list_has_of_a_long_name_the_part_that_tells_it_apart() -> None:
    there = (
        FoundServer("http://127.0.0.1:8500", 11, {}, "/srv/models/qwen2.5-7b", "qwen2.5-7b"),
        FoundServer("http://127.0.0.1:8600", 12),  # its command line could not be read
        FoundServer("http://127.0.0.1:8700", 13, {}, "m", "m"),
        FoundServer("http://127.0.0.1:8800", 14, {}, "m", "m"),
        FoundServer("http://127.0.0.1:8900", 15, {}, "n", "n"),
    )
    watched = watching()
    watched.found(there, T0, 0.0)
    for port, model in (("8700", "/data/weights/of/models/llama-3.1-8b/"), ("8900", "Qwen/Qwen3-4B")):
        watched.foreign[f"http://127.0.0.1:{port}"].add(
            SampleRecord(at=format_utc(NOW), running=1, raw={"model_name": model})
        )
    subjects = [subject_of(watched, key, Look(NOW, 60.0, 1.0, 0, 5, False)) for key in watched.sampled()]
    assert [one.words[0] for one in subjects] == ["qwen2.5-7b", "not ours", "llama-3.1-8b", "m", "Qwen/Qwen3-4B"]
    rows = overview_rows([Overview(one, is_shown=False) for one in subjects], 80, 10)
    names = [text_of(row).split()[-6] for row in rows[1:]]
    assert names == ["qwen2.5-7b", "127.0.0.1:8600", "llama-3.1-8b", "m", "Qwen/Qwen3-4B"]
