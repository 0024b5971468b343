"""The layers of a model from its config.json alone, without its weights: what LoRA can be put on, and how large."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.text import clean
from lora.records import LoraError


class BaseUnknown(LoraError):
    """A model whose layers cannot be told from its config."""


@dataclass(frozen=True, slots=True)
class Linear:
    """A weight of shape (outputs, inputs). `name` as in the model: `model.layers.0.self_attn.q_proj`."""

    name: str
    inputs: int
    outputs: int

    @property
    def leaf(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def parameters(self) -> int:
        return self.inputs * self.outputs


@dataclass(frozen=True, slots=True)
class BaseModel:
    """`linears` are the linear layers of its blocks, in the model's order. `embedding` maps tokens (its inputs are the
    vocabulary) to `width`, `output` back; where they are `tied` it is one weight. `rest` counts biases and norms."""

    model_type: str
    architectures: tuple[str, ...]
    linears: tuple[Linear, ...]
    embedding: Linear
    output: Linear
    tied: bool
    rest: int
    layers: int
    width: int
    feed_forward: int
    heads: int
    positions: int | None = None

    @property
    def vocabulary(self) -> int:
        return self.embedding.inputs

    @property
    def linear_parameters(self) -> int:
        return sum(linear.parameters for linear in self.linears)

    @property
    def parameters(self) -> int:
        """All of them, a tied weight once."""
        return self.linear_parameters + self.embedding.parameters * (1 if self.tied else 2) + self.rest

    @property
    def leaves(self) -> tuple[str, ...]:
        """The last parts of the names of its linear layers, in the order of the first block."""
        return tuple(dict.fromkeys(linear.leaf for linear in self.linears))


@dataclass(frozen=True, slots=True)
class _Family:
    """How a family of decoders differs from Llama. `norms` of `width` in a block, `head_norms` of a head's width."""

    tied: bool = False
    qkv_bias: bool | None = None  # None: as `attention_bias` says, of o_proj too
    norms: int = 2
    head_norms: int = 0
    fused: bool = False


# By `model_type`; the defaults of transformers' configurations, which config.json leaves out where they hold.
_FAMILIES: Mapping[str, _Family] = {
    "llama": _Family(),
    "mistral": _Family(),
    "qwen2": _Family(qkv_bias=True),
    "qwen3": _Family(head_norms=2),
    "phi3": _Family(fused=True),
    "gemma": _Family(tied=True),
    "gemma2": _Family(tied=True, norms=4),
    "gemma3_text": _Family(tied=True, norms=4, head_norms=2),
}


def read_base(folder: Path) -> BaseModel:
    """The layers of the model in `folder`. Raises BaseUnknown."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BaseUnknown(f"{path} cannot be read ({error.strerror}): name the folder of a model") from None
    except ValueError:
        raise BaseUnknown(f"{path} is not JSON: download the model again") from None
    return base_of(config, str(folder))


def base_of(config: Any, where: str = "the model") -> BaseModel:
    """The layers that a config.json describes. Raises BaseUnknown, naming `where`, for a family that is not known here
    or numbers that are missing."""
    if not isinstance(config, Mapping):
        raise BaseUnknown(f"{where}: config.json is not a JSON object")
    model_type = str(config.get("model_type", ""))
    family = _FAMILIES.get(model_type)
    if family is None:
        known = ", ".join(_FAMILIES)
        kind = clean(model_type, 60) or "none"
        raise BaseUnknown(f"{where} has model_type {kind}, whose layers are not known here (known: {known})")

    def number(key: str, default: Callable[[], int] | None = None) -> int:
        value = config.get(key)
        if value is None and default is not None:
            return default()
        if type(value) is not int or value <= 0:
            raise BaseUnknown(f"{where}: {key} in config.json is {clean(json.dumps(value), 40)}, not a number above 0")
        return value

    width, inner, layers = number("hidden_size"), number("intermediate_size"), number("num_hidden_layers")
    heads = number("num_attention_heads")
    kv_heads, head = number("num_key_value_heads", lambda: heads), number("head_dim", lambda: width // heads)
    vocabulary = number("vocab_size")
    block = _block(family, width, inner, heads * head, kv_heads * head)
    attention_bias, mlp_bias = config.get("attention_bias") is True, config.get("mlp_bias") is True
    linears = tuple(
        Linear(f"model.layers.{layer}.{name}", inputs, outputs)
        for layer in range(layers)
        for name, inputs, outputs in block
    )
    with_bias = {
        "q_proj", "k_proj", "v_proj", "qkv_proj",
    } if family.qkv_bias or (family.qkv_bias is None and attention_bias) else set()  # fmt: skip
    if family.qkv_bias is None and attention_bias:
        with_bias.add("o_proj")
    if mlp_bias:
        with_bias |= {"gate_proj", "up_proj", "down_proj"}
    biases = sum(linear.outputs for linear in linears if linear.leaf in with_bias)
    tied = config.get("tie_word_embeddings")
    return BaseModel(
        model_type=model_type,
        architectures=tuple(str(each) for each in config.get("architectures") or ()),
        linears=linears,
        embedding=Linear("model.embed_tokens", vocabulary, width),
        output=Linear("lm_head", width, vocabulary),
        tied=family.tied if tied is None else tied is True,
        rest=biases + layers * (family.norms * width + family.head_norms * head) + width,
        layers=layers,
        width=width,
        feed_forward=inner,
        heads=heads,
        positions=number("max_position_embeddings", lambda: 0) or None,
    )


def _block(family: _Family, width: int, inner: int, q: int, kv: int) -> tuple[tuple[str, int, int], ...]:
    """Name, inputs and outputs of the linear layers of one block, in the model's order."""
    if family.fused:
        return (
            ("self_attn.o_proj", q, width),
            ("self_attn.qkv_proj", width, q + 2 * kv),
            ("mlp.gate_up_proj", width, 2 * inner),
            ("mlp.down_proj", inner, width),
        )
    return (
        ("self_attn.q_proj", width, q),
        ("self_attn.k_proj", width, kv),
        ("self_attn.v_proj", width, kv),
        ("self_attn.o_proj", q, width),
        ("mlp.gate_proj", width, inner),
        ("mlp.up_proj", width, inner),
        ("mlp.down_proj", inner, width),
    )
