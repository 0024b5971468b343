import pytest

from tests.tuning.checks.recorded import Gpu, one, recorded, with_gpus
from tuning.checks.acceptance import findings, rejects
from tuning.checks.clocks import FAULTS, capped, limit_moved, throttled


def reasons(at: int, *words: str) -> object:
    def change(place: int, gpu: Gpu) -> None:
        if place == at:
            gpu["throttle_reasons"] = list(words)

    return change


def test_the_power_cap_of_a_loaded_h200_is_a_note() -> None:
    facts = recorded()
    assert throttled(facts) is None
    note = one(capped(facts))
    assert not note.rejects
    assert note.numbers["reasons"] == ["power cap"]
    assert note.numbers["sm_clock_min_mhz"] == 1560
    assert note.numbers["sm_clock_max_mhz"] == 1980
    assert [finding.check for finding in findings(facts)] == ["clocks"]
    assert rejects(findings(facts)) is None


@pytest.mark.parametrize("word", sorted(FAULTS))
def test_one_reading_of_a_fault_rejects_a_short_run(word: str) -> None:
    found = one(throttled(with_gpus(reasons(8, "power cap", word))))  # type: ignore[arg-type]
    assert found.rejects
    assert word in found.reason
    assert "power cap" not in found.reason
    assert found.numbers["at"] == ["2026-11-30T11:39:09.510Z"]
    assert found.numbers["throttled_perc"] > found.numbers["threshold_perc"]
    assert found.numbers["temp_max_c"] == 57
    assert rejects(findings(with_gpus(reasons(8, word)))) == found.reason  # type: ignore[arg-type]


def test_before_the_load_a_gpu_may_be_held_back() -> None:
    assert throttled(with_gpus(reasons(1, "hardware thermal"))) is None  # type: ignore[arg-type]


def test_a_fault_in_less_than_two_per_cent_of_a_long_run_is_let_pass() -> None:
    facts = with_gpus(reasons(8, "software thermal"))  # type: ignore[arg-type]
    middle = list(facts.samples[4:-1])
    quiet = [sample for sample in middle if "software thermal" not in sample.raw["gpus"][0]["throttle_reasons"]]
    long = recorded(samples=[*facts.samples[:4], *middle, *(quiet * 8), facts.samples[-1]])
    assert len(long.load) > 50
    assert throttled(long) is None


def test_a_gpu_that_the_server_does_not_use_is_not_judged() -> None:
    facts = recorded()
    for sample in facts.samples:
        sample.raw["gpus"].append({**sample.raw["gpus"][0], "index": 1, "throttle_reasons": ["hardware thermal"]})
    assert throttled(facts) is None
    assert throttled(recorded(samples=facts.samples, uses=None)) is not None


def test_reasons_that_cannot_be_read_say_nothing() -> None:
    def unread(at: int, gpu: Gpu) -> None:
        del gpu["throttle_reasons"]

    assert throttled(with_gpus(unread)) is None
    assert capped(with_gpus(unread)) is None
    assert throttled(recorded(samples=())) is None


def test_a_power_limit_that_was_moved_rejects() -> None:
    def lower(at: int, gpu: Gpu) -> None:
        gpu["power_limit_w"] = 700.0 if at < 9 else 500.0

    found = one(limit_moved(with_gpus(lower)))
    assert "from 700 to 500 W" in found.reason
    assert found.numbers["at"][0] == "2026-11-30T11:39:10.509Z"
    assert limit_moved(recorded()) is None
    assert rejects(findings(with_gpus(lower))) == found.reason
