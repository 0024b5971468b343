import os
import shutil
from pathlib import Path

import pytest

from engine.launch.model import model_hash
from engine.records import Installation
from engine.signature import SignatureBroken
from lora.adapters.importing import ImportRefused, examine, examine_version, import_adapter, require_base
from lora.records import LoraError
from lora.sizes.base_model import BaseUnknown
from store.database import open_writer
from tests.lora.made_adapters import factors, tiny_factors, write_adapter, write_model


def said(folder: Path, base: str | None, installation: Installation | None = None) -> list[tuple[str, str]]:
    found = examine(folder, base, installation, os.environ).findings
    return [(finding.effect, finding.about) for finding in found]


def test_an_adapter_is_looked_at_with_the_base_it_names(tmp_path: Path) -> None:
    model = write_model(tmp_path / "tiny")
    examined = examine(write_adapter(tmp_path / "a", base_model_name_or_path=str(model)), None, None, os.environ)
    assert [(finding.effect, finding.about) for finding in examined.findings] == [("note", "vllm")]
    assert (examined.base, examined.max_rank, examined.vllm, examined.prevented) == (str(model), 8, None, ())


def test_a_base_that_is_not_here_or_not_known_is_said_and_not_guessed(tmp_path: Path) -> None:
    adapter = write_adapter(tmp_path / "a")
    assert said(adapter, None) == [("note", "vllm"), ("note", "base")]
    assert examine(adapter, None, None, os.environ).base == "org/tiny"
    strange = write_model(tmp_path / "tiny", model_type="mamba")
    assert said(adapter, str(strange)) == [("note", "vllm"), ("note", "base")]
    nameless = write_adapter(tmp_path / "b", base_model_name_or_path=None)
    assert examine(nameless, None, None, os.environ).base is None
    gone = str(tmp_path / "gone")
    assert said(adapter, gone)[-1] == ("note", "base")
    with pytest.raises(BaseUnknown, match="gone is no folder: name a model's folder or a hub name"):
        require_base(gone)
    for fine in (None, "org/tiny", "tiny", str(strange)):
        require_base(fine)


def test_another_base_than_the_one_it_names_is_said(tmp_path: Path) -> None:
    adapter = write_adapter(tmp_path / "a")
    other = write_model(tmp_path / "other")
    found = examine(adapter, str(other), None, os.environ).findings
    assert found[-1].text == f"its config names org/tiny as its base, and it is to be served on {other}"
    same = write_model(tmp_path / "Tiny")  # the hub's model, downloaded
    assert said(adapter, str(same)) == [("note", "vllm")]


def test_a_wrong_base_is_caught(tmp_path: Path) -> None:
    adapter = write_adapter(tmp_path / "a", factors("model.layers.0.self_attn.q_proj", 4, 16, 16))
    assert ("refused", "base") in said(adapter, str(write_model(tmp_path / "tiny")))


def test_the_installed_vllm_has_the_say(tmp_path: Path, installation: Installation) -> None:
    """Its own ranks, its class of this architecture."""
    adapter = write_adapter(tmp_path / "a", {**tiny_factors(24), **factors("lm_head", 24, 12, 32)}, r=24)
    llama, gpt2 = write_model(tmp_path / "tiny"), write_model(tmp_path / "g/tiny", architectures=["GPT2LMHeadModel"])
    examined = examine(adapter, str(llama), installation, os.environ)
    assert (examined.findings, examined.max_rank, examined.vllm) == ((), 32, installation.version)
    assert said(adapter, str(gpt2), installation)[0] == ("refused", "base")
    limited = examine(adapter, str(llama), installation, os.environ, max_rank=8)
    assert [finding.remedy for finding in limited.prevented] == ["give --max-lora-rank 32"]


def test_what_would_not_be_served_as_trained_is_kept_only_on_demand(tmp_path: Path) -> None:
    model, place = write_model(tmp_path / "tiny"), tmp_path / "data"
    examined = examine(write_adapter(tmp_path / "a", use_dora=True), str(model), None, os.environ)
    with open_writer(place / "llmtune.db") as writer:
        with pytest.raises(ImportRefused, match=r"not kept: it is a DoRA adapter \(use_dora\); --anyway keeps it"):
            import_adapter(writer, place, examined, "a")
        kept = import_adapter(writer, place, examined, "a", anyway=True, notes="to be converted").adapter
    assert (kept.base_model, kept.base_hash) == (str(model), model_hash(str(model)))
    assert (kept.imported_from, kept.notes, kept.training_id) == (str(tmp_path / "a"), "to be converted", None)
    assert kept.raw["findings"][0]["about"] == "use_dora"


def test_a_version_is_looked_at_as_registered_and_with_the_base_it_was_made_for(tmp_path: Path) -> None:
    model, place = write_model(tmp_path / "tiny"), tmp_path / "data"
    examined = examine(write_adapter(tmp_path / "a"), str(model), None, os.environ)
    with open_writer(place / "llmtune.db") as writer:
        kept = import_adapter(writer, place, examined, "a").adapter

    def notes() -> list[str]:
        return [finding.text for finding in examine_version(place, kept, None, None, os.environ).findings]

    assert [text[:5] for text in notes()] == ["no vL"]
    write_model(tmp_path / "tiny", vocab_size=64)
    assert notes()[-1] == f"{model} is not the very model it was made for: config or weights are others"
    shutil.rmtree(model)
    assert notes()[-1] == f"its base {model} is not here as a folder: whether it fits was not checked"
    (place / kept.path / "adapter_config.json").write_text("{}")
    with pytest.raises(SignatureBroken):
        notes()


def test_an_adapter_without_a_base_cannot_be_kept(tmp_path: Path) -> None:
    examined = examine(write_adapter(tmp_path / "a", base_model_name_or_path=None), None, None, os.environ)
    with open_writer(tmp_path / "llmtune.db") as writer, pytest.raises(LoraError, match="give it by --base"):
        import_adapter(writer, tmp_path, examined, "a")
