"""Adapters in a running server of ours: which it holds, and putting another there."""

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.keeper.client import KeeperGone, call
from engine.launch.command import model_argument
from engine.launch.installation import version_numbers
from engine.launch.model import model_hash
from engine.text import clean
from lora.adapters.ranks import DEFAULT_MAX_RANK
from lora.adapters.registry import adapter_folder
from lora.records import LoraError
from lora.served.server_api import ServedModel, ServerApi
from lora.served.serving import ToServe, given_rank
from store.records import AdapterRecord, ServerRecord

KEYED_BY_PATH = (0, 32)
"""From this version on a prefix cache knows the folder that an adapter came from (vllm/v1/core/kv_cache_utils.py)."""


@dataclass(frozen=True, slots=True)
class Running:
    """A server of ours and what it lists now."""

    record: ServerRecord
    models: tuple[ServedModel, ...]

    @property
    def flags(self) -> Mapping[str, Any]:
        """What it was started with, by name; secrets are hidden."""
        found = self.record.raw.get("spec", {}).get("flags", {})
        return found if isinstance(found, dict) else {}

    @property
    def base(self) -> ServedModel:
        """Its base under its first name. Raises LoraError."""
        found = next((each for each in self.models if each.parent is None), None)
        if found is None:
            raise LoraError(f"server {self.record.name} lists no base model")
        return found

    @property
    def adapters(self) -> dict[str, str]:
        """Name → folder of the adapters it holds."""
        return {each.name: each.root or "" for each in self.models if each.parent is not None}

    @property
    def max_rank(self) -> int:
        return given_rank(self.flags) or DEFAULT_MAX_RANK


@dataclass(frozen=True, slots=True)
class Put:
    """`seconds` until the first token of the adapter that was put there; `warnings` are for the person."""

    seconds: float
    replaced: str | None  # the folder of what was there under that name
    warnings: tuple[str, ...] = ()


def server_key(record: ServerRecord, environ: Mapping[str, str]) -> str | None:
    """The key to come with: a server's own is kept nowhere, so it is that of our environment, as the server's was."""
    return environ.get("VLLM_API_KEY")


def open_api(record: ServerRecord, environ: Mapping[str, str]) -> ServerApi:
    return ServerApi(record.url, server_key(record, environ))


def version_of(data_dir: Path, folder: str, versions: Iterable[AdapterRecord]) -> AdapterRecord | None:
    """Which of the versions lies in `folder`."""
    place = os.path.realpath(folder)
    return next((each for each in versions if os.path.realpath(adapter_folder(data_dir, each)) == place), None)


def require_takes(running: Running, adapter: AdapterRecord, base: str, *, anyway: bool = False) -> None:
    """Raises LoraError where the server cannot take the adapter while it runs, or serves other weights than `base`."""
    name = clean(running.record.name, 60)
    if running.flags.get("enable-lora") is not True:
        raise LoraError(
            f"server {name} runs without --enable-lora: start one with `llmtune lora serve {adapter.label}`"
        )
    if (count := running.flags.get("api-server-count", 1)) != 1:
        raise LoraError(f"server {name} has {count} API servers, each of which would have to be told: start it anew")
    model = running.record.model
    same = model == model_argument(base) or (model_hash(model) is not None and model_hash(model) == model_hash(base))
    if not same and not anyway:
        raise LoraError(
            f"server {name} serves {clean(model, 80)}, {adapter.label} is for {clean(base, 80)}: start one of its own"
        )


def put(data_dir: Path, api: ServerApi, running: Running, wanted: ToServe) -> Put:
    """Load the adapter into the server, in place of one of its name, and see its first token. A restart of the server
    starts it so, too. Raises LoraError: NoRuntimeLoading, NotLoaded."""
    there = running.adapters.get(wanted.name)
    began = time.monotonic()
    api.load(wanted.name, str(wanted.folder), in_place=there is not None)
    api.first_token(wanted.name)
    seconds = time.monotonic() - began
    now = Running(running.record, api.models())
    if now.adapters.get(wanted.name) != str(wanted.folder):
        raise LoraError(f"the server says that it loaded {wanted.name}, and lists another: look at its log")
    return Put(seconds, there, tuple(_warnings(data_dir, now, wanted, there, seconds)))


def _warnings(data_dir: Path, now: Running, wanted: ToServe, there: str | None, seconds: float) -> Iterable[str]:
    record = now.record
    instead = f" in place of {there}" if there is not None else ""
    event = f"{wanted.adapter.label} was loaded as {wanted.name}{instead}, after {seconds:.2f} s"
    modules = [f"{name}={folder}" for name, folder in now.adapters.items()]
    try:
        assert record.id is not None
        call(data_dir, "server", record.id, "flags", flags={"lora-modules": modules}, event=event)
    except KeeperGone:
        yield f"server {record.name} has no keeper any more: a restart will bring back what it was started with"
    numbers = version_numbers(record.vllm_version or "")
    if there is not None and numbers is not None and numbers < KEYED_BY_PATH:
        yield (
            f"vLLM {record.vllm_version} may go on using what its prefix cache holds of the former {wanted.name}: "
            "restart the server (`llmtune server restart`) where that must not be"
        )
