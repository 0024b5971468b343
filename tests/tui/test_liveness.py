"""Whether a server answers and gets on."""

from typing import Any

import pytest

from store.clock import format_utc
from store.records import SampleRecord
from tests.tui.conftest import NOW
from tui.monitor.liveness import Pulse

T0 = NOW.timestamp()


def sample(tokens: float | None = 0.0, running: float | None = 1.0, **raw: Any) -> SampleRecord:
    return SampleRecord(at=format_utc(NOW), running=running, generation_tokens=tokens, raw=raw)


def failed(error: str = "Nothing answers.") -> SampleRecord:
    return SampleRecord(at=format_utc(NOW), raw={"error": error})


def life(pulse: Pulse, now: float, interval_s: float = 1.0) -> str:
    return pulse.liveness(T0 + now, T0, interval_s).life


def test_it_is_silent_within_two_intervals_whatever_the_time_out() -> None:
    pulse = Pulse()
    assert life(pulse, 0.5) == "asking"
    assert life(pulse, 2.1) == "silent"  # it never answered
    pulse.add(T0 + 3.0, sample())
    assert life(pulse, 5.0) == "answers"
    assert life(pulse, 5.01) == "silent"
    assert pulse.silent_from(T0, 1.0) == T0 + 5.0
    found = pulse.liveness(T0 + 15.0, T0, 1.0)
    assert (found.life, found.since_s, found.answers) == ("silent", 12.0, False)
    assert life(pulse, 15.0, interval_s=10.0) == "answers"


def test_a_failed_look_makes_it_silent_sooner_and_says_why() -> None:
    pulse = Pulse()
    pulse.add(T0, failed("Nothing answers at x."))
    assert life(pulse, 0.01) == "silent"
    pulse.add(T0 + 1.0, sample())
    assert life(pulse, 1.5) == "answers"
    pulse.add(T0 + 2.0, failed("It answered with status 500."))
    assert life(pulse, 2.1) == "answers"  # one look that failed is no death yet
    assert life(pulse, 2.6) == "silent"
    assert pulse.liveness(T0 + 3.0, T0, 1.0).error == "It answered with status 500."


def test_a_page_without_anything_of_vllm_is_no_answer() -> None:
    pulse = Pulse()
    pulse.add(T0, SampleRecord(at=format_utc(NOW)))
    assert life(pulse, 0.1) == "silent"
    assert "no metrics of vLLM" in (pulse.error or "")


def test_an_engine_that_stands_still_while_requests_run() -> None:
    pulse = Pulse()
    for second in range(13):
        pulse.add(T0 + second, sample(tokens=100.0))
        expected = "answers" if second < 3 else "slow" if second < 10 else "stalled"
        assert life(pulse, second) == expected, second
    assert pulse.liveness(T0 + 12.0, T0, 1.0).since_s == 12.0
    assert pulse.liveness(T0 + 12.0, T0, 1.0).answers  # its queue is of now
    pulse.add(T0 + 13.0, sample(tokens=101.0))
    assert life(pulse, 13.0) == "answers"


@pytest.mark.parametrize("running", [0.0, None])
def test_without_requests_nothing_stands_still(running: float | None) -> None:
    pulse = Pulse()
    for second in range(30):
        pulse.add(T0 + second, sample(tokens=100.0, running=running))
    assert life(pulse, 29.0) == "answers"


def test_steps_of_a_long_prefill_are_progress() -> None:
    pulse = Pulse()
    for second in range(30):
        steps = {"step_tokens": {"sum": 0, "count": second, "corners": [[None, second]]}}
        pulse.add(T0 + second, sample(tokens=100.0, histograms=steps))
    assert life(pulse, 29.0) == "answers"


def test_without_any_counter_of_work_a_stall_cannot_be_told() -> None:
    pulse = Pulse()
    for second in range(30):
        pulse.add(T0 + second, sample(tokens=None))
    assert life(pulse, 29.0) == "answers"


def test_a_sleeping_server_is_said_to_sleep() -> None:
    pulse = Pulse()
    pulse.add(T0, sample(running=0.0, sleep_state="weights_offloaded"))
    assert life(pulse, 0.1) == "asleep"
    pulse.add(T0 + 1, sample(running=0.0, sleep_state="awake"))
    assert life(pulse, 1.1) == "answers"
