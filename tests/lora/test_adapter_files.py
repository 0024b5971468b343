import struct
from pathlib import Path

import pytest

from lora.adapters.adapter_files import AdapterUnfit, read_adapter
from lora.adapters.adapter_values import Values, look_at_values
from tests.lora.made_adapters import factors, tiny_factors, write_adapter, write_model


def test_an_adapter_is_told_by_its_tensors(tmp_path: Path) -> None:
    adapter = read_adapter(write_adapter(tmp_path / "a"))
    assert [pair.module for pair in adapter.pairs[:2]] == [
        "model.layers.0.self_attn.q_proj",
        "model.layers.0.self_attn.v_proj",
    ]
    assert (adapter.r, adapter.ranks, adapter.targets) == (4, frozenset({4}), ("q_proj", "v_proj"))
    assert adapter.parameters == 2 * (4 * 24 + 4 * 16)
    assert (adapter.base_model, adapter.others) == ("org/tiny", ())


def test_embeddings_and_strangers_are_told_apart(tmp_path: Path) -> None:
    tensors = {
        "base_model.model.model.embed_tokens.lora_embedding_A": ("F32", (4, 32), None),
        "base_model.model.model.embed_tokens.lora_embedding_B": ("F32", (12, 4), None),
        "base_model.model.lm_head.lora_A.weight": ("F32", (4, 12), None),
        "base_model.model.model.norm.weight": ("F32", (12,), None),
    }
    adapter = read_adapter(write_adapter(tmp_path / "a", tensors))
    head, embedding = adapter.pairs
    assert (embedding.embedding, embedding.leaf, embedding.rank) == (True, "embed_tokens", 4)
    assert (head.embedding, head.b, head.rank) == (False, None, 4)
    assert [tensor.name for tensor in adapter.others] == ["base_model.model.model.norm.weight"]


def test_a_pickle_is_not_opened(tmp_path: Path) -> None:
    folder = write_adapter(tmp_path / "a")
    (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")
    adapter = read_adapter(folder)
    assert (adapter.tensors, adapter.parameters, adapter.targets) == (None, None, ("q_proj", "v_proj"))
    assert look_at_values(adapter) is None


def test_a_folder_that_holds_no_adapter_says_what_it_holds(tmp_path: Path) -> None:
    cases = {
        "gone": "is not there",
        "empty": "has no adapter_config.json$",
        "model": "it is a whole model, which `llmtune server start` serves",
        "training": r"there are adapters within it, name one \(checkpoint-10\)",
        "config alone": "has no adapter_model.safetensors: there is a config, but no weights",
        "nothing saved": "holds no tensor",
        "text": "is not JSON",
        "list": "is not a JSON object",
    }
    (tmp_path / "empty").mkdir()
    write_model(tmp_path / "model")
    write_adapter(tmp_path / "training" / "checkpoint-10")
    (write_adapter(tmp_path / "config alone") / "adapter_model.safetensors").unlink()
    write_adapter(tmp_path / "nothing saved", {})
    (write_adapter(tmp_path / "text") / "adapter_config.json").write_text('{"r": ')
    (write_adapter(tmp_path / "list") / "adapter_config.json").write_text("[]")
    for name, words in cases.items():
        with pytest.raises(AdapterUnfit, match=words):
            read_adapter(tmp_path / name)
    with pytest.raises(AdapterUnfit, match="is a file: name the folder"):
        read_adapter(tmp_path / "text" / "adapter_config.json")


def zeros(outputs: int, sign: bool = False) -> bytes:
    return struct.pack("<f", -0.0 if sign else 0.0) * (outputs * 4)


@pytest.mark.parametrize("sign", [False, True])
def test_an_untrained_adapter_changes_nothing(sign: bool, tmp_path: Path) -> None:
    adapter = read_adapter(write_adapter(tmp_path / "a", factors("q_proj", 4, 12, 12, zeros(12, sign))))
    assert look_at_values(adapter) == Values(idle=True, not_finite=())


def test_one_number_is_enough_to_change_something(tmp_path: Path) -> None:
    nearly = zeros(12)[:-4] + struct.pack("<f", 1e-30)
    adapter = read_adapter(write_adapter(tmp_path / "a", factors("q_proj", 4, 12, 12, nearly)))
    assert look_at_values(adapter) == Values(idle=False, not_finite=())


def test_a_magnitude_changes_something_where_b_is_zero(tmp_path: Path) -> None:
    tensors = {**factors("q_proj", 4, 12, 12, zeros(12)), "q_proj.lora_magnitude_vector": ("F32", (12,), None)}
    values = look_at_values(read_adapter(write_adapter(tmp_path / "a", tensors)))
    assert values is not None
    assert not values.idle


@pytest.mark.parametrize(
    ("dtype", "good", "bad"),
    [
        ("F32", struct.pack("<f", 3e38), struct.pack("<f", float("nan"))),
        ("F32", struct.pack("<f", -3e38), struct.pack("<f", float("-inf"))),
        ("F16", struct.pack("<e", 65504.0), struct.pack("<e", float("nan"))),
        ("BF16", struct.pack("<f", 3e38)[2:], struct.pack("<f", float("inf"))[2:]),
    ],
)
def test_numbers_that_are_none_are_found(dtype: str, good: bytes, bad: bytes, tmp_path: Path) -> None:
    tensors = {**tiny_factors(), "q.lora_A.weight": (dtype, (1, 3), good * 3), "q.lora_B.weight": (dtype, (1, 1), bad)}
    values = look_at_values(read_adapter(write_adapter(tmp_path / "a", tensors)))
    assert values == Values(idle=False, not_finite=("q.lora_B.weight",))
