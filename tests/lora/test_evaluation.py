"""What an evaluation tells and what becomes of it; under keepers in test_evaluation_keeper.py, for real in
test_served_adapters.py."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import lora.process.asking
from lora.data.lines import example_line
from lora.data.writing import VALIDATION
from lora.evaluations.evaluation import (
    EvaluationSettings,
    Measured,
    evaluation_record,
    questions,
    sentence,
    settings_json,
)
from lora.evaluations.own_data import NoOwnData, OwnData, own_data
from lora.process.asking import told_by
from lora.process.training_python import TrainingPython
from lora.records import DataUnfit, Example, LoraError, Message
from lora.served.answer_tokens import answer_tokens
from store.database import open_reader, open_writer
from store.errors import NotFound
from store.reader import Reader
from store.writer import Writer
from tests.lora.fake_transformers import make_model, make_transformers
from tests.store.examples import a_dataset, a_training, an_adapter, an_evaluation, an_evaluation_job

HERE = TrainingPython(sys.executable, str(Path(sys.executable).parent))
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


def measured(*lines: dict[str, Any]) -> Measured:
    found = Measured()
    for line in lines:
        found.take(line)
    return found


def record(index: int, seconds: float = 0.0, **changes: Any) -> dict[str, Any]:
    line = {"kind": "record", "index": index, "length": 10, "tokens": 4, "base": 8.0, "adapter": 4.0 + index / 10}
    return {**line, "seconds": seconds, **changes}


def test_how_far_it_is_and_how_long_it_takes() -> None:
    plan = {**PLAN, "length": 40, "records": 4, "seconds": 30.0}
    found = measured({"kind": "start"})
    assert (found.stage, found.records, found.seconds_left) == ("loading", None, None)
    found = measured({"kind": "start"}, plan)
    assert (found.stage, found.records, found.seconds_left) == ("records", 4, None)
    found.take(record(0, 32.0))
    assert found.seconds_left == pytest.approx(6.0), "30 tokens at 2 s for 10, without the time of loading"
    found.take(record(1, 34.0, length=20))
    assert found.seconds_left == pytest.approx(4 / 30 * 10)
    for index in (2, 3):
        found.take(record(index, 40.0))
    assert (found.stage, found.seconds_left) == ("answers", None)
    found.take({"kind": "done", "seconds": 41.0})
    assert (found.is_done, found.seconds) == (True, 41.0)


def test_a_later_life_counts_on_or_begins_anew() -> None:
    like = {"template": "model", "device": "processor", "dtype": "float32", "versions": {"torch": "2"}}
    plan = {**PLAN, **like, "length": 30, "seconds": 1.0}
    lines = [{"kind": "start"}, plan, record(2, 2.0), record(0, 3.0), {"kind": "failed", "why": "full\x1b"}]
    found = measured(*lines)
    assert found.why_failed == "full"
    assert found.known() == {"like": like, "records": [0, 2], "answers": []}
    again = measured(*lines, {"kind": "start"}, {**plan, "kept": True, "seconds": 10.0})
    assert (again.why_failed, len(again.losses), again.anew, again.stage) == (None, 2, False, "records")
    again.take(record(2, 12.0, adapter=9.0))
    assert again.losses[2].adapter == 9.0, "the later of two counts"
    anew = measured(*lines, {"kind": "start"}, {**plan, "kept": False})
    assert (len(anew.losses), anew.anew) == (0, True)


@pytest.mark.parametrize(
    "line",
    [
        {},
        {"kind": []},
        {"kind": "record"},
        record(-1),
        record(0, base=None),
        record(0, adapter=float("nan")),
        record(0, tokens="4"),
        record(True),
        {"kind": "answer", "index": "0"},
    ],
)
def test_a_line_of_another_form_changes_nothing(line: dict[str, Any]) -> None:
    found = measured(PLAN, line)
    assert (found.losses, found.answers, found.records, found.is_done) == ({}, {}, 3, False)


def test_what_was_told_becomes_losses_and_answers() -> None:
    settings = settings_json(EvaluationSettings(max_length=77, quantization="nf4"), conversations("one", "two"))
    assert [prompt[-1]["content"] for prompt in settings["prompts"]] == ["one", "two"]
    work = an_evaluation_job(4, id=9, data="a file", settings=settings)
    told = [record(index) for index in (2, 0, 1)]
    answers = [{"kind": "answer", "index": index, "base": "a\x1b[2Jb", "adapter": "<<A>>"} for index in (0, 5)]
    found = evaluation_record(work, measured(PLAN, *told, *answers))
    assert (found.id, found.adapter_id, found.base_loss, found.settings["left_out"]) == (9, 4, 2.0, 1)
    assert (found.settings["quantization"], found.settings["data"]) == ("nf4", "a file")
    assert found.raw["records"] == [[0, 4, 8.0, 4.0], [1, 4, 8.0, 4.1], [2, 4, 8.0, 4.2]]
    assert found.answers == [{"prompt": "one", "base": "ab", "adapter": "<<A>>"}]
    assert sentence(found).startswith("the adapter answers its data better than its base (-0.9750, 95 % from -1.0")
    with pytest.raises(LoraError, match="no record of a file can be used: all are longer than 77 tokens"):
        evaluation_record(work, measured(PLAN))


@pytest.mark.parametrize(
    ("low", "high", "says"),
    [(-0.9, -0.7, "better than"), (0.1, 0.2, "WORSE than"), (-0.1, 0.1, "holds 0"), (None, None, "has no interval")],
)
def test_what_the_losses_say(low: float | None, high: float | None, says: str) -> None:
    assert says in sentence(an_evaluation(low=low, high=high))


def tells(monkeypatch: pytest.MonkeyPatch, folder: Path, *lines: dict[str, Any], ends: str = "") -> None:
    """A script prints these lines, and ends so."""
    body = "import os, sys\n" + "".join(f"print({json.dumps(line)!r}, flush=True)\n" for line in lines)
    (folder / "asked.py").write_text(body + ends)
    monkeypatch.setattr(lora.process.asking, "STANDALONE", folder)


@pytest.mark.parametrize(
    ("ends", "says"),
    [
        ('print(\'{"kind": "failed", "why": "it is full"}\')', "it is full"),
        ("sys.exit('ModuleNotFoundError: No module named \\'peft\\'')", "give --python one that has"),
        ("os.kill(os.getpid(), 9)", "memory ran out"),
        ("sys.stdout.write('{\"kind'); sys.stdout.flush(); os._exit(3)", "ended with status 3"),
        ("sys.exit(3)", "ended with status 3: it said nothing"),
    ],
)
def test_a_script_that_fails_is_one_line(ends: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tells(monkeypatch, tmp_path, PLAN, ends=ends)
    with pytest.raises(LoraError, match=says) as error:
        list(told_by("asked.py", {}, HERE, os.environ))
    assert "\n" not in str(error.value)


def test_whoever_stops_listening_ends_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tells(monkeypatch, tmp_path, PLAN, ends=f"import time; time.sleep(9); open({str(tmp_path / 'late')!r}, 'w')")
    telling = told_by("asked.py", {}, HERE, os.environ)
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
