"""Which journal a database may have on the file system that it lies on.

WAL needs memory shared between the processes that have the file open (the mapped `-shm` file). SQLite says that it
"does not work over a network filesystem" (https://sqlite.org/wal.html, "Overview"), and under FUSE shared mappings
depend on the server: in direct-io mode there are none by default (Linux: Documentation/filesystems/fuse/fuse-io.rst).
Pods have such mounts at /workspace. So WAL is for file systems that are known to be of this machine's kernel and
disks; all others, also those we have never heard of, get the rollback journal, which needs only locks and is correct.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

JournalMode = Literal["wal", "truncate"]

# Overlay keeps what is written in its upper layer, for which a network file system "is not suitable" (Linux:
# Documentation/filesystems/overlayfs.rst, "Upper and Lower").
LOCAL_TYPES = frozenset(
    {
        *("bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "nilfs2"),
        *("overlay", "ramfs", "reiserfs", "tmpfs", "ubifs", "xfs", "zfs"),
    }
)
IN_MEMORY_TYPES = frozenset({"tmpfs", "ramfs"})

_MOUNTINFO = Path("/proc/self/mountinfo")
_ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system: where, and its type as the kernel names it (`ext4`, `fuse.mfs`)."""

    point: Path
    type: str


def parse_mountinfo(text: str) -> tuple[Mount, ...]:
    """The mounts in the order of mounting, from the text of /proc/self/mountinfo; odd lines are left out.

    Format: proc_pid_mountinfo(5): mount point in the fifth field, blanks as octal escapes; type first after ` - `."""
    mounts = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        head, tail = before.split(), after.split()
        if len(head) >= 5 and tail:
            mounts.append(Mount(Path(_ESCAPE.sub(lambda found: chr(int(found[1], 8)), head[4])), tail[0]))
    return tuple(mounts)


def read_mounts() -> tuple[Mount, ...]:
    """The mounts that this process sees; none where /proc does not tell."""
    try:
        return parse_mountinfo(_MOUNTINFO.read_text(encoding="utf-8", errors="surrogateescape"))
    except OSError:  # no /proc: journal_mode then takes the journal that is correct everywhere
        return ()


def mount_of(path: Path, mounts: Iterable[Mount]) -> Mount | None:
    """The mount that `path` lies on: the longest mount point above it, the latest where several lie on one point."""
    real = Path(os.path.realpath(path))
    best: Mount | None = None
    for mount in mounts:
        deeper = best is None or len(mount.point.parts) >= len(best.point.parts)
        if deeper and real.is_relative_to(mount.point):
            best = mount
    return best


def can_write(folder: Path) -> bool:
    """Whether this process may make files in `folder` (by its effective user, as `open` has it)."""
    return os.access(folder, os.W_OK | os.X_OK, effective_ids=True)


def journal_mode(path: Path, mounts: Iterable[Mount]) -> JournalMode:
    """`wal` on a local file system, else `truncate`: the rollback journal that is emptied and not deleted at each
    commit, which spares network file systems two changes of the folder (https://sqlite.org/pragma.html#pragma_journal_mode)."""
    mount = mount_of(path, mounts)
    return "wal" if mount is not None and mount.type in LOCAL_TYPES else "truncate"
