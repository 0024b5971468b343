"""A small file system, where one may be mounted."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path | None]:
    """The new folder with a tmpfs of these options (`size=8m`) on it, where this user may mount one (root); else None.
    A test without it says what stands for it there."""
    folder.mkdir()
    mount = shutil.which("mount")
    arguments = [mount or "mount", "-t", "tmpfs", "-o", options, "none", str(folder)]
    done = mount is not None and subprocess.run(arguments, capture_output=True, check=False).returncode == 0
    try:
        yield folder if done else None
    finally:
        if done:
            subprocess.run(["umount", str(folder)], check=True)
