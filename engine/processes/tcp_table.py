"""The kernel's tables of the TCP sockets of this network namespace, which everybody may read (proc_net(5))."""

from collections.abc import Iterator
from pathlib import Path

LISTEN = "0A"  # include/net/tcp_states.h
LOCAL, STATE, UID, INODE = 1, 3, 7, 9  # fields of a row
_FIELDS = 10


def tcp_rows(proc: Path, holding: str) -> Iterator[list[str]]:
    """The fields of each socket, IPv4 and IPv6, whose line has `holding` in it: a busy machine has thousands of others,
    that wait for their end."""
    for name in ("tcp", "tcp6"):
        try:
            text = (proc / "net" / name).read_text()
        except OSError:
            continue  # no IPv6 here
        for line in text.splitlines()[1:]:
            if holding in line and len(fields := line.split()) >= _FIELDS:
                yield fields
