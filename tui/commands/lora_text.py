"""Adapters and what is found of them, as lines and as JSON, for the actions of `llmtune lora`."""

from pathlib import Path
from typing import Any

from engine.launch.command import copyable
from engine.text import clean
from lora.adapters.importing import Examined, finding_json
from lora.adapters.registry import adapter_folder, parameters_of
from store.records import AdapterRecord


def examined_json(examined: Examined) -> dict[str, Any]:
    """As `examined_lines`."""
    return {
        "folder": clean(str(examined.adapter.folder)),
        "base_model": examined.base,
        "parameters": parameters_of(examined.adapter),
        "vllm_version": examined.vllm,
        "max_lora_rank": examined.max_rank,
        "prevented": bool(examined.prevented),
        "findings": [finding_json(finding) for finding in examined.findings],
    }


def adapter_json(adapter: AdapterRecord, data_dir: Path) -> dict[str, Any]:
    """One version, with the folder where it lies now."""
    keys = (
        "id", "name", "version", "base_model", "base_hash", "parameters", "data_hash", "losses", "size_bytes", "gpu",
        "seconds", "signature", "created_at", "training_id", "imported_from", "served", "notes",
    )  # fmt: skip
    return {key: getattr(adapter, key) for key in keys} | {"path": str(adapter_folder(data_dir, adapter))}


def serve_line(adapter: AdapterRecord, data_dir: Path, max_rank: int | None) -> str:
    """A command line to copy that serves it."""
    argv = ["vllm", "serve", adapter.base_model, "--enable-lora"]
    if max_rank is not None:
        argv += ["--max-lora-rank", str(max_rank)]
    return copyable([*argv, "--lora-modules", f"{adapter.name}={adapter_folder(data_dir, adapter)}"])
