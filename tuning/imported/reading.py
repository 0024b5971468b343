"""One file read: its results, or one line that says why there are none. The only place here that opens files."""

import hashlib
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.text import clean, redact, redact_flags
from tuning.imported.parsing import LIMIT_BYTES, parse
from tuning.imported.recognising import recognise
from tuning.imported.records import FileResults, Refused

# Lists of --save-detailed, by the million: nothing in them can be a key.
_NUMBERS = frozenset({"input_lens", "output_lens", "ttfts", "itls", "latencies", "queue_times", "start_times"})
_LARGEST = 10**18  # no count of vLLM's, and no integer of SQLite's
_MOST_LEVELS = 20  # vLLM's own have 3: a list of lists in an object


def read_file(path: Path) -> tuple[FileResults | None, Refused | None]:
    """The results of the file, and what of it was refused: either, or both where only a part could be read."""
    shown = str(path)
    try:
        size = path.stat().st_size
        if size > LIMIT_BYTES:
            return None, Refused(shown, too_large(size))
        with path.open("rb") as file:
            data = file.read(LIMIT_BYTES + 1)
    except OSError as error:
        return None, Refused(shown, f"cannot be read ({error.strerror})")
    except MemoryError:
        return None, Refused(shown, "does not fit into this machine's memory; split it")
    if len(data) > LIMIT_BYTES:  # grown meanwhile, or a file that tells no size
        return None, Refused(shown, too_large(len(data)))
    return read_bytes(data, shown)


def too_large(size: int) -> str:
    """The line for a file of `size` bytes."""
    most = LIMIT_BYTES // 2**20
    return f"has {size / 2**20:,.0f} MiB, more than {most}: split it by lines, or save without --save-detailed"


def read_bytes(data: bytes, path: str) -> tuple[FileResults | None, Refused | None]:
    """The same of bytes already read."""
    parsed = parse(data)
    results: list[dict[str, Any]] = []
    failures: list[str] = []
    others: Counter[str] = Counter()
    for value in parsed.values:
        for one in value if isinstance(value, list) else [value]:
            kind, line = recognise(one)
            if _too_deep(one):
                kind, line = "other", "it is nested too deeply to be a result"
            if kind == "result":
                results.append(fit_to_keep(one))
            elif kind == "failure":
                failures.append(clean(redact(line), 300))
            else:
                others[line] += 1
    refused = parsed.trouble
    if others and not failures and not (results and parsed.trouble):
        line, count = others.most_common(1)[0]
        values = sum(others.values()) + len(results)
        which = (
            ""
            if values == 1
            else f"none of its {values:,} values: "
            if count == values
            else f"{count:,} of {values:,} values: "
        )
        refused = refused or f"{which}{line}"
    if not parsed.values and refused is None:
        refused = "is empty"
    if not results and not failures and refused is None:
        refused = "holds no result: an empty list"
    trouble = Refused(path, refused) if refused else None
    if not results and not failures:
        return None, trouble
    notes = (f"{parsed.not_finite} numbers of it are NaN or infinite, taken as absent",) if parsed.not_finite else ()
    found = FileResults(path, len(data), hashlib.sha256(data).hexdigest(), tuple(results), tuple(failures), notes)
    return found, trouble


def _too_deep(value: Any) -> bool:
    """Whether something lies deeper in `value` than in any result: what walks over it would end in a RecursionError."""
    level = [value]
    for _ in range(_MOST_LEVELS):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    return bool(level)


def fit_to_keep(result: Mapping[str, Any]) -> dict[str, Any]:
    """A result as it may be kept: keys and passwords hidden, what is not finite absent; `inf` as a rate is a text in
    vLLM's files, and Infinity in those of old versions."""
    texts = {key: value for key, value in result.items() if key not in _NUMBERS}
    kept = {**result, **redact_flags(texts)}
    for key, value in kept.items():
        if isinstance(value, float) and not math.isfinite(value):
            kept[key] = "inf" if key == "request_rate" and value > 0 else None
        elif isinstance(value, int) and abs(value) > _LARGEST:
            kept[key] = None
    return kept
