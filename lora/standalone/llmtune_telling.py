"""What a script tells whoever keeps it, or nobody: JSON lines at the end of a file, which outlives its readers.

The disk that is full for a checkpoint is full for these lines too: then the exit status tells what no line can.
"""

from __future__ import annotations

import errno
import json
import math
import os
import sys
from collections.abc import Callable
from typing import Any

DISK_FULL = 3
"""Exit status: the disk takes nothing more, not even a line about it."""

_FULL = (errno.ENOSPC, errno.EDQUOT)
# safetensors and torch write with code of their own, and tell of it in theirs: torch only that a position is not the
# expected one (caffe2/serialize/inline_container.cc).
_SAID = ("No space left on device", "os error 28", "os error 122", "quota exceeded", "inline_container.cc")


def disk_is_full(error: BaseException) -> bool:
    """Whether `error` is, or was caused by, a file that could not be written for want of space."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno in _FULL:
            return True
        if any(word.lower() in str(seen).lower() for word in _SAID):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def teller(path: str) -> Callable[..., None]:
    """What appends one line to `path` a call, at once and whole; raises OSError where it cannot. A line that was cut
    off, by a full disk or a kill, is ended first: the next one would be lost with it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)

    def tell(kind: str, **what: Any) -> None:
        line = (json.dumps({"kind": kind, **finite(what)}, allow_nan=False) + "\n").encode()
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            line = b"\n" + line
        while line:
            line = line[os.write(descriptor, line) :]

    return tell


def finite(value: Any) -> Any:
    """`value` with null in place of each number that JSON has no sign for."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(each) for each in value]
    return value


def versions() -> dict[str, str | None]:
    """Of what computes."""
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, str | None] = {"python": sys.version.split()[0]}
    for name in ("torch", "transformers", "peft", "bitsandbytes", "accelerate"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found
