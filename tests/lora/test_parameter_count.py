import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from engine.launch.environment import child_environ
from engine.records import Installation
from lora.adapters.safetensors_header import read_header
from lora.records import ALL_LINEAR
from lora.sizes.base_model import BaseUnknown, base_of, read_base
from lora.sizes.parameter_count import TargetUnknown, adapter_size, target_layers
from tests.lora.made_adapters import QWEN_7B_CONFIG, TINY_CONFIG


def test_the_user_s_own_setting_on_qwen_7b() -> None:
    """r 16 on q_proj and v_proj: what peft prints for it, 20.2 MB of float32."""
    size = adapter_size(base_of(QWEN_7B_CONFIG), 16, ("q_proj", "v_proj"))
    assert (size.trainable, size.total, size.modules) == (5_046_272, 7_620_662_784, 56)
    assert size.tensor_bytes("float32") == 20_185_088
    assert f"{size.share:.4%}" == "0.0662%"


def test_all_linear_layers_of_qwen_7b() -> None:
    """40,370,176 of r 16, as peft counts it."""
    assert adapter_size(base_of(QWEN_7B_CONFIG), 16, ALL_LINEAR).trainable == 40_370_176


def test_the_small_model_has_as_many_as_its_weights(model_dir: Path) -> None:
    held = {tensor.name: tensor for tensor in read_header(model_dir / "model.safetensors")}
    base = read_base(model_dir)
    assert base.parameters == sum(tensor.elements for tensor in held.values())
    for layer in base.linears:
        assert held[f"{layer.name}.weight"].shape == (layer.outputs, layer.inputs)


@pytest.mark.parametrize(
    ("model_type", "changes", "rest"),
    [
        ("llama", {}, 5 * 12),
        ("mistral", {}, 5 * 12),
        ("llama", {"attention_bias": True}, 5 * 12 + 2 * (12 + 4 + 4 + 12)),
        ("llama", {"mlp_bias": True}, 5 * 12 + 2 * (20 + 20 + 12)),
        ("qwen2", {}, 5 * 12 + 2 * (12 + 4 + 4)),
        ("qwen3", {"head_dim": 8}, 5 * 12 + 2 * 2 * 8),
        ("gemma2", {}, 9 * 12),
    ],
)
def test_biases_and_norms_count_too(model_type: str, changes: dict[str, Any], rest: int) -> None:
    assert base_of({**TINY_CONFIG, "model_type": model_type, **changes}).rest == rest


def test_a_tied_embedding_counts_once_and_defaults_are_the_family_s() -> None:
    config = {key: value for key, value in TINY_CONFIG.items() if key != "tie_word_embeddings"}
    untied, tied = base_of(config), base_of({**config, "model_type": "gemma"})
    assert (untied.tied, tied.tied) == (False, True)
    assert untied.parameters - tied.parameters == 32 * 12


def test_fused_layers_are_those_of_phi3() -> None:
    base = base_of({**TINY_CONFIG, "model_type": "phi3"})
    assert base.leaves == ("o_proj", "qkv_proj", "gate_up_proj", "down_proj")
    assert base.linear_parameters == base_of(TINY_CONFIG).linear_parameters


@pytest.mark.parametrize(
    ("targets", "names"),
    [
        (("q_proj",), ["model.layers.0.self_attn.q_proj", "model.layers.1.self_attn.q_proj"]),
        (["layers.1.mlp.up_proj"], ["model.layers.1.mlp.up_proj"]),
        (["lm_head"], ["lm_head"]),
        (r".*\.0\.mlp\.(up|down)_proj", ["model.layers.0.mlp.up_proj", "model.layers.0.mlp.down_proj"]),
    ],
)
def test_targets_are_picked_as_peft_does(targets: Any, names: list[str]) -> None:
    assert [layer.name for layer in target_layers(base_of(TINY_CONFIG), targets)] == names


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        (["q_proj", "qproj"], "no layer of the model is called qproj: there are q_proj, k_proj"),
        ("q_proj", "no layer of the model is called q_proj"),  # a text is a pattern of the whole name
        ("(", "are no pattern"),
        ([], "no layer is named"),
    ],
)
def test_a_target_that_fits_nothing_is_told(targets: Any, words: str) -> None:
    with pytest.raises(TargetUnknown, match=words):
        adapter_size(base_of(TINY_CONFIG), 4, targets)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({**TINY_CONFIG, "model_type": "mamba"}, "model_type mamba, whose layers are not known"),
        ({**TINY_CONFIG, "hidden_size": None}, "hidden_size in config.json is null"),
        ({**TINY_CONFIG, "num_hidden_layers": "2"}, "num_hidden_layers"),
        ({}, "model_type none"),
        ([], "not a JSON object"),
    ],
)
def test_a_config_that_does_not_tell_is_refused(config: Any, words: str) -> None:
    with pytest.raises(BaseUnknown, match=words):
        base_of(config)


def test_a_folder_without_a_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BaseUnknown, match="cannot be read"):
        read_base(tmp_path)


FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "phi3", "gemma", "gemma2", "gemma3_text")


@pytest.mark.vllm
def test_peft_counts_what_we_do(installation: Installation) -> None:
    """Every family, and the user's setting on the shape of Qwen2.5-7B, on models without weights."""
    tiny = {key: value for key, value in TINY_CONFIG.items() if key not in ("architectures", "tie_word_embeddings")}
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    cases: list[list[Any]] = [
        [{**tiny, **special, "model_type": family, "head_dim": 4}, 8, ALL_LINEAR] for family in FAMILIES
    ]
    cases.append([{**tiny, "attention_bias": True, "mlp_bias": True}, 8, ["q_proj", "down_proj"]])
    cases.append([QWEN_7B_CONFIG, 16, ["q_proj", "v_proj"]])
    script = Path(__file__).parent / "counted_models.py"
    answer = subprocess.run(
        [installation.python, str(script), json.dumps(cases)],
        env=child_environ(installation.bin_dir, os.environ),
        cwd="/",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    line = next((line for line in answer.stdout.splitlines() if line.startswith("COUNTED ")), None)
    assert line is not None, answer.stderr[-2000:]
    for (config, rank, targets), (trainable, total, layers) in zip(
        cases, json.loads(line.removeprefix("COUNTED ")), strict=True
    ):
        base = base_of(config)
        size = adapter_size(base, rank, targets)
        assert (size.trainable, size.total) == (trainable, total), config["model_type"]
        ours = [(layer.name, layer.inputs, layer.outputs) for layer in (*base.linears, base.output)]
        assert ours == [tuple(layer) for layer in layers], config["model_type"]
