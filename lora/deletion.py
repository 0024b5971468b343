"""Deleting a version of an adapter: its files go, its number is never given again, what was measured stays told."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.keeper.client import is_running
from engine.launch.adapter_flags import FLAG, modules, modules_of, real_folder
from engine.text import clean
from lora.adapters.registry import FOLDER, adapter_folder, check_name
from lora.process.process_life import Life
from lora.records import LoraError
from store.clock import utc_now
from store.evaluation_job import GOING_ON
from store.reader import Reader
from store.records import AdapterRecord, ServerRecord
from store.writer import Writer


class AdapterInUse(LoraError):
    """Something would miss the files of a version."""


@dataclass(frozen=True, slots=True)
class Use:
    """Who would miss the files, and what to do first. `over` is one that is done, and that only a repetition would
    miss."""

    line: str
    over: bool = False


def uses_of(reader: Reader, data_dir: Path, adapter: AdapterRecord) -> list[Use]:
    """Servers of ours that hold it or would be restarted with it, sessions with its folder in their plan, evaluations
    under way: as the store has them. The worst first. Raises StoreError."""
    place = real_folder(str(adapter_folder(data_dir, adapter)))
    label = adapter.label
    found = [
        Use(f"server {clean(server.name, 60)} serves {label}: stop {_whose(server)} first")
        for server in reader.servers(active=True)
        if place in {real_folder(folder) for folder in modules_of(server).values()}
    ]
    assert adapter.id is not None
    found += [
        Use(f"evaluation {job.id} of {label} is under way: stop it first (`llmtune lora stop eval:{job.id}`)")
        for job in reader.evaluation_jobs(GOING_ON, adapter.id)
        if (job.id is not None and is_running(data_dir, "evaluation", job.id)) or Life.left(job) is not None
    ]
    for session in reader.sessions():
        if place in {real_folder(folder) for folder in folders_in([session.plan, session.candidates])}:
            over = session.state == "done"
            how = "delete the session first (d on screen 4)" + (", or give --anyway: its results stay" if over else "")
            found.append(Use(f"session {session.id} ({session.state}) has {label} in its plan: {how}", over))
    return sorted(found, key=lambda use: use.over)


def require_unused(reader: Reader, data_dir: Path, adapter: AdapterRecord, *, anyway: bool = False) -> None:
    """Raises AdapterInUse where something would miss the version; with `anyway` not for sessions that are done."""
    for use in uses_of(reader, data_dir, adapter):
        if not (use.over and anyway):
            raise AdapterInUse(f"not deleted: {use.line}")


def delete_version(
    writer: Writer, reader: Reader, data_dir: Path, adapter: AdapterRecord, *, anyway: bool = False
) -> None:
    """Mark it as deleted, then remove its files. Whoever dies in between leaves files that nobody serves: deleting it
    once more removes them. Raises AdapterInUse, LoraError where the files cannot be removed, StoreError."""
    folder = _own_folder(data_dir, adapter)
    if adapter.deleted_at is None:
        assert adapter.id is not None
        with writer.transaction():  # no session or server with it is written meanwhile
            require_unused(reader, data_dir, adapter, anyway=anyway)
            writer.update(AdapterRecord, adapter.id, deleted_at=utc_now())
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        pass  # somebody removed it by hand, or another deletes it, too
    except OSError as error:
        raise LoraError(
            f"{adapter.label} is deleted, but its files stay in {folder}: {error.strerror}; see to that and delete it "
            "once more"
        ) from None


def _whose(server: ServerRecord) -> str:
    if server.session_id is not None:
        return f"its session (`llmtune stop {server.session_id}`)"
    return f"it (`llmtune server stop {server.id}`)"


def folders_in(value: Any) -> Iterator[str]:
    """The folders that `lora-modules` names anywhere in a plan or in the settings of candidates, also as an axis of a
    grid."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _paths(item) if name == FLAG else folders_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from folders_in(item)


def _paths(value: Any) -> Iterator[str]:
    for item in value if isinstance(value, list | tuple) else [value]:
        if isinstance(item, list | tuple):
            yield from _paths(item)
        else:
            yield from (path for _, path in modules(item))


def _own_folder(data_dir: Path, adapter: AdapterRecord) -> Path:
    """Where its files lie. Raises LoraError for a row that would have anything else removed."""
    if adapter.path != f"{FOLDER}/{check_name(adapter.name)}/{adapter.version}":
        raise LoraError(f"{adapter.label} does not lie in {FOLDER}: its row has {clean(adapter.path, 200)}")
    return adapter_folder(data_dir, adapter)
