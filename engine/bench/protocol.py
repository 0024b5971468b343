"""The lines between us and the benchmark process. Format: standalone/llmtune_bench_process.py."""

import json
import math
from dataclasses import dataclass
from typing import Any

from engine.records import BenchFailed


@dataclass(frozen=True, slots=True)
class Ready:
    """The first answer: `why` says why this vLLM's benchmark cannot be called, None if it can."""

    vllm: str | None = None
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What one run gave: `failure` is set where it gave nothing. `load_started` is unix seconds."""

    id: int
    result: dict[str, Any]
    errors: tuple[str, ...] = ()
    load_started: float | None = None
    client_cpu_perc: float | None = None
    client_lag_p99_ms: float | None = None
    failure: str | None = None


def request_line(request_id: int, argv: tuple[str, ...]) -> bytes:
    """One request for the process."""
    return json.dumps({"id": request_id, "argv": list(argv)}).encode() + b"\n"


def read_ready(line: bytes) -> Ready:
    """The first line of the process. Raises BenchFailed if it is no such line."""
    message = _message(line, "ready")
    return Ready(message.get("vllm"), None if message["ready"] else str(message.get("why", "no reason given")))


def read_answer(line: bytes) -> Answer:
    """A later line of the process. Raises BenchFailed if it is no such line."""
    message = finite(_message(line, "id"))
    return Answer(
        id=message["id"],
        result=message.get("result") or {},
        errors=tuple(message.get("errors") or ()),
        load_started=message.get("load_started"),
        client_cpu_perc=message.get("client_cpu_perc"),
        client_lag_p99_ms=message.get("client_lag_p99_ms"),
        failure=message.get("failure"),
    )


def finite(value: Any) -> Any:
    """A JSON value with None in the place of every NaN and infinity, which Python's json reads and writes."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return value


def _message(line: bytes, key: str) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError:
        message = None
    if not isinstance(message, dict) or key not in message:
        raise BenchFailed(f"the benchmark process answered something else than a result: {line[:80]!r}")
    return message
