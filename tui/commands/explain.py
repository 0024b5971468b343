"""`llmtune explain FILE`: what a vLLM log says."""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from engine.explain import Explanation, explain
from engine.launch.flags import known_flags
from engine.launch.installation import find_vllm
from engine.text import clean
from tui.metric_text import number
from tui.output import UsageError, columns, say, say_json

FACT_WORDS = {
    "weights_gib": ("weights", " GiB"),
    "load_s": ("loading them", " s"),
    "kv_cache_gib": ("KV cache", " GiB"),
    "kv_cache_tokens": ("KV cache", " tokens"),
    "max_concurrency": ("requests of full length at once", ""),
    "max_concurrency_at_tokens": ("full length", " tokens"),
    "graph_capture_s": ("capturing CUDA graphs", " s"),
    "graph_gib": ("CUDA graphs", " GiB"),
    "compile_s": ("compiling", " s"),
    "init_s": ("engine start in all", " s"),
    "attention_backend": ("attention", ""),
    "quantization_kernel": ("quantization kernel", ""),
}


UNITS = {"gib": "GiB", "mb": "MB", "s": "s", "ms": "ms"}


def number_words(name: str) -> str:
    """`longest_model_len` → "longest model len", `short_gib` → "short"."""
    words = name.split("_")
    return clean(" ".join(words[:-1] if words[-1] in UNITS and len(words) > 1 else words), 60)


def number_text(name: str, value: float | int) -> str:
    """A number of a failure as the log has it: rounded, it would be no value for a flag any more."""
    unit = UNITS.get(name.rpartition("_")[2])
    return f"{value:.12g}" + (f" {unit}" if unit else "")


def read_log(name: str) -> str:
    """The log's text, whatever bytes are in it. Raises UsageError."""
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"{name} cannot be read ({error.strerror}): give a server's log, or - for stdin") from None
    return data.decode("utf-8", errors="replace")


def run(args: argparse.Namespace) -> int:
    payload = explained(read_log(args.file), args.vllm).to_json()
    if args.json:
        say_json(payload)
    else:
        for line in explanation_lines(payload):
            say(line)
    return 0


def explained(text: str, vllm: str | None) -> Explanation:
    """The explanation; a flag that vLLM did not know is looked for among those of `vllm` (--vllm), which is asked for
    them if it never was. Raises EngineError where that installation does not answer."""
    found = explain(text)
    if vllm is None or found.failure_class != "unknown_flag":
        return found
    installation = find_vllm(vllm, os.environ)
    return explain(text, known_flags=known_flags(installation, ask=True), version=installation.version)


def explanation_lines(payload: dict[str, Any]) -> list[str]:
    """An explanation for a person: outcome, cause and remedy first, then the facts, then the lines they came from."""
    version = payload.get("vllm_version")
    lines = [f"{payload['outcome']}{f', vLLM {clean(str(version), 40)}' if version else ''}"]
    if payload["outcome"] == "unknown":
        lines[0] += ": no line of it is a vLLM server's; give the whole log of one"
    if payload.get("cause"):
        lines.append(f"{payload['class']}: {clean(str(payload['cause']), 500)}")
    if payload.get("remedy"):
        lines.append(clean(str(payload["remedy"]), 500))
    if numbers := payload.get("numbers"):
        rows = [[number_words(name), number_text(name, value)] for name, value in numbers.items()]
        lines += ["", *columns(["", ""], rows)[1:]]
    facts = payload.get("facts") or {}
    known = [(words, facts[key], unit) for key, (words, unit) in FACT_WORDS.items() if facts.get(key) is not None]
    if known:
        rows = [
            [words, clean(str(value), 80) if isinstance(value, str) else number(value) + unit]
            for words, value, unit in known
        ]
        lines += ["", *columns(["", ""], rows)[1:]]
    if payload.get("lines"):
        lines += ["", *(f"  {clean(str(line), 300)}" for line in payload["lines"])]
    return lines
