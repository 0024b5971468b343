"""An adapter that was made elsewhere: looked at as the vLLM and the base that are to serve it do, then kept."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from engine.launch.model import model_hash
from engine.records import Installation
from engine.text import clean
from lora.adapters.adapter_files import Adapter, read_adapter
from lora.adapters.adapter_findings import Finding, Served, ranks_of
from lora.adapters.adapter_rules import findings
from lora.adapters.adapter_values import look_at_values
from lora.adapters.ranks import max_rank_for, ranks_of_version
from lora.adapters.registry import Origin, Registered, register, require_unchanged
from lora.adapters.vllm_source import max_lora_ranks, model_source, vllm_folder
from lora.records import LoraError
from lora.sizes.base_model import BaseModel, BaseUnknown, read_base
from store.records import AdapterRecord
from store.writer import Writer


class ImportRefused(LoraError):
    """An adapter that this vLLM would not serve as it was trained."""


@dataclass(frozen=True, slots=True)
class Examined:
    """`base` is the model it is looked at with: an absolute folder or a hub name, None where none is known. `max_rank`
    is the `--max-lora-rank` it needs, None where none is enough. `vllm` is the version whose rules were taken, None:
    those of the newest that is known."""

    adapter: Adapter
    base: str | None
    vllm: str | None
    max_rank: int | None
    findings: tuple[Finding, ...]

    @property
    def prevented(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.prevents)


def examine(
    folder: Path,
    base: str | None,
    installation: Installation | None,
    environ: Mapping[str, str],
    max_rank: int | None = None,
) -> Examined:
    """Everything that can be said of the adapter in `folder` before a launch; `base` None takes the one it names,
    `max_rank` is a given `--max-lora-rank`. Nothing is loaded or started. Raises LoraError for what is no adapter."""
    adapter = read_adapter(folder)
    wanted, layers, said = _base(adapter, base)
    source = None if installation is None else vllm_folder(installation, environ)
    own_ranks = None if source is None else max_lora_ranks(source)
    model = (
        None
        if source is None or layers is None or not layers.architectures
        else model_source(source, layers.architectures[0])
    )
    version = None if installation is None else installation.version
    served = Served(
        allowed=own_ranks or ranks_of_version(version),
        version=version,
        base=layers,
        max_rank=max_rank,
        embedding_modules=None if model is None else model.embedding_modules,
    )
    found = list(findings(adapter, served, look_at_values(adapter)))
    if model is not None and not model.supports_lora and layers is not None:
        text = f"{served.called} has no LoRA for {clean(layers.architectures[0], 60)}"
        found.insert(0, Finding("refused", "base", text, "serve it merged into its base (peft: merge_and_unload)"))
    if installation is None:
        text = "no vLLM was found: these are the rules of the newest that is known"
        found.append(Finding("note", "vllm", text, "name one by --vllm"))
    return Examined(adapter, wanted, version, max_rank_for(ranks_of(adapter, served), served.allowed), (*found, *said))


def examine_version(
    data_dir: Path,
    adapter: AdapterRecord,
    base: str | None,
    installation: Installation | None,
    environ: Mapping[str, str],
    max_rank: int | None = None,
) -> Examined:
    """As `examine`, of a version in the registry, with its own base where none is given, and whether that is still what
    it was. Raises SignatureBroken where its files are not those registered."""
    folder = require_unchanged(data_dir, adapter)
    examined = examine(folder, base or adapter.base_model, installation, environ, max_rank)
    now = model_hash(examined.base) if examined.base is not None else None
    if adapter.base_hash is None or now in (None, adapter.base_hash):
        return examined
    text = f"{clean(examined.base or '', 120)} is not the very model it was made for: config or weights are others"
    other = Finding("note", "base", text, "nothing, if it is that model in another precision; else serve it on its own")
    return replace(examined, findings=(*examined.findings, other))


def require_base(given: str | None) -> None:
    """Raises BaseUnknown for a path that leads to no folder; a hub's name may be anything."""
    if given is None:
        return
    folder = Path(given).expanduser()
    a_path = folder.exists() or given.startswith(("/", ".", "~")) or ("/" in given and folder.parent.is_dir())
    if a_path and not folder.is_dir():
        raise BaseUnknown(f"--base {clean(given, 200)} is no folder: name a model's folder or a hub name")


def base_for(adapter: AdapterRecord, given: str | None) -> str:
    """The base that a person has given, else the one that the adapter was made for. Raises BaseUnknown for a folder
    that is not there any more."""
    require_base(given)
    base = given or adapter.base_model
    if Path(base).is_absolute() and not Path(base).exists():
        raise BaseUnknown(
            f"the base of {adapter.label} is gone from {clean(base, 200)}: put it back, or say where it is by --base"
        )
    return base


def import_adapter(
    writer: Writer, data_dir: Path, examined: Examined, name: str, *, anyway: bool = False, notes: str | None = None
) -> Registered:
    """Keep what was examined as the next version of `name`. Raises ImportRefused where it would not be served as it was
    trained, unless `anyway`; LoraError without a base."""
    if examined.base is None:
        raise LoraError(f"{examined.adapter.folder} does not name its base model: give it by --base")
    prevented = examined.prevented
    if prevented and not anyway:
        more = f", and {len(prevented) - 1} more" if len(prevented) > 1 else ""
        raise ImportRefused(f"not kept: {prevented[0].text}{more}; --anyway keeps it all the same")
    origin = Origin(
        base_model=examined.base,
        base_hash=model_hash(examined.base),
        imported_from=os.path.abspath(examined.adapter.folder),
        notes=notes,
        raw={"findings": [finding_json(finding) for finding in examined.findings], "vllm": examined.vllm},
    )
    return register(writer, data_dir, examined.adapter.folder, name, origin)


def finding_json(finding: Finding) -> dict[str, str | None]:
    """A finding as JSON tells it."""
    return {
        "effect": finding.effect,
        "about": finding.about,
        "text": finding.text,
        "remedy": finding.remedy,
        "vllm_says": None if finding.vllm is None else clean(finding.vllm),
    }


def _base(adapter: Adapter, given: str | None) -> tuple[str | None, BaseModel | None, list[Finding]]:
    """The base's name, its layers where they are known, and what is to be said of it."""
    named = adapter.base_model
    wanted = given or named
    if wanted is None:
        text = "its config does not name its base model: whether it fits was not checked"
        return None, None, [Finding("note", "base", text, "name the base by --base")]
    said = []
    if given is not None and named is not None and _last(given) != _last(named):
        text = f"its config names {clean(named, 120)} as its base, and it is to be served on {clean(given, 120)}"
        said.append(Finding("note", "base", text, "make sure that they are the same weights"))
    folder = Path(wanted).expanduser()
    if not folder.is_dir():
        text = f"its base {clean(wanted, 120)} is not here as a folder: whether it fits was not checked"
        return wanted, None, [*said, Finding("note", "base", text, "name the base's folder by --base")]
    place = os.path.abspath(folder)
    try:
        return place, read_base(folder), said
    except BaseUnknown as error:
        return place, None, [*said, Finding("note", "base", f"whether it fits was not checked: {error}", "nothing")]


def _last(path: str) -> str:
    """The last part of a path or hub name, by which the same model is called on different machines."""
    return path.rstrip("/").rpartition("/")[2].lower()
