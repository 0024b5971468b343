"""The script that measures, without a model: what it tells, and what it does not measure again."""

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lora.process.training_python import STANDALONE
from lora.standalone.llmtune_chat_tokens import Tokens

LENGTHS = (3, 9, 5, 8, 40)


class Chat:
    template = "model"

    def tokens(self, messages: Any) -> Tokens:
        return Tokens([1] * LENGTHS[messages], [1] * LENGTHS[messages])


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(STANDALONE))
    return importlib.import_module("llmtune_evaluate")


@pytest.fixture
def asked(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """What was measured: places of a batch, and questions."""
    found: list[tuple[str, Any]] = []

    def losses(model: Any, chat: Any, batch: list[Any], adapted: bool) -> list[float]:
        if not adapted:
            found.append(("batch", [row.place for row in batch]))
        return [row.place + (0.5 if adapted else 1.0) for row in batch]

    def answer(model: Any, chat: Any, messages: Any, longest: int, adapted: bool) -> str:
        if adapted:
            found.append(("question", messages))
        return "yes" if adapted else "no"

    monkeypatch.setattr(script, "losses", losses)
    monkeypatch.setattr(script, "answer", answer)
    monkeypatch.setattr(script, "load", lambda job: (None, "float32", "processor"))
    monkeypatch.setattr(script, "BATCH_TOKENS", 16)
    monkeypatch.setattr(script.chat_tokens, "open_tokenizer", lambda model: Chat())
    monkeypatch.setattr(script.chat_tokens, "read_examples", lambda path: list(range(len(LENGTHS))))
    return found


def evaluate(script: ModuleType, folder: Path, **measured: Any) -> tuple[int, list[dict[str, Any]]]:
    job = {
        "model": "m", "examples": "e", "max_length": 30, "prompts": ["a", "b"], "max_new_tokens": 4,
        "progress": str(folder / "progress.jsonl"), "seconds_before": 100.0,
        "measured": {"like": None, "records": [], "answers": [], **measured},
    }  # fmt: skip
    (folder / "progress.jsonl").unlink(missing_ok=True)
    (folder / "job.json").write_text(json.dumps(job))
    status = script.main(str(folder / "job.json"))
    return status, [json.loads(line) for line in (folder / "progress.jsonl").read_text().splitlines()]


def like(lines: list[dict[str, Any]]) -> dict[str, Any]:
    return {key: lines[1][key] for key in ("device", "dtype", "template", "versions")}


def test_it_measures_short_ones_first_and_tells_each(
    script: ModuleType, tmp_path: Path, asked: list[tuple[str, Any]]
) -> None:
    status, lines = evaluate(script, tmp_path)
    assert status == 0
    assert asked == [("batch", [0, 2]), ("batch", [3]), ("batch", [1]), ("question", "a"), ("question", "b")]
    assert [line["kind"] for line in lines] == ["start", "plan", *["record"] * 4, *["answer"] * 2, "done"]
    plan = lines[1]
    assert (plan["records"], plan["left_out"], plan["length"], plan["kept"]) == (4, 1, 25, False)
    assert [(line["index"], line["base"], line["adapter"]) for line in lines[2:4]] == [(0, 1.0, 0.5), (2, 3.0, 2.5)]
    assert lines[-1]["seconds"] >= 100.0, "those of earlier lives count"


def test_what_was_measured_alike_is_not_measured_again(
    script: ModuleType, tmp_path: Path, asked: list[tuple[str, Any]]
) -> None:
    before = like(evaluate(script, tmp_path)[1])
    asked.clear()
    status, lines = evaluate(script, tmp_path, like=before, records=[0, 2, 3], answers=[1])
    assert (status, lines[1]["kept"]) == (0, True)
    assert asked == [("batch", [1]), ("question", "a")]
    asked.clear()
    evaluate(script, tmp_path, like=before, records=[0, 3, 1], answers=[0, 1])
    assert asked == [("batch", [0, 2])], "a batch of which a part is missing is measured whole, as it was"


def test_what_was_measured_otherwise_is_of_no_use(
    script: ModuleType, tmp_path: Path, asked: list[tuple[str, Any]]
) -> None:
    before = like(evaluate(script, tmp_path)[1])
    asked.clear()
    _, lines = evaluate(
        script, tmp_path, like={**before, "device": "NVIDIA H200"}, records=[0, 1, 2, 3], answers=[0, 1]
    )
    assert lines[1]["kept"] is False
    assert len(asked) == 5


def test_a_loss_that_is_no_number_ends_it(
    script: ModuleType, tmp_path: Path, asked: list[tuple[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "losses", lambda model, chat, batch, adapted: [float("nan") for _ in batch])
    status, lines = evaluate(script, tmp_path)
    assert (status, lines[-1]["kind"]) == (1, "failed")
    assert lines[-1]["why"].startswith("the loss of the base on record 1 is no number")
