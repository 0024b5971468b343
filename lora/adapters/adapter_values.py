"""What the numbers of an adapter say of it: whether it changes anything, and whether all of them are numbers."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lora.adapters.adapter_files import Adapter
from lora.adapters.safetensors_header import FileUnfit, Tensor

if TYPE_CHECKING:
    import numpy

# Of a float with e exponent bits all of which are set, it is no number (IEEE 754; bfloat16 is the upper half of a
# float32). By the format's name: the unsigned type of that width, and the mask of the exponent.
_EXPONENT = {
    "F64": ("<u8", 0x7FF0000000000000),
    "F32": ("<u4", 0x7F800000),
    "F16": ("<u2", 0x7C00),
    "BF16": ("<u2", 0x7F80),
}


@dataclass(frozen=True, slots=True)
class Values:
    """`idle`: each B is 0 throughout, as before the first step of a training, so the adapter adds nothing. `not_finite`
    names the tensors that hold a NaN or an infinity."""

    idle: bool
    not_finite: tuple[str, ...]


def look_at_values(adapter: Adapter) -> Values | None:
    """None where the weights are a pickle. Reads the whole file. Raises FileUnfit."""
    if adapter.tensors is None:
        return None
    bs = [pair.b for pair in adapter.pairs if pair.b is not None]
    # What is no factor of a LoRA (a magnitude, a saved module) may do something with every B at 0.
    idle = bool(bs) and not adapter.others and not any(_any_set(adapter.weights, tensor) for tensor in bs)
    return Values(idle, tuple(tensor.name for tensor in adapter.tensors if _not_finite(adapter.weights, tensor)))


def _any_set(path: Path, tensor: Tensor) -> bool:
    """Whether a value differs from 0, of either sign."""
    if tensor.dtype not in _EXPONENT:
        return bool(_bits(path, tensor, "u1").any())
    values = _bits(path, tensor, _EXPONENT[tensor.dtype][0])
    return bool((values << values.dtype.type(1)).any())  # without the sign


def _not_finite(path: Path, tensor: Tensor) -> bool:
    if tensor.dtype not in _EXPONENT:
        return False
    kind, exponent = _EXPONENT[tensor.dtype]
    values = _bits(path, tensor, kind)
    mask = values.dtype.type(exponent)
    return bool(((values & mask) == mask).any())


def _bits(path: Path, tensor: Tensor, kind: str) -> "numpy.ndarray[Any, Any]":
    import numpy  # costs a tenth of a second, and only who looks at values pays it

    try:
        size = numpy.dtype(kind).itemsize
        return numpy.fromfile(path, kind, (tensor.end - tensor.begin) // size, offset=tensor.begin)
    except OSError as error:
        raise FileUnfit(f"{path} cannot be read: {error.strerror}") from None
