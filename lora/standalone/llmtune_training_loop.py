"""The loop of a training: transformers' Trainer, which tells what it does step by step. For llmtune_trainer.py, in the
training Python (3.9 or newer); imports nothing of the program that starts that.

A run that goes on from a checkpoint computes what an uninterrupted one would have: weights, optimizer, learning rate,
order of the examples and random numbers are restored by the Trainer, and the evaluation here draws no random numbers.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llmtune_chat_tokens as chat_tokens
import torch
from llmtune_checkpoints import mark_whole
from llmtune_training_health import Health
from transformers import Trainer, TrainerCallback, TrainingArguments

GIB = 2**30
SAY_EVERY_S = 2.0  # how far an evaluation is
Tell = Callable[..., None]


class Sick(Exception):
    """The reason for which a training is stopped; one line."""


class Wishes:
    """What the outside wants; set by a signal, looked at between steps."""

    def __init__(self) -> None:
        self.stop = False


class Telling(TrainerCallback):
    """Tells each step, and stops what is sick before a checkpoint could keep it."""

    def __init__(self, tell: Tell, health: Health, wishes: Wishes, seconds_before: float) -> None:
        self._tell = tell
        self._health = health
        self._wishes = wishes
        self._began = time.monotonic() - seconds_before
        self._step_began = 0.0
        self._step_s = 0.0
        self._tokens_before = 0
        self.tokens = 0
        self.evaluated = True  # as far as the newest step should have been
        self._said_at = -math.inf
        self.losses: list[float] = []

    def seconds(self) -> float:
        """Of the training so far, over all its lives."""
        return time.monotonic() - self._began

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._step_began, self._tokens_before = time.monotonic(), self.tokens

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._step_s = time.monotonic() - self._step_began
        if self._wishes.stop:
            control.should_save = True
            control.should_training_stop = True

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        if not logs or "loss" not in logs:
            return
        loss, gradient = logs["loss"], logs.get("grad_norm")
        self.losses.append(loss)
        self._tell(
            "step",
            step=state.global_step,
            steps=state.max_steps,
            epoch=state.epoch,
            loss=loss,
            learning_rate=logs.get("learning_rate"),
            grad_norm=gradient,
            tokens=self.tokens,
            tokens_per_s=(self.tokens - self._tokens_before) / self._step_s if self._step_s > 0 else None,
            seconds=self.seconds(),
            **memory(),
        )
        if (reason := self._health.step(state.global_step, loss, gradient)) is not None:
            raise Sick(reason)

    def recall(self, history: list[dict[str, Any]]) -> None:
        """Know the steps before the checkpoint that this life goes on from."""
        for entry in history:
            if "loss" in entry:
                self.losses.append(entry["loss"])
                self._health.step(entry["step"], entry["loss"], entry.get("grad_norm"))

    def evaluates(self, step: int, done: int, of: int) -> None:
        """So many examples of an evaluation are gone through."""
        now = time.monotonic()
        if done == 0 or now - self._said_at >= SAY_EVERY_S:
            self._said_at = now
            self._tell("doing", what="evaluation", step=step, done=done, of=of)

    def saves(self, step: int) -> None:
        """A checkpoint is written from now on."""
        self._tell("doing", what="checkpoint", step=step)

    def on_evaluation(self, state: Any, loss: float) -> None:
        self._tell("eval", step=state.global_step, steps=state.max_steps, eval_loss=loss, seconds=self.seconds())
        if (reason := self._health.evaluated(state.global_step, loss)) is not None:
            raise Sick(reason)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        mark_whole(folder, {"step": state.global_step, "tokens": self.tokens, "evaluated": self.evaluated})
        self._tell("checkpoint", step=state.global_step, steps=state.max_steps, path=str(folder))


class ChatTrainer(Trainer):
    """Counts tokens, says what takes long, and evaluates by tokens: each one that bears loss weighs the same, as in the
    loss of a step."""

    telling: Telling
    wishes: Wishes

    def training_step(self, model: Any, inputs: dict[str, Any], *rest: Any, **more: Any) -> Any:
        self.telling.tokens += int(inputs["attention_mask"].sum())
        return super().training_step(model, inputs, *rest, **more)

    def save_model(self, *place: Any, **more: Any) -> None:
        """The first part of a checkpoint, which `on_save` ends."""
        self.telling.saves(self.state.global_step)
        super().save_model(*place, **more)

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        rows, size = self.eval_dataset, self.args.per_device_eval_batch_size
        self.control.should_evaluate = False  # the end of an epoch would ask once more
        total = count = 0.0
        self.telling.evaluated = False
        self.model.eval()
        for start in range(0, len(rows), size):
            if self.wishes.stop:  # told again when the training goes on
                self.control.should_save = self.state.global_step > 0
                self.control.should_training_stop = True
                return {}
            self.telling.evaluates(self.state.global_step, start, len(rows))
            batch = self._prepare_inputs(self.data_collator(rows[start : start + size]))
            with torch.no_grad(), self.compute_loss_context_manager():
                loss = self.model(**batch).loss
            tokens = int((batch["labels"][:, 1:] != chat_tokens.NO_LOSS).sum())
            total += float(loss) * tokens
            count += tokens
        self.telling.evaluated = True
        self.model.train()
        loss = total / count if count else math.nan
        self.telling.on_evaluation(self.state, loss)
        return {"eval_loss": loss}


def memory() -> dict[str, float | None]:
    """GiB: what torch holds of the GPU now and at most, and the process of the machine's memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / GIB
    if not torch.cuda.is_available():
        return {"gpu_gib": None, "gpu_peak_gib": None, "host_gib": resident}
    return {
        "gpu_gib": torch.cuda.memory_reserved() / GIB,
        "gpu_peak_gib": torch.cuda.max_memory_reserved() / GIB,
        "host_gib": resident,
    }


def collator(pad_id: int) -> Callable[[list[chat_tokens.Tokens]], dict[str, Any]]:
    """A batch of tensors from rows of tokens."""

    def collate(rows: list[chat_tokens.Tokens]) -> dict[str, Any]:
        return {name: torch.tensor(lists) for name, lists in chat_tokens.collate(rows, pad_id).items()}

    return collate


def arguments(settings: dict[str, Any], output: str, steps: int, dtype: str, first_look: bool) -> TrainingArguments:
    """What the Trainer is told. `first_look` evaluates before the first step."""
    tenth = max(1, steps // 10)
    every = settings["eval_every"] or tenth
    return TrainingArguments(
        output_dir=output,
        max_steps=steps,
        per_device_train_batch_size=settings["batch"],
        per_device_eval_batch_size=settings["batch"],
        gradient_accumulation_steps=settings["accumulation"],
        learning_rate=settings["learning_rate"],
        lr_scheduler_type="cosine",
        warmup_steps=int(settings["warmup"] * steps),
        weight_decay=settings["weight_decay"],
        max_grad_norm=settings["max_grad_norm"],
        optim="adamw_torch",
        gradient_checkpointing=settings["gradient_checkpointing"],
        gradient_checkpointing_kwargs={"use_reentrant": False} if settings["gradient_checkpointing"] else None,
        bf16=dtype == "bfloat16",
        fp16=dtype == "float16",
        use_cpu=not torch.cuda.is_available(),
        seed=settings["seed"],
        logging_steps=1,
        logging_nan_inf_filter=False,  # it would put the mean of earlier losses in place of a NaN
        eval_strategy="no" if settings["no_validation"] else "steps",
        eval_steps=every,
        eval_on_start=first_look,
        save_strategy="steps",
        save_steps=settings["save_every"] or tenth,
        save_total_limit=2,  # the newest may be half written
        dataloader_num_workers=0,
        dataloader_pin_memory=torch.cuda.is_available(),
        remove_unused_columns=False,
        report_to=[],
        disable_tqdm=True,
    )
