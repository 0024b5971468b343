"""Files and folders made for their owner alone, whatever the umask: results, logs and what they may hold."""

import os
from pathlib import Path

_MODE = 0o600


def make_private_folder(folder: Path) -> None:
    """Make `folder`, and those above it as the umask has it, unless they are there. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def open_private(path: Path, flags: int = os.O_WRONLY | os.O_APPEND) -> int:
    """A descriptor of `path`, made with mode 0600, in a folder of its own made with 0700, where they are not there
    yet. Raises OSError."""
    make_private_folder(path.parent)
    return os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, _MODE)


def write_private(path: Path, text: str) -> None:
    """Write `text` as the whole of `path`. One that was there keeps its mode: it may be shared on purpose, or be no
    file at all. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _MODE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def write_new_private(path: Path, text: str) -> None:
    """Write `text` to a file that is not there yet. Raises FileExistsError, OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
