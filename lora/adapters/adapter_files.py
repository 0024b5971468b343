"""A LoRA adapter as a folder, as peft writes it: adapter_config.json and the weights beside it. Nothing is executed."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.text import clean
from lora.adapters.safetensors_header import Tensor, read_header
from lora.records import LoraError

CONFIG = "adapter_config.json"
WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin", "adapter_model.pt")
"""In the order in which vLLM looks for them (vllm/lora/lora_model.py, from_local_checkpoint)."""

PREFIX = "base_model.model."
"""What peft puts before the names of the base's modules."""

_PART = re.compile(r"(?P<module>.+)\.(?:lora_(?P<side>[AB])\.weight|lora_embedding_(?P<table>[AB]))")


class AdapterUnfit(LoraError):
    """A folder that holds no adapter, or a damaged one."""


@dataclass(frozen=True, slots=True)
class LoraPair:
    """The two factors of one module; None for one that the file lacks. `module` is its name in the base model
    (`model.layers.0.self_attn.q_proj`). A linear one has A (r, in) and B (out, r), an embedding A (r, vocabulary) and
    B (width, r)."""

    module: str
    a: Tensor | None
    b: Tensor | None
    embedding: bool = False

    @property
    def leaf(self) -> str:
        """The last part of its name: `q_proj`."""
        return self.module.rpartition(".")[2]

    @property
    def rank(self) -> int | None:
        if self.a is not None and self.a.shape:
            return self.a.shape[0]
        return self.b.shape[-1] if self.b is not None and self.b.shape else None


@dataclass(frozen=True, slots=True)
class Adapter:
    """`tensors` is None where the weights are a pickle (.bin, .pt): that can only be read by running what it holds."""

    folder: Path
    config: Mapping[str, Any]
    weights: Path
    tensors: tuple[Tensor, ...] | None
    pairs: tuple[LoraPair, ...] = ()
    others: tuple[Tensor, ...] = field(default=())
    """Tensors that are no factor of a LoRA."""

    @property
    def base_model(self) -> str | None:
        """What peft says it was trained on: a folder or a hub name, maybe of another machine."""
        return self._text("base_model_name_or_path")

    @property
    def r(self) -> int | None:
        """The rank that the config tells."""
        found = self.config.get("r")
        return found if type(found) is int else None

    @property
    def ranks(self) -> frozenset[int]:
        """The ranks of its modules, from their shapes; empty where they cannot be seen."""
        return frozenset(rank for pair in self.pairs if (rank := pair.rank) is not None)

    @property
    def targets(self) -> tuple[str, ...]:
        """The last parts of the names of its modules; what the config asks for where the tensors cannot be seen."""
        if self.pairs:
            return tuple(sorted({pair.leaf for pair in self.pairs}))
        asked = self.config.get("target_modules")
        return tuple(sorted(map(str, asked))) if isinstance(asked, list) else (str(asked),) if asked else ()

    @property
    def parameters(self) -> int | None:
        """How many numbers it holds."""
        return None if self.tensors is None else sum(tensor.elements for tensor in self.tensors)

    def _text(self, key: str) -> str | None:
        found = self.config.get(key)
        return found if isinstance(found, str) and found else None


def read_adapter(folder: Path) -> Adapter:
    """The adapter in `folder`. Raises AdapterUnfit or FileUnfit, one line."""
    if not folder.is_dir():
        why = (
            "is a file: name the folder that holds it" if folder.exists() else "is not there: name an adapter's folder"
        )
        raise AdapterUnfit(f"{folder} {why}")
    config = _config(folder)
    weights = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    if weights is None:
        raise AdapterUnfit(f"{folder} has no {WEIGHTS[0]}: there is a config, but no weights")
    if weights.suffix != ".safetensors":
        return Adapter(folder, config, weights, None)
    tensors = read_header(weights)
    if not tensors:
        raise AdapterUnfit(f"{weights} holds no tensor: its training saved nothing")
    pairs, others = paired(tensors)
    return Adapter(folder, config, weights, tensors, pairs, others)


def _config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    try:
        found = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        hint = ""
        if (folder / "config.json").is_file():
            hint = ": it is a whole model, which `llmtune server start` serves"
        elif inner := [each.parent.name for each in sorted(folder.glob(f"*/{CONFIG}"))]:
            hint = f": there are adapters within it, name one ({clean(', '.join(inner[:5]), 200)})"
        raise AdapterUnfit(f"{folder} has no {CONFIG}{hint}") from None
    except OSError as error:
        raise AdapterUnfit(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise AdapterUnfit(f"{path} is not JSON ({clean(str(error), 100)}): copy it again") from None
    if not isinstance(found, dict):
        raise AdapterUnfit(f"{path} is not a JSON object: copy it again")
    return found


def paired(tensors: tuple[Tensor, ...]) -> tuple[tuple[LoraPair, ...], tuple[Tensor, ...]]:
    """The factors by module, in the order of their names, and the tensors that are none."""
    sides: dict[str, dict[str, Tensor]] = {}
    tables: set[str] = set()
    others = []
    for tensor in tensors:
        if (match := _PART.fullmatch(tensor.name)) is None:
            others.append(tensor)
            continue
        module = match["module"].removeprefix(PREFIX)
        sides.setdefault(module, {})[match["side"] or match["table"]] = tensor
        if match["table"]:
            tables.add(module)
    pairs = (LoraPair(name, both.get("A"), both.get("B"), name in tables) for name, both in sorted(sides.items()))
    return tuple(pairs), tuple(others)
