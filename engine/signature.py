"""A signature of a folder's files, by which what is served is known to be what was registered.

Here, and not in `lora/`, because a sweep that serves adapters holds them against it too.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from engine.records import EngineError
from engine.text import clean

_PIECE = 1 << 20


class SignatureBroken(EngineError):
    """The files of a registered adapter are not those that were registered."""


def file_hashes(folder: Path) -> dict[str, str]:
    """Name → SHA-256 in hex of each file in `folder` itself, by name. Raises EngineError where one cannot be read, or
    is a folder or a link that leads nowhere."""
    found = {}
    try:
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if not entry.is_file():
                raise EngineError(f"{entry} is no file: an adapter's folder holds files only")
            with entry.open("rb") as file:
                digest = hashlib.sha256()
                while piece := file.read(_PIECE):
                    digest.update(piece)
            found[entry.name] = digest.hexdigest()
    except OSError as error:
        raise EngineError(f"{folder} cannot be read: {error.strerror}") from None
    return found


def signature_of(hashes: Mapping[str, str]) -> str:
    """SHA-256 in hex over lines `HASH  NAME` in the order of the names: what `sha256sum * | sha256sum` prints in that
    folder (in the C locale)."""
    lines = (f"{digest}  {name}\n" for name, digest in sorted(hashes.items()))
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def require_signature(folder: Path, signature: str, hashes: Mapping[str, str], label: str) -> None:
    """Nothing if the files in `folder` are those of `signature`; `hashes` are theirs when it was made, to name the one
    that differs, `label` names the adapter. Raises SignatureBroken."""
    if not folder.is_dir():
        raise SignatureBroken(f"{label} cannot be served: its folder {folder} is gone")
    now = file_hashes(folder)
    if signature_of(now) == signature:
        return
    changed = [f"{name} has changed" for name in now if name in hashes and now[name] != hashes[name]]
    gone = [f"{name} is gone" for name in hashes if name not in now]
    added = [f"{name} was added" for name in now if name not in hashes]
    what = clean(", ".join((changed + gone + added)[:3]), 200) or "its record has changed"
    raise SignatureBroken(
        f"{label} is not what was registered: {what} in {folder}; register it anew (`llmtune lora import`) or put the "
        "files back"
    )
