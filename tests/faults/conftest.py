"""A disk that is really small, for the tests that fill it."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

MakeDisk = Callable[[int], Path]


@pytest.fixture
def make_disk(tmp_path: Path) -> Iterator[MakeDisk]:
    """Makes a file system of so many MiB, mounted for the test."""
    made: list[Path] = []

    def make(mib: int) -> Path:
        place = tmp_path / f"disk{len(made)}"
        place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", str(place)], check=True)
        made.append(place)
        return place

    yield make
    for place in made:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture
def small_disk(make_disk: MakeDisk) -> Path:
    return make_disk(3)
