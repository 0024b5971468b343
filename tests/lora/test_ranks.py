import os
from pathlib import Path

import pytest

from engine.records import Installation
from lora.adapters.ranks import allowed_ranks, max_rank_for, ranks_of_version
from lora.adapters.vllm_source import ModelSource, max_lora_ranks, model_source, vllm_folder

CLOSED = (8, 16, 32, 64, 128, 256, 320, 512)


@pytest.mark.parametrize(
    ("ranks", "needed"), [([24], 32), ([16], 16), ([8, 16, 4], 16), ([257], 320), ([512], 512), ([513], None), ([], 8)]
)
def test_a_rank_is_rounded_up_to_what_is_allowed(ranks: list[int], needed: int | None) -> None:
    assert max_rank_for(ranks, CLOSED) == needed


def test_a_rank_of_one_is_allowed_from_0_11_on() -> None:
    assert ranks_of_version("0.10.2") == CLOSED
    for version in ("0.11.2", "0.32.0+cpu", "0.1.dev1+gabc", None):
        assert ranks_of_version(version) == (1, *CLOSED)


def source(tmp_path: Path, **files: str) -> Path:
    for name, text in files.items():
        path = tmp_path / "vllm" / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "vllm"


def test_an_installation_s_own_list_is_read_from_its_source(tmp_path: Path) -> None:
    new = source(tmp_path / "new", config__lora="MaxLoRARanks = Literal[1, 8, 48]\n")
    old = source(
        tmp_path / "old",
        config="class LoRAConfig:\n    def check(self):\n        possible_max_ranks = (8, 16, 320)\n",
    )
    assert (max_lora_ranks(new), max_lora_ranks(old)) == ((1, 8, 48), (8, 16, 320))
    for text in ("MaxLoRARanks = int\n", "this is no Python", ""):
        assert max_lora_ranks(source(tmp_path / "other", config__lora=text)) is None


def test_a_model_s_class_tells_whether_and_on_what(tmp_path: Path) -> None:
    folder = source(
        tmp_path,
        model_executor__models__registry="""
_A = {"TinyForCausalLM": ("tiny", "TinyForCausalLM"), "SonForCausalLM": ("son", "SonForCausalLM"),
      "PlainForCausalLM": ("plain", "PlainForCausalLM"), "LostForCausalLM": ("lost", "LostForCausalLM")}
_B = {"OddForCausalLM": module, **_A}
""",
        model_executor__models__tiny="""
class TinyForCausalLM(nn.Module, SupportsLoRA):
    embedding_modules = {"embed_tokens": "input_embeddings"}
""",
        model_executor__models__son="from .tiny import TinyForCausalLM\nclass SonForCausalLM(TinyForCausalLM): pass\n",
        model_executor__models__plain="class PlainForCausalLM(nn.Module): pass\n",
    )
    tiny = ModelSource(True, frozenset({"embed_tokens"}))
    assert model_source(folder, "TinyForCausalLM") == tiny
    assert model_source(folder, "SonForCausalLM") == tiny
    assert model_source(folder, "PlainForCausalLM") == ModelSource(False, frozenset())
    for name in ("LostForCausalLM", "OddForCausalLM", "NoneForCausalLM"):
        assert model_source(folder, name) is None


def test_a_python_that_does_not_tell_leaves_the_version_s_list(tmp_path: Path) -> None:
    gone = Installation("x", str(tmp_path / "python"), (), str(tmp_path), "0.10.2")
    assert vllm_folder(gone, os.environ) is None
    assert allowed_ranks(gone, os.environ) == CLOSED
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexit 1\n")
    silent.chmod(0o755)
    assert vllm_folder(Installation("x", str(silent), (), str(tmp_path), "0.32.0"), os.environ) is None


def test_the_installed_vllm_tells(installation: Installation) -> None:
    folder = vllm_folder(installation, os.environ)
    assert folder is not None
    ranks = max_lora_ranks(folder)
    assert ranks is not None
    assert ranks == allowed_ranks(installation, os.environ) == ranks_of_version(installation.version)
    llama, gpt2 = model_source(folder, "LlamaForCausalLM"), model_source(folder, "GPT2LMHeadModel")
    assert llama is not None
    assert llama.supports_lora
    assert llama.embedding_modules == {"embed_tokens", "lm_head"}
    assert gpt2 is not None
    assert not gpt2.supports_lora
