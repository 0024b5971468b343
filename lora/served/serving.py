"""From adapters of the registry to the flags of a server: names, the base, the rank that all fit in, what vLLM makes of
each. Nothing is started here."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.exposure import is_loopback
from engine.launch.model import model_hash
from engine.launch.readiness import api_key
from engine.records import Installation, ServerSpec
from engine.text import clean
from lora.adapters.adapter_findings import Finding
from lora.adapters.importing import Examined, base_for, examine_version, require_base
from lora.adapters.ranks import DEFAULT_MAX_RANK
from lora.records import LoraError
from store.records import AdapterRecord

RUNTIME_LOADING = "VLLM_ALLOW_RUNTIME_LORA_UPDATING"
MOST_AT_ONCE = 8
"""So many adapters get a slot of their own on the GPU unless --max-loras says another number: each costs memory."""
_TEMPLATE = "chat_template.jinja"


class ServingRefused(LoraError):
    """An adapter that would not be served as it was trained. `findings` are all that was found, by adapter."""

    def __init__(self, message: str, findings: Sequence[tuple[str, tuple[Finding, ...]]] = ()) -> None:
        super().__init__(message)
        self.findings = tuple(findings)


@dataclass(frozen=True, slots=True)
class ToServe:
    """`name` is what requests call it."""

    adapter: AdapterRecord
    name: str
    folder: Path
    examined: Examined

    @property
    def module(self) -> str:
        """As `--lora-modules` takes it."""
        return f"{self.name}={self.folder}"


@dataclass(frozen=True, slots=True)
class Serving:
    base: str
    adapters: tuple[ToServe, ...]
    max_rank: int

    @property
    def notes(self) -> tuple[tuple[str, tuple[Finding, ...]], ...]:
        """What was found of each, by its label."""
        return tuple((each.adapter.label, each.examined.findings) for each in self.adapters if each.examined.findings)


def to_serve(
    data_dir: Path,
    adapters: Sequence[AdapterRecord],
    installation: Installation,
    environ: Mapping[str, str],
    *,
    base: str | None = None,
    max_rank: int | None = None,
    anyway: bool = False,
) -> Serving:
    """Check all that is to be served together; `base` None is the one they were made for, `max_rank` a
    `--max-lora-rank` that is fixed already.

    Raises SignatureBroken, ServingRefused (`anyway` lets pass what vLLM would serve otherwise than it was trained, and
    a base whose files changed; never what it refuses, or what would spoil the answers of others), LoraError.
    """
    names = served_names(adapters)
    require_base(base)
    served_base = base or _common_base(adapters)
    if base is None:
        base_for(adapters[0], None)
    if base is None and not anyway:
        for adapter in adapters:
            _require_same_base(adapter, served_base)
    found = []
    for adapter, name in zip(adapters, names, strict=True):
        examined = examine_version(data_dir, adapter, served_base, installation, environ, max_rank)
        found.append(ToServe(adapter, name, examined.adapter.folder.absolute(), examined))
    _refuse(found, anyway)
    needed = [each.examined.max_rank for each in found if each.examined.max_rank is not None]
    return Serving(served_base, tuple(found), max_rank or max(needed, default=DEFAULT_MAX_RANK))


def served_names(adapters: Sequence[AdapterRecord]) -> tuple[str, ...]:
    """What requests call each: its name, which a later version takes over without a change at the clients; with its
    version where two of one name are served together. Raises LoraError for one that is named twice."""
    twice = [label for label, times in Counter(each.label for each in adapters).items() if times > 1]
    if twice:
        raise LoraError(f"{twice[0]} is named twice: name it once")
    times = Counter(each.name for each in adapters)
    return tuple(each.name if times[each.name] == 1 else each.label for each in adapters)


def server_flags(serving: Serving, given: Mapping[str, Any]) -> dict[str, Any]:
    """The flags of the server, `given` ones among them. Raises LoraError where they contradict what is to be served."""
    if given.get("enable-lora") is False:
        raise LoraError("--no-enable-lora would serve no adapter: leave it out")
    if "lora-modules" in given:
        raise LoraError("--lora-modules is filled in from the registry: import what it names (`llmtune lora import`)")
    count = len(serving.adapters)
    flags: dict[str, Any] = {"max-lora-rank": serving.max_rank, "max-loras": min(count, MOST_AT_ONCE), **given}
    flags |= {"enable-lora": True, "lora-modules": [each.module for each in serving.adapters]}
    if "chat-template" not in given and (template := _template(serving)) is not None:
        flags["chat-template"] = str(template)
    return flags


def given_rank(flags: Mapping[str, Any]) -> int | None:
    """The `--max-lora-rank` among flags; None where it is left open. Raises LoraError."""
    rank = flags.get("max-lora-rank")
    if rank is None:
        return None
    if type(rank) is not int or rank < 1:
        raise LoraError(f"--max-lora-rank {clean(str(rank), 40)} is no rank: leave it out, and it is filled in")
    return rank


def may_load_at_run_time(spec: ServerSpec, environ: Mapping[str, str]) -> bool:
    """Whether the server may be let load adapters while it runs: who reaches that route can have it read any folder, so
    only where nobody but this machine reaches it, or a key is asked for."""
    return is_loopback(spec.host) or api_key(spec, environ) is not None


def _common_base(adapters: Sequence[AdapterRecord]) -> str:
    bases = dict.fromkeys(each.base_model for each in adapters)
    if len(bases) > 1:
        first, other = adapters[0], next(each for each in adapters if each.base_model != adapters[0].base_model)
        raise LoraError(
            f"{first.label} is for {clean(first.base_model, 80)} and {other.label} for {clean(other.base_model, 80)}: "
            "serve each on its own base, or name the one by --base"
        )
    return next(iter(bases))


def _require_same_base(adapter: AdapterRecord, base: str) -> None:
    """Raises ServingRefused where the folder holds other weights now. A base that a person names may be the same model
    in another precision: that is only noted."""
    now = model_hash(base)
    if adapter.base_hash is not None and now is not None and now != adapter.base_hash:
        raise ServingRefused(
            f"{adapter.label} was made for other weights than those in {clean(base, 120)} now: name its base by "
            "--base, or give --anyway where you know that it fits"
        )


def _refuse(found: Sequence[ToServe], anyway: bool) -> None:
    """Raises ServingRefused for the worst that was found."""
    said = [(each.adapter.label, each.examined.findings) for each in found if each.examined.findings]
    for effect in ("refused", "wrong", "idle"):
        for label, findings in said:
            for first in findings:
                never = effect == "refused" or first.harms_others
                if first.effect == effect and (never or not anyway):
                    more = "" if never else "; --anyway serves it all the same"
                    raise ServingRefused(f"{label} is not served: {first.text} ({first.remedy}){more}", said)


def _template(serving: Serving) -> Path | None:
    """The chat template that an adapter brought along for a base that has none."""
    base = Path(serving.base)
    if not base.is_dir() or _has_template(base):
        return None
    paths = (each.folder / _TEMPLATE for each in serving.adapters)
    return next((path for path in paths if path.is_file()), None)


def _has_template(base: Path) -> bool:
    if (base / _TEMPLATE).is_file() or (base / "chat_template.json").is_file():
        return True
    try:
        return bool(json.loads((base / "tokenizer_config.json").read_text(encoding="utf-8")).get("chat_template"))
    except (OSError, ValueError, AttributeError):
        return False
