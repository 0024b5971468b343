"""Evaluation, with a script that tells what the real one would; the real one is in test_served_adapters.py."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import lora.asking
from lora.answer_tokens import answer_tokens
from lora.asking import told_by
from lora.data.lines import example_line
from lora.data.writing import VALIDATION
from lora.evaluation import EvaluationSettings, evaluate, evaluation_record, questions
from lora.own_data import NoOwnData, OwnData, own_data
from lora.records import DataUnfit, Example, LoraError, Message
from lora.training_python import TrainingPython
from store.database import open_reader, open_writer
from store.errors import NotFound
from store.reader import Reader
from store.writer import Writer
from tests.lora.fake_transformers import make_model, make_transformers
from tests.store.examples import a_dataset, a_training, an_adapter

HERE = TrainingPython(sys.executable, str(Path(sys.executable).parent))
RECORDS = [{"kind": "record", "index": i, "tokens": 4, "base": 8.0, "adapter": 4.0 + i / 10} for i in (2, 0, 1)]
ANSWER = {"kind": "answer", "index": 0, "base": "a\x1b[2Jb", "adapter": "<<A>>"}
PLAN = {"kind": "plan", "records": 3, "left_out": 1, "template": "model", "device": "processor", "dtype": "float32"}


def conversations(*questions_: str) -> tuple[Example, ...]:
    return tuple(
        Example((Message("user", text), Message("assistant", text.upper())), line)
        for line, text in enumerate(questions_, 1)
    )


@pytest.fixture
def data(tmp_path: Path) -> OwnData:
    examples = conversations("one", "two", "three", "four")
    path = tmp_path / "v.jsonl"
    path.write_text("".join(map(example_line, examples)))
    return OwnData(path, "a file", "ab" * 32, examples)


def tells(monkeypatch: pytest.MonkeyPatch, folder: Path, *lines: dict[str, Any], ends: str = "") -> None:
    """Scripts print these lines, and keep the job they were given beside them."""
    body = f"import os, shutil, sys\nshutil.copy(sys.argv[1], {str(folder / 'job.json')!r})\n"
    body += "".join(f"print({json.dumps(line)!r}, flush=True)\n" for line in lines)
    (folder / "llmtune_evaluate.py").write_text(body + ends)
    monkeypatch.setattr(lora.asking, "STANDALONE", folder)


def test_what_the_script_tells_becomes_losses_and_answers(
    tmp_path: Path, data: OwnData, monkeypatch: pytest.MonkeyPatch
) -> None:
    tells(monkeypatch, tmp_path, PLAN, *RECORDS, ANSWER, {"kind": "done"})
    heard: list[tuple[int, int]] = []
    settings = EvaluationSettings(max_length=77, quantization="nf4")
    found = evaluate(tmp_path / "a", "org/m", data, HERE, os.environ, settings, lambda *one: heard.append(one))
    assert heard == [(1, 3), (2, 3), (3, 3)]
    assert [each.index for each in found.losses] == [0, 1, 2]
    assert found.paired.base == 2.0
    assert found.paired.direction == "better"
    assert (found.answers[0].base, found.answers[0].adapter) == ("ab", "<<A>>")
    job = json.loads((tmp_path / "job.json").read_text())
    assert (job["max_length"], job["quantization"], job["model"]) == (77, "nf4", "org/m")
    assert [prompt[-1]["content"] for prompt in job["prompts"]] == ["one", "two", "three"]
    record = evaluation_record(an_adapter(id=4), data, found, settings)
    assert (record.adapter_id, record.adapter_loss, record.settings["left_out"]) == (4, found.paired.adapter, 1)
    assert record.raw["records"][0] == [0, 4, 8.0, 4.0]


@pytest.mark.parametrize(
    ("lines", "ends", "says"),
    [
        ((PLAN, {"kind": "failed", "why": "the GPU's memory ran out"}), "", "the GPU's memory ran out"),
        ((PLAN, {**RECORDS[0], "adapter": None}), "", "the loss of the adapter on record 3 is no number"),
        ((PLAN, {"kind": "done"}), "", "no record of a file can be used"),
        ((PLAN,), "sys.exit('ModuleNotFoundError: No module named \\'peft\\'')", "give --python one that has"),
        ((PLAN,), "os.kill(os.getpid(), 9)", "memory ran out"),
        ((PLAN,), "sys.stdout.write('{\"kind'); sys.stdout.flush(); os._exit(3)", "ended with status 3"),
        ((), "sys.exit(3)", "ended with status 3: it said nothing"),
    ],
)
def test_what_goes_wrong_is_one_line(
    lines: Any, ends: str, says: str, tmp_path: Path, data: OwnData, monkeypatch: pytest.MonkeyPatch
) -> None:
    tells(monkeypatch, tmp_path, *lines, ends=ends)
    with pytest.raises(LoraError, match=says) as error:
        evaluate(tmp_path / "a", "org/m", data, HERE, os.environ)
    assert "\n" not in str(error.value)


def test_whoever_stops_listening_ends_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tells(monkeypatch, tmp_path, PLAN, ends=f"import time; time.sleep(9); open({str(tmp_path / 'late')!r}, 'w')")
    telling = told_by("llmtune_evaluate.py", {}, HERE, os.environ)
    assert next(telling)["kind"] == "plan"
    telling.close()
    assert not (tmp_path / "late").exists()


def test_answers_as_tokens_for_a_server(tmp_path: Path, data: OwnData) -> None:
    environ = {**os.environ, "PYTHONPATH": str(make_transformers(tmp_path))}
    model = make_model(tmp_path / "model")
    found = answer_tokens(str(model), data, HERE, environ, 2, 100)
    assert len(found) == 2
    for each in found:
        assert each.answers == tuple(range(len(each.ids) - len(each.answers), len(each.ids)))  # the end of it
        assert len(each.answers) == 2  # a word and the end token
    with pytest.raises(LoraError, match="fits into 3 tokens"):
        answer_tokens(str(model), data, HERE, environ, 2, 3)


def test_questions_are_conversations_without_their_last_answer() -> None:
    more = Example((*conversations("a")[0].messages, Message("user", "b"), Message("assistant", "B")), 1)
    (prompt,) = questions([more])
    assert [message.content for message in prompt] == ["a", "A", "b"]


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with open_writer(tmp_path / "llmtune.db") as writer, open_reader(tmp_path / "llmtune.db") as reader:
        yield writer, reader


def prepared(writer: Writer, place: Path, name: str, **changes: Any) -> int:
    (place / name).mkdir()
    (place / name / VALIDATION).write_text("".join(map(example_line, conversations(f"of {name}"))))
    return writer.insert(a_dataset(name=name, path=name, **changes))


def test_own_data_is_that_of_the_training_or_of_the_same_hash(store: tuple[Writer, Reader], tmp_path: Path) -> None:
    writer, reader = store
    trained, same = prepared(writer, tmp_path, "trained"), prepared(writer, tmp_path, "same", data_hash="99" * 32)
    training = writer.insert(a_training(trained))
    found = own_data(reader, tmp_path, an_adapter(training_id=training))
    assert (found.dataset_id, found.examples[0].messages[0].content) == (trained, "of trained")
    assert own_data(reader, tmp_path, an_adapter(data_hash="99" * 32)).dataset_id == same
    assert own_data(reader, tmp_path, an_adapter(training_id=training), "same").dataset_id == same
    file = own_data(reader, tmp_path, an_adapter(), file=str(tmp_path / "same" / VALIDATION))
    assert (file.dataset_id, len(file.data_hash)) == (None, 64)


def test_without_own_data_it_says_what_to_give(store: tuple[Writer, Reader], tmp_path: Path) -> None:
    writer, reader = store
    prepared(writer, tmp_path, "all", validation_examples=0, data_hash="98" * 32)
    with pytest.raises(NoOwnData, match="give --dataset NAME"):
        own_data(reader, tmp_path, an_adapter())
    with pytest.raises(NoOwnData, match="holds nothing out"):
        own_data(reader, tmp_path, an_adapter(data_hash="98" * 32))
    with pytest.raises(NotFound):
        own_data(reader, tmp_path, an_adapter(), "none")
    with pytest.raises(DataUnfit, match="cannot be read"):
        own_data(reader, tmp_path, an_adapter(), file=str(tmp_path / "nowhere"))
    (tmp_path / "empty").write_text("")
    with pytest.raises(LoraError, match="holds no conversation"):
        own_data(reader, tmp_path, an_adapter(), file=str(tmp_path / "empty"))
