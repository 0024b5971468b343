"""Trains an adapter: transformers, peft and bitsandbytes, told what to do by one file, telling what it does in another.

Runs as a script in the training Python (3.9 or newer), beside the other llmtune_*.py files, and imports nothing of the
program that starts it. Its one argument is a JSON file:

    {"model": folder or name of the hub, "train": file, "validation": file (may be empty), "output": folder,
     "progress": file, "seconds_before": 0.0, "settings": {the fields of TrainingSettings}}

`train` and `validation` hold `{"messages": […]}` a line. Checkpoints go to OUTPUT/checkpoint-STEP, of which the newest
whole one is gone on from; the adapter to OUTPUT/adapter. JSON lines are appended to `progress`, numbers finite or null:

    {"kind": "start", "pid"}
    {"kind": "plan", "step" (gone on from), "steps", "examples", "left_out", "validation", "trainable", "total", …}
    {"kind": "step", "step", "steps", "loss", "learning_rate", "grad_norm", "tokens", "tokens_per_s", "seconds", …}
    {"kind": "eval", "step", "eval_loss"}, {"kind": "checkpoint", "step", "path"}
    {"kind": "doing", "what": "evaluation" ("done" "of" examples), "checkpoint" or "adapter"}, until the next line
    {"kind": "done", "adapter"}, {"kind": "failed", "why", "class"}, or {"kind": "stopped", "step"} after SIGTERM

The file outlives whoever reads it: a training goes on while nobody does.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llmtune_chat_tokens as chat_tokens
from llmtune_checkpoints import facts_of, newest_whole
from llmtune_telling import DISK_FULL, disk_is_full, teller, versions

DONE, FAILED = 0, 1
LEFT_OUT_SHOWN = 5
ADAPTER, COMING = "adapter", "adapter.coming"


class Stopping(BaseException):
    """SIGTERM before the first step: there is nothing to keep. Not an Exception, which libraries catch."""


def main(job_path: str) -> int:
    with open(job_path, encoding="utf-8") as file:
        job = json.load(file)
    tell = teller(job["progress"])
    one_gpu()
    growing_segments()
    training = False

    def asked(*_: Any) -> None:
        wishes["stop"]()
        if not training:
            raise Stopping

    wishes: dict[str, Callable[[], None]] = {"stop": lambda: None}
    signal.signal(signal.SIGTERM, asked)
    tell("start", pid=os.getpid())
    try:
        prepared = prepare(job, tell)
        wishes["stop"] = prepared.want_stop
        training = True
        return prepared.run()
    except Stopping:
        tell("stopped", step=None)
        return DONE
    except Exception as error:  # noqa: BLE001 - a library's; whoever reads must be told, whatever it was
        why, kind = reason_of(error, job["settings"])
        if kind == "disk":
            make_room(Path(job["output"]))
        with contextlib.suppress(OSError):  # the log is on the same disk
            traceback.print_exc()
        try:
            tell("failed", why=why, **{"class": kind})
        except OSError:
            return DISK_FULL if kind == "disk" else FAILED
        return FAILED


def prepare(job: dict[str, Any], tell: Callable[..., None]) -> Training:
    """Everything before the first step: libraries, tokens, model. Raises what `reason_of` has words for."""
    chat = chat_tokens.open_tokenizer(job["model"])
    limit = job["settings"]["max_length"]
    train, left_out = tokens_of(chat, job["train"], limit)
    validation, _ = tokens_of(chat, job["validation"], limit)
    if not train:
        why = next(iter(left_out), "it is empty")
        raise chat_tokens.Unusable(f"no example of the training part can be used: {why}")
    return Training(job, tell, chat, train, validation, left_out)


class Training:
    """One life of a training, from its newest whole checkpoint on."""

    def __init__(
        self,
        job: dict[str, Any],
        tell: Callable[..., None],
        chat: chat_tokens.Chat,
        train: list[chat_tokens.Tokens],
        validation: list[chat_tokens.Tokens],
        left_out: list[str],
    ) -> None:
        import llmtune_training_loop as loop
        import llmtune_training_model as models
        from llmtune_training_health import Health
        from transformers import set_seed

        self._loop, self._models = loop, models
        self._tell, self._chat = tell, chat
        self._output = Path(job["output"])
        settings = {**job["settings"], "no_validation": not validation}
        self._steps = total_steps(len(train), settings)
        self._from = newest_whole(self._output)
        facts = facts_of(self._from) if self._from else {"step": 0, "tokens": 0, "evaluated": False}
        self._begin: int = facts["step"]
        set_seed(settings["seed"])
        loaded = models.load(job["model"], settings)
        self._wishes = loop.Wishes()
        self._telling = loop.Telling(
            tell, Health(loaded.vocabulary, loaded.dtype == "float16"), self._wishes, job["seconds_before"]
        )
        self._telling.tokens = facts["tokens"]
        first_look = bool(validation) and not facts["evaluated"]
        self._trainer = loop.ChatTrainer(
            model=loaded.model,
            args=loop.arguments(settings, str(self._output), self._steps, loaded.dtype, first_look),
            train_dataset=train,
            eval_dataset=validation or None,
            data_collator=loop.collator(chat.pad_id),
            callbacks=[self._telling],
        )
        self._trainer.telling, self._trainer.wishes = self._telling, self._wishes
        tell(
            "plan",
            step=self._begin,
            steps=self._steps,
            examples=len(train),
            validation=len(validation),
            left_out=len(left_out),
            left_out_why=left_out[:LEFT_OUT_SHOWN],
            tokens_per_epoch=sum(len(row.input_ids) for row in train),
            answer_tokens_per_epoch=sum(row.answer_tokens for row in train),
            trainable=loaded.trainable,
            total=loaded.total,
            dtype=loaded.dtype,
            device=loaded.device,
            template=chat.template,
            versions=versions(),
            **loop.memory(),
        )

    def want_stop(self) -> None:
        self._wishes.stop = True

    def run(self) -> int:
        trainer, model = self._trainer, self._trainer.model
        if self._from is not None and self._begin >= self._steps:
            self._models.restore_weights(model, str(self._from))
        else:
            if self._from is not None:
                self._recall(self._from)
            trainer.train(resume_from_checkpoint=str(self._from) if self._from else None)
            if trainer.state.global_step < self._steps:
                self._tell("stopped", step=trainer.state.global_step)
                return DONE
        if not self._models.has_learnt(model):
            raise self._loop.Sick("nothing was learned: the adapter changes nothing; raise --learning-rate or --steps")
        folder = str(self._output / ADAPTER)
        self._tell("doing", what="adapter", step=self._steps)
        self._models.save_adapter(model, self._chat, folder, str(self._output / COMING))
        last = self._telling.losses[-max(1, self._steps // 10) :]
        self._tell(
            "done",
            step=self._steps,
            steps=self._steps,
            adapter=folder,
            loss=sum(last) / len(last) if last else None,
            tokens=self._telling.tokens,
            seconds=self._telling.seconds(),
            **self._loop.memory(),
        )
        return DONE

    def _recall(self, checkpoint: Path) -> None:
        state = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
        self._telling.recall(state["log_history"])


def tokens_of(chat: chat_tokens.Chat, path: str, limit: int) -> tuple[list[chat_tokens.Tokens], list[str]]:
    """The examples of a file that fit into `limit` tokens, and why each of the others is left out."""
    rows, left_out = [], []
    for number, messages in enumerate(chat_tokens.read_examples(path), 1):
        try:
            row = chat.tokens(messages)
        except chat_tokens.Unusable as error:
            left_out.append(f"example {number}: {error}")
            continue
        if len(row.input_ids) > limit:
            left_out.append(f"example {number}: {len(row.input_ids)} tokens, more than --max-length {limit}")
        else:
            rows.append(row)
    return rows, left_out


def make_room(output: Path) -> None:
    """Remove what was begun and cannot be ended, on a disk that is full: for what is to be told now, and kept next."""
    newest_whole(output)
    shutil.rmtree(output / COMING, ignore_errors=True)


def total_steps(examples: int, settings: dict[str, Any]) -> int:
    """Updates of the weights; the last of an epoch may be of fewer examples, as the Trainer has it."""
    if settings["steps"] is not None:
        return int(settings["steps"])
    in_an_epoch = math.ceil(math.ceil(examples / int(settings["batch"])) / int(settings["accumulation"]))
    return max(1, math.ceil(float(settings["epochs"]) * in_an_epoch))


def one_gpu() -> None:
    """Show torch the first of the GPUs that it would see: the Trainer would spread batches over all of them. To be
    called before torch is imported."""
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed is None:  # the first as NVML counts, whose free memory was looked at
        os.environ["CUDA_DEVICE_ORDER"], listed = "PCI_BUS_ID", "0"
    os.environ["CUDA_VISIBLE_DEVICES"] = listed.split(",")[0].strip()


def growing_segments() -> None:
    """Have torch hold GPU memory in segments that grow. Batches differ in length, and what one of them freed is too
    small for the next: without this a training of four 1,000 tokens on a 7B model held 19.2 GiB, with it 15.7. To be
    called before torch is imported; what a person has set himself stays."""
    if not any(f"PYTORCH_{kind}ALLOC_CONF" in os.environ for kind in ("", "CUDA_", "HIP_")):
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"


def reason_of(error: Exception, settings: dict[str, Any]) -> tuple[str, str]:
    """Why a training failed, on one line, and the class of that."""
    name = type(error).__name__
    first = (str(error).strip().splitlines() or [name])[0][:400]
    if name in ("Sick", "Unfit", "Unusable"):
        return first, name.lower()
    if name == "OutOfMemoryError" or "out of memory" in first.lower() or isinstance(error, MemoryError):
        told = f"batch {settings['batch']} of up to {settings['max_length']} tokens"
        remedy = "lower --batch or --max-length" if settings["batch"] > 1 else "lower --max-length"
        more = "" if settings["gradient_checkpointing"] else " or leave out --no-gradient-checkpointing"
        more += " or take --quantization nf4" if settings["quantization"] == "none" else ""
        return f"memory ran out with {told} ({first}): {remedy}{more}", "memory"
    if disk_is_full(error):
        what = "a file was not written to its end" if "inline_container" in first else first
        return f"the disk takes nothing more ({what}): free some, then resume it", "disk"
    if isinstance(error, ImportError):
        return f"this Python lacks what a training needs ({first}): give --python one that has it", "missing"
    return f"{name}: {first}", "unknown"


if __name__ == "__main__":
    status = main(sys.argv[1])
    if status == DISK_FULL:  # Python would end with 120, because what is left for the log cannot be written either
        os._exit(status)
    sys.exit(status)
