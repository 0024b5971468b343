"""vLLM's log as lines: who said it, how loud, when, from where, what.

Heads by version: up to 0.10.0 `LEVEL MM-DD HH:MM:SS [file.py:NN] text`; 0.10.2 to 0.28 the same after a coloured or
plain `(Name pid=N) `; from 0.32 on the formatter writes that prefix itself and tracebacks, tqdm and uvicorn have none.
With `--logging-config.formatter json` each line is an object (keys asctime levelname name processName process message).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.text import clean, strip_ansi


@dataclass(frozen=True, slots=True)
class LogLine:
    """One physical line. `process` is the innermost name ("EngineCore", "Worker_TP0"); `time` has no year and no zone.

    `text` is the message alone, cleaned, its indentation kept; `source` is "file.py:NN". What is not said is None.
    """

    process: str | None
    pid: int | None
    level: str | None
    time: str | None
    source: str | None
    text: str


_LEVELS = r"DEBUG|INFO|WARNING|ERROR|CRITICAL"
_PREFIX = re.compile(r"\(([A-Za-z][^()]*?) pid=(\d+)(?:, ip=[^()]*)?\) ?")
_HEAD = re.compile(rf"\b({_LEVELS}) (\d\d-\d\d \d\d:\d\d:\d\d)(?: \[([^\]\s]+:\d+)\])? ?")
_UVICORN = re.compile(rf"({_LEVELS}): +")
_CONTAINER_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d) (?:std(?:out|err) [FP] )?")


def split_lines(text: str) -> list[LogLine]:
    """All lines of a log, blank ones included, so that the index of a line is its number in the file minus one."""
    if not text:
        return []
    return [parse_line(raw) for raw in text.removesuffix("\n").split("\n")]


def message_lines(raw: str) -> list[LogLine]:
    """One line of a log as the lines of its message: more than one where a JSON record holds a whole traceback, in
    `message` or in `exc_info`."""
    line = _bare(raw)
    if not line.startswith("{") or (record := _json_record(line)) is None:
        return [parse_line(raw)]
    text = "\n".join(str(record[key]) for key in ("message", "exc_info") if record.get(key))
    return [_from_record({**record, "message": part.rstrip("\r")}) for part in text.split("\n")]


def parse_line(raw: str) -> LogLine:
    """One line without its `\\n`.

    Multi-line messages of vLLM are joined with `\\r\\n` and repeat the head, so a trailing `\\r` belongs to the line
    end; an inner one is a progress bar that starts over, of which only the last state counts.
    """
    line = _bare(raw)
    if line.startswith("{") and (record := _json_record(line)):
        return _from_record(record)
    process, pid, rest = _prefixes(line, None, None)
    # Searched for, not matched: VLLM_LOGGING_PREFIX or an unfinished progress bar may stand before the head.
    if head := _HEAD.search(rest):
        process, pid, _ = _last_prefix(rest[: head.start()], process, pid)
        process, pid, text = _prefixes(rest[head.end() :], process, pid)
        return LogLine(process, pid, head[1], head[2], head[3], clean(text))
    if uvicorn := _UVICORN.match(rest):
        return LogLine(process, pid, uvicorn[1], None, None, clean(rest[uvicorn.end() :]))
    return LogLine(process, pid, None, None, None, clean(rest))


def _prefixes(text: str, process: str | None, pid: int | None) -> tuple[str | None, int | None, str]:
    """Names before the text, taken off; where they are nested the innermost is who spoke."""
    while found := _PREFIX.match(text):
        process, pid, text = found[1], int(found[2]), text[found.end() :]
    return process, pid, text


def _last_prefix(text: str, process: str | None, pid: int | None) -> tuple[str | None, int | None, str]:
    for found in _PREFIX.finditer(text):
        process, pid = found[1], int(found[2])
    return process, pid, text


def _bare(raw: str) -> str:
    line = strip_ansi(raw.rstrip("\r").rpartition("\r")[2])
    time = _CONTAINER_TIME.match(line)
    return line[time.end() :] if time else line


def _json_record(line: str) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and "message" in record and "levelname" in record else None


def _from_record(record: Mapping[str, Any]) -> LogLine:
    process, pid, text = _prefixes(str(record["message"]), record.get("processName"), record.get("process"))
    return LogLine(
        clean(str(process)) if process else None,
        pid if isinstance(pid, int) else None,
        clean(str(record["levelname"])),
        clean(str(record["asctime"])) if record.get("asctime") else None,
        clean(str(record["name"])) if record.get("name") else None,
        clean(text),
    )
