"""A session serves adapters of the registry only as they were registered."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from engine.gpus.gpu import GpuReader
from engine.keeper.journal import Journal
from engine.launch.adapter_flags import modules
from engine.launch.signed_adapters import signed_adapters
from engine.records import Installation
from engine.signature import SignatureBroken
from lora.adapters.registry import adapter_folder
from lora.deletion import delete_version
from store.clock import utc_now
from store.database import open_reader, open_writer
from store.location import database_file
from store.records import AdapterRecord, SessionRecord
from tests.engine.fake_nvml import FakeNvml
from tests.signed import CHANGED, registered, spoil
from tests.tuning.examples import plan
from tuning.records import Candidate, Cell, Plan
from tuning.sessions import create_session, servers_of, start_keeper
from tuning.sweeping.controls import Controls
from tuning.sweeping.launching import Launching

INSTALLATION = Installation("/opt/vllm", "/opt/python", ("/opt/vllm",), "/opt", "0.32.0")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def adapter(place: Path, tmp_path: Path) -> AdapterRecord:
    return registered(place, tmp_path / "made")


@pytest.fixture
def folder(place: Path, adapter: AdapterRecord) -> Path:
    return adapter_folder(place, adapter)


def session_plan(folder: Path) -> Plan:
    return replace(plan(grid={}), explicit_candidates=({"enable-lora": True, "lora-modules": [f"chat={folder}"]},))


def sessions(place: Path) -> list[SessionRecord]:
    with open_reader(database_file(place)) as reader:
        return reader.sessions()


def test_servers_of_a_session_have_the_baselines_adapters_unless_they_name_others() -> None:
    server, one, none = {"lora-modules": ["a=/a"]}, {"max-loras": 2}, {"lora-modules": ["b=/b"]}
    assert [modules(each["lora-modules"]) for each in servers_of(server, [{}, one, none])] == [
        (("a", "/a"),), (("a", "/a"),), (("a", "/a"),), (("b", "/b"),)
    ]  # fmt: skip


def test_a_session_is_not_even_made_of_an_adapter_that_has_changed(place: Path, folder: Path) -> None:
    spoil(folder)
    with pytest.raises(SignatureBroken, match=CHANGED):
        create_session(place, session_plan(folder), "", INSTALLATION)
    served = replace(plan(grid={}), server={"lora-modules": [f"chat={folder}"]}, explicit_candidates=())
    with pytest.raises(SignatureBroken, match=CHANGED):
        create_session(place, served, "", INSTALLATION)
    assert sessions(place) == []


def test_a_session_is_not_made_of_an_adapter_that_was_deleted(
    place: Path, folder: Path, adapter: AdapterRecord
) -> None:
    with open_writer(database_file(place)) as writer, open_reader(database_file(place)) as reader:
        delete_version(writer, reader, place, adapter)
    with pytest.raises(SignatureBroken, match=r"chat@1 cannot be served: it was deleted at 20\d\d-"):
        create_session(place, session_plan(folder), "", INSTALLATION)
    assert sessions(place) == []


def test_a_session_goes_on_only_with_the_adapter_it_began_with(place: Path, folder: Path) -> None:
    number = create_session(place, session_plan(folder), "", INSTALLATION)
    with open_writer(database_file(place)) as writer:
        writer.update(SessionRecord, number, state="stopped", started_at=utc_now())
    weights = folder / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x07")
    with pytest.raises(SignatureBroken, match=r"adapter_model.safetensors has changed in .* put the files back"):
        start_keeper(place, number, {})
    (session,) = sessions(place)
    assert (session.state, session.keeper_pid) == ("stopped", None)


async def test_nothing_is_launched_with_an_adapter_that_changed_meanwhile(place: Path, folder: Path) -> None:
    async def gate() -> None: ...

    async def bench() -> None: ...

    number = create_session(place, session_plan(folder), "", INSTALLATION)
    with open_writer(database_file(place)) as writer, open_reader(database_file(place)) as reader:
        signed = signed_adapters(reader, place)
        spoil(folder)
        launching = Launching(
            number, session_plan(folder), INSTALLATION, Journal(writer, session_id=number), Controls(),
            bench, GpuReader(FakeNvml()), place, gate, adapters=signed,  # type: ignore[arg-type]
        )  # fmt: skip
        settings = json.loads(json.dumps(reader.session(number).candidates[1]["settings"]))
        with pytest.raises(SignatureBroken, match=CHANGED):
            await launching.launch(Cell(0, 0, 1, 0), Candidate(1, "adapters chat", settings), 1, [])
        assert (reader.launches(number), reader.servers()) == ([], [])
