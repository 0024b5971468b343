"""What is checked and filled in before adapters are served; which version a rollback goes to."""

import os
from pathlib import Path
from typing import Any

import pytest

from engine.launch.model import model_hash
from engine.records import Installation, ServerSpec
from engine.signature import SignatureBroken
from lora.adapters.importing import base_for
from lora.adapters.registry import Origin, register
from lora.records import LoraError
from lora.served.rollback import target_of
from lora.served.running import Running, put, require_takes, version_of
from lora.served.server_api import ServerApi
from lora.served.serving import (
    Serving,
    ServingRefused,
    given_rank,
    may_load_at_run_time,
    served_names,
    server_flags,
    to_serve,
)
from lora.sizes.base_model import BaseUnknown
from store.database import open_writer
from store.records import AdapterRecord
from tests.lora.made_adapters import tiny_factors, write_adapter, write_model
from tests.lora.scripted_server import ScriptedServer
from tests.store.examples import a_server, an_adapter

# Its Python is none: the rules of its version are taken.
VLLM = Installation("vllm", "/nowhere/python", ("vllm",), "/nowhere", "0.32.0")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_model(tmp_path / "base")


def kept(tmp_path: Path, base: Path, name: str, r: int = 4, tensors: Any = None, **config: Any) -> AdapterRecord:
    config = {"r": r, "base_model_name_or_path": str(base), **config}
    folder = write_adapter(tmp_path / f"made-{name}-{r}", tensors or tiny_factors(r), **config)
    with open_writer(tmp_path / "llmtune.db") as writer:
        origin = Origin(base_model=str(base), base_hash=model_hash(str(base)))
        return register(writer, tmp_path, folder, name, origin).adapter


def served(tmp_path: Path, *adapters: AdapterRecord, **how: Any) -> Serving:
    return to_serve(tmp_path, adapters, VLLM, os.environ, **how)


def test_flags_are_filled_in_for_all_that_are_served_together(tmp_path: Path, base: Path) -> None:
    small, large = kept(tmp_path, base, "small"), kept(tmp_path, base, "large", r=12)
    serving = served(tmp_path, small, large)
    assert server_flags(serving, {"max-model-len": 64}) == {
        "max-model-len": 64,
        "enable-lora": True,
        "max-lora-rank": 16,  # 12 is none that vLLM takes
        "max-loras": 2,
        "lora-modules": [f"small={tmp_path}/adapters/small/1", f"large={tmp_path}/adapters/large/1"],
    }
    assert server_flags(serving, {"max-loras": 1})["max-loras"] == 1
    assert serving.notes == ()


def test_a_rank_above_the_one_given_is_refused_before_the_launch(tmp_path: Path, base: Path) -> None:
    adapter = kept(tmp_path, base, "helper", r=16)
    with pytest.raises(ServingRefused, match=r"rank 16 is above the --max-lora-rank 8 given \(give --max-lora-rank 16"):
        served(tmp_path, adapter, max_rank=given_rank({"max-lora-rank": 8}))
    with pytest.raises(ServingRefused):
        served(tmp_path, adapter, max_rank=8, anyway=True)  # vLLM itself refuses it
    assert served(tmp_path, adapter, max_rank=64).max_rank == 64
    with pytest.raises(LoraError, match="is no rank"):
        given_rank({"max-lora-rank": "many"})


def test_what_changes_nothing_is_served_only_anyway(tmp_path: Path, base: Path) -> None:
    zeros = {name: (dtype, shape, bytes(4 * shape[0] * shape[1])) for name, (dtype, shape, _) in tiny_factors().items()}
    adapter = kept(tmp_path, base, "idle", tensors=zeros)
    with pytest.raises(ServingRefused, match=r"it changes nothing.*--anyway serves it all the same") as error:
        served(tmp_path, adapter)
    assert [(label, [each.effect for each in found]) for label, found in error.value.findings] == [("idle@1", ["idle"])]
    assert served(tmp_path, adapter, anyway=True).adapters[0].name == "idle"


def test_what_spoils_the_answers_of_others_is_never_served(tmp_path: Path, base: Path) -> None:
    """Seen on vLLM 0.32: after a request to an adapter with a NaN the base's answers were empty too."""
    broken = {
        name: (dtype, shape, b"\xff" * (4 * shape[0] * shape[1])) for name, (dtype, shape, _) in tiny_factors().items()
    }
    adapter = kept(tmp_path, base, "broken", tensors=broken)
    for anyway in (False, True):
        with pytest.raises(ServingRefused, match="numbers that are none") as error:
            served(tmp_path, adapter, anyway=anyway)
        assert "--anyway" not in str(error.value)


def test_files_that_changed_are_not_served(tmp_path: Path, base: Path) -> None:
    adapter = kept(tmp_path, base, "helper")
    weights = tmp_path / adapter.path / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x07")
    with pytest.raises(SignatureBroken, match=r"adapter_model\.safetensors has changed"):
        served(tmp_path, adapter, anyway=True)


def test_another_base_is_refused_unless_it_is_meant(tmp_path: Path, base: Path) -> None:
    adapter = kept(tmp_path, base, "helper")
    (base / "model.safetensors").write_bytes(b"12345678")
    with pytest.raises(ServingRefused, match="made for other weights"):
        served(tmp_path, adapter)
    assert served(tmp_path, adapter, anyway=True).base == str(base)
    named = served(tmp_path, adapter, base=str(base))  # it may be the same model in another precision
    assert any("not the very model" in each.text for _, findings in named.notes for each in findings)
    other = kept(tmp_path, write_model(tmp_path / "other"), "stranger")
    with pytest.raises(LoraError, match="serve each on its own base"):
        served(tmp_path, adapter, other)


def test_a_base_that_has_moved_is_told_of_before_anything_else(tmp_path: Path, base: Path) -> None:
    adapter = kept(tmp_path, base, "helper")
    moved = base.rename(tmp_path / "moved")
    with pytest.raises(BaseUnknown, match=r"the base of helper@1 is gone from .*/base: put it back, or say"):
        served(tmp_path, adapter)
    with pytest.raises(BaseUnknown, match="gone from"):
        base_for(adapter, None)
    assert base_for(adapter, str(moved)) == str(moved)
    assert served(tmp_path, adapter, base=str(moved)).base == str(moved)
    with pytest.raises(BaseUnknown, match="is no folder"):
        base_for(adapter, str(base))
    assert base_for(an_adapter(base_model="org/hub-name"), None) == "org/hub-name"


def test_names_stay_the_same_over_versions_and_are_told_apart_side_by_side() -> None:
    first, second, other = an_adapter(name="a", version=1), an_adapter(name="a", version=2), an_adapter(name="b")
    assert served_names([second, other]) == ("a", "b")
    assert served_names([first, second, other]) == ("a@1", "a@2", "b")
    with pytest.raises(LoraError, match="a@1 is named twice"):
        served_names([first, first])


def test_flags_that_contradict_what_is_served(tmp_path: Path, base: Path) -> None:
    serving = served(tmp_path, kept(tmp_path, base, "a"))
    for given in ({"enable-lora": False}, {"lora-modules": "x=/x"}):
        with pytest.raises(LoraError):
            server_flags(serving, given)


def test_a_template_that_came_with_the_adapter_serves_a_base_without_one(tmp_path: Path, base: Path) -> None:
    folder = write_adapter(tmp_path / "made")
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    with open_writer(tmp_path / "llmtune.db") as writer:
        adapter = register(writer, tmp_path, folder, "a", Origin(base_model=str(base))).adapter
    serving = served(tmp_path, adapter)
    assert server_flags(serving, {})["chat-template"] == f"{tmp_path}/adapters/a/1/chat_template.jinja"
    assert server_flags(serving, {"chat-template": "mine"})["chat-template"] == "mine"
    (base / "tokenizer_config.json").write_text('{"chat_template": "{{ x }}"}')
    assert "chat-template" not in server_flags(serving, {})


@pytest.mark.parametrize(
    ("host", "flags", "may"), [("127.0.0.1", {}, True), ("0.0.0.0", {}, False), ("0.0.0.0", {"api-key": "k"}, True)]
)
def test_only_where_nobody_else_comes_in_it_loads_at_run_time(host: str, flags: dict[str, Any], may: bool) -> None:
    assert may_load_at_run_time(ServerSpec("m", host, 8000, flags), {}) is may


def test_a_rollback_goes_one_back_or_where_it_is_told() -> None:
    versions = [an_adapter(name="a", version=number) for number in (1, 2, 4)]
    assert target_of(versions, versions[2], None).version == 2
    assert target_of(versions, versions[0], 4).version == 4
    assert target_of(versions, None, 1).version == 1
    for now, to, says in (
        (versions[0], None, "a@1 is the first version"),
        (versions[1], 2, "a@2 is what is served already"),
        (versions[1], 3, "no a@3: of a there is version 1, 2, 4"),
        (None, None, "say which is wanted by --to"),
    ):
        with pytest.raises(LoraError, match=says):
            target_of(versions, now, to)
    with pytest.raises(LoraError, match="no such adapter"):
        target_of([], None, None)


def test_a_version_put_in_place_of_another(tmp_path: Path, base: Path) -> None:
    first = kept(tmp_path, base, "a")
    second = kept(tmp_path, base, "a", r=8)
    record = a_server(id=1, model=str(base), vllm_version="0.28.0", raw={"spec": {"flags": {"enable-lora": True}}})
    server = ScriptedServer({}, {"a": str(tmp_path / second.path)})
    with ServerApi("http://server", transport=server.transport()) as api:
        now = Running(record, api.models())
        assert version_of(tmp_path, now.adapters["a"], [first, second]) == second
        assert (now.max_rank, now.base.name) == (16, "base")
        require_takes(now, first, str(base))
        done = put(tmp_path, api, now, served(tmp_path, first).adapters[0])
    assert server.adapters == {"a": str(tmp_path / first.path)}
    assert done.replaced == str(tmp_path / second.path)
    assert any("no keeper" in warning for warning in done.warnings)
    assert any("prefix cache" in warning for warning in done.warnings)  # of 0.28 the cache knows the name alone


def test_servers_that_cannot_take_an_adapter(tmp_path: Path, base: Path) -> None:
    adapter = kept(tmp_path, base, "a")
    for model, flags, says in (
        (str(base), {}, "without --enable-lora"),
        (str(base), {"enable-lora": True, "api-server-count": 2}, "2 API servers"),
        ("org/other", {"enable-lora": True}, "serves org/other"),
    ):
        record = a_server(id=1, model=model, raw={"spec": {"flags": flags}})
        with pytest.raises(LoraError, match=says):
            require_takes(Running(record, ()), adapter, str(base))
