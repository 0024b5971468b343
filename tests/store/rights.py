"""Takes the right to write away, from root too."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NOBODY = 65534


@contextmanager
def unwritable(folder: Path) -> Iterator[None]:
    """The folder and its files cannot be written within; root, who may always write, is another user for as long."""
    modes = {each: each.stat().st_mode for each in [folder, *folder.iterdir()]}
    for each in modes:
        each.chmod(0o555 if each.is_dir() else 0o444)
    user = os.geteuid()
    if user == 0:
        os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)
        for each, mode in modes.items():
            if each.exists():
                each.chmod(mode)
