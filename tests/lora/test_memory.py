import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.launch.environment import child_environ
from engine.records import Installation
from lora.records import ALL_LINEAR, ATTENTION_QV, TrainingSettings
from lora.sizes.base_model import base_of
from lora.sizes.memory import (
    GIB,
    MemoryNeeded,
    block_bytes,
    bytes_of,
    logit_bytes,
    training_memory,
    weight_bytes,
)
from lora.sizes.parameter_count import TargetUnknown, target_layers
from tests.lora.made_adapters import QWEN_7B_CONFIG, TINY_CONFIG

QWEN = base_of(QWEN_7B_CONFIG)
SETTINGS = TrainingSettings("models/qwen", 1)


def gib(part: str, settings: TrainingSettings, gpu: bool = True) -> float:
    return dict(training_memory(QWEN, settings, gpu).parts)[part]


def test_seven_billion_weights_take_what_is_known_of_them() -> None:
    """6.53 G linear weights at 4.127 bits as the QLoRA paper has it, 1.09 G of embeddings in 16 bits."""
    assert QWEN.linear_parameters == 6_525_288_448
    assert weight_bytes(QWEN, True, 2) / QWEN.linear_parameters > 4.127 / 8
    assert gib("weights", SETTINGS) == pytest.approx(5.17, abs=0.01)
    assert gib("weights", replace(SETTINGS, quantization="none")) == pytest.approx(14.19, abs=0.01)
    assert gib("weights", replace(SETTINGS, quantization="none"), gpu=False) == pytest.approx(28.37, abs=0.01)


def test_a_trained_number_takes_sixteen_bytes() -> None:
    user = replace(SETTINGS, r=16, targets=ATTENTION_QV)
    assert gib("adapter and its optimizer", user) == pytest.approx(5_046_272 * 16 / GIB)


def test_parts_add_up_and_each_setting_tells() -> None:
    needed = training_memory(QWEN, SETTINGS, True)
    assert needed.total_gib == pytest.approx(sum(size for _, size in needed.parts))
    assert 7 < needed.total_gib < 10
    more: list[dict[str, Any]] = [
        {"batch": 2}, {"max_length": 2048}, {"gradient_checkpointing": False}, {"r": 64}, {"quantization": "none"},
        {"dtype": "float32"},
    ]  # fmt: skip
    for change in more:
        assert training_memory(QWEN, replace(SETTINGS, **change), True).total_gib > needed.total_gib, change
    without = replace(SETTINGS, gradient_checkpointing=False)
    fewer = training_memory(QWEN, replace(without, targets=ATTENTION_QV, dropout=0.0), True)
    assert fewer.total_gib < training_memory(QWEN, without, True).total_gib


def test_as_much_is_said_as_trainings_on_a_gpu_held() -> None:
    """Never less, and a twelfth more at most: eight ways to train on an H200, as NVML saw the process."""
    lines = (Path(__file__).parents[2] / "docs/results/h200/training-memory.jsonl").read_text().splitlines()
    assert len(lines) == 8
    for line in map(json.loads, lines):
        asked = line["settings"]
        if isinstance(asked["targets"], list):
            asked["targets"] = tuple(asked["targets"])
        said = training_memory(QWEN, replace(SETTINGS, **asked), True).total_gib
        assert 1.0 <= said / line["nvml_gib"] < 1 + 1 / 12, line["way"]


def test_a_large_vocabulary_rules_a_short_model_and_blocks_a_deep_one() -> None:
    short = base_of({**TINY_CONFIG, "vocab_size": 100_000})
    assert logit_bytes(short) > block_bytes(short, short.linears, True, 2, True)
    assert logit_bytes(QWEN) == 152064 * 12


def test_the_processor_computes_in_float32() -> None:
    assert [bytes_of(dtype, gpu) for dtype, gpu in (("auto", True), ("auto", False), ("bfloat16", False))] == [2, 4, 2]
    assert dict(training_memory(QWEN, SETTINGS, False).parts)["libraries"] > 0


def test_a_target_that_is_not_there_is_told() -> None:
    with pytest.raises(TargetUnknown):
        training_memory(QWEN, replace(SETTINGS, targets=("qproj",)), True)


SHAPES: list[dict[str, Any]] = [
    {"hidden_size": 256, "intermediate_size": 1024, "num_attention_heads": 4, "num_key_value_heads": 2},
    {"hidden_size": 512, "intermediate_size": 1024, "num_attention_heads": 8, "num_key_value_heads": 2},
    {"hidden_size": 256, "intermediate_size": 2048, "num_attention_heads": 4, "num_key_value_heads": 4},
]
LAYERS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


@pytest.mark.vllm
def test_autograd_keeps_what_we_say_it_does(installation: Installation) -> None:
    """Counted on small models in the training Python, within a twentieth."""
    settings: list[dict[str, Any]] = [
        {"targets": LAYERS, "dropout": 0.05, "checkpointing": False},
        {"targets": list(ATTENTION_QV), "dropout": 0.0, "checkpointing": False},
        {"targets": LAYERS, "dropout": 0.05, "checkpointing": True},
    ]
    common = {"model_type": "qwen2", "vocab_size": 3000, "tie_word_embeddings": False, "tokens": 512}
    cases = [{**common, **shape, **setting} for shape in SHAPES for setting in settings]
    cases.append({**cases[0], "model_type": "llama"})
    script = Path(__file__).parent / "saved_tensors.py"
    answer = subprocess.run(
        [installation.python, str(script), json.dumps(cases)],
        env=child_environ(installation.bin_dir, os.environ),
        cwd="/",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    line = next((line for line in answer.stdout.splitlines() if line.startswith("SAVED ")), None)
    assert line is not None, answer.stderr[-2000:]
    for case, (block, rest) in zip(cases, json.loads(line.removeprefix("SAVED ")), strict=True):
        base = base_of({**case, "num_hidden_layers": 2})
        if case["checkpointing"]:
            assert block == pytest.approx(base.width * 2), case
        else:
            assert block == pytest.approx(
                block_bytes(base, target_layers(base, case["targets"]), case["dropout"] > 0, 2, False), rel=0.05
            )
        assert rest <= logit_bytes(base) + 16 * base.width, case


def test_all_linear_is_what_a_list_of_all_is() -> None:
    listed, named = (
        training_memory(QWEN, replace(SETTINGS, targets=each), True) for each in (tuple(LAYERS), ALL_LINEAR)
    )
    assert listed == named
    assert isinstance(listed, MemoryNeeded)
