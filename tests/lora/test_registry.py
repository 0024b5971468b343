import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from engine.records import EngineError
from engine.signature import SignatureBroken, file_hashes, signature_of
from lora.adapters.adapter_files import AdapterUnfit
from lora.adapters.registry import Origin, adapter_folder, check_name, name_from, register, require_unchanged
from lora.records import LoraError
from store.database import open_reader, open_writer
from store.errors import StoreFull
from store.records import AdapterRecord
from store.writer import Writer
from tests.lora.made_adapters import tiny_factors, write_adapter

ORIGIN = Origin("org/tiny", losses={"validation": 1.25}, training_id=None)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def writer(place: Path) -> Iterator[Writer]:
    with open_writer(place / "llmtune.db") as writer:
        yield writer


def test_a_version_is_a_signed_copy(writer: Writer, place: Path, tmp_path: Path) -> None:
    folder = write_adapter(tmp_path / "checkpoint")
    (folder / "optimizer.pt").write_bytes(b"moments")
    (folder / "README.md").write_text("mine")
    kept = register(writer, place, folder, "alpaca", ORIGIN, now="2026-11-30T10:00:00.000Z").adapter
    copy = place / "adapters" / "alpaca" / "1"
    assert adapter_folder(place, kept) == copy
    assert sorted(entry.name for entry in copy.iterdir()) == [
        "README.md",
        "adapter_config.json",
        "adapter_model.safetensors",
    ]
    assert {oct(entry.stat().st_mode & 0o777) for entry in copy.iterdir()} == {"0o600"}
    assert copy.stat().st_mode & 0o777 == 0o700
    assert kept.size_bytes == sum(entry.stat().st_size for entry in copy.iterdir())
    assert kept.parameters["r"] == 4
    assert kept.parameters["trainable_parameters"] == 320
    assert kept.losses == {"validation": 1.25}
    with open_reader(place / "llmtune.db") as reader:
        assert reader.adapter("alpaca") == kept
    assert require_unchanged(place, kept) == copy


def test_the_signature_is_that_of_sha256sum(tmp_path: Path) -> None:
    folder = write_adapter(tmp_path / "a")
    (folder / "README.md").write_text("mine")
    shell = subprocess.run(
        "sha256sum * | sha256sum", shell=True, cwd=folder, env={**os.environ, "LC_ALL": "C"}, capture_output=True
    )
    assert shell.stdout.split()[0].decode() == signature_of(file_hashes(folder))


def test_versions_count_up_and_the_same_files_are_no_new_one(writer: Writer, place: Path, tmp_path: Path) -> None:
    first = register(writer, place, write_adapter(tmp_path / "a"), "alpaca", ORIGIN)
    second = register(writer, place, write_adapter(tmp_path / "b", lora_alpha=16), "alpaca", ORIGIN)
    again = register(writer, place, tmp_path / "a", "alpaca", ORIGIN)
    other = register(writer, place, tmp_path / "a", "chat", ORIGIN)
    assert [each.adapter.label for each in (first, second, again, other)] == [
        "alpaca@1",
        "alpaca@2",
        "alpaca@1",
        "chat@1",
    ]
    assert [each.new for each in (first, second, again, other)] == [True, True, False, True]
    assert again.adapter == first.adapter
    assert sorted(entry.name for entry in (place / "adapters" / "alpaca").iterdir()) == ["1", "2"]


def test_the_data_directory_may_be_mounted_elsewhere(writer: Writer, place: Path, tmp_path: Path) -> None:
    kept = register(writer, place, write_adapter(tmp_path / "a"), "alpaca", ORIGIN).adapter
    writer.close()
    moved = place.rename(tmp_path / "moved")
    with open_reader(moved / "llmtune.db") as reader:
        assert require_unchanged(moved, reader.adapter("alpaca")) == moved / "adapters" / "alpaca" / "1"
    with pytest.raises(SignatureBroken, match=r"alpaca@1 cannot be served: its folder .* is gone"):
        require_unchanged(place, kept)


def test_what_changed_since_is_named(writer: Writer, place: Path, tmp_path: Path) -> None:
    kept = register(writer, place, write_adapter(tmp_path / "a"), "alpaca", ORIGIN).adapter
    folder = adapter_folder(place, kept)
    weights = folder / "adapter_model.safetensors"
    good = weights.read_bytes()
    weights.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))  # one bit
    with pytest.raises(
        SignatureBroken, match=r"alpaca@1 is not what was registered: adapter_model.safetensors has changed"
    ):
        require_unchanged(place, kept)
    weights.unlink()
    with pytest.raises(SignatureBroken, match=r"adapter_model.safetensors is gone"):
        require_unchanged(place, kept)
    weights.write_bytes(good)
    (folder / "adapter_model.bin").write_bytes(b"")
    with pytest.raises(SignatureBroken, match=r"adapter_model.bin was added"):
        require_unchanged(place, kept)
    (folder / "adapter_model.bin").unlink()
    assert require_unchanged(place, kept) == folder


def test_whoever_dies_on_the_way_leaves_nothing_that_is_served(
    writer: Writer, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_adapter(tmp_path / "a")

    def full(record: AdapterRecord) -> int:
        raise StoreFull("no space")

    monkeypatch.setattr(writer, "insert", full)
    with pytest.raises(StoreFull):
        register(writer, place, folder, "alpaca", ORIGIN)
    monkeypatch.undo()
    (place / "adapters" / "alpaca" / "1" / "torn").write_text("left by one who died")
    kept = register(writer, place, folder, "alpaca", ORIGIN).adapter
    assert kept.version == 1
    assert sorted(entry.name for entry in adapter_folder(place, kept).iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
    ]
    assert [entry.name for entry in (place / "adapters" / "alpaca").iterdir()] == ["1"]


def test_two_who_register_at_once_get_versions_of_their_own(place: Path, tmp_path: Path) -> None:
    folders = [write_adapter(tmp_path / str(alpha), lora_alpha=alpha) for alpha in range(6)]

    def keep(folder: Path) -> None:
        with open_writer(place / "llmtune.db") as own:
            register(own, place, folder, "alpaca", ORIGIN)

    threads = [Thread(target=keep, args=(folder,)) for folder in folders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with open_reader(place / "llmtune.db") as reader:
        adapters = reader.adapters("alpaca")
    assert [adapter.version for adapter in adapters] == [1, 2, 3, 4, 5, 6]
    assert len({adapter.signature for adapter in adapters}) == 6
    for adapter in adapters:
        require_unchanged(place, adapter)


def test_a_link_is_copied_as_what_it_leads_to(writer: Writer, place: Path, tmp_path: Path) -> None:
    """As the cache of the hub has them."""
    blobs, snapshot = write_adapter(tmp_path / "blobs"), tmp_path / "snapshot"
    snapshot.mkdir()
    for entry in blobs.iterdir():
        (snapshot / entry.name).symlink_to(entry)
    kept = register(writer, place, snapshot, "alpaca", ORIGIN).adapter
    copy = adapter_folder(place, kept) / "adapter_model.safetensors"
    assert not copy.is_symlink()
    assert hashlib.sha256(copy.read_bytes()).hexdigest() == kept.raw["files"]["adapter_model.safetensors"]


def test_what_is_no_adapter_is_not_kept(writer: Writer, place: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(AdapterUnfit):
        register(writer, place, tmp_path / "empty", "alpaca", ORIGIN)
    assert not (place / "adapters").exists()


def test_names_are_what_vllm_can_be_asked_by() -> None:
    for name in ("alpaca", "Alpaca-2.5_x", "7b"):
        assert check_name(name) == name
    for name in ("", "a b", "a=b", "a@1", "../a", ".hidden", "a/b", "x" * 65, "naïve", "a\n"):
        with pytest.raises(LoraError, match="is no name for an adapter"):
            check_name(name)
    for text, name in (
        ("my adapter (2)", "my-adapter-2"),
        ("../..", "adapter"),
        ("Ünïcode", "n-code"),
        ("x" * 99, "x" * 64),
    ):
        assert check_name(name_from(text)) == name


def test_large_files_are_hashed_by_pieces(tmp_path: Path) -> None:
    folder = write_adapter(tmp_path / "a", tiny_factors())
    content = os.urandom((1 << 20) + 7)
    (folder / "big").write_bytes(content)
    assert file_hashes(folder)["big"] == hashlib.sha256(content).hexdigest()
    (folder / "inner").mkdir()
    with pytest.raises(EngineError, match="inner is no file"):
        file_hashes(folder)
