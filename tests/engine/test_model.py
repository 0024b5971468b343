import json
import shutil
from pathlib import Path

import pytest

from engine.launch.model import check_model, model_hash
from engine.records import EngineError


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"]}))
    (folder / "model-00001-of-00001.safetensors").write_bytes(b"weights")
    (folder / "model.safetensors.index.json").write_text("{}")
    (folder / "README.md").write_text("about")
    return folder


def test_a_model_folder_and_a_hub_name_pass(model: Path) -> None:
    check_model(str(model))
    check_model("Qwen/Qwen2.5-7B-Instruct")
    check_model("gpt2")


def test_what_is_no_model_is_one_line_that_says_why(model: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "adapter_config.json").write_text("{}")
    shutil.copytree(model, tmp_path / "cut")
    (tmp_path / "cut" / "config.json").write_text("{")
    for path, why in [
        (str(tmp_path / "empty"), "no config.json"),
        (str(tmp_path / "adapter"), "LoRA adapter"),
        (str(tmp_path / "cut"), "not JSON"),
        (str(tmp_path / "missing"), "does not exist"),
        ("./missing", "does not exist"),
        ("models/one/deep", "does not exist"),
        ("org/name --max-model-len 512", "does not exist"),
        (str(model / "README.md"), "is a file"),
        ("", "no model"),
    ]:
        with pytest.raises(EngineError, match=why) as error:
            check_model(path)
        assert "\n" not in str(error.value)


def test_a_name_in_a_folder_that_is_here_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_model("models/qwen")
    (tmp_path / "models").mkdir()
    with pytest.raises(EngineError, match="does not exist"):
        check_model("models/qwen")


def test_a_fingerprint_follows_what_the_model_is_and_not_where_it_lies(model: Path, tmp_path: Path) -> None:
    first = model_hash(str(model))
    assert first is not None
    copy = tmp_path / "copy"
    shutil.copytree(model, copy)
    (copy / "README.md").write_text("other")
    assert model_hash(str(copy)) == first
    (copy / "model-00001-of-00001.safetensors").write_bytes(b"longer weights")
    changed = model_hash(str(copy))
    assert changed != first
    (copy / "config.json").write_text("{}")
    assert model_hash(str(copy)) not in (first, changed)
    assert model_hash("org/name") is None
