import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from engine.processes.process import (
    command_line,
    descendants,
    group_members,
    identify,
    is_alive,
    listener_pids,
    marked,
    send_signal,
    tcp_sockets,
)

SLEEPER = "import time; time.sleep(60)"
PARENT = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEPER!r}]).wait()"


@pytest.fixture
def spawn() -> Iterator[Callable[..., "subprocess.Popen[bytes]"]]:
    started: list[subprocess.Popen[bytes]] = []

    def run(code: str, **environ: str) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen([sys.executable, "-c", code], env=os.environ | environ, start_new_session=True)
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_process_is_alive_until_it_ends_and_its_zombie_is_not(
    spawn: Callable[..., "subprocess.Popen[bytes]"],
) -> None:
    process = spawn(SLEEPER)
    identity = identify(process.pid)
    assert identity is not None
    assert is_alive(identity)
    process.send_signal(signal.SIGKILL)
    wait_for(lambda: not is_alive(identity))  # a zombie: nobody has waited for it
    assert process.wait() == -signal.SIGKILL


def test_another_process_with_the_same_pid_is_never_signalled(spawn: Callable[..., "subprocess.Popen[bytes]"]) -> None:
    process = spawn(SLEEPER)
    identity = identify(process.pid)
    assert identity is not None
    earlier = replace(identity, start_ticks=identity.start_ticks - 1)
    other_boot = replace(identity, boot_id="another")
    assert not send_signal(earlier, signal.SIGKILL)
    assert not send_signal(other_boot, signal.SIGKILL)
    assert process.poll() is None
    assert send_signal(identity, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not send_signal(identity, signal.SIGKILL)


def test_descendants_group_and_marker_each_find_a_grandchild(spawn: Callable[..., "subprocess.Popen[bytes]"]) -> None:
    process = spawn(PARENT, LLMTUNE_SERVER="mark-of-this-test")
    wait_for(lambda: len(descendants(process.pid)) == 1)
    (child,) = descendants(process.pid)
    assert child in descendants(os.getpid())
    leader = identify(process.pid)
    wait_for(lambda: marked("mark-of-this-test") == sorted([leader, child], key=lambda found: found.pid))
    assert set(group_members(process.pid)) == {leader, child}
    assert marked("mark-of-this") == []
    assert SLEEPER in (command_line(child.pid) or "")


def test_the_listener_of_a_port_is_found_but_not_a_socket_that_is_only_bound() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        assert listener_pids(port) == set()
        sock.listen()
        assert listener_pids(port) == {os.getpid()}


def test_a_pid_that_nobody_has_is_nobody() -> None:
    assert identify(2**22 + 1) is None
    assert command_line(2**22 + 1) is None


def test_the_sockets_of_a_port_say_whether_they_listen() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        port = sock.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            found = tcp_sockets(port)
        assert sorted(one.listens for one in found) == [False, True]  # the other end's, and the listener
        assert {one.port for one in found} == {port}
