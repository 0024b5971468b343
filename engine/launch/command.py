"""`vllm serve` command lines: built from a spec, shown for copying, and read back from one that a person pasted."""

import json
import math
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.records import EngineError, Installation, ServerSpec
from engine.text import redact_argv, redact_env

# Short options of `vllm serve` (vllm/engine/arg_utils.py, 0.32) and the names that a plan uses.
_SHORT = {
    "-ac": "attention-config",
    "-asc": "api-server-count",
    "-cc": "compilation-config",
    "-dcp": "decode-context-parallel-size",
    "-dp": "data-parallel-size",
    "-dpa": "data-parallel-address",
    "-dpb": "data-parallel-backend",
    "-dpe": "data-parallel-external-lb",
    "-dph": "data-parallel-hybrid-lb",
    "-dpl": "data-parallel-size-local",
    "-dpn": "data-parallel-rank",
    "-dpp": "data-parallel-rpc-port",
    "-dpr": "data-parallel-start-rank",
    "-ep": "enable-expert-parallel",
    "-n": "nnodes",
    "-pcp": "prefill-context-parallel-size",
    "-pp": "pipeline-parallel-size",
    "-q": "quantization",
    "-r": "node-rank",
    "-sc": "speculative-config",
    "-tp": "tensor-parallel-size",
}
# Values that stay text even where they look like a number or a truth value.
_TEXT = frozenset({"api-key", "chat-template", "host", "model", "revision", "served-model-name", "tokenizer"})
# Flags that take no value, by which a model that stands after one is told from its value.
_BARE = re.compile(r"(enable|disable|no|allow|enforce|trust|return|use)-")
_SHELL_ENDS = re.compile(r"(\d*|&)>.*|[&|;]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_MODULES = frozenset({"vllm.entrypoints.openai.api_server", "vllm.entrypoints.cli.main", "vllm"})


@dataclass(frozen=True, slots=True)
class PastedServe:
    """A command line that was read: `flags` as in ServerSpec (host and port among them), `env` what stood before it."""

    model: str
    flags: dict[str, Any]
    env: dict[str, str] = field(default_factory=dict)


def flag_name(name: str) -> str:
    """A flag's one spelling: no dashes before, dashes within ("max_num_seqs", "--max-num-seqs" → "max-num-seqs"), the
    long form of a short one ("-tp"). The keys after a dot ("compilation-config.cudagraph_mode") stay as they are."""
    head, dot, rest = name.strip().partition(".")
    long = _SHORT.get(head)
    if long is None:
        long = head if re.fullmatch(r"-\w", head) else head.lstrip("-").replace("_", "-")
    return long + dot + rest


def model_argument(model: str) -> str:
    """The model as vLLM gets it: a local path made absolute, since a server runs in its log's folder; a name as is."""
    path = Path(model).expanduser()
    return os.path.abspath(path) if path.exists() else model


def served_name(spec: ServerSpec) -> str:
    """The name under which the server lists its model, which requests must give."""
    name = spec.served_name or {flag_name(key): value for key, value in spec.flags.items()}.get("served-model-name")
    if isinstance(name, list | tuple):
        name = name[0] if name else None
    return str(name) if name else model_argument(spec.model)


def serve_argv(installation: Installation, spec: ServerSpec) -> list[str]:
    """The argument list that starts `spec`: command, `serve`, model, host, port, served name, the flags by name, the
    extra arguments. The same settings give the same list in whatever order they were written.

    True is a bare flag, False its `--no-` form, None leaves it out, a list follows the flag, a dict is JSON.
    Raises EngineError for a flag that is set twice or a value that no command line can hold.
    """
    argv = [*installation.command, "serve", model_argument(spec.model), "--host", spec.host, "--port", str(spec.port)]
    taken = {"model", "host", "port"}
    if spec.served_name:
        argv += ["--served-model-name", spec.served_name]
        taken.add("served-model-name")
    flags: dict[str, Any] = {}
    for written, value in spec.flags.items():
        name = flag_name(written)
        if name in taken or _positive(name) in map(_positive, flags):
            raise EngineError(f"--{name} is set twice: leave one of the two out")
        flags[name] = value
    for argument in spec.extra_args:
        name = flag_name(argument.partition("=")[0])
        if argument.startswith("-") and (name in taken or _positive(name) in map(_positive, flags)):
            raise EngineError(f"--{name} is set twice, once in the extra arguments: leave one of the two out")
    for name in sorted(flags):
        argv += _flag_arguments(name, flags[name])
    return [*argv, *spec.extra_args]


def copyable(argv: Sequence[str], env: Mapping[str, str] | None = None) -> str:
    """One line for a shell, secrets redacted: `HF_HOME=/hf vllm serve … --max-num-seqs 64`."""
    shown = redact_env(env or {})
    return " ".join([*(f"{name}={shlex.quote(shown[name])}" for name in sorted(shown)), shlex.join(redact_argv(argv))])


def parse_serve(text: str) -> tuple[str, dict[str, Any]]:
    """Model and flags of a pasted `vllm serve …` line; see `parse_serve_line`."""
    pasted = parse_serve_line(text)
    return pasted.model, pasted.flags


def parse_serve_line(text: str) -> PastedServe:
    """Read `vllm serve MODEL …` or `python -m vllm.entrypoints.openai.api_server --model …` as a shell would: over
    several lines with `\\`, with `NAME=value` before it and a redirection after it, neither of which is run.

    Numbers, truth values and JSON objects get their types; `--no-x` is x = False; several values become a list.
    Raises EngineError with one line if that is not what the text is.
    """
    try:
        words = shlex.split(re.sub(r"\\[ \t]*\r?\n", " ", text).strip(), comments=False)
    except ValueError as error:
        raise EngineError(f"this command line cannot be read ({error}): check its quotes") from None
    before, arguments = _split_command(words)
    env = dict(word.split("=", 1) for word in before if _ASSIGNMENT.match(word))
    model, flags = _read_flags(arguments)
    named = flags.pop("model", None)
    if model is not None and named is not None and model != named:
        raise EngineError(f"this command line names two models, {model} and {named}: leave one out")
    if not (model or named):
        raise EngineError("this command line names no model: write vllm serve MODEL")
    return PastedServe(str(model or named), flags, env)


def _positive(name: str) -> str:
    return name.removeprefix("no-")


def _flag_arguments(name: str, value: Any) -> list[str]:
    option = name if name.startswith("-") else f"--{name}"
    if value is None:
        return []
    if value is True:
        return [option]
    if value is False:
        return [f"--{name.removeprefix('no-')}" if name.startswith("no-") else f"--no-{name}"]
    if isinstance(value, list | tuple):
        if not value:
            raise EngineError(f"--{name} has an empty list: give it a value or leave it out")
        return [option, *(_text(name, item) for item in value)]
    text = _text(name, value)
    return [f"{option}={text}"] if text.startswith("-") else [option, text]


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and not math.isfinite(value):
        raise EngineError(f"--{name} is {value}: give a finite number")
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    if not isinstance(value, str | int | float):
        raise EngineError(f"--{name} has a value of type {type(value).__name__}: give a number, text, list or object")
    text = str(value)
    if "\0" in text:
        raise EngineError(f"--{name} holds a NUL character, which no command line can")
    return text


def _split_command(words: list[str]) -> tuple[list[str], list[str]]:
    """What stands before the command, and its arguments."""
    for at, word in enumerate(words):
        after = words[at + 1 :]
        if os.path.basename(word) == "vllm" and after[:1] == ["serve"]:
            return words[:at], after[1:]
        if word == "-m" and after and after[0] in _MODULES:
            arguments = after[1:]
            return words[:at], arguments[1:] if arguments[:1] == ["serve"] else arguments
    raise EngineError("this is no vLLM command line: paste the part that begins with vllm serve")


def _read_flags(arguments: list[str]) -> tuple[str | None, dict[str, Any]]:
    model: str | None = None
    values: dict[str, list[str]] = {}
    current: str | None = None
    for word in arguments:
        if _SHELL_ENDS.fullmatch(word):
            break
        if re.match(r"--?[A-Za-z]", word):
            written, equals, value = word.partition("=")
            current = flag_name(written)
            if current in values:
                raise EngineError(f"--{current} stands twice in this command line: leave one out")
            values[current] = [value] if equals else []
            if equals:
                current = None
        elif current is not None and not (model is None and "model" not in values and _BARE.match(current)):
            values[current].append(word)
        elif model is None:
            model = word
        else:
            raise EngineError(f"{word} belongs to no flag of this command line: check the quotes before it")
    flags: dict[str, Any] = {}
    for name, given in values.items():
        if not given and name.startswith("no-"):
            flags[name.removeprefix("no-")] = False
        elif not given:
            flags[name] = True
        else:
            typed = [_typed(name, item) for item in given]
            flags[name] = typed[0] if len(typed) == 1 else typed
    return model, flags


def _typed(name: str, text: str) -> Any:
    if name in _TEXT:
        return text
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if re.fullmatch(r"-?(0|[1-9]\d*)", text):
        return int(text)
    if re.fullmatch(r"-?(\d+\.\d*|\.\d+|\d+(\.\d*)?[eE][-+]?\d+)", text) and math.isfinite(float(text)):
        return float(text)
    if text.startswith("{"):
        try:
            return json.loads(text)
        except ValueError:
            raise EngineError(f"the value of --{name} is not JSON: quote it with ' … '") from None
    return text
