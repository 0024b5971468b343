"""Events of the GPUs: throttling that lasts and not what flickers, GPUs that go and come, errors, limits."""

from typing import Any

import pytest

from engine.gpus.gpu import GpuReader
from engine.gpus.gpu_json import gpu_kept
from store.records import SampleRecord
from tests.engine.fake_nvml import FakeNvml
from tests.tui.panel_samples import HOSTILE_NUMBERS, HOSTILE_TEXTS, at
from tui.monitor.gpu_happenings import GpuHappenings, Said

GPU = gpu_kept(GpuReader(FakeNvml()).read().gpus[0])


def events(samples: list[dict[str, Any]]) -> list[tuple[int, Said]]:
    """What each sample tells, one a second, with the second."""
    happenings = GpuHappenings()
    return [
        (second, said)
        for second, raw in enumerate(samples)
        for said in happenings.add(float(second), SampleRecord(at=at(second), raw=raw))
    ]


def throttled(*reasons: str, gpus: int = 1) -> dict[str, Any]:
    return {"gpus": [{**GPU, "index": index, "throttle_reasons": list(reasons)} for index in range(gpus)]}


def test_throttling_that_lasts_is_told_once_at_each_end() -> None:
    found = events([throttled()] * 5 + [throttled("power cap")] * 60 + [throttled()] * 30)
    assert found == [
        (9, ("warning", "throttling began, GPU 0: power cap")),
        (74, ("info", "throttling ended, GPU 0: power cap, after 0:59")),
    ]


def test_a_cap_that_comes_and_goes_each_second_or_two_is_one_event() -> None:
    flicker = [throttled(), throttled("power cap"), throttled("power cap")] * 40
    assert [said for _, said in events(flicker)] == [("warning", "throttling began, GPU 0: power cap")]
    rare = ([throttled()] * 9 + [throttled("power cap")]) * 10
    assert events(rare) == []


def test_what_was_there_from_the_first_is_not_told_as_new() -> None:
    found = events([throttled("power cap")] * 30 + [throttled()] * 30)
    assert [said for _, said in found] == [("info", "throttling ended, GPU 0: power cap, after 0:29")]


def test_gpus_and_reasons_are_told_together() -> None:
    found = events([throttled(gpus=2)] + [throttled("power cap", "hardware thermal", gpus=2)] * 10)
    assert [text for _, (_, text) in found] == ["throttling began, GPU 0, 1: hardware thermal; GPU 0, 1: power cap"]


def test_clocks_that_somebody_set_are_no_throttling() -> None:
    assert events([throttled()] + [throttled("application clocks")] * 30) == []


def test_a_lost_gpu_its_return_and_the_driver_s() -> None:
    lost = {"gpus": [{**GPU}, {"index": 1, "error": "GPU is lost", "processes": []}]}
    both = {"gpus": [{**GPU}, {**GPU, "index": 1}]}
    gone = {"gpu_note": "GPU not readable any more: its driver went away (Uninitialized)."}
    assert events([both, both, lost, lost, both, gone, gone, both]) == [
        (2, ("error", "GPU 1: GPU is lost")),
        (4, ("info", "GPU 1 answers again")),
        (5, ("error", "GPU not readable any more: its driver went away (Uninitialized).")),
        (7, ("info", "the GPUs can be read again")),
    ]
    assert events([lost, lost]) == []  # so it was when we came
    assert events([{"gpu_note": "No GPU: no NVIDIA driver here."}] * 3) == []


def test_memory_errors_and_limits_that_change() -> None:
    worn, less = {"gpus": [{**GPU, "ecc_errors": 2}]}, {"gpus": [{**GPU, "ecc_errors": 2, "power_limit_w": 500.0}]}
    assert events([{"gpus": [GPU]}, worn, worn, less, less]) == [
        (1, ("error", "GPU 0: 2 uncorrected memory errors more")),
        (3, ("info", "GPU 0: power limit 500 W, was 700 W")),
    ]


@pytest.mark.parametrize("odd", [*HOSTILE_TEXTS, *HOSTILE_NUMBERS, [], {}, ["x"], {"gpus": "x"}])
def test_rows_of_another_program_are_borne(odd: Any) -> None:
    gpu = {"index": odd, "throttle_reasons": [odd] * 30, "error": odd, "ecc_errors": odd, "power_limit_w": odd}
    for raw in ({"gpus": odd}, {"gpus": [odd]}, {"gpus": [gpu], "gpu_note": odd}, {"gpu_note": odd}):
        found = events([{"gpus": [GPU]}, raw, throttled(), raw] * 12)
        assert all(ord(char) >= 32 for _, (_, text) in found for char in text)
        assert all(len(text) < 1000 for _, (_, text) in found)
