"""What a server was asked for, as its log tells: the command line that we wrote above it, or vLLM's own list."""

import re
from contextlib import suppress
from typing import Any

from engine.launch.command import flag_name, parse_serve
from engine.records import EngineError, LogFacts

_COMMAND = re.compile(r"^# (?P<command>.* serve .*)$", re.MULTILINE)  # what engine.server writes before each start
# `non-default args: {'max_model_len': 32768, 'enforce_eager': True, 'dtype': 'half', 'served_model_name': ['m'], …}`:
# not read as Python, since it is cut short, redacted and full of reprs; a scalar is enough.
_ARGUMENT = re.compile(
    r"'(\w{1,80})': (?:(-?\d{1,15}(?:\.\d{1,12})?(?:e-?\d{1,3})?)|(True|False)|'([^'\n]{0,400})')(?=[,}])"
)
# "Free memory on device cuda:0 (78.5/79.18 GiB)", "GPU 0 has a total capacity of 139.80 GiB"
_TOTAL = re.compile(
    r"Free memory on device (?:\S{1,40} )?\(\d{1,9}(?:\.\d{1,9})?/(?P<free>\d{1,9}(?:\.\d{1,9})?) GiB\)"
    r"|has a total capacity of (?P<capacity>\d{1,9}(?:\.\d{1,9})?) GiB"
)


def asked_flags(text: str, facts: LogFacts) -> dict[str, Any]:
    """Flags of `vllm serve` without dashes ("max-num-seqs") → value, from the text of one start. Those of the command
    line come first, since they were not defaulted; {} where the log shows neither."""
    flags = {flag_name(name): value for name, value in _listed(facts.non_default_args or "").items()}
    if command := _COMMAND.search(text):
        with suppress(EngineError):  # another program's line that looks like a command: vLLM's own list must do
            flags |= parse_serve(command["command"])[1]
    return flags


def gpu_total_gib(text: str) -> float | None:
    """The GPU's memory, where some line of the log speaks of it."""
    found = _TOTAL.search(text)
    return float(found["free"] or found["capacity"]) or None if found else None


def _listed(arguments: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, number, truth, words in _ARGUMENT.findall(arguments):
        if number:
            values[name] = int(number) if re.fullmatch(r"-?\d+", number) else float(number)
        else:
            values[name] = truth == "True" if truth else words
    return values
