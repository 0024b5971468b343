"""Taking the space of a file system."""

import os
from pathlib import Path


def fill(path: Path, leave: int = 0) -> None:
    """Take all the space there is, but for about `leave` bytes."""
    with path.open("wb", buffering=0) as filler:
        try:
            while True:
                filler.write(b"\0" * 4096)
        except OSError:
            os.ftruncate(filler.fileno(), max(0, os.fstat(filler.fileno()).st_size - leave))
