"""Where the data directory is, why there, and whether it would survive a recreated container.

The places follow the XDG base directory specification (https://specifications.freedesktop.org/basedir-spec/), read
from the environment that is passed in.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from store.database import FILE_NAME
from store.errors import StoreError, folder_error
from store.file_system import IN_MEMORY_TYPES, Mount, can_write, mount_of, read_mounts

# Rented pods mount the volume that outlives the container here; elsewhere it is an ordinary folder or absent.
PERSISTENT_MOUNTS = (Path("/workspace"),)

# Files that Docker and Podman leave in a container, and variables that tell of one.
_CONTAINER_FILES = (Path("/.dockerenv"), Path("/run/.containerenv"))
_CONTAINER_VARIABLES = ("RUNPOD_POD_ID", "KUBERNETES_SERVICE_HOST", "container")


@dataclass(frozen=True, slots=True)
class DataDir:
    """The data directory. `why` is how it was chosen, `warning` one line on what may be lost or refused, each for a
    person."""

    path: Path
    why: str
    warning: str | None


def database_file(place: Path) -> Path:
    """The database within a data directory."""
    return place / FILE_NAME


def data_dir(
    explicit: str | None,
    environ: Mapping[str, str],
    *,
    home: Path | None = None,
    mounts: tuple[Mount, ...] | None = None,
    persistent: tuple[Path, ...] = PERSISTENT_MOUNTS,
    in_container: bool | None = None,
) -> DataDir:
    """The first of: `explicit` (--data-dir); LLMTUNE_DATA_DIR; the place used last, if it still exists; a writable
    persistent mount; the XDG data directory. It is made (mode 0700) and remembered as the place used last.

    `home`, `mounts`, `persistent` and `in_container` default to what this machine has. Raises StoreError for a place
    that cannot be made, or that cannot be written and holds no database to read.
    """
    home = home or Path(environ.get("HOME") or Path.home())
    mounts = read_mounts() if mounts is None else mounts
    if in_container is None:
        in_container = is_container(environ, mounts)
    memory = _xdg(environ, "XDG_STATE_HOME", home / ".local/state") / "llmtune" / "data-dir"

    path, why = _choose(explicit, environ, home, mounts, persistent, memory)
    _make(path)
    warnings = [_read_only_warning(path), _remember(memory, path), _survival_warning(path, mounts, in_container)]
    return DataDir(path, why, next((warning for warning in warnings if warning), None))


def _choose(
    explicit: str | None,
    environ: Mapping[str, str],
    home: Path,
    mounts: tuple[Mount, ...],
    persistent: tuple[Path, ...],
    memory: Path,
) -> tuple[Path, str]:
    if explicit:
        return _absolute(explicit, home), "--data-dir"
    if given := environ.get("LLMTUNE_DATA_DIR"):
        return _absolute(given, home), "LLMTUNE_DATA_DIR"
    last = _recall(memory)
    if last is not None and last.is_dir():
        return last, "used last on this machine"
    points = {mount.point: mount.type for mount in mounts}
    for point in persistent:
        if points.get(point, "tmpfs") not in IN_MEMORY_TYPES and can_write(point):
            return point / "llmtune", f"{point} is a mount that outlives the container"
    return _xdg(environ, "XDG_DATA_HOME", home / ".local/share") / "llmtune", "the data directory of this user"


def _make(path: Path) -> None:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise folder_error(error, path) from error
    if not can_write(path) and not os.access(database_file(path), os.R_OK, effective_ids=True):
        raise StoreError(f"{path} cannot be written: make it writable, or name another folder with --data-dir")


def _read_only_warning(path: Path) -> str | None:
    if can_write(path):
        return None
    return f"{path} cannot be written: what it holds can be read, nothing new can be kept"


def _survival_warning(path: Path, mounts: tuple[Mount, ...], in_container: bool) -> str | None:
    mount = mount_of(path, mounts)
    if mount is not None and mount.type in IN_MEMORY_TYPES:
        return f"{path} lies in memory and is gone after a restart: name a folder on a disk with --data-dir"
    if in_container and (mount is None or mount.point == Path("/")):
        return f"{path} goes when the container is recreated: name a folder on a mounted volume with --data-dir"
    return None


def is_container(environ: Mapping[str, str], mounts: tuple[Mount, ...]) -> bool:
    """By the files and variables of container programs, or a root that is an overlay, as theirs are."""
    root = mount_of(Path("/"), mounts)
    return (
        any(environ.get(name) for name in _CONTAINER_VARIABLES)
        or any(file.exists() for file in _CONTAINER_FILES)
        or (root is not None and root.type == "overlay")
    )


def _recall(memory: Path) -> Path | None:
    try:
        text = memory.read_text(encoding="utf-8", errors="surrogateescape").strip()
    except OSError:  # nothing was remembered yet, or it cannot be read: the next place in the order
        return None
    return Path(text) if text.startswith("/") and "\0" not in text else None


def _remember(memory: Path, path: Path) -> str | None:
    """Writes the place used last; a warning where that fails, since the choice itself stands."""
    if _recall(memory) == path:
        return None
    try:
        memory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = memory.with_name(f"{memory.name}.{os.getpid()}")
        fresh.write_text(f"{path}\n", encoding="utf-8", errors="surrogateescape")
        fresh.replace(memory)
    except OSError as error:
        return f"{path} could not be remembered in {memory} ({error.strerror}): give --data-dir next time too"
    return None


def _absolute(text: str, home: Path) -> Path:
    if text == "~" or text.startswith("~/"):
        return home / text[2:]
    return Path(text).absolute()


def _xdg(environ: Mapping[str, str], name: str, default: Path) -> Path:
    """The specification has relative values ignored."""
    value = environ.get(name, "")
    return Path(value) if value.startswith("/") else default
