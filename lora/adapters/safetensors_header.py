"""The names, types and shapes in a .safetensors file, read from its header without torch.

Format (https://github.com/huggingface/safetensors#format): eight bytes, the length N of the header as a little-endian
number; N bytes of JSON, `{"name": {"dtype": "F32", "shape": [16, 576], "data_offsets": [begin, end]}, …,
"__metadata__": {…}}`; then the data, to which the offsets refer.
"""

import json
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

from engine.text import clean
from lora.records import LoraError

_LONGEST = 100_000_000  # what the format's own reader takes
_BITS = {
    "F64": 64, "I64": 64, "U64": 64, "F32": 32, "I32": 32, "U32": 32, "F16": 16, "BF16": 16, "I16": 16, "U16": 16,
    "F8_E4M3": 8, "F8_E5M2": 8, "I8": 8, "U8": 8, "BOOL": 8,
}  # fmt: skip


class FileUnfit(LoraError):
    """A file of an adapter or model that cannot be read as what it is called."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """`begin` and `end` are where its data lies in the file, in bytes from the start of the file."""

    name: str
    dtype: str  # as the format calls it: "F32", "BF16", …
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def elements(self) -> int:
        return prod(self.shape)


def read_header(path: Path) -> tuple[Tensor, ...]:
    """The tensors of a file, in the order of their data. Raises FileUnfit for one that is damaged, cut off, or none."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            head = file.read(8)
            length = int.from_bytes(head, "little")
            if head.startswith(b"version "):
                raise FileUnfit(f"{path} is a Git LFS pointer, not the file itself: fetch it with `git lfs pull`")
            if len(head) < 8 or not 2 <= length <= min(_LONGEST, size - 8):
                raise FileUnfit(f"{path} is no safetensors file, or cut off within its header: copy it again")
            text = file.read(length)
    except OSError as error:
        raise FileUnfit(f"{path} cannot be read: {error.strerror}") from None
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise FileUnfit(f"{path} is no safetensors file: its header is not JSON") from None
    if not isinstance(header, dict):
        raise FileUnfit(f"{path} is no safetensors file: its header is not a JSON object")
    start = 8 + length
    found = [_tensor(path, name, entry, start) for name, entry in header.items() if name != "__metadata__"]
    found.sort(key=lambda tensor: (tensor.begin, tensor.end))
    for before, after in pairwise(found):
        if after.begin < before.end:
            raise FileUnfit(f"{path} is damaged: {clean(before.name, 80)} and {clean(after.name, 80)} overlap")
    if found and found[-1].end > size:
        raise FileUnfit(f"{path} is cut off: {size:,} of {found[-1].end:,} bytes are there, copy it again")
    return tuple(found)


def _tensor(path: Path, name: str, entry: Any, start: int) -> Tensor:
    try:
        dtype, shape, (begin, end) = str(entry["dtype"]), tuple(entry["shape"]), entry["data_offsets"]
        if not all(type(number) is int and number >= 0 for number in (*shape, begin, end)):
            raise ValueError
        bits = _BITS.get(dtype)
        if begin > end or (bits is not None and (end - begin) * 8 != prod(shape) * bits):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise FileUnfit(f"{path} is damaged: its header tells nonsense of {clean(name, 80)}") from None
    return Tensor(name, dtype, shape, start + begin, start + end)
