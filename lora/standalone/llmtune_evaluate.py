"""What an adapter does to answers that it was not trained on, beside its base: losses of both, and answers of both.

Runs as a script in the training Python (3.9 or newer), beside the other llmtune_*.py files, and imports nothing of the
program that starts it. Its one argument is a JSON file:

    {"model": folder or name of the hub, "adapter": folder, "examples": file of {"messages": […]} a line,
     "max_length": tokens, "quantization": "none" | "nf4", "prompts": [[{"role", "content"}, …], …],
     "max_new_tokens": 64, "progress": file, "seconds_before": 0.0,
     "measured": {"like": {"device", "dtype", "template", "versions"} or null, "records": [0, …], "answers": [0, …]}}

JSON lines are appended to `progress`:

    {"kind": "start", "pid"}
    {"kind": "plan", "records": 50, "left_out", "length", "template", "device", "dtype", "versions", "kept", "seconds"}
    {"kind": "record", "index": 0, "length": 40, "tokens": 12, "base": 31.2, "adapter": 14.9, "seconds"}
    {"kind": "answer", "index": 0, "base": "…", "adapter": "…", "seconds"}
    {"kind": "done", "seconds"}, or {"kind": "failed", "why": "…"}

`length` are all tokens of a conversation, `tokens` those that bear loss, `base` and `adapter` the sums of -log p over
them in nats. Longer conversations than `max_length` are left out. Both models see the same batches, so that what
rounding does to one it does to the other.

What an earlier life has `measured` is not measured again, if that was `like` this one; `kept` says whether it was. A
batch of which a part is missing is measured whole.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from typing import Any, NamedTuple

import llmtune_chat_tokens as chat_tokens
from llmtune_telling import DISK_FULL, disk_is_full, teller, versions
from llmtune_training_model import keep_base_as_it_is

BATCH_TOKENS = 2048  # of a padded batch: 0.6 GB of logits for a vocabulary of 150,000 in bfloat16


class Row(NamedTuple):
    """A conversation by its place in the file."""

    place: int
    tokens: chat_tokens.Tokens


class Unfit(Exception):
    """What cannot be evaluated; one line that says what to do."""


def main(job_path: str) -> int:
    with open(job_path, encoding="utf-8") as file:
        job = json.load(file)
    tell = teller(job["progress"])
    tell("start", pid=os.getpid())
    began: float = time.monotonic() - job["seconds_before"]

    def seconds() -> float:
        return time.monotonic() - began

    try:
        chat = chat_tokens.open_tokenizer(job["model"])
        rows, left_out = usable(chat, chat_tokens.read_examples(job["examples"]), job["max_length"])
        model, dtype, device = load(job)
        like = {"device": device, "dtype": dtype, "template": chat.template, "versions": versions()}
        kept = job["measured"]["like"] == like
        known = {what: set(job["measured"][what]) if kept else set[int]() for what in ("records", "answers")}
        length = sum(len(row.tokens.input_ids) for row in rows)
        tell(
            "plan",
            records=len(rows),
            left_out=left_out,
            length=length,
            kept=kept,
            **like,
            seconds=seconds(),
        )
        for batch in batches(rows):
            if known["records"].issuperset(row.place for row in batch):
                continue
            both = [losses(model, chat, batch, adapted) for adapted in (False, True)]
            for row, base, adapter in zip(batch, *both):  # noqa: B905
                sums = {"base": number(base, "base", row), "adapter": number(adapter, "adapter", row)}
                tokens = {"length": len(row.tokens.input_ids), "tokens": row.tokens.answer_tokens}
                tell("record", index=row.place, **tokens, **sums, seconds=seconds())
        for index, messages in enumerate(job["prompts"]):
            if index not in known["answers"]:
                said = [answer(model, chat, messages, job["max_new_tokens"], adapted) for adapted in (False, True)]
                tell("answer", index=index, base=said[0], adapter=said[1], seconds=seconds())
    except (chat_tokens.Unusable, Unfit) as error:
        tell("failed", why=str(error))
        return 1
    tell("done", seconds=seconds())
    return 0


def number(loss: float, who: str, row: Row) -> float:
    """`loss`. Raises Unfit where it is none."""
    if not math.isfinite(loss):
        raise Unfit(f"the loss of the {who} on record {row.place + 1} is no number: its weights or its dtype overflow")
    return loss


def usable(chat: chat_tokens.Chat, examples: list[chat_tokens.Messages], max_length: int) -> tuple[list[Row], int]:
    """The conversations that the template shows and that are not too long, and how many are left out."""
    rows = []
    for index, messages in enumerate(examples):
        try:
            tokens = chat.tokens(messages)
        except chat_tokens.Unusable:
            continue
        if len(tokens.input_ids) <= max_length and tokens.answer_tokens:
            rows.append(Row(index, tokens))
    return rows, len(examples) - len(rows)


def batches(rows: list[Row]) -> list[list[Row]]:
    """Those of like length together, so that little is padded."""
    found: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: len(row.tokens.input_ids)):
        if found and (len(found[-1]) + 1) * len(row.tokens.input_ids) <= BATCH_TOKENS:
            found[-1].append(row)
        else:
            found.append([row])
    return found


def load(job: dict[str, Any]) -> tuple[Any, str, str]:
    """The base with the adapter on it, what it computes in, and on what. Raises Unfit."""
    try:
        import torch
        import transformers
        from peft import PeftModel
    except ImportError as error:
        raise Unfit(f"{first_line(error)}: give --python one that has torch, transformers and peft") from None
    cuda = torch.cuda.is_available()
    dtype = torch.float32
    if cuda:
        dtype = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    numbers = tuple(int(part) for part in transformers.__version__.split(".")[:2])
    keywords: dict[str, Any] = {"dtype" if numbers >= (4, 56) else "torch_dtype": dtype}
    if cuda:
        keywords["device_map"] = {"": 0}
    if job["quantization"] == "nf4":
        keywords["quantization_config"] = transformers.BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=dtype
        )
    try:
        base = transformers.AutoModelForCausalLM.from_pretrained(job["model"], **keywords)
        keep_base_as_it_is(base)  # both are to see the same weights
        model = PeftModel.from_pretrained(base, job["adapter"])
    except torch.cuda.OutOfMemoryError:
        raise Unfit(no_memory(job)) from None
    except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
        raise Unfit(f"{job['model']} and its adapter cannot be loaded: {first_line(error)}") from None
    model.eval()
    device = torch.cuda.get_device_name(0) if cuda else "processor"
    return model, str(dtype).replace("torch.", ""), device


def losses(model: Any, chat: chat_tokens.Chat, batch: list[Row], adapted: bool) -> list[float]:
    """The sum of -log p over the tokens of each conversation that bear loss, in nats."""
    import torch

    columns = chat_tokens.collate([row.tokens for row in batch], chat.pad_id)
    ids, mask, labels = (torch.tensor(columns[name]) for name in ("input_ids", "attention_mask", "labels"))
    ids, mask, labels = (each.to(model.device) for each in (ids, mask, labels))
    found = []
    try:
        with torch.inference_mode(), as_asked(model, adapted):
            logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits
        for row in range(len(batch)):
            at = (labels[row, 1:] != chat_tokens.NO_LOSS).nonzero()[:, 0]  # what a place says is of the token after it
            said = torch.log_softmax(logits[row, at].float(), dim=-1)
            found.append(-said.gather(1, labels[row, 1:][at][:, None]).sum(dtype=torch.float64).item())
    except torch.cuda.OutOfMemoryError:
        raise Unfit(no_memory({"quantization": ""})) from None
    return found


def answer(model: Any, chat: chat_tokens.Chat, messages: chat_tokens.Messages, longest: int, adapted: bool) -> str:
    """The likeliest next token, again and again, until one that ends an answer."""
    import torch

    prompt = torch.tensor([chat.prompt_ids(messages)]).to(model.device)
    with torch.inference_mode(), as_asked(model, adapted):
        ids = model.generate(
            input_ids=prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=longest,
            do_sample=False,
            temperature=None,
            top_p=None,
            top_k=None,
            eos_token_id=sorted(chat.end_ids),
            pad_token_id=chat.pad_id,
        )
    return str(chat.tokenizer.decode(ids[0, prompt.shape[1] :], skip_special_tokens=True))


def as_asked(model: Any, adapted: bool) -> Any:
    """A context in which the adapter is in effect, or is not."""
    from contextlib import nullcontext

    return nullcontext() if adapted else model.disable_adapter()


def no_memory(job: dict[str, Any]) -> str:
    less = "give --quantization nf4, or " if job["quantization"] == "none" else ""
    return f"the GPU's memory ran out: {less}stop what else holds it (`llmtune server list`)"


def first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


if __name__ == "__main__":
    try:
        status = main(sys.argv[1])
    except OSError as error:
        if not disk_is_full(error):
            raise
        os._exit(DISK_FULL)  # a usual end would fail once more, at what is left for the log
    sys.exit(status)
