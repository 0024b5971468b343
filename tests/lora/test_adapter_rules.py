from pathlib import Path
from typing import Any

import pytest

from lora.adapters.adapter_files import read_adapter
from lora.adapters.adapter_findings import Finding, Served, ranks_of
from lora.adapters.adapter_rules import findings
from lora.adapters.adapter_values import Values, look_at_values
from lora.adapters.config_rules import scale
from lora.adapters.ranks import ranks_of_version
from lora.sizes.base_model import base_of
from tests.lora.made_adapters import TINY_CONFIG, factors, tiny_factors, write_adapter

BASE = base_of(TINY_CONFIG)


def served(version: str | None = "0.32.0", **changes: Any) -> Served:
    return Served(**{"allowed": ranks_of_version(version), "version": version, "base": BASE, **changes})


def found(tmp_path: Path, how: Served, tensors: Any = None, **config: Any) -> list[tuple[str, str]]:
    return [(finding.effect, finding.about) for finding in told(tmp_path, how, tensors, **config)]


def told(tmp_path: Path, how: Served, tensors: Any = None, **config: Any) -> tuple[Finding, ...]:
    adapter = read_adapter(write_adapter(tmp_path / "a", tensors, **config))
    return findings(adapter, how, look_at_values(adapter))


@pytest.mark.parametrize("version", ["0.10.2", "0.11.2", "0.28.0", "0.32.0", "0.33.0", None])
def test_a_plain_adapter_gives_no_cause_to_say_anything(version: str | None, tmp_path: Path) -> None:
    assert found(tmp_path, served(version)) == []
    harmless = {"use_rslora": True, "init_lora_weights": "Gaussian", "rank_pattern": {"v_proj": 4}, "lora_bias": False}
    assert found(tmp_path, served(version), **harmless) == []


REFUSED, WRONG, FINE = "refused", "wrong", None


@pytest.mark.parametrize(
    ("config", "in_0_10", "in_0_28", "in_0_32"),
    [
        ({"use_dora": True}, REFUSED, REFUSED, REFUSED),
        ({"modules_to_save": ["lm_head"]}, REFUSED, REFUSED, REFUSED),
        ({"modules_to_save": ["score"]}, REFUSED, REFUSED, FINE),
        ({"bias": "all"}, REFUSED, REFUSED, REFUSED),
        ({"lora_bias": True}, WRONG, WRONG, REFUSED),
        ({"init_lora_weights": "pissa"}, WRONG, WRONG, REFUSED),
        ({"init_lora_weights": "pissa_niter_16"}, WRONG, WRONG, REFUSED),
        ({"init_lora_weights": "olora"}, WRONG, WRONG, REFUSED),
        ({"init_lora_weights": "corda"}, WRONG, WRONG, REFUSED),
        ({"init_lora_weights": "loftq"}, WRONG, WRONG, REFUSED),
        ({"init_lora_weights": "eva"}, FINE, FINE, FINE),
        ({"alora_invocation_tokens": [1]}, WRONG, WRONG, REFUSED),
        ({"layer_replication": [[0, 1]]}, WRONG, WRONG, REFUSED),
        ({"use_bdlora": {"nblocks": 2}}, WRONG, WRONG, REFUSED),
        ({"use_qalora": True}, WRONG, WRONG, REFUSED),
        ({"alpha_pattern": {"v_proj": 32}}, WRONG, WRONG, FINE),
        ({"arrow_config": {}}, FINE, FINE, FINE),
        ({"arrow_config": {"top_k": 2}}, WRONG, WRONG, WRONG),
        ({"peft_type": "ADALORA"}, WRONG, WRONG, WRONG),
        ({"r": 0}, REFUSED, REFUSED, REFUSED),
        ({"lora_alpha": None}, REFUSED, REFUSED, REFUSED),
    ],
)
def test_each_version_refuses_ignores_or_takes(
    config: dict[str, Any], in_0_10: str | None, in_0_28: str | None, in_0_32: str | None, tmp_path: Path
) -> None:
    (key,) = config
    for version, effect in (("0.10.2", in_0_10), ("0.28.0", in_0_28), ("0.32.0", in_0_32), (None, in_0_32)):
        assert found(tmp_path, served(version), **config) == ([] if effect is None else [(effect, key)]), version


def test_a_pattern_of_ranks_is_ignored_before_0_32_and_its_highest_counts_after(tmp_path: Path) -> None:
    tensors = {**factors("model.layers.0.self_attn.q_proj", 4, 12, 12), **factors("lm_head", 24, 12, 32)}
    config = {"rank_pattern": {"lm_head": 24}}
    assert ("wrong", "rank_pattern") in found(tmp_path, served("0.28.0"), tensors, **config)
    (finding,) = told(tmp_path, served(max_rank=16, embedding_modules=frozenset({"lm_head"})), tensors, **config)
    assert finding.vllm == "LoRA rank 24 is greater than max_lora_rank 16."
    assert finding.remedy == "give --max-lora-rank 32"
    assert max(ranks_of(read_adapter(tmp_path / "a"), served())) == 24


def test_rank_16_with_max_lora_rank_8_is_caught(tmp_path: Path) -> None:
    (finding,) = told(tmp_path, served(max_rank=8), tiny_factors(16), r=16)
    assert (finding.effect, finding.about, finding.prevents) == ("refused", "r", True)
    assert finding.text == "its rank 16 is above the --max-lora-rank 8 given"
    assert finding.remedy == "give --max-lora-rank 16"
    assert told(tmp_path, served(max_rank=16), tiny_factors(16), r=16) == ()


def test_a_rank_above_all_allowed_values_cannot_be_served(tmp_path: Path) -> None:
    (finding,) = told(tmp_path, served(), tiny_factors(600), r=600)
    assert finding.text == "its rank 600 is above 512, the largest --max-lora-rank of vLLM 0.32.0"


def test_biases_pass_in_0_10_where_they_are_enabled(tmp_path: Path) -> None:
    (finding,) = told(tmp_path, served("0.10.0"), bias="all")
    assert finding.remedy.startswith("start vLLM with --enable-lora-bias")
    assert told(tmp_path, served("0.10.0", lora_bias=True), bias="all") == ()


def test_what_tensors_are_is_told_once(tmp_path: Path) -> None:
    magnitude = {**tiny_factors(), "base_model.model.q_proj.lora_magnitude_vector": ("F32", (12,), None)}
    assert found(tmp_path, served(), magnitude, use_dora=True) == [("refused", "use_dora")]
    (finding,) = told(tmp_path, served(), magnitude)  # a config that lies
    assert finding.text == "it holds DoRA's magnitudes: q_proj.lora_magnitude_vector"
    saved = {**tiny_factors(), "base_model.model.model.embed_tokens.weight": ("F32", (32, 12), None)}
    assert found(tmp_path, served(), saved, modules_to_save=["embed_tokens"]) == [("refused", "modules_to_save")]
    (finding,) = told(tmp_path, served(), saved)
    assert "whole embeddings, as of an extended vocabulary" in finding.text
    assert finding.vllm == "model.embed_tokens.weight is unsupported LoRA weight"


def test_a_classification_head_passes_from_0_32_on(tmp_path: Path) -> None:
    tensors = {**tiny_factors(), "base_model.model.score.weight": ("F32", (2, 12), None)}
    assert found(tmp_path, served(), tensors, modules_to_save=["score"]) == []
    assert ("refused", "tensors") in found(tmp_path, served("0.28.0"), tensors)


def test_embeddings_are_taken_where_the_model_s_class_says_so(tmp_path: Path) -> None:
    tensors = {**tiny_factors(), **factors("lm_head", 4, 12, 32)}
    assert found(tmp_path, served(embedding_modules=frozenset({"lm_head"})), tensors) == []
    (finding,) = told(tmp_path, served(embedding_modules=frozenset()), tensors)
    assert (finding.effect, finding.text) == ("refused", "it adapts lm_head, which vLLM 0.32.0 does not for this model")
    assert found(tmp_path, served(), tensors) == [("note", "target_modules")]


def test_embeddings_saved_beside_it_are_dropped(tmp_path: Path) -> None:
    name = "base_model.model.model.embed_tokens.base_layer.weight"
    same, longer = ({**tiny_factors(), name: ("F32", (rows, 12), None)} for rows in (32, 34))
    assert found(tmp_path, served(), same) == [("note", "tensors")]
    (finding,) = told(tmp_path, served(), longer)
    assert (finding.effect, finding.text[:58]) == (
        "wrong",
        "it was trained with 34 tokens, its base has 32: vLLM drops",
    )


def test_another_base_is_told_by_its_shapes(tmp_path: Path) -> None:
    (finding,) = told(tmp_path, served(), factors("model.layers.0.self_attn.q_proj", 4, 16, 16))
    assert (finding.effect, finding.about) == ("refused", "base")
    assert finding.text.endswith("model.layers.0.self_attn.q_proj takes 16 to 16, the base's 12 to 12")
    (finding,) = told(tmp_path, served(), factors("model.layers.0.self_attn.q_proj", 4, 6, 12))
    assert (finding.effect, finding.about) == ("wrong", "base")
    assert finding.text.endswith(
        "takes 6 to 12, the base's 12 to 12; vLLM would load it without a word and answer wrongly"
    )
    (finding,) = told(tmp_path, served(), factors("model.layers.7.self_attn.q_proj", 4, 12, 12))
    text = "the base has no layer model.layers.7.self_attn.q_proj: vLLM would load it and never use it"
    assert (finding.effect, finding.text) == ("wrong", text)
    (finding,) = told(tmp_path, served(), factors("transformer.h.0.attn.c_attn", 4, 12, 36))
    assert (finding.effect, finding.vllm) == ("refused", "expected target modules in")
    assert found(tmp_path, served(base=None), factors("transformer.h.0.attn.c_attn", 4, 12, 36)) == []


def test_a_config_of_another_training_would_scale_wrongly(tmp_path: Path) -> None:
    (finding,) = told(tmp_path, served(), tiny_factors(8), r=4)
    assert finding.text == "its tensors have rank 8, its config says 4: it would be scaled by alpha / 4"


def test_torn_factors_are_found(tmp_path: Path) -> None:
    q = "base_model.model.model.layers.0.self_attn.q_proj"
    half = {f"{q}.lora_A.weight": ("F32", (4, 12), None)}
    uneven = {**half, f"{q}.lora_B.weight": ("F32", (12, 3), None)}
    assert found(tmp_path, served(), half) == [("refused", "tensors")]
    assert found(tmp_path, served(), uneven) == [("wrong", "tensors")]


def test_experts_are_not_scaled_by_rslora_before_0_32(tmp_path: Path) -> None:
    expert = factors("model.layers.0.mlp.experts.3.up_proj", 4, 12, 20)
    old = served("0.28.0", base=None)
    assert found(tmp_path, old, expert, use_rslora=True) == [("wrong", "use_rslora")]
    assert found(tmp_path, served(base=None), expert, use_rslora=True) == []


def test_numbers_are_looked_at(tmp_path: Path) -> None:
    adapter = read_adapter(write_adapter(tmp_path / "a"))
    (bad,) = findings(adapter, served(), Values(idle=False, not_finite=("a", "b", "c", "d", "e")))
    assert bad.effect == "wrong"
    assert bad.text.startswith("it holds numbers that are none (NaN or infinite) in a, b, c and 2 more: it would spoil")
    (idle,) = findings(adapter, served(), Values(idle=True, not_finite=()))
    assert (idle.effect, idle.prevents) == ("idle", True)


def test_a_pickle_is_judged_by_its_config_alone(tmp_path: Path) -> None:
    folder = write_adapter(tmp_path / "a", use_dora=True)
    (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")
    effects = [finding.effect for finding in findings(read_adapter(folder), served())]
    assert effects == ["refused", "note"]  # the worst first


def test_hostile_text_in_a_config_is_harmless(tmp_path: Path) -> None:
    evil = "\x1b[2J\u202eabc" * 50
    for config in (
        {"peft_type": evil},
        {"bias": evil},
        {"init_lora_weights": evil},
        {"modules_to_save": [evil]},
        {"rank_pattern": {evil: 9}},
        {"r": evil},
        {"target_modules": {"a": evil}},
        {"rank_pattern": [evil]},
        {"modules_to_save": evil},
    ):
        for version in ("0.28.0", "0.32.0"):
            assert all(finding.text.isprintable() for finding in told(tmp_path, served(version), **config))


def test_the_scale_is_peft_s() -> None:
    assert scale({"r": 16, "lora_alpha": 32}) == 2.0
    assert scale({"r": 16, "lora_alpha": 32, "use_rslora": True}) == 8.0
    assert scale({"r": 0, "lora_alpha": 32}) is None
