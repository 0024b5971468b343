"""Parts of the trainer that need no torch: what is whole, what fits, how many steps, and what an error is called."""

import errno
import importlib
import json
import math
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lora.process.progress import ProgressFile
from lora.process.training_python import STANDALONE
from lora.records import TrainingSettings
from lora.standalone.llmtune_checkpoints import MARK, facts_of, mark_whole, newest_whole
from lora.standalone.llmtune_training_model import Unfit, choose_dtype
from tests.lora.fake_tokenizer import FakeTokenizer
from tui.lora.cost import steps_of


@pytest.fixture
def trainer(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(STANDALONE))
    return importlib.import_module("llmtune_trainer")


def checkpoint(place: Path, step: int, whole: bool) -> Path:
    folder = place / f"checkpoint-{step}"
    folder.mkdir()
    (folder / "optimizer.pt").write_bytes(b"moments")
    if whole:
        mark_whole(folder, {"step": step})
    return folder


def test_a_checkpoint_counts_once_it_is_whole(tmp_path: Path) -> None:
    assert newest_whole(tmp_path) is None
    checkpoint(tmp_path, 9, True)
    kept = checkpoint(tmp_path, 10, True)  # as text, 9 would be the later
    half = checkpoint(tmp_path, 12, False)
    (tmp_path / "checkpoint-x").mkdir()
    assert newest_whole(tmp_path) == kept
    assert facts_of(kept) == {"step": 10}
    assert not half.exists(), "it would count among those that are kept"
    assert sorted(path.name for path in kept.iterdir()) == [MARK, "optimizer.pt"]


def test_a_mark_that_was_half_written_is_none(tmp_path: Path) -> None:
    half = checkpoint(tmp_path, 3, False)
    (half / f"{MARK}.coming").write_text('{"st')
    assert newest_whole(tmp_path) is None


@pytest.mark.parametrize("examples", [1, 7, 8, 9, 100, 1003])
@pytest.mark.parametrize(("batch", "accumulation"), [(1, 8), (4, 1), (3, 5)])
@pytest.mark.parametrize("epochs", [0.5, 1.0, 2.3, 3.0])
def test_the_steps_that_are_told_before_are_those_that_are_made(
    trainer: ModuleType, examples: int, batch: int, accumulation: int, epochs: float
) -> None:
    settings = {"steps": None, "epochs": epochs, "batch": batch, "accumulation": accumulation}
    expected = steps_of(TrainingSettings("m", 1, batch=batch, accumulation=accumulation, epochs=epochs), examples)
    assert trainer.total_steps(examples, settings) == expected
    assert trainer.total_steps(examples, {**settings, "steps": 12}) == 12


def test_what_is_too_long_is_left_out_and_not_cut(trainer: ModuleType, tmp_path: Path) -> None:
    long = " ".join("x" * 40)
    rows = [
        [("user", "a"), ("assistant", "b")],
        [("user", "a"), ("assistant", long)],
        [("user", "a"), ("assistant", "<|im_end|>")],
    ]
    lines = [json.dumps({"messages": [{"role": role, "content": text} for role, text in row]}) for row in rows]
    (tmp_path / "train.jsonl").write_text("\n".join(lines))
    chat = trainer.chat_tokens.Chat(
        FakeTokenizer("{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}")
    )
    kept, left_out = trainer.tokens_of(chat, str(tmp_path / "train.jsonl"), 30)
    assert len(kept) == 1
    assert "example 2: " in left_out[0]
    assert "more than --max-length 30" in left_out[0]
    assert "example 3: turn 2 holds <|im_end|>" in left_out[1]


class OutOfMemoryError(RuntimeError):
    """As torch's is called."""


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


SETTINGS: dict[str, Any] = {"batch": 2, "max_length": 512, "gradient_checkpointing": False, "quantization": "none"}


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (OutOfMemoryError("CUDA out of memory. Tried 2 GiB.\nmore"), "memory", "batch 2 of up to 512 tokens"),
        (OutOfMemoryError("CUDA out of memory"), "memory", "take --quantization nf4"),
        (MemoryError(), "memory", "lower --batch or --max-length"),
        (OSError(errno.ENOSPC, "No space left on device"), "disk", "free some, then resume it"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "disk", "the disk takes nothing more"),
        (RuntimeError("Error while serializing: No space left on device (os error 28)"), "disk", "free some"),
        (RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 64 vs 0"), "disk", "to its end"),
        (caused(RuntimeError("cannot save"), OSError(errno.ENOSPC, "full")), "disk", "the disk takes nothing more"),
        (OSError(errno.EACCES, "Permission denied"), "unknown", "PermissionError: [Errno 13] Permission denied"),
        (ModuleNotFoundError("No module named 'peft'"), "missing", "give --python one that has it"),
        (RuntimeError("mat1 and mat2\nshapes"), "unknown", "RuntimeError: mat1 and mat2"),
    ],
)  # fmt: skip
def test_an_error_is_told_in_one_line(trainer: ModuleType, error: Exception, kind: str, said: str) -> None:
    why, found = trainer.reason_of(error, SETTINGS)
    assert found == kind
    assert said in why
    assert "\n" not in why


def test_lines_have_finite_numbers_only(trainer: ModuleType, tmp_path: Path) -> None:
    tell = trainer.teller(str(tmp_path / "progress.jsonl"))
    tell("step", loss=math.nan, more=[math.inf, 1.0, {"x": -math.inf}])
    text = (tmp_path / "progress.jsonl").read_text()
    assert json.loads(text) == {"kind": "step", "loss": None, "more": [None, 1.0, {"x": None}]}
    assert (tmp_path / "progress.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_line_that_was_cut_off_takes_the_next_one_with_it_no_more(trainer: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    path.write_text('{"kind": "step", "step": 1}\n{"kind": "st')
    tell = trainer.teller(str(path))
    tell("start", pid=7)
    tell("plan", step=1)
    assert [line.get("kind") for line in ProgressFile(path).read_new()] == ["step", "start", "plan"]
    assert path.read_text().endswith('{"kind": "st\n{"kind": "start", "pid": 7}\n{"kind": "plan", "step": 1}\n')


def test_what_is_half_written_makes_room_on_a_full_disk(trainer: ModuleType, tmp_path: Path) -> None:
    kept = checkpoint(tmp_path, 2, True)
    half = checkpoint(tmp_path, 4, False)
    coming = tmp_path / trainer.COMING
    coming.mkdir()
    (coming / "adapter_model.safetensors").write_bytes(b"half")
    trainer.make_room(tmp_path)
    assert [kept.exists(), half.exists(), coming.exists()] == [True, False, False]


@pytest.mark.parametrize(("listed", "one"), [(None, "0"), ("2,3", "2"), ("", ""), ("GPU-ab,GPU-cd", "GPU-ab")])
def test_a_training_sees_the_first_gpu_alone(
    trainer: ModuleType, monkeypatch: pytest.MonkeyPatch, listed: str | None, one: str
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if listed is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    trainer.one_gpu()
    assert trainer.os.environ["CUDA_VISIBLE_DEVICES"] == one


@pytest.mark.parametrize("own", [None, "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"])
def test_memory_is_held_in_segments_that_grow_unless_a_person_has_said_otherwise(
    trainer: ModuleType, monkeypatch: pytest.MonkeyPatch, own: str | None
) -> None:
    for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"):
        monkeypatch.setenv(name, "")  # so that what is set below is taken back
        monkeypatch.delenv(name)
    if own is not None:
        monkeypatch.setenv(own, "max_split_size_mb:128")
    trainer.growing_segments()
    told = {name: value for name, value in trainer.os.environ.items() if name.endswith("ALLOC_CONF")}
    assert told == (
        {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"} if own is None else {own: "max_split_size_mb:128"}
    )


def test_the_dtype_is_what_the_device_has() -> None:
    assert choose_dtype("auto", True, True) == "bfloat16"
    assert choose_dtype("auto", True, False) == "float16"
    assert choose_dtype("auto", False, False) == "float32"
    assert choose_dtype("bfloat16", False, False) == "bfloat16"
    with pytest.raises(Unfit, match="take --dtype float16"):
        choose_dtype("bfloat16", True, False)
    with pytest.raises(Unfit, match="take --dtype float32"):
        choose_dtype("float16", False, False)
