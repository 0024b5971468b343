"""Small adapters and models as files, written by hand: no torch here."""

import json
import struct
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

WIDTHS = {"F32": 4, "BF16": 2, "F16": 2, "U8": 1}

# A Llama of two blocks; every number small.
TINY_CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 12,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "vocab_size": 32,
    "max_position_embeddings": 64,
    "tie_word_embeddings": True,
}
QWEN_7B_CONFIG: dict[str, Any] = {  # of Qwen2.5-7B-Instruct
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
    "max_position_embeddings": 32768,
    "tie_word_embeddings": False,
}
PEFT_CONFIG: dict[str, Any] = {
    "peft_type": "LORA",
    "task_type": "CAUSAL_LM",
    "base_model_name_or_path": "org/tiny",
    "r": 4,
    "lora_alpha": 8,
    "lora_dropout": 0.05,
    "target_modules": ["q_proj", "v_proj"],
    "bias": "none",
    "modules_to_save": None,
    "init_lora_weights": True,
    "rank_pattern": {},
    "alpha_pattern": {},
}

Tensors = Mapping[str, tuple[str, tuple[int, ...], bytes | None]]
"""Name → type, shape and data; None is ones."""


def safetensors(tensors: Tensors) -> bytes:
    """A file of that format."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, (dtype, shape, content) in tensors.items():
        one = struct.pack("<f", 1.0)[-WIDTHS[dtype] :] if dtype in ("F32", "BF16") else b"\x01" * WIDTHS[dtype]
        piece = one * prod(shape) if content is None else content
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def factors(module: str, r: int, inputs: int, outputs: int, b: bytes | None = None) -> Tensors:
    """The two factors of a module, as peft names them."""
    name = f"base_model.model.{module}"
    return {
        f"{name}.lora_A.weight": ("F32", (r, inputs), None),
        f"{name}.lora_B.weight": ("F32", (outputs, r), b),
    }


def tiny_factors(r: int = 4) -> Tensors:
    """Of q_proj and v_proj in both blocks of the tiny model."""
    made: dict[str, Any] = {}
    for layer in range(2):
        made |= factors(f"model.layers.{layer}.self_attn.q_proj", r, 12, 12)
        made |= factors(f"model.layers.{layer}.self_attn.v_proj", r, 12, 4)
    return made


def write_adapter(folder: Path, tensors: Tensors | None = None, **config: Any) -> Path:
    """An adapter of the tiny model as peft saves it; `config` changes keys of its config, None tensors are all there
    should be."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps({**PEFT_CONFIG, **config}))
    found = tiny_factors() if tensors is None else tensors
    (folder / "adapter_model.safetensors").write_bytes(safetensors(found))
    return folder


def write_model(folder: Path, **config: Any) -> Path:
    """The tiny model's folder: a config and weights that nobody reads."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**TINY_CONFIG, **config}))
    (folder / "model.safetensors").write_bytes(safetensors({"lm_head.weight": ("F32", (2, 2), None)}))
    return folder
