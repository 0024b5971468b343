"""Who listens on a port, on real sockets of this machine."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from engine.processes.listeners import Listener
from engine.processes.port_seen import PortSeen, port_seen, started, strange
from engine.processes.process import identify
from engine.records import ProcessIdentity

LISTEN = """
import socket, sys
sock = socket.socket()
sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
sock.bind((sys.argv[1], int(sys.argv[2])))
sock.listen()
print("listens", flush=True)
sys.stdin.read()
"""


@contextmanager
def listening(host: str, port: int) -> Iterator[ProcessIdentity]:
    """Another process that listens there."""
    process = subprocess.Popen(
        [sys.executable, "-c", LISTEN, host, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"listens\n"
        identity = identify(process.pid)
        assert identity is not None
        yield identity
    finally:
        process.communicate()


@pytest.fixture
def port() -> Iterator[int]:
    """A port on which this process listens, as the server of the test."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        yield sock.getsockname()[1]


def seen(port: int, host: str = "127.0.0.1", *children: ProcessIdentity) -> PortSeen:
    myself = identify(os.getpid())
    assert myself is not None
    return port_seen(host, port, myself, children)


def test_our_own_listener(port: int) -> None:
    found = seen(port)
    assert (found.ours, found.strangers, found.pids) == ((os.getpid(),), (), (os.getpid(),))
    assert found.began is not None


def test_another_process_that_shares_the_address_is_told(port: int) -> None:
    with listening("127.0.0.1", port) as other:
        found = seen(port)
        assert found.ours == (os.getpid(),)
        (stranger,) = found.strangers
        assert stranger.startswith(f"process {other.pid} (")
        assert seen(port, "127.0.0.1", other).strangers == ()  # a process of the server itself
    assert seen(port).strangers == ()


def test_one_that_listens_in_place_of_ours_is_told() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    engine, server = socket.socketpair()
    with listening("127.0.0.1", port) as other, engine, server:
        found = seen(port)
    assert found.ours == ()
    assert str(other.pid) in found.strangers[0]


def test_a_server_whose_sockets_cannot_be_seen_is_not_accused() -> None:
    with listening("127.0.0.1", 0) as gone:
        pass
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        found = port_seen("127.0.0.1", sock.getsockname()[1], gone, [])
    assert (found.ours, found.strangers) == ((), ())


def test_one_on_another_address_takes_nothing(port: int) -> None:
    with listening("127.0.0.2", port):
        assert seen(port).strangers == ()


def test_nobody_listens() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        found = seen(sock.getsockname()[1])
    assert (found.ours, found.strangers) == ((), ())


def row(address: str, inode: int) -> Listener:
    return Listener(address, 8000, 0, inode)


@pytest.mark.parametrize(
    ("rows", "own", "host", "strangers"),
    [
        ([row("127.0.0.1", 1), row("0.0.0.0", 2)], {1}, "127.0.0.1", []),
        ([row("127.0.0.1", 1), row("127.0.0.1", 2)], {1}, "127.0.0.1", [2]),
        ([row("0.0.0.0", 2)], set(), "127.0.0.1", [2]),
        ([row("127.0.0.1", 2)], set(), "localhost", [2]),
        ([row("127.0.0.2", 2)], set(), "127.0.0.1", []),
        ([row("127.0.0.2", 2)], set(), "0.0.0.0", [2]),
        ([], set(), "127.0.0.1", []),
    ],
)
def test_who_takes_connections_meant_for_ours(
    rows: list[Listener], own: set[int], host: str, strangers: list[int]
) -> None:
    assert [each.inode for each in strange(rows, own, host)] == strangers


def test_a_process_began_when_the_kernel_says() -> None:
    with listening("127.0.0.1", 0) as other:
        began = started(other)
    assert began is not None
    assert time.time() - 20 < began < time.time() + 2
