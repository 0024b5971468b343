"""Conversations as the tokens that a server is to be asked about, and which of them are answers.

Runs as a script in the training Python (3.9 or newer), beside llmtune_chat_tokens.py, and imports nothing of the
program that starts it. Its one argument is a JSON file:

    {"model": folder or name of the hub, "examples": file of {"messages": […]} a line, "at_most": 32, "max_length": 511}

Standard output takes JSON lines; whatever transformers prints goes to standard error:

    {"kind": "tokens", "ids": […], "answers": [places among them whose token bears loss]}
    {"kind": "done"}, or {"kind": "failed", "why": "…"}
"""

from __future__ import annotations

import json
import os
import sys
from typing import TextIO

import llmtune_chat_tokens as chat_tokens


def main(job_path: str, out: TextIO) -> int:
    with open(job_path, encoding="utf-8") as file:
        job = json.load(file)
    try:
        chat = chat_tokens.open_tokenizer(job["model"])
        told = 0
        for messages in chat_tokens.read_examples(job["examples"]):
            try:
                tokens = chat.tokens(messages)
            except chat_tokens.Unusable:
                continue
            if len(tokens.input_ids) > job["max_length"] or told == job["at_most"]:
                continue
            places = [place for place, label in enumerate(tokens.labels) if label != chat_tokens.NO_LOSS]
            tell(out, kind="tokens", ids=tokens.input_ids, answers=places)
            told += 1
    except chat_tokens.Unusable as error:
        tell(out, kind="failed", why=str(error))
        return 1
    tell(out, kind="done")
    return 0


def tell(out: TextIO, **what: object) -> None:
    out.write(json.dumps(what) + "\n")
    out.flush()


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # libraries print where they like
    sys.exit(main(sys.argv[1], answers))
