"""How long prepared conversations are in a model's tokens, and which of them its chat template does not show.

Runs as a script in the training Python (3.9 or newer), beside llmtune_chat_tokens.py, and imports nothing of the
program that starts it. Its one argument is a JSON file:

    {"model": "folder or name of the hub", "examples": "file of {\"messages\": […]} a line"}

Standard output takes JSON lines; whatever transformers prints goes to standard error:

    {"kind": "tokenizer", "template": "model" | "plain", "end_token": "<|im_end|>", "ends": true}
    {"kind": "lengths", "lengths": [[tokens, those that bear loss] | "why it cannot be used", …]}, of up to 200 each
    {"kind": "first", "learnt": "Not much.<|im_end|>"}: what bears loss in the last answer of the first that can be used
    {"kind": "done"}, or {"kind": "failed", "why": "…"}
"""

from __future__ import annotations

import json
import os
import sys
from typing import TextIO

import llmtune_chat_tokens as chat_tokens

AT_ONCE = 200


def main(job_path: str, out: TextIO) -> int:
    with open(job_path, encoding="utf-8") as file:
        job = json.load(file)
    try:
        chat = chat_tokens.open_tokenizer(job["model"])
        tell(out, kind="tokenizer", template=chat.template, end_token=chat.end_token, ends=chat.ends_with_end_token)
        examples = chat_tokens.read_examples(job["examples"])
    except chat_tokens.Unusable as error:
        tell(out, kind="failed", why=str(error))
        return 1
    for start in range(0, len(examples), AT_ONCE):
        tell(out, kind="lengths", lengths=[length_of(chat, each) for each in examples[start : start + AT_ONCE]])
    first = next(filter(None, (learnt_of(chat, each) for each in examples)), None)
    if first is not None:
        tell(out, kind="first", learnt=first)
    tell(out, kind="done")
    return 0


def learnt_of(chat: chat_tokens.Chat, messages: chat_tokens.Messages) -> str | None:
    """The last stretch of tokens that bear loss, as text: a look at it tells whether the template is understood."""
    try:
        labels = chat.tokens(messages).labels
    except chat_tokens.Unusable:
        return None
    silent = max((index for index, label in enumerate(labels) if label == chat_tokens.NO_LOSS), default=-1)
    return str(chat.tokenizer.decode(labels[silent + 1 :]))


def length_of(chat: chat_tokens.Chat, messages: chat_tokens.Messages) -> list[int] | str:
    try:
        tokens = chat.tokens(messages)
    except chat_tokens.Unusable as error:
        return str(error)
    return [len(tokens.input_ids), tokens.answer_tokens]


def tell(out: TextIO, **what: object) -> None:
    out.write(json.dumps(what) + "\n")
    out.flush()


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # libraries print where they like
    sys.exit(main(sys.argv[1], answers))
