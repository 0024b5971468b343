"""The folders that a server and we write to: is there room, may we write, and does it outlive the container?"""

import errno
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine.preflight.allocation import Trial, try_allocation
from engine.preflight.check import GIB, Check, State, gib, together
from store.file_system import IN_MEMORY_TYPES, LOCAL_TYPES, Mount, can_write, journal_mode, mount_of

Use = Literal["data", "models", "compiled", "scratch"]

TRIAL = GIB
TRIAL_IN_MEMORY = GIB // 16  # what is reserved there is taken from the machine's memory
TRIAL_WITHIN_S = 0.8

NAMES: dict[Use, str] = {
    "data": "data directory",
    "models": "model cache",
    "compiled": "vLLM's cache",
    "scratch": "temporary files",
}
# Less room than this is worth a word: results and logs; one model; compiled graphs; scratch of compilers.
_ENOUGH: dict[Use, int] = {"data": GIB, "models": 20 * GIB, "compiled": 2 * GIB, "scratch": GIB}
_LOST: dict[Use, str] = {
    "data": "results and logs go with it",
    "models": "models are downloaded again",
    "compiled": "the first start compiles anew",
    "scratch": "",
}


@dataclass(frozen=True, slots=True)
class Place:
    """`origin` is what chose the path: a variable's name, or words."""

    use: Use
    path: Path
    origin: str


@dataclass(frozen=True, slots=True)
class PlaceReading:
    """`there` is the folder itself or the nearest one above it that exists. Bytes; `inodes` None where the file system
    counts none; `trial` None where nothing may be written, `refused` then what the kernel said, if anything."""

    place: Place
    there: Path
    mount: Mount | None
    writable: bool
    free: int
    inodes: int | None = None
    trial: Trial | None = None
    refused: int | None = None


def places(data_dir: Path | None, why: str, environ: Mapping[str, str]) -> list[Place]:
    """The data directory and what vLLM will write to, by the variables that it reads (huggingface_hub/constants.py,
    vllm/envs.py, Python's tempfile)."""
    home = Path(environ.get("HOME") or Path.home())
    cache = _absolute(environ.get("XDG_CACHE_HOME")) or home / ".cache"
    found = [] if data_dir is None else [Place("data", data_dir, why)]
    found.append(
        _first(
            "models", environ, ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"),
            _below(environ, "HF_HOME", "hub") or Place("models", cache / "huggingface" / "hub", "default"),
        )
    )  # fmt: skip
    found.append(_first("compiled", environ, ("VLLM_CACHE_ROOT",), Place("compiled", cache / "vllm", "default")))
    found.append(_first("scratch", environ, ("TMPDIR", "TEMP", "TMP"), Place("scratch", Path("/tmp"), "default")))
    return found


def read_place(place: Place, mounts: tuple[Mount, ...], turns: dict[int, threading.Lock]) -> PlaceReading:
    """`turns` has a lock for each file system: trials on one at the same time would take the room from each other.
    Raises OSError where not even the folder above can be looked at."""
    there = _existing(place.path)
    mount = mount_of(there, mounts)
    facts = os.statvfs(there)
    free = facts.f_bavail * facts.f_frsize
    inodes = facts.f_favail if facts.f_files else None
    read_only = bool(facts.f_flag & os.ST_RDONLY)
    if read_only or not can_write(there):
        return PlaceReading(place, there, mount, False, free, inodes, refused=errno.EROFS if read_only else None)
    size = TRIAL_IN_MEMORY if mount is not None and mount.type in IN_MEMORY_TYPES else TRIAL
    try:
        with turns.setdefault(os.stat(there).st_dev, threading.Lock()):
            trial = try_allocation(there, max(min(size, free // 2), 2**20), TRIAL_WITHIN_S)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        failed = Trial(size, 0, error.errno) if full else None
        return PlaceReading(place, there, mount, full, free, inodes, failed, error.errno)
    return PlaceReading(place, there, mount, True, free, inodes, trial)


def place_check(reading: PlaceReading, in_container: bool) -> Check:
    """`in_container`: whether a root file system goes when this machine is made anew."""
    place, mount = reading.place, reading.mount
    where = f"{place.path} ({place.origin})"
    if mount is not None:
        where = f"{where} on {mount.point}, {mount.type}"
    findings: list[tuple[State, str, str]] = [("ok", where, "")]
    findings += _writing(reading) if not reading.writable else _room(reading)
    findings += _survival(reading, in_container)
    if place.use == "data" and mount is not None and mount.type not in LOCAL_TYPES:
        journal = journal_mode(place.path, [mount])
        findings.append(("ok", f"not a local disk: the database keeps a rollback journal ({journal}), slower", ""))
    if place.use == "scratch" and mount is not None and mount.type not in LOCAL_TYPES:
        findings.append(("warning", "not a local disk", "set TMPDIR to a local folder: sockets are made there"))
    return together(f"disk: {NAMES[place.use]}", findings)


def _writing(reading: PlaceReading) -> Iterator[tuple[State, str, str]]:
    why = os.strerror(reading.refused) if reading.refused else "permission denied"
    match reading.place.use:
        case "data":
            yield "problem", f"cannot be written ({why})", "name another folder with --data-dir"
        case "models":
            yield "warning", f"cannot be written ({why})", "only models that are there already can be served"
        case "compiled":
            advice = "set VLLM_CACHE_ROOT to a writable folder, or each start compiles anew"
            yield "warning", f"cannot be written ({why})", advice
        case "scratch":
            yield "problem", f"cannot be written ({why})", "set TMPDIR to a writable folder: vLLM needs one"


def _room(reading: PlaceReading) -> Iterator[tuple[State, str, str]]:
    use, trial = reading.place.use, reading.trial
    move = {
        "data": "name another folder with --data-dir",
        "models": "set HF_HOME to another disk",
        "compiled": "set VLLM_CACHE_ROOT to another disk",
        "scratch": "set TMPDIR to another disk",
    }[use]
    state: State = "warning" if use == "models" else "problem"
    if trial is not None and trial.error == errno.EDQUOT:
        found = f"a quota lets {gib(trial.got)} be written, whatever `df` shows ({gib(reading.free)})"
        yield state, found, f"free some, have the quota raised, or {move}"
    elif trial is not None and trial.error == errno.ENOSPC and reading.inodes == 0:
        yield state, "no files can be made: its inodes are used up", f"delete some of its many small files, or {move}"
    elif trial is not None and trial.error == errno.ENOSPC and reading.free > trial.got + trial.asked // 2:
        found = f"full after {gib(trial.got)}, though `df` shows {gib(reading.free)} free: a quota of the volume"
        yield state, found, f"free some, have the volume enlarged, or {move}"
    elif trial is not None and trial.error == errno.ENOSPC:
        yield state, f"full: {gib(reading.free)} free", f"free some (`du -xh {reading.there} | sort -h`), or {move}"
    elif trial is not None and trial.error is not None:
        yield state, f"{gib(trial.asked)} could not be had: {os.strerror(trial.error)}", f"check the mount, or {move}"
    elif reading.free < _ENOUGH[use]:
        yield "warning", f"only {gib(reading.free)} free", f"free some, or {move}"
    else:
        had = f", {gib(trial.got)} had on trial" if trial is not None else ""
        yield "ok", f"{gib(reading.free)} free{had}", ""


def _survival(reading: PlaceReading, in_container: bool) -> Iterator[tuple[State, str, str]]:
    lost, mount = _LOST[reading.place.use], reading.mount
    if not lost:
        return
    advice = {
        "data": "name a folder on a mounted volume with --data-dir",
        "models": "set HF_HOME to a folder on a mounted volume",
        "compiled": "set VLLM_CACHE_ROOT to a folder on a mounted volume",
    }.get(reading.place.use, "")
    if mount is not None and mount.type in IN_MEMORY_TYPES:
        yield "warning", f"lies in memory and is gone after a restart: {lost}", advice
    elif in_container and (mount is None or mount.point == Path("/")):
        yield "warning", f"goes when the container is recreated: {lost}", advice


def _existing(path: Path) -> Path:
    for folder in (path, *path.parents):
        if folder.is_dir():
            return folder
    return Path("/")


def _first(use: Use, environ: Mapping[str, str], names: tuple[str, ...], default: Place) -> Place:
    for name in names:
        if (path := _absolute(environ.get(name))) is not None:
            return Place(use, path, name)
    return default


def _below(environ: Mapping[str, str], name: str, child: str) -> Place | None:
    base = _absolute(environ.get(name))
    return None if base is None else Place("models", base / child, name)


def _absolute(text: str | None) -> Path | None:
    return Path(text).expanduser().absolute() if text else None
