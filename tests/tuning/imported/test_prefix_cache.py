"""The same prompts sent twice to one server."""

import json
from typing import Any

import pytest

from tests.tuning.imported.results import BENCH, a_result, by_label, report_on
from tuning.imported.records import ImportedRun, ImportReport


def recorded(*names: str) -> dict[str, list[dict[str, Any]]]:
    return {f"/b/restart-{name}.json": [json.loads((BENCH / f"restart-{name}.json").read_text())] for name in names}


def rejected(report: ImportReport) -> dict[str, str]:
    runs: list[ImportedRun] = [run for load in report.loads for each in load.configurations for run in each.runs]
    return {run.place.path.rpartition("/")[2]: run.rejected for run in runs if run.rejected}


def test_the_second_of_two_recorded_runs_with_one_seed_is_flagged() -> None:
    found = rejected(report_on(recorded("A1-same0", "A1-same1")))
    assert list(found) == ["restart-A1-same1.json"]
    reason = found["restart-A1-same1.json"]
    assert "49 % more tokens a second" in reason
    assert "TTFT 166.7 against 446.5 ms" in reason
    assert "restart-A1-same0.json" in reason


def test_of_all_recorded_runs_no_other_is() -> None:
    names = [path.stem.removeprefix("restart-") for path in BENCH.glob("restart-*.json")]
    assert list(rejected(report_on(recorded(*names)))) == ["restart-A1-same1.json"]


def test_on_another_day_it_is_no_artefact_that_can_be_told() -> None:
    files = recorded("A1-same0", "A1-same1")
    files["/b/restart-A1-same1.json"][0]["date"] = "20261201-085135"
    assert rejected(report_on(files)) == {}


CACHED = {"mean_ttft_ms": 150.0, "p99_itl_ms": 20.0}


def pair(first: dict[str, Any], second: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    return {"a-0.json": [a_result(0, **first)], "a-1.json": [a_result(12, **second)]}


def test_a_seed_that_is_told_is_proof_at_any_speed() -> None:
    assert "(seed 0 in both)" in rejected(report_on(pair({"seed": "0"}, {"seed": "0"})))["a-1.json"]
    assert rejected(report_on(pair({"seed": "0"}, {"seed": "1"}))) == {}


def test_lists_of_lengths_are_proof_unless_all_are_equal() -> None:
    lengths = {"input_lens": [510, 514] * 50}
    assert "the same lengths in the same order" in rejected(report_on(pair(lengths, lengths)))["a-1.json"]
    assert rejected(report_on(pair({"input_lens": [512] * 100}, {"input_lens": [512] * 100}))) == {}


def test_the_same_answers_are_proof() -> None:
    texts = {"generated_texts": ["a", "b"]}
    assert "the same answers" in rejected(report_on(pair(texts, texts)))["a-1.json"]
    assert rejected(report_on(pair({"generated_texts": [""]}, {"generated_texts": [""]}))) == {}


@pytest.mark.parametrize(
    "second",
    [
        {"speed": 1.02, "mean_ttft_ms": 150.0, "p99_itl_ms": 20.0},  # no faster in all
        {"speed": 1.5, "mean_ttft_ms": 380.0, "p99_itl_ms": 20.0},
        {"speed": 1.5, "mean_ttft_ms": 150.0, "p99_itl_ms": 95.0},  # another limit of sequences
        {"speed": 1.5, **CACHED, "total_input_tokens": 51_201},  # other prompts
        {"speed": 1.5, **CACHED, "model_id": "org/other"},  # another server
    ],
)
def test_what_lacks_a_part_of_the_signature_counts(second: dict[str, Any]) -> None:
    assert rejected(report_on(pair({}, second))) == {}
    assert list(rejected(report_on(pair({}, {"speed": 1.5, **CACHED})))) == ["a-1.json"]


def test_a_sweep_resets_its_caches() -> None:
    folder = "x/SERVE--max_num_seqs=4"
    files = {f"{folder}/run={number}.json": [a_result(12 * number, run_number=number, seed=0)] for number in range(3)}
    report = report_on(files)
    assert rejected(report) == {}
    assert next(iter(by_label(report).values())).counted == 3
