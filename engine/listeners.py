"""The listening TCP sockets of this network namespace, as the kernel's tables show them to everybody (proc_net(5))."""

import ipaddress
import sys
from dataclasses import dataclass
from pathlib import Path

_LISTEN = " 0A "  # include/net/tcp_states.h


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
    for name in ("tcp", "tcp6"):
        try:
            text = (proc / "net" / name).read_text()
        except OSError:
            continue  # no IPv6 here
        for line in text.splitlines()[1:]:
            if _LISTEN not in line:
                continue  # thousands that wait for their end, on a busy machine
            fields = line.split()
            if len(fields) > 9 and fields[3] == "0A":
                address, _, port = fields[1].rpartition(":")
                found.append(Listener(_address(address), int(port, 16), int(fields[7]), int(fields[9])))
    return found


def v6_only(proc: Path) -> bool:
    try:
        return (proc / "sys/net/ipv6/bindv6only").read_text().strip() == "1"
    except OSError:
        return False


def _address(digits: str) -> str:
    """The kernel prints 32-bit words in its own byte order."""
    words = [digits[at : at + 8] for at in range(0, len(digits), 8)]
    raw = b"".join(int(word, 16).to_bytes(4, sys.byteorder) for word in words)
    return str(ipaddress.ip_address(raw))
