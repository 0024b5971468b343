"""What paths say: the folders of `vllm bench sweep`, and the names that people give."""

import pytest

from tests.tuning.imported.results import a_result
from tuning.imported.names import from_pattern, name_labels
from tuning.imported.places import place_of

SWEEP = a_result(run_number=0, max_num_seqs=32)


@pytest.mark.parametrize(
    ("path", "experiment", "serve", "bench"),
    [
        ("r/20261130_101500/SERVE--max_num_seqs=32/run=0.json", "r/20261130_101500", "max_num_seqs=32", ""),
        (
            "r/x/SERVE--max_num_seqs=32-max_num_batched_tokens=1024-BENCH--random_input_len=32/run=1.json",
            "r/x",
            "max_num_seqs=32-max_num_batched_tokens=1024",
            "random_input_len=32",
        ),
        ("r/x/BENCH--short/summary.json", "r/x", "", "short"),
        ("r/x/SERVE--tuned-WL--max_concurrency=8/run=0.json", "r/x", "tuned", "max_concurrency=8"),
        ("r/x/SERVE--a-BENCH--b-WL--max_concurrency=8/run=0.json", "r/x", "a", "b max_concurrency=8"),
        ("r/x/SERVE--a/request_rate=12/run=0.json", "r/x", "a", "request_rate=12"),
        ("r/x/SERVE--a/SLA--p99_e2el_ms<=500.json", "r/x", "a", ""),
        ("r/x/run=0.json", "r/x", "", ""),
    ],
)
def test_the_folders_of_a_sweep(path: str, experiment: str, serve: str, bench: str) -> None:
    place = place_of(path, 0, 1, SWEEP)
    assert (place.experiment, place.serve, place.bench, place.warmup) == (experiment, serve, bench, False)


def test_the_warm_up_of_a_sweep_is_one() -> None:
    assert place_of("r/x/SERVE--a/warmup.json", 0, 1, a_result(run_number=-1)).warmup


@pytest.mark.parametrize(
    ("path", "raw"),
    [("r/SERVE--a/run=0.json", a_result()), ("r/SERVE--a/mine.json", SWEEP), ("summary.json", a_result())],
)
def test_what_no_sweep_wrote_is_of_none(path: str, raw: dict[str, object]) -> None:
    assert place_of(path, 0, 1, raw).experiment is None


@pytest.mark.parametrize(
    ("paths", "labels"),
    [
        (["a/baseline.json", "a/tuned.json"], ["baseline", "tuned"]),
        (["a/run1.json", "a/run2.json"], ["", ""]),
        (["base-run-1.json", "base-run-2.json", "new_run_1.json"], ["base", "base", "new"]),
        (["a_b.c_run_1.json", "v0.25.1/a b-2.json"], ["a_b.c", "v0.25.1/a b-2"]),
        (["x-A-0.json", "x-A-1.json", "x-A-2.json", "x-B-0.json"], ["x-A", "x-A", "x-A", "x-B-0"]),
        (["seqs-64.json", "seqs-256.json"], ["seqs-64", "seqs-256"]),
        (["tp-1.json", "tp-2.json"], ["tp-1", "tp-2"]),
        (["m-4.json", "m-8.json"], ["m-4", "m-8"]),
        (["old/r.json", "new/r.json"], ["old/r", "new/r"]),
        (["2026-10-14/r.json", "2026-10-19/r.json"], ["r", "r"]),
        (["r-20261014-014903.json", "r-20261019-101533.json"], ["r", "r"]),
        (
            ["vllm-10.0qps-concurrency10-Qwen3-14B-20251014-014903.json", "openai-infqps-m-20251014-014903.json"],
            ["", ""],
        ),
        (["0.json", "1.json"], ["", ""]),
        ([], []),
    ],
)
def test_names_of_files(paths: list[str], labels: list[str]) -> None:
    assert [name_labels(paths)[path] for path in paths] == labels


def test_a_pattern_says_what_the_names_mean() -> None:
    pattern = "restart-{configuration}{launch}-{run}"
    assert from_pattern(pattern, "a/restart-A1-0.json") == {"configuration": "A", "launch": "1", "run": "0"}
    assert from_pattern(pattern, "a/restart-A1-same0.json") is None
    assert from_pattern("{configuration}_*", "a/x.y_z.json") == {"configuration": "x.y"}


@pytest.mark.parametrize(
    "pattern", ["{run}", "{configuration}{configuration}", "{config}", "plain", "{configuration}*a*b*c*"]
)
def test_a_pattern_that_is_none_is_told(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"configuration|\*"):
        from_pattern(pattern, "a.json")
