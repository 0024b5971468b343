"""What happened to a server, told from its samples."""

from datetime import timedelta
from typing import Any

from store.clock import format_utc
from store.records import SampleRecord
from tests.tui.conftest import NOW
from tui.monitor.happenings import Happenings


class Told:
    """Feeds samples one second apart and keeps what is told of each."""

    def __init__(self) -> None:
        self._happenings = Happenings(7)
        self._second = 0

    def __call__(self, seconds: int = 1, still_s: float = 0.0, **fields: Any) -> list[str]:
        self._second += seconds
        raw = fields.pop("raw", {})
        known = {"running": 0.0, "waiting": 0.0, "kv_perc": 10.0, "preemptions": 0.0, **fields}
        events = self._happenings.add(
            SampleRecord(at=format_utc(NOW + timedelta(seconds=self._second)), **known, raw=raw), still_s
        )
        assert all(event.server_id == 7 for event in events)
        return [event.text for event in events]

    def fails(self, error: str) -> list[str]:
        self._second += 1
        at = format_utc(NOW + timedelta(seconds=self._second))
        return [event.text for event in self._happenings.add(SampleRecord(at=at, raw={"error": error}))]


def test_the_first_request_is_one_that_was_seen_to_come() -> None:
    tell = Told()
    assert tell(prompt_tokens=0.0) == []
    assert tell(prompt_tokens=0.0) == []
    assert tell(prompt_tokens=9.0, running=1.0) == ["first request"]
    assert tell(prompt_tokens=0.0) != ["first request"]
    assert Told()(running=5.0, prompt_tokens=100.0) == []  # it had some before we looked


def test_preemptions_begin_once_a_burst() -> None:
    tell = Told()
    tell(preemptions=5.0)
    assert tell(preemptions=6.0) == ["preemptions began"]
    assert tell(preemptions=9.0) == []
    assert tell(50, preemptions=10.0) == []
    assert tell(61, preemptions=10.0) == []
    assert tell(preemptions=11.0) == ["preemptions began"]


def test_a_restart_is_told_by_its_start_or_a_counter_that_fell() -> None:
    tell = Told()
    tell(generation_tokens=100.0, raw={"process_start": 1.0})
    assert tell(generation_tokens=110.0, raw={"process_start": 2.0}) == ["restarted: its counters began anew"]
    assert tell(generation_tokens=3.0, raw={"process_start": 2.0}) == ["restarted: its counters began anew"]


def test_silence_and_return_are_told_once_each() -> None:
    tell = Told()
    assert tell.fails("Nothing answers.") == []  # it never did
    assert tell.fails("Nothing answers.") == []
    tell()
    assert tell.fails("It hangs.") == []
    assert tell() == []  # a single look that failed
    tell.fails("It hangs.")
    assert tell.fails("It hangs.") == ["stopped answering: It hangs."]
    assert tell.fails("It hangs.") == []
    assert tell(10) == ["answers again after 0:13"]
    tell(generation_tokens=5.0)
    tell.fails("x")
    assert tell(generation_tokens=1.0) == ["restarted: its counters began anew"]


def test_a_full_cache_is_told_once_until_it_has_room_again() -> None:
    tell = Told()
    tell(kv_perc=50.0)
    assert tell(kv_perc=96.0) == ["KV cache above 95 %"]
    assert tell(kv_perc=94.0) == []
    assert tell(kv_perc=97.0) == []
    assert tell(kv_perc=80.0) == ["KV cache below 90 % again"]
    assert tell(kv_perc=None) == []


def test_throttling_is_told_with_its_gpu_and_reason() -> None:
    """Once it lasts; see test_gpu_happenings.py."""
    tell = Told()

    def gpu(*reasons: str) -> dict[str, Any]:
        return {"gpus": [{"index": 3, "throttle_reasons": list(reasons)}, "x", {"index": 4}]}

    assert tell(raw=gpu()) == []
    told = [text for _ in range(10) for text in tell(raw=gpu("power cap"))]
    assert told == ["throttling began, GPU 3: power cap"]
    assert tell(raw={}) == []  # not read: nothing is known
    assert [text for _ in range(12) for text in tell(raw=gpu())][-1].startswith("throttling ended, GPU 3: power cap")


def test_an_engine_that_stands_still_is_told_with_its_return() -> None:
    tell = Told()
    assert tell(still_s=9.0) == []
    assert tell(still_s=10.0) == ["its engine has computed nothing for 0:10 while requests run"]
    assert tell(still_s=11.0) == []
    assert tell(still_s=0.0) == ["its engine computes again, after 0:12"]
