"""How large an adapter becomes, from the base's config alone: LoRA of rank r adds r × (inputs + outputs) to a layer
(Hu et al. 2021, arXiv:2106.09685, section 4.1)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from engine.text import clean
from lora.records import ALL_LINEAR, LoraError
from lora.sizes.base_model import BaseModel, Linear

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


class TargetUnknown(LoraError):
    """A target that no layer of the base is called by."""


@dataclass(frozen=True, slots=True)
class AdapterSize:
    """`trainable` numbers in `modules` layers; `total` with those of the base, as peft counts them."""

    trainable: int
    modules: int
    total: int

    @property
    def share(self) -> float:
        """0 to 1."""
        return self.trainable / self.total

    def tensor_bytes(self, dtype: str = "float32") -> int:
        """The bytes of its tensors. peft keeps and saves them as float32 unless told otherwise."""
        return self.trainable * BYTES[dtype]


def target_layers(base: BaseModel, targets: str | Iterable[str]) -> tuple[Linear, ...]:
    """The layers that peft picks (tuners_utils.check_target_module_exists): for a list those whose name is one of it or
    ends in one after a dot, for a text those whose whole name its pattern fits; "all-linear" is all but the output
    layer. Raises TargetUnknown for a name that fits none."""
    if targets == ALL_LINEAR:
        return base.linears
    layers = (base.embedding, *base.linears, base.output)
    if isinstance(targets, str):
        try:
            found = tuple(layer for layer in layers if re.fullmatch(targets, layer.name))
        except re.error as error:
            raise TargetUnknown(f"the targets {clean(targets, 100)!r} are no pattern: {error}") from None
        missing = [] if found else [targets]
    else:
        wanted = tuple(targets)
        found = tuple(layer for layer in layers if any(_fits(layer, name) for name in wanted))
        missing = [name for name in wanted if not any(_fits(layer, name) for layer in layers)]
    if missing:
        there = ", ".join(base.leaves)
        raise TargetUnknown(f"no layer of the model is called {clean(missing[0], 100)}: there are {there}")
    if not found:
        raise TargetUnknown(f"no layer is named to train: there are {', '.join(base.leaves)}")
    return found


def adapter_size(base: BaseModel, r: int, targets: str | Iterable[str]) -> AdapterSize:
    """The size of a LoRA of rank `r` on `targets`. Raises TargetUnknown, and ValueError for a rank below 1."""
    if r < 1:
        raise ValueError(f"a rank of {r}")
    layers = target_layers(base, targets)
    trainable = sum(r * (layer.inputs + layer.outputs) for layer in layers)
    return AdapterSize(trainable, len(layers), base.parameters + trainable)


def _fits(layer: Linear, name: str) -> bool:
    return layer.name == name or layer.name.endswith(f".{name}")
