"""A version of an adapter is deleted once nothing needs it, and its number is never given to other files."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.keeper.lock import KeeperLock
from engine.keeper.places import keeper_places
from engine.processes.process import identify
from lora.adapters.registry import Origin, adapter_folder, register
from lora.deletion import AdapterInUse, delete_version, folders_in, uses_of
from lora.records import LoraError
from store.database import open_reader, open_writer
from store.reader import Reader
from store.records import AdapterRecord, ServerRecord
from store.writer import Writer
from tests.lora.made_adapters import write_adapter
from tests.store.examples import a_session, an_adapter, an_evaluation_job


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def writer(place: Path) -> Iterator[Writer]:
    with open_writer(place / "llmtune.db") as opened:
        yield opened


@pytest.fixture
def reader(place: Path, writer: Writer) -> Iterator[Reader]:
    with open_reader(place / "llmtune.db") as opened:
        yield opened


@pytest.fixture
def adapter(writer: Writer, place: Path, tmp_path: Path) -> AdapterRecord:
    """alpaca@2, beside alpaca@1."""
    register(writer, place, write_adapter(tmp_path / "a"), "alpaca", Origin("org/tiny"))
    return register(writer, place, write_adapter(tmp_path / "b", lora_alpha=16), "alpaca", Origin("org/tiny")).adapter


def a_server(folder: Path, **changes: Any) -> ServerRecord:
    fields: dict[str, Any] = {
        "name": "chat",
        "state": "ready",
        "model": "org/tiny",
        "port": 8000,
        "host": "127.0.0.1",
        "command": ["vllm", "serve", "org/tiny", "--lora-modules", f"alpaca={folder}/"],
        "env": {},
        "log_path": "/log",
        "marker": "m",
        "started_at": "2026-11-30T10:00:00.000Z",
    }
    return ServerRecord(**{**fields, **changes})


def test_its_files_go_and_others_stay(writer: Writer, reader: Reader, place: Path, adapter: AdapterRecord) -> None:
    delete_version(writer, reader, place, adapter)
    assert [entry.name for entry in (place / "adapters" / "alpaca").iterdir()] == ["1"]
    assert [one.label for one in reader.adapters()] == ["alpaca@1"]
    assert reader.adapter_ever("alpaca@2").deleted_at is not None


def test_the_next_version_has_another_number(
    writer: Writer, reader: Reader, place: Path, adapter: AdapterRecord, tmp_path: Path
) -> None:
    """Also of the same files: whoever wrote alpaca@2 down means what was deleted."""
    delete_version(writer, reader, place, adapter)
    again = register(writer, place, tmp_path / "b", "alpaca", Origin("org/tiny"))
    assert (again.adapter.label, again.new) == ("alpaca@3", True)
    assert adapter_folder(place, again.adapter).is_dir()


@pytest.mark.parametrize("state", ["starting", "ready", "stopping"])
def test_not_while_a_server_holds_it(
    writer: Writer, reader: Reader, place: Path, adapter: AdapterRecord, state: str
) -> None:
    number = writer.insert(a_server(adapter_folder(place, adapter), state=state))
    with pytest.raises(AdapterInUse, match=r"server chat serves alpaca@2: stop it \(`llmtune server stop 1`\) first"):
        delete_version(writer, reader, place, adapter, anyway=True)
    assert reader.adapter("alpaca@2") == adapter
    assert adapter_folder(place, adapter).is_dir()
    writer.update(ServerRecord, number, state="stopped")
    delete_version(writer, reader, place, adapter)


def test_not_where_a_restart_would_bring_it_back(
    writer: Writer, reader: Reader, place: Path, adapter: AdapterRecord
) -> None:
    """After a rollback the flags that a restart takes are others than the command it was started by."""
    now = [f"alpaca={adapter_folder(place, adapter)}"]
    other = a_server(place / "adapters" / "alpaca" / "1", raw={"spec": {"flags": {"lora-modules": now}}})
    writer.insert(other)
    (use,) = uses_of(reader, place, adapter)
    assert use.line.startswith("server chat serves alpaca@2")
    assert uses_of(reader, place, reader.adapter("alpaca@1")) == []


@pytest.mark.parametrize(
    "where",
    [
        {"plan": {"server": {"lora-modules": ["alpaca=FOLDER"]}}},
        {"plan": {"explicit_candidates": [{"max-loras": 1}, {"lora-modules": ["x=/else", "alpaca=FOLDER/."]}]}},
        {"plan": {"grid": {"lora-modules": [["x=/else"], ["alpaca=FOLDER"]]}}},
        {"candidates": [{"index": 1, "settings": {"lora-modules": '{"name": "alpaca", "path": "FOLDER"}'}}]},
    ],
    ids=["server", "candidate", "grid", "added"],
)
def test_not_while_a_session_has_its_folder_in_its_plan(
    writer: Writer, reader: Reader, place: Path, adapter: AdapterRecord, where: dict[str, Any]
) -> None:
    writer.insert(a_session(state="stopped", **put(where, str(adapter_folder(place, adapter)))))
    with pytest.raises(AdapterInUse, match=r"session 1 \(stopped\) has alpaca@2 in its plan: delete the session first"):
        delete_version(writer, reader, place, adapter, anyway=True)
    writer.delete_session(1)
    delete_version(writer, reader, place, adapter)


def put(value: Any, folder: str) -> Any:
    if isinstance(value, dict):
        return {name: put(item, folder) for name, item in value.items()}
    if isinstance(value, list):
        return [put(item, folder) for item in value]
    return value.replace("FOLDER", folder) if isinstance(value, str) else value


def test_a_session_that_is_done_is_missed_only_by_who_repeats_it(
    writer: Writer, reader: Reader, place: Path, adapter: AdapterRecord
) -> None:
    folder = adapter_folder(place, adapter)
    writer.insert(a_session(state="done", plan={"server": {"lora-modules": [f"alpaca={folder}"]}}))
    with pytest.raises(AdapterInUse, match="or give --anyway: its results stay"):
        delete_version(writer, reader, place, adapter)
    delete_version(writer, reader, place, adapter, anyway=True)
    assert not folder.exists()


def test_not_while_it_is_evaluated(writer: Writer, reader: Reader, place: Path, adapter: AdapterRecord) -> None:
    """Under a keeper, or by a process that lost its keeper; not for a row that nobody works on."""
    number = writer.insert(an_evaluation_job(adapter.id or 0, state="running", pid=1, start_ticks=1, boot_id="gone"))
    assert uses_of(reader, place, adapter) == []
    lock = KeeperLock.acquire(keeper_places(place, "evaluation", number).lock)
    assert lock is not None
    with pytest.raises(AdapterInUse, match=r"evaluation 1 of alpaca@2 is under way: .*lora stop eval:1"):
        delete_version(writer, reader, place, adapter)
    lock.release()
    me = identify(os.getpid())
    assert me is not None
    alone = an_evaluation_job(
        adapter.id or 0, state="running", pid=me.pid, start_ticks=me.start_ticks, boot_id=me.boot_id
    )
    writer.insert(alone)
    with pytest.raises(AdapterInUse, match="evaluation 2 of alpaca@2 is under way"):
        delete_version(writer, reader, place, adapter)


def test_files_that_stayed_go_when_it_is_deleted_once_more(
    writer: Writer, reader: Reader, place: Path, adapter: AdapterRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(shutil, "rmtree", refuse)
    with pytest.raises(LoraError, match=r"alpaca@2 is deleted, but its files stay in .*: Permission denied"):
        delete_version(writer, reader, place, adapter)
    monkeypatch.undo()
    deleted = reader.adapter_ever("alpaca@2")
    assert adapter_folder(place, adapter).is_dir()
    delete_version(writer, reader, place, deleted)
    assert not adapter_folder(place, adapter).exists()
    delete_version(writer, reader, place, deleted)  # nothing is left to do
    assert reader.adapter_ever("alpaca@2") == deleted


@pytest.mark.parametrize(
    "changes",
    [{"path": ""}, {"path": "adapters/alpaca"}, {"path": "../elsewhere"}, {"name": "..", "path": "adapters/../1"}],
    ids=["nothing", "all versions", "elsewhere", "the whole"],
)
def test_a_row_cannot_have_anything_else_removed(
    writer: Writer, reader: Reader, place: Path, changes: dict[str, Any]
) -> None:
    (place / "adapters" / "alpaca" / "1").mkdir(parents=True)
    number = writer.insert(an_adapter(**changes))
    with pytest.raises(LoraError, match=r"does not lie in adapters|is no name for an adapter"):
        delete_version(writer, reader, place, reader.adapter(number))
    assert (place / "adapters" / "alpaca" / "1").is_dir()
    assert reader.adapter(number).deleted_at is None


@pytest.mark.parametrize("odd", [None, 3, "x", [["a"], {"lora-modules": None}], {"lora-modules": {"name": 1}}])
def test_an_odd_plan_names_no_folder(odd: object) -> None:
    assert [folder for folder in folders_in(odd) if folder] == []
