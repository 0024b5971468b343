"""Servers found in a /proc that is made up, and a real process that only looks like vLLM in its command line."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.discovery import Finder, FoundServer, found_servers, on_this_machine
from engine.processes.listeners import Listener, listeners
from tests.engine.made_up_machine import ESTABLISHED, Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "proc")


SERVE = ("/venv/bin/python3.12", "/venv/bin/vllm", "serve", "/models/qwen3-14b", "--max-num-seqs", "64")


def test_a_server_with_its_model_and_flags(machine: Machine) -> None:
    machine.socket("0.0.0.0", 8123, 11)
    machine.socket("127.0.0.1", 5555, 12)
    machine.process(40, *SERVE, "--port", "8123", "--api-key", "sk-secret", holds=(11, 12))
    (found,) = machine.found()
    assert found == FoundServer(
        "http://127.0.0.1:8123",
        40,
        {"max-num-seqs": 64, "port": 8123, "api-key": "***"},
        "/models/qwen3-14b",
        "qwen3-14b",
        os.getuid(),
    )


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("0.0.0.0", "http://127.0.0.1:8000"),
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("10.1.2.3", "http://10.1.2.3:8000"),
        ("::", "http://127.0.0.1:8000"),
        ("::1", "http://[::1]:8000"),
        ("fd00::5", "http://[fd00::5]:8000"),
        ("::ffff:10.1.2.3", "http://10.1.2.3:8000"),
    ],
)
def test_the_address_is_one_that_this_machine_reaches(machine: Machine, address: str, url: str) -> None:
    machine.socket(address, 8000, 11)
    machine.process(40, *SERVE, holds=(11,))
    assert [one.url for one in machine.found()] == [url]


def test_all_ipv6_addresses_alone_where_the_machine_keeps_them_apart(machine: Machine) -> None:
    (machine.root / "sys/net/ipv6").mkdir(parents=True)
    (machine.root / "sys/net/ipv6/bindv6only").write_text("1\n")
    machine.socket("::", 8000, 11)
    machine.process(40, *SERVE, holds=(11,))
    assert [one.url for one in machine.found()] == ["http://[::1]:8000"]


@pytest.mark.parametrize(
    "argv",
    [
        ("vllm", "serve", "m"),
        ("/opt/vllm", "serve", "m"),
        ("python", "-u", "/venv/bin/vllm", "serve", "m"),
        ("/usr/bin/python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "m"),
        ("python3", "-u", "-m", "vllm.entrypoints.cli.main", "serve", "m"),
        ("python3", "-m", "vllm", "serve", "m"),
        ("python3.11", "/x/site-packages/vllm/entrypoints/openai/api_server.py", "--model", "m"),
        ("VLLM::APIServer",),
        ("VLLM::APIServer_0", "", ""),
        ("team-a::APIServer_12",),
    ],
)
def test_command_lines_that_are_servers(machine: Machine, argv: tuple[str, ...]) -> None:
    machine.socket("127.0.0.1", 8000, 11)
    machine.process(40, *argv, holds=(11,))
    (found,) = machine.found()
    assert (found.pid, found.model) == (40, None if "::" in argv[0] else "m")


@pytest.mark.parametrize(
    "argv",
    [
        ("",),
        ("/bin/bash", "-c", "vllm serve m"),
        ("ssh", "pod", "vllm", "serve", "m"),
        ("vim", "vllm", "serve"),
        ("sudo", "vllm", "serve", "m"),
        ("vllm", "bench", "serve", "--model", "m"),
        ("vllm", "chat"),
        ("python3", "my_server.py", "vllm", "serve", "m"),
        ("python3", "-m", "http.server", "vllm"),
        ("python3", "-m", "vllm.entrypoints.cli.main", "bench", "serve"),
        ("python3", "-c", "import vllm"),
        ("VLLM::EngineCore",),
        ("VLLM::Worker_TP0",),
        ("nginx: vllm serve",),
    ],
)
def test_other_programs_that_listen_are_none(machine: Machine, argv: tuple[str, ...]) -> None:
    machine.socket("127.0.0.1", 8000, 11)
    machine.process(40, *argv, holds=(11,))
    assert machine.found() == ()


def test_a_server_that_does_not_listen_yet_or_on_a_unix_socket_is_none(machine: Machine) -> None:
    machine.socket("127.0.0.1", 8000, 11, state=ESTABLISHED)
    machine.socket("127.0.0.1", 8001, 12)
    machine.process(40, *SERVE, holds=(11,))
    machine.process(41, *SERVE, "--uds", "/run/vllm.sock", "--port", "8001", holds=(12,))
    machine.process(42, *SERVE, "--headless", "--port", "8001", holds=(12,))
    assert machine.found() == ()


def test_a_port_that_another_holds_is_never_taken_for_its_own(machine: Machine) -> None:
    machine.socket("127.0.0.1", 8000, 11)
    machine.process(40, *SERVE, holds=())
    machine.process(50, "nginx", holds=(11,))
    assert machine.found() == ()


def test_another_user_s_server_is_known_by_port_and_owner(machine: Machine) -> None:
    machine.socket("0.0.0.0", 8000, 11)
    machine.socket("0.0.0.0", 8001, 12, uid=os.getuid() + 1)
    machine.process(40, *SERVE, holds=None)
    machine.process(41, *SERVE, "--port", "8001", holds=None)  # that port is some other user's
    machine.process(42, *SERVE, "--port", "9000", holds=None)  # nobody listens there
    assert [(one.pid, one.url) for one in machine.found()] == [(40, "http://127.0.0.1:8000")]


def test_several_api_servers_of_one_command_are_one_server(machine: Machine) -> None:
    machine.socket("0.0.0.0", 8500, 11)
    machine.socket("0.0.0.0", 8500, 12)
    machine.process(40, *SERVE, "--port", "8500", holds=(11,), children=(41, 42))
    machine.process(41, "VLLM::APIServer_0", holds=(11,), parent=40)
    machine.process(42, "VLLM::APIServer_1", holds=(12,), parent=40)
    (found,) = machine.found()
    assert (found.pid, found.flags["port"]) == (40, 8500)


def test_titles_that_hide_the_flags(machine: Machine) -> None:
    machine.socket("0.0.0.0", 8500, 11)
    machine.process(41, "VLLM::APIServer_0", holds=(11,))
    machine.process(42, "VLLM::APIServer_1", holds=(11,))
    (found,) = machine.found()
    assert (found.url, found.pid, found.name, dict(found.flags)) == ("http://127.0.0.1:8500", 41, "vLLM", {})


def test_a_front_end_that_is_a_child_of_the_command(machine: Machine) -> None:
    machine.socket("0.0.0.0", 8000, 11)
    machine.process(40, *SERVE, holds=(), children=(41,))
    machine.process(41, "/x/vllm-rs", holds=(11,), parent=40)
    assert [one.pid for one in machine.found()] == [40]


def test_a_port_in_a_file_is_the_only_one_that_listens(machine: Machine) -> None:
    machine.socket("0.0.0.0", 8700, 11)
    machine.socket("0.0.0.0", 8701, 12)
    machine.socket("0.0.0.0", 8702, 13)
    machine.process(40, "vllm", "serve", "--config", "vllm.yaml", holds=(11,))
    machine.process(41, "vllm", "serve", "--config", "vllm.yaml", holds=(12, 13))  # which one cannot be known
    (found,) = machine.found()
    assert (found.url, found.model, found.name) == ("http://127.0.0.1:8700", None, "vLLM")


@pytest.mark.parametrize(
    ("more", "name"),
    [
        (("--served-model-name", "chat", "chat-2"), "chat"),
        (("--served-model-name", "[/x]\x1b[31m\u202e"), "[/x]"),
        (("--served-model-name", "\x1b[31m"), "vLLM"),
        (("--served-model-name", "x" * 10_000), "x" * 59 + "…"),
    ],
)
def test_names_of_any_kind(machine: Machine, more: tuple[str, ...], name: str) -> None:
    machine.socket("0.0.0.0", 8000, 11)
    machine.process(40, *SERVE, *more, holds=(11,))
    assert [one.name for one in machine.found()] == [name]


def test_a_command_line_that_cannot_be_read_whole_still_says_where_it_listens(machine: Machine) -> None:
    machine.socket("0.0.0.0", 8800, 11)
    argv = ("vllm", "serve", "m", "--seed", "1", "--seed", "2", "--port=8800", "--compilation-config", "{odd")
    machine.process(40, *argv, holds=(11,))
    (found,) = machine.found()
    assert (found.url, found.flags) == ("http://127.0.0.1:8800", {"port": "8800"})


def test_who_looks_again_reads_the_table_only_where_something_may_have_changed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, reads = [0.0], []

    def counted(proc: Path) -> list[Listener]:
        reads.append(now[0])
        return listeners(proc)

    monkeypatch.setattr("engine.discovery.listeners", counted)
    finder = Finder(machine.root, lambda: now[0])

    def look(after_s: float) -> list[int]:
        now[0] += after_s
        machine.found()  # writes the table
        reads.clear()
        return [one.pid for one in finder.found()]

    assert (look(0), reads) == ([], [])
    machine.process(40, *SERVE, "--port", "8100", holds=(11,))
    assert (look(5), reads) == ([], [5.0])  # it loads its model
    assert (look(5), reads) == ([], [10.0])
    machine.socket("127.0.0.1", 8100, 11)
    assert (look(5), reads) == ([40], [15.0])
    assert (look(5), reads) == ([40], [])
    assert (look(60), reads) == ([40], [80.0])
    machine.process(41, *SERVE, "--port", "8101", holds=(12,))
    machine.socket("127.0.0.1", 8101, 12)
    assert (look(5), reads) == ([40, 41], [85.0])
    (machine.root / "40" / "cmdline").write_bytes(b"")
    assert (look(5), reads) == ([41], [90.0])


def test_processes_that_go_while_they_are_looked_at(machine: Machine) -> None:
    (machine.root / "40").mkdir()  # no cmdline any more
    machine.process(41, *SERVE)
    (machine.root / "41" / "fd").joinpath("7").symlink_to("socket:[77]")
    assert machine.found() == ()


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:8000", True),
        ("http://localhost:8000", True),
        (f"http://{socket.gethostname()}", True),
        ("http://192.0.2.7:8000", False),  # an address of no machine (RFC 5737)
        ("http://[2001:db8::1]:8000", False),
        ("http://gpu.example", False),
        ("http://", False),
    ],
)
def test_which_addresses_are_this_machine_s(url: str, here: bool) -> None:
    assert on_this_machine(url) == here


def test_a_real_listener(tmp_path: Path) -> None:
    program = tmp_path / "vllm"
    program.write_text(
        "import socket, sys, time\n"
        "s = socket.create_server(('127.0.0.1', int(sys.argv[sys.argv.index('--port') + 1])))\n"
        "print('listening', flush=True)\ntime.sleep(30)\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    argv = [sys.executable, str(program), "serve", "models/m [x]", "--port", str(port)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "listening\n"
            (found,) = [one for one in found_servers() if one.pid == process.pid]
            assert (found.url, found.model, found.name) == (f"http://127.0.0.1:{port}", "models/m [x]", "m [x]")
        finally:
            process.kill()
    began = time.perf_counter()
    assert process.pid not in {one.pid for one in found_servers()}
    assert time.perf_counter() - began < 1.0
