"""The registry: each version of an adapter a folder of files that never change, with what is known of it in the store.

DATA_DIR/adapters/NAME/VERSION/adapter_config.json, adapter_model.safetensors, …
"""

import os
import re
import shutil
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from engine.signature import file_hashes, require_signature, signature_of
from lora.adapters.adapter_files import CONFIG, WEIGHTS, Adapter, read_adapter
from lora.records import LoraError
from store.clock import utc_now
from store.private_files import make_private_folder
from store.records import AdapterRecord
from store.writer import Writer

FOLDER = "adapters"

# What belongs to an adapter in a folder that may hold a whole training: optimizer states are twice its size.
_KEPT = frozenset(
    {
        CONFIG, *WEIGHTS, "README.md", "tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json",
        "merges.txt", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja", "chat_template.json",
    }
)  # fmt: skip

# vLLM serves it under this name: `--lora-modules name=path` takes no `=`, and we write `name@version`.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class NameUnfit(LoraError):
    """A name under which vLLM could not be asked for an adapter."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an adapter comes from, and what was measured as it was made; fields as those of AdapterRecord."""

    base_model: str
    base_hash: str | None = None
    data_hash: str | None = None
    losses: dict[str, Any] = field(default_factory=dict)
    gpu: str | None = None
    seconds: float | None = None
    training_id: int | None = None
    imported_from: str | None = None
    notes: str | None = None
    raw: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Registered:
    """`new` is False where the same files were a version of that name already."""

    adapter: AdapterRecord
    new: bool


def check_name(name: str) -> str:
    """`name`, if an adapter may be called so. Raises NameUnfit."""
    if not _NAME.fullmatch(name):
        raise NameUnfit(
            f"{name!r} is no name for an adapter: letters, digits, dots, dashes and underscores, at most 64"
        )
    return name


def name_from(text: str) -> str:
    """A name for an adapter out of any text, such as a folder's name: "my adapter (2)" → "my-adapter-2"."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-._")[:64].rstrip("-._") or "adapter"


def adapter_folder(data_dir: Path, adapter: AdapterRecord) -> Path:
    """Where its files lie. The store holds the path within the data directory, which may be mounted elsewhere."""
    return data_dir / adapter.path


def register(
    writer: Writer, data_dir: Path, folder: Path, name: str, origin: Origin, now: str | None = None
) -> Registered:
    """Copy the adapter in `folder` into the registry as the next version of `name`, signed. Whoever dies meanwhile
    leaves a folder without a row, which nobody serves and the next registration replaces.

    `folder` may be a training's: what is no file of an adapter stays there. Raises EngineError and StoreError.
    """
    check_name(name)
    adapter = read_adapter(folder)
    shelf = data_dir / FOLDER / name
    coming = shelf / f".coming-{uuid.uuid4().hex}"
    try:
        _copy(folder, coming)
        hashes = file_hashes(coming)
        signature = signature_of(hashes)
        with writer.transaction():  # nobody else registers meanwhile
            known = writer.known_adapter(name, signature)
            if known is not None:
                return Registered(known, new=False)
            version = writer.next_version(name)
            place = shelf / str(version)
            if place.exists():
                shutil.rmtree(place)
            coming.rename(place)
            record = AdapterRecord(
                name=name,
                version=version,
                base_model=origin.base_model,
                path=str(place.relative_to(data_dir)),
                signature=signature,
                size_bytes=sum(entry.stat().st_size for entry in place.iterdir()),
                created_at=now or utc_now(),
                base_hash=origin.base_hash,
                parameters=parameters_of(adapter),
                data_hash=origin.data_hash,
                losses=origin.losses,
                gpu=origin.gpu,
                seconds=origin.seconds,
                training_id=origin.training_id,
                imported_from=origin.imported_from,
                notes=origin.notes,
                raw={**origin.raw, "files": hashes, "adapter_config": dict(adapter.config)},
            )
            number = writer.insert(record)
    except OSError as error:
        raise LoraError(f"the adapter cannot be kept in {shelf}: {error.strerror}") from None
    finally:
        shutil.rmtree(coming, ignore_errors=True)
    return Registered(replace(record, id=number), new=True)


def require_unchanged(data_dir: Path, adapter: AdapterRecord) -> Path:
    """The folder of an adapter to be served now. Raises SignatureBroken where its files are not those registered."""
    folder, hashes = adapter_folder(data_dir, adapter), adapter.raw.get("files")
    require_signature(folder, adapter.signature, hashes if isinstance(hashes, dict) else {}, adapter.label)
    return folder


def parameters_of(adapter: Adapter) -> dict[str, Any]:
    """What a list shows of an adapter's settings; `ranks` are those of its tensors."""
    config = adapter.config
    return {
        "r": adapter.r,
        "alpha": config.get("lora_alpha"),
        "dropout": config.get("lora_dropout"),
        "targets": list(adapter.targets),
        "ranks": sorted(adapter.ranks),
        "use_rslora": bool(config.get("use_rslora")),
        "trainable_parameters": adapter.parameters,
        "dtypes": sorted({tensor.dtype for tensor in adapter.tensors or ()}),
    }


def _copy(source: Path, target: Path) -> None:
    """The files of an adapter, readable by their owner alone and on the disk before anybody names them."""
    make_private_folder(target)
    for entry in sorted(source.iterdir()):
        if entry.name in _KEPT and entry.is_file():  # also a link, as the cache of the hub has them
            copy = target / entry.name
            shutil.copyfile(entry, copy)
            copy.chmod(0o600)
            with copy.open("rb") as file:
                os.fsync(file.fileno())
