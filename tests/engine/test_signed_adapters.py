"""A server serves adapters of the registry only as they were registered."""

import asyncio
import os
import uuid
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.hand_servers import start_server
from engine.keeper.journal import Journal
from engine.launch.signed_adapters import signed_adapters
from engine.server_keeper import ServerKeeper
from engine.signature import SignatureBroken
from lora.adapters.registry import adapter_folder
from store.clock import utc_now
from store.database import open_reader, open_writer
from store.location import database_file
from store.records import AdapterRecord, ServerRecord
from tests.engine.server_stand_in import stand_in, stand_in_spec
from tests.lora.made_adapters import write_adapter
from tests.signed import CHANGED, registered, spoil


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def adapter(place: Path, tmp_path: Path) -> AdapterRecord:
    return registered(place, tmp_path / "made")


@pytest.fixture
def folder(place: Path, adapter: AdapterRecord) -> Path:
    return adapter_folder(place, adapter)


@pytest.mark.parametrize("form", ["chat={}", '{{"name": "chat", "path": "{}"}}'])
def test_a_version_is_known_by_its_folder_in_each_form_that_vllm_takes(
    place: Path, folder: Path, adapter: AdapterRecord, tmp_path: Path, form: str
) -> None:
    (tmp_path / "link").symlink_to(folder)
    with open_reader(database_file(place)) as reader:
        found = signed_adapters(reader, place)
    for path in (folder, f"{folder}/", tmp_path / "link", f"{folder}/../1"):
        flags = {"lora-modules": [form.format(path)]}
        assert found.among(flags) == ((folder, adapter),)
        found.require_unchanged(flags)
    spoil(folder)
    with pytest.raises(SignatureBroken, match=CHANGED):
        found.require_unchanged({}, {"lora-modules": form.format(tmp_path / "link")})


def test_what_the_registry_does_not_hold_is_served_as_it_is(place: Path, folder: Path, tmp_path: Path) -> None:
    with open_reader(database_file(place)) as reader:
        found = signed_adapters(reader, place)
    spoil(folder)
    other = write_adapter(tmp_path / "other")
    flags: list[dict[str, Any]] = [
        {}, {"lora-modules": []}, {"lora-modules": [f"chat={other}", "chat=org/hub-name", "{broken", "chat="]}
    ]  # fmt: skip
    found.require_unchanged(*flags)


def test_a_server_by_hand_is_not_started_with_an_adapter_that_has_changed(
    place: Path, folder: Path, tmp_path: Path
) -> None:
    spoil(folder)
    spec = replace(stand_in_spec(tmp_path), flags={"enable-lora": True, "lora-modules": [f"chat={folder}"]})
    with pytest.raises(SignatureBroken, match=CHANGED):
        start_server(place, stand_in(tmp_path), spec, "s", os.environ)
    with open_reader(database_file(place)) as reader:
        assert reader.servers() == []


async def test_a_restart_with_an_adapter_that_has_changed_is_refused_and_the_server_stays_up(
    place: Path, folder: Path, tmp_path: Path
) -> None:
    spec = replace(stand_in_spec(tmp_path), flags={"lora-modules": [f"chat={folder}"]})
    with open_writer(database_file(place)) as writer, open_reader(database_file(place)) as reader:
        marker, log = uuid.uuid4().hex, str(tmp_path / "log")
        number = writer.insert(
            ServerRecord("s", "starting", "m", "127.0.0.1", 8600, [], {}, log, marker, started_at=utc_now())
        )

        async def ready(but: int | None = None) -> int:
            async with asyncio.timeout(60):
                while (row := reader.server(number)).state != "ready" or row.pid == but:  # noqa: ASYNC110 - a row
                    await asyncio.sleep(0.02)
            assert row.pid is not None
            return row.pid

        journal = Journal(writer, server_id=number)
        adapters = partial(signed_adapters, reader, place)
        keeper = ServerKeeper(reader.server(number), journal, stand_in(tmp_path), spec, adapters=adapters)
        working = asyncio.create_task(keeper.work())
        first = await ready()
        spoil(folder)
        with pytest.raises(SignatureBroken, match=CHANGED):
            await keeper.commands()["restart"]({})
        (folder / "README.md").unlink()
        assert await ready() == first
        await keeper.commands()["restart"]({})
        assert await ready(but=first)
        await keeper.commands()["stop"]({})
        await asyncio.wait_for(working, 60)
        assert not any("chat@1" in event.text for event in reader.events(server_id=number))
