"""The adapters of a server that are versions of the registry: served only as they were registered.

Flags and plans hold plain paths and are read without the registry, so they have no signature in them: whoever edits a
path would have to edit that too. The store that holds servers and sessions holds the versions as well, each with its
folder and its signature, and neither of them ever changes. So whose folder a path is, is asked of the store; what lies
in none of the registry's folders was never signed, and is served as it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.launch.adapter_flags import FLAG, modules, real_folder
from engine.signature import SignatureBroken, require_signature
from store.reader import Reader
from store.records import AdapterRecord


@dataclass(frozen=True, slots=True)
class SignedAdapters:
    """The versions of a data directory, by their folders."""

    by_folder: Mapping[str, AdapterRecord] = field(default_factory=dict)

    def among(self, flags: Mapping[str, Any]) -> tuple[tuple[Path, AdapterRecord], ...]:
        """Those that a server with `flags` would load."""
        found = []
        for _, path in modules(flags.get(FLAG, ())):
            place = real_folder(path)
            if (adapter := self.by_folder.get(place)) is not None:
                found.append((Path(place), adapter))
        return tuple(found)

    def require_unchanged(self, *servers: Mapping[str, Any]) -> None:
        """Read all files of the adapters that servers with such flags would load: a second for a gigabyte. Raises
        SignatureBroken for one that is not what was registered or was deleted, EngineError for a folder that cannot be
        read."""
        wanted = {folder: adapter for flags in servers for folder, adapter in self.among(flags)}
        for folder, adapter in wanted.items():
            if adapter.deleted_at is not None:
                when = adapter.deleted_at[:16].replace("T", " ")
                raise SignatureBroken(f"{adapter.label} cannot be served: it was deleted at {when} UTC")
            hashes = adapter.raw.get("files")
            known = hashes if isinstance(hashes, Mapping) else {}
            require_signature(folder, adapter.signature, known, adapter.label)


NO_ADAPTERS = SignedAdapters()


def signed_adapters(reader: Reader, data_dir: Path) -> SignedAdapters:
    """All versions that were ever registered in `data_dir`. Raises StoreError."""
    return SignedAdapters({real_folder(str(data_dir / each.path)): each for each in reader.adapters_ever()})
