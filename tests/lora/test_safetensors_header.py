import json
import struct
from pathlib import Path

import pytest

from lora.adapters.safetensors_header import FileUnfit, Tensor, read_header
from tests.lora.made_adapters import safetensors


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "adapter_model.safetensors"
    path.write_bytes(content)
    return path


def file_of(header: object, data: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def test_tensors_are_told_with_their_place(tmp_path: Path) -> None:
    content = safetensors({"a": ("F32", (2, 3), None), "b": ("BF16", (4,), None)})
    a, b = read_header(written(tmp_path, content))
    assert (a.name, a.dtype, a.shape, a.elements, a.end - a.begin) == ("a", "F32", (2, 3), 6, 24)
    assert (b.begin, b.end) == (a.end, len(content))


def test_a_scalar_and_a_type_of_tomorrow_are_taken(tmp_path: Path) -> None:
    header = {"s": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}}
    header["x"] = {"dtype": "F4", "shape": [3], "data_offsets": [4, 6]}
    tensors = read_header(written(tmp_path, file_of(header, b"\0" * 6)))
    assert [(tensor.elements, tensor.dtype) for tensor in tensors] == [(1, "F32"), (3, "F4")]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "cut off within its header"),
        (b"\x10\0\0", "cut off within its header"),
        (struct.pack("<Q", 1 << 60), "cut off within its header"),
        (struct.pack("<Q", 200) + b"{}", "cut off within its header"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", "Git LFS pointer"),
        (struct.pack("<Q", 4) + b"\x80\x02}q", "header is not JSON"),
        (struct.pack("<Q", 4000) + b"[" * 4000, "header is not JSON"),
        (file_of([1]), "not a JSON object"),
        (file_of({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}, b"\0" * 9), "is cut off: "),
        (file_of({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 15]}}, b"\0" * 16), "nonsense of a"),
        (file_of({"a": {"dtype": "F32", "shape": [-4], "data_offsets": [0, 16]}}, b"\0" * 16), "nonsense of a"),
        (file_of({"a": {"dtype": "F32", "shape": [True], "data_offsets": [0, 4]}}, b"\0" * 4), "nonsense of a"),
        (file_of({"a\x1b[2J": {"dtype": "F32"}}), "nonsense of a:?$"),
        (file_of({"a": 7}), "nonsense of a"),
        (
            file_of(
                {
                    "a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
                    "b": {"dtype": "U8", "shape": [4], "data_offsets": [2, 6]},
                },
                b"\0" * 6,
            ),
            "a and b overlap",
        ),
    ],
)
def test_what_is_damaged_is_told_in_one_line(content: bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(FileUnfit, match=words) as told:
        read_header(written(tmp_path, content))
    assert str(told.value).isprintable()


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileUnfit, match="cannot be read: No such file"):
        read_header(tmp_path / "none.safetensors")


def test_a_header_costs_no_more_than_itself(tmp_path: Path) -> None:
    """The data of 30 GB is not read: a sparse file of a terabyte."""
    begin = {"a": {"dtype": "U8", "shape": [1 << 40], "data_offsets": [0, 1 << 40]}}
    path = written(tmp_path, file_of(begin))
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size + (1 << 40))
    assert read_header(path) == (Tensor("a", "U8", (1 << 40,), path.stat().st_size - (1 << 40), path.stat().st_size),)
