"""Lengths in tokens, asked of a process in another Python."""

import json
import os
import sys
from pathlib import Path

import pytest

from engine.records import Installation
from lora.data.counting import count_tokens
from lora.data.examining import examine
from lora.data.lines import read_examples
from lora.data.writing import TRAIN, write_dataset
from lora.process.training_python import STANDALONE, TrainingPython, training_python
from lora.records import Example, LoraError, Message
from lora.standalone.llmtune_chat_tokens import NO_LOSS
from store.database import open_writer
from tests.lora.fake_transformers import make_model, make_transformers

HERE = TrainingPython(sys.executable, str(Path(sys.executable).parent))


def examples(*pairs: tuple[str, str]) -> list[Example]:
    return [Example((Message("user", a), Message("assistant", b)), line) for line, (a, b) in enumerate(pairs, 1)]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(make_transformers(tmp_path))}


def test_lengths_come_in_the_order_of_the_examples(tmp_path: Path, environ: dict[str, str]) -> None:
    model = make_model(tmp_path / "model")
    heard: list[int] = []
    many = examples(("a", "b c d"), ("a", "x <|im_end|> y"), *[("a", "b")] * 300)
    counted = count_tokens(many, str(model), HERE, environ, heard.append)
    assert (counted.template, counted.end_token, counted.ends) == ("model", "<|im_end|>", True)
    assert counted.lengths[0] == (13, 4)
    assert "turn 2 holds <|im_end|>" in str(counted.lengths[1])
    assert counted.lengths[2:] == ((11, 2),) * 300
    assert counted.learnt == "b c d<|im_end|>"
    assert heard == [200, 302]


def test_a_model_without_a_template_says_so(tmp_path: Path, environ: dict[str, str]) -> None:
    model = make_model(tmp_path / "model", None)
    assert count_tokens(examples(("a", "b")), str(model), HERE, environ).template == "plain"


def test_a_relative_model_is_found_from_another_folder(
    tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_model(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    assert count_tokens(examples(("a", "b")), "model", HERE, environ).lengths == ((11, 2),)


def test_a_tokenizer_that_does_not_load_is_told_in_one_line(tmp_path: Path, environ: dict[str, str]) -> None:
    with pytest.raises(LoraError, match=r"cannot be loaded: .* is no model$"):
        count_tokens(examples(("a", "b")), str(tmp_path / "none"), HERE, environ)


def test_a_python_without_transformers_is_told(tmp_path: Path) -> None:
    with pytest.raises(LoraError, match=r"No module named 'transformers'\): give --python"):
        count_tokens(examples(("a", "b")), str(make_model(tmp_path / "model")), HERE, os.environ)


def test_a_process_that_dies_is_told(tmp_path: Path) -> None:
    dying = tmp_path / "python"
    dying.write_text("#!/bin/sh\nprintf '{\"kind\": \"tok'\necho 'out of luck' >&2\nexit 7\n", encoding="utf-8")
    dying.chmod(0o755)
    with pytest.raises(LoraError, match="status 7: out of luck"):
        count_tokens(examples(("a", "b")), "m", TrainingPython(str(dying), str(tmp_path)), os.environ)


def test_the_python_is_the_one_that_is_named_or_vllms(tmp_path: Path) -> None:
    assert training_python(sys.executable, None, os.environ).python == sys.executable
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    found = training_python(str(tmp_path), None, os.environ)
    assert found == TrainingPython(str(tmp_path / "bin" / "python"), str(tmp_path / "bin"))
    for wrong in (str(tmp_path / "none"), str(tmp_path / "bin"), "no-such-python"):
        with pytest.raises(LoraError, match="is no Python"):
            training_python(wrong, None, os.environ)


def test_its_environment_is_not_ours() -> None:
    environ = HERE.environ({"PATH": "/usr/bin", "VIRTUAL_ENV": "/ours", "HF_HUB_OFFLINE": "1"})
    assert "VIRTUAL_ENV" not in environ
    assert environ["HF_HUB_OFFLINE"] == "1"
    assert environ["PATH"].startswith(HERE.bin_dir)


SHOWN = """
import json, sys
sys.path.insert(0, sys.argv[1])
import llmtune_chat_tokens as chat_tokens
chat = chat_tokens.open_tokenizer(sys.argv[2])
rows = [chat.tokens(each) for each in chat_tokens.read_examples(sys.argv[3])]
batch = chat_tokens.collate(rows, chat.pad_id)
prompt = chat.prompt_ids(chat_tokens.read_examples(sys.argv[3])[0][:-1])
print(json.dumps({
    "prefix": rows[0].input_ids[:len(prompt)] == prompt and -100 not in rows[0].labels[len(prompt):],
    "learnt": [chat.tokenizer.decode([l for l in row if l != -100]) for row in batch["labels"]],
    "pad_is_end": chat.pad_id in chat.end_ids,
    "ends": [row.labels[-1] in chat.end_ids for row in rows],
    "labels": [len(row) for row in batch["labels"]],
    "prompt": chat.tokenizer.decode(chat.prompt_ids([{"role": "user", "content": "Who?"}])),
}))
"""


@pytest.mark.vllm
def test_the_real_tokenizer_learns_answers_and_their_end(
    tmp_path: Path, installation: Installation, model_dir: Path
) -> None:
    """SmolLM2 pads with its end token: the trap in which a model never learns to stop."""
    import subprocess

    source = tmp_path / "data.jsonl"
    turns = [("user", "Who?"), ("assistant", "Me."), ("user", "assistant?"), ("assistant", "Yes, assistant.")]
    records = [{"messages": [{"role": role, "content": text} for role, text in turns[:number]]} for number in (4, 2)]
    source.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    python = training_python(None, installation.path, os.environ)
    found = examine(
        source, share=0, model=str(model_dir), count=lambda each: count_tokens(each, str(model_dir), python, os.environ)
    )
    assert found.counted is not None
    assert (found.counted.template, found.counted.ends) == ("model", True)
    with open_writer(tmp_path / "llmtune.db") as writer:
        kept = write_dataset(tmp_path, writer, found, "data", {})
    train = tmp_path / kept.path / TRAIN
    assert [len(each.messages) for each in read_examples(train)] == [4, 2]
    answer = subprocess.run(
        [python.python, "-c", SHOWN, str(STANDALONE), str(model_dir), str(train)],
        env=python.environ(os.environ), cwd="/", capture_output=True, text=True, check=True,
    )  # fmt: skip
    shown = json.loads(answer.stdout)
    assert shown["learnt"] == ["Me.<|im_end|>Yes, assistant.<|im_end|>", "Me.<|im_end|>"]
    assert shown["prefix"]
    assert shown["pad_is_end"]
    assert shown["ends"] == [True, True]
    assert len(set(shown["labels"])) == 1
    assert shown["prompt"].endswith("<|im_start|>user\nWho?<|im_end|>\n<|im_start|>assistant\n")
    assert max(example.tokens or 0 for example in found.train) == max(shown["labels"])
    assert NO_LOSS == -100
