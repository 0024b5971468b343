"""The listening TCP sockets of this network namespace, and where each is reached."""

import ipaddress
import sys
from dataclasses import dataclass
from pathlib import Path

from engine.processes.tcp_table import INODE, LISTEN, LOCAL, STATE, UID, tcp_rows


@dataclass(frozen=True, slots=True)
class Listener:
    """`address` is the local one, without brackets; `uid` who made the socket."""

    address: str
    port: int
    uid: int
    inode: int

    def host(self, v6_only: bool) -> str:
        """Where this machine reaches it, as it stands in a URL. A socket on all IPv6 addresses takes IPv4 too, unless
        the machine says otherwise (net.ipv6.bindv6only)."""
        address = ipaddress.ip_address(self.address)
        if isinstance(address, ipaddress.IPv6Address):
            if address.ipv4_mapped is None:
                loopback = "[::1]" if v6_only else "127.0.0.1"
                return loopback if address.is_unspecified else f"[{address.compressed}]"
            address = address.ipv4_mapped
        return "127.0.0.1" if address.is_unspecified else str(address)


def listeners(proc: Path) -> list[Listener]:
    """All of them, IPv4 and IPv6."""
    found = []
    for fields in tcp_rows(proc, f" {LISTEN} "):
        if fields[STATE] == LISTEN:
            address, _, port = fields[LOCAL].rpartition(":")
            found.append(Listener(_address(address), int(port, 16), int(fields[UID]), int(fields[INODE])))
    return found


def v6_only(proc: Path) -> bool:
    """Whether a socket on all IPv6 addresses takes no IPv4 here (net.ipv6.bindv6only)."""
    try:
        return (proc / "sys/net/ipv6/bindv6only").read_text().strip() == "1"
    except OSError:
        return False


def _address(digits: str) -> str:
    """The kernel prints 32-bit words in its own byte order."""
    words = [digits[at : at + 8] for at in range(0, len(digits), 8)]
    raw = b"".join(int(word, 16).to_bytes(4, sys.byteorder) for word in words)
    return str(ipaddress.ip_address(raw))
