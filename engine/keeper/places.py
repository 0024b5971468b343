"""Where a keeper's lock and socket lie.

Not in the data directory: that may be a network or FUSE mount, where sockets cannot be made and locks may not hold,
and a socket's path must stay under 108 bytes (unix(7)). Not in XDG_RUNTIME_DIR: it is removed when the person's last
login ends (pam_systemd(8)), and a keeper must outlive that. /tmp is local, stays, and is empty after a reboot, as locks
and sockets should be; TMPDIR, which may differ between two shells, does not move it.
"""

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine.records import EngineError

KeeperKind = Literal["session", "server", "training", "evaluation"]


@dataclass(frozen=True, slots=True)
class KeeperPlaces:
    lock: Path
    socket: Path


def runtime_dir(environ: Mapping[str, str]) -> Path:
    """The folder for sockets and locks of this user, mode 0700; made when missing. LLMTUNE_RUNTIME_DIR is one by hand.

    Raises EngineError where a folder of that name belongs to someone else: in /tmp anybody could have made it.
    """
    folder = Path(environ.get("LLMTUNE_RUNTIME_DIR") or f"/tmp/llmtune-{os.getuid()}")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise EngineError(f"{folder} cannot be made ({error.strerror}): set LLMTUNE_RUNTIME_DIR to a folder") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise EngineError(f"{folder} must be a folder of yours that nobody else can enter: chmod 700 or remove it")
    return folder


def keeper_places(
    data_dir: Path, kind: KeeperKind, number: int, environ: Mapping[str, str] = os.environ
) -> KeeperPlaces:
    """Lock and socket of one keeper; the data directory's own hash keeps two of them apart."""
    key = hashlib.sha256(str(data_dir.resolve()).encode()).hexdigest()[:12]
    stem = runtime_dir(environ) / f"{key}-{kind}-{number}"
    return KeeperPlaces(lock=stem.with_suffix(".lock"), socket=stem.with_suffix(".sock"))
