import json
from pathlib import Path
from typing import Any

import pytest

from tests.tuning.imported.results import BENCH, a_result
from tuning.imported.reading import read_bytes, read_file
from tuning.imported.recognising import recognise


def test_a_real_result(tmp_path: Path) -> None:
    found, refused = read_file(BENCH / "restart-A1-0.json")
    assert found is not None
    assert refused is None
    assert found.results[0]["total_token_throughput"] == pytest.approx(27222.93, abs=0.01)
    assert len(found.content_hash) == 64


def test_a_file_of_two_gigabytes_is_not_opened(tmp_path: Path) -> None:
    huge = tmp_path / "huge.json"
    with huge.open("wb") as file:
        file.truncate(2 * 2**30)
    found, refused = read_file(huge)
    assert found is None
    assert refused is not None
    assert refused.reason.startswith("has 2,048 MiB, more than 128: split it by lines")


def test_a_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.json").write_text("{}")

    def closed(*_: object, **__: object) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", closed)
    found, refused = read_file(tmp_path / "a.json")
    assert found is None
    assert refused is not None
    assert refused.reason == "cannot be read (Permission denied)"
    assert read_file(tmp_path / "gone.json")[1] is not None


def test_what_could_be_read_of_a_cut_file_is(tmp_path: Path) -> None:
    one = json.dumps(a_result())
    found, refused = read_bytes(f"{one}\n{one[:-30]}".encode(), "a.jsonl")
    assert found is not None
    assert refused is not None
    assert len(found.results) == 1
    assert "cut off in line 2" in refused.reason


def test_not_finite_numbers_are_absent_and_told() -> None:
    text = json.dumps(a_result(mean_ttft_ms=float("nan"), request_rate=float("inf")))
    found, refused = read_bytes(text.encode(), "a.json")
    assert found is not None
    assert refused is None
    assert found.results[0]["mean_ttft_ms"] is None
    assert found.results[0]["request_rate"] == "inf"
    assert found.notes == ("2 numbers of it are NaN or infinite, taken as absent",)
    json.dumps(found.results, allow_nan=False)


def test_keys_and_passwords_are_not_kept() -> None:
    raw = a_result(api_key="sk-abcdefghijklmnopqrstuvwxyz", note="at http://me:hunter2@host/", tokenizer_id="org/m")
    found, _ = read_bytes(json.dumps(raw).encode(), "a.json")
    assert found is not None
    kept = json.dumps(found.results)
    assert "sk-abc" not in kept
    assert "hunter2" not in kept
    assert '"tokenizer_id": "org/m"' in kept


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([], "holds no result"),
        ({}, "it has no duration, completed, request_throughput"),
        ([1, 2], "none of its 2 values"),
        ("text", "is no JSON"),
        ({"duration": "long", "completed": 3, "request_throughput": 1}, "not a number"),
        ({"duration": True, "completed": 3, "request_throughput": 1}, "not a number"),
        ([{"benchmark": {}, "metric": {}, "model": {}}], "PyTorch's"),
        ({"benchmarks": [], "args": {}}, "GuideLLM"),
        ({**a_result(), "total_output_tokens_retokenized": 5}, "SGLang"),
        ({"input_config": {}, "records": {}}, "AIPerf"),
        ({"elapsed_time": 1.0, "tokens_per_second": 2.0}, "vllm bench throughput"),
        ({"avg_latency": 1.0, "latencies": []}, "vllm bench latency"),
        ([{"request_id": "0", "prompt": "hello", "prompt_len": 12}], "no result of `vllm bench serve`"),
    ],
)
def test_what_is_no_result_is_called_by_its_name(value: Any, reason: str) -> None:
    found, refused = read_bytes(json.dumps(value).encode(), "a.json")
    assert found is None
    assert refused is not None
    assert reason in refused.reason


def test_a_failure_of_a_sweep_is_kept_as_one() -> None:
    failure = {"run_number": 0, "error_type": "TimeoutError", "error": "no\nserver", "serve_overrides": {}}
    assert recognise(failure)[0] == "failure"
    found, refused = read_bytes(json.dumps(failure).encode(), "run=0.failure.json")
    assert found is not None
    assert refused is None
    assert found.failures == ("TimeoutError: no server",)


def test_a_result_among_others_is_read_and_the_others_told() -> None:
    found, refused = read_bytes(json.dumps([a_result(), {"a": 1}]).encode(), "a.json")
    assert found is not None
    assert refused is not None
    assert len(found.results) == 1
    assert refused.reason.startswith("1 of 2 values: ")


def test_a_result_that_nests_without_end_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(400):
        deep = [deep]
    found, refused = read_bytes(json.dumps(a_result(x=deep)).encode(), "a.json")
    assert found is None
    assert refused is not None
    assert "nested too deeply" in refused.reason
