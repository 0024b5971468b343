"""The files behind the paths that a person gives. Nothing is opened here."""

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tuning.imported.records import Refused

# `--append-result` writes to whatever name it is given; people use these.
SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".txt", ".jsonlines", ""})
MAX_FILES = 50_000
MAX_LOOKED_AT = 500_000  # a link in a folder may lead to the whole disk
MAX_DEPTH = 40
_NO_RESULTS = (("/", "proc"), ("/", "sys"), ("/", "dev"))  # the kernel's: reading some of their files never ends
_SKIPPED_FOLDERS = frozenset({".git", "__pycache__", "node_modules", ".venv"})


@dataclass(frozen=True, slots=True)
class Found:
    """Files to read, each once, in the order of the paths given and by name within a folder. `missing` are paths given
    that are not there; `left_alone` counts files of a folder that are called like nothing of ours."""

    files: tuple[Path, ...]
    refused: tuple[Refused, ...] = ()
    missing: tuple[str, ...] = ()
    left_alone: int = 0


def find(paths: Iterable[str]) -> Found:
    """Look through `paths`: a file is taken whatever it is called, of a folder those called like results. Links are
    followed, each folder is entered once, so a loop ends."""
    walk = _Walk()
    for path in paths:
        walk.take(Path(path), given=True)
    return Found(tuple(walk.files), tuple(walk.refused), tuple(walk.missing), walk.left_alone)


class _Walk:
    def __init__(self) -> None:
        self.files: list[Path] = []
        self.refused: list[Refused] = []
        self.missing: list[str] = []
        self.left_alone = 0
        self._seen: set[tuple[int, int]] = set()
        self._full = False

    def take(self, path: Path, *, given: bool = False, depth: int = 0) -> None:
        try:
            facts = path.stat()
        except FileNotFoundError:
            if given:
                self.missing.append(str(path))
            else:
                self._refuse(path, "is a link to nothing")
            return
        except (OSError, ValueError) as error:
            self._refuse(path, f"cannot be read ({_why(error)})")
            return
        identity = (facts.st_dev, facts.st_ino)
        if identity in self._seen or self._full:
            return
        self._seen.add(identity)
        if len(self._seen) > MAX_LOOKED_AT:
            self._stop(path, f"{MAX_LOOKED_AT:,} files and folders are the most that are looked at")
            return
        if stat.S_ISDIR(facts.st_mode):
            self._enter(path, depth)
        elif not stat.S_ISREG(facts.st_mode):
            self._refuse(path, "is no file but a pipe, socket or device; write its content to a file first")
        elif not given and path.suffix.lower() not in SUFFIXES:
            self.left_alone += 1
        elif len(self.files) < MAX_FILES:
            self.files.append(path)
        else:
            self._stop(path, f"{MAX_FILES:,} files are the most at once")

    def _enter(self, folder: Path, depth: int) -> None:
        if depth > MAX_DEPTH:
            self._refuse(folder, f"lies more than {MAX_DEPTH} folders deep; name it itself")
            return
        if folder.resolve().parts[:2] in _NO_RESULTS:
            self._refuse(folder, "is the kernel's, where no results are")
            return
        try:
            names = sorted(_names(folder))
        except OSError as error:
            self._refuse(folder, f"cannot be entered ({_why(error)})")
            return
        for name in names:
            self.take(folder / name, depth=depth + 1)

    def _stop(self, path: Path, why: str) -> None:
        self._full = True
        self._refuse(path, f"and what follows was left out: {why}; name fewer")

    def _refuse(self, path: Path, reason: str) -> None:
        self.refused.append(Refused(str(path), reason))


def _names(folder: Path) -> Iterator[str]:
    with os.scandir(folder) as entries:
        yield from (entry.name for entry in entries if entry.name not in _SKIPPED_FOLDERS)


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
