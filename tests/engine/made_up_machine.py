"""A /proc with processes and sockets of our choice."""

import ipaddress
import os
from pathlib import Path

from engine.discovery import FoundServer, found_servers

LISTEN, ESTABLISHED = "0A", "01"


class Machine:
    """A /proc with processes and sockets. A process without `holds` is one whose open files cannot be read."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tcp: dict[str, list[str]] = {"tcp": [], "tcp6": []}
        (root / "net").mkdir(parents=True)
        (root / "self").mkdir()

    def socket(self, address: str, port: int, inode: int, state: str = LISTEN, uid: int | None = None) -> None:
        packed = ipaddress.ip_address(address).packed
        words = [packed[at : at + 4][::-1].hex().upper() for at in range(0, len(packed), 4)]
        owner = os.getuid() if uid is None else uid
        table = self.tcp["tcp6" if len(packed) == 16 else "tcp"]
        local = f"{''.join(words)}:{port:04X}"
        remote = f"{'0' * 2 * len(packed)}:0000"
        queues = "00000000:00000000 00:00000000 00000000"
        table.append(f"{len(table):4}: {local} {remote} {state} {queues} {owner:5}        0 {inode} 1 0 100 0 0 10 0")

    def process(
        self, pid: int, *argv: str, holds: tuple[int, ...] | None = (), parent: int = 1, children: tuple[int, ...] = ()
    ) -> None:
        folder = self.root / str(pid)
        (folder / "task" / str(pid)).mkdir(parents=True)
        (folder / "cmdline").write_bytes(b"".join(part.encode() + b"\0" for part in argv))
        (folder / "stat").write_text(f"{pid} (a (b) c) S {parent} 1 1 0")
        (folder / "task" / str(pid) / "children").write_text(" ".join(map(str, children)))
        if holds is not None:
            (folder / "fd").mkdir()
            (folder / "fd" / "0").symlink_to("/dev/null")
            for at, inode in enumerate(holds, 3):
                (folder / "fd" / str(at)).symlink_to(f"socket:[{inode}]")

    def found(self) -> tuple[FoundServer, ...]:
        head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
        for name, lines in self.tcp.items():
            (self.root / "net" / name).write_text("\n".join([head, *lines, ""]))
        return found_servers(self.root)
