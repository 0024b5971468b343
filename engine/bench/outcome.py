"""What the errors of a run say, and the run in which nothing went well. Pure functions."""

import re
from collections.abc import Iterable

from engine.records import BenchOutcome
from engine.text import clean

ERRORS_SHOWN = 5
ERROR_CHARACTERS = 300

_PRINTED = re.compile(r"^Error \d+: ", re.MULTILINE)
_PRINTED_BEGIN = "Failed requests during benchmark run detected"
_PRINTED_END = re.compile(r"^={5,} Serving Benchmark Result", re.MULTILINE)


def distinct_errors(texts: Iterable[str]) -> tuple[str, ...]:
    """Errors of requests as short lines, each once, in their order, five at most. Of a traceback, which is what vLLM
    keeps of an exception, the last line; of anything else the whole text."""
    lines = (clean(_essence(text), ERROR_CHARACTERS) for text in texts)
    return tuple(dict.fromkeys(line for line in lines if line))[:ERRORS_SHOWN]


def printed_errors(output: str) -> tuple[str, ...]:
    """The same from what `vllm bench serve` prints (0.15.1 or newer; the first ten failed requests)."""
    _, found, rest = output.rpartition(_PRINTED_BEGIN)
    if not found:
        return ()
    block = _PRINTED_END.split(rest, maxsplit=1)[0]
    return distinct_errors(_PRINTED.split(block)[1:])


def no_success(outcome: BenchOutcome) -> str | None:
    """One line if not a single request succeeded, where vLLM itself only warns and exits 0; else None."""
    if outcome.result.get("completed"):
        return None
    asked = outcome.result.get("num_prompts")
    requests = f"none of {asked} requests" if isinstance(asked, int) else "no request"
    why = outcome.errors[0] if outcome.errors else "see whether the server still runs and what its log says"
    return f"{requests} succeeded: {why}"


def _essence(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and "Traceback (most recent call last)" in text:
        return lines[-1]
    return " ".join(lines)
