"""Ports among our own keepers."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from engine.keeper.port_lease import holding_port, leased_port

HOST = "127.0.0.1"


@pytest.fixture
def runtime(tmp_path: Path) -> dict[str, str]:
    return {"LLMTUNE_RUNTIME_DIR": str(tmp_path / "run")}


def test_two_keepers_do_not_lease_the_same_port(runtime: dict[str, str]) -> None:
    with leased_port(HOST, 8300, runtime) as first, leased_port(HOST, 8300, runtime) as second:
        assert second > first >= 8300
    with leased_port(HOST, 8300, runtime) as again:
        assert again == first


def test_a_port_that_a_person_chose_is_left_to_them(runtime: dict[str, str]) -> None:
    with leased_port(HOST, 8300, runtime) as chosen:
        pass
    with holding_port(chosen, runtime):
        with leased_port(HOST, chosen, runtime) as other:
            assert other != chosen
        with holding_port(chosen, runtime):  # theirs is the choice, even twice
            pass


def test_what_listens_already_is_passed_over(runtime: dict[str, str]) -> None:
    with leased_port(HOST, 8300, runtime) as port:
        pass
    with socket.create_server((HOST, port)), leased_port(HOST, port, runtime) as other:
        assert other > port


def test_a_killed_keeper_leaves_no_lease_behind(runtime: dict[str, str]) -> None:
    code = (
        "import sys, time\n"
        "from engine.keeper.port_lease import leased_port\n"
        "with leased_port('127.0.0.1', 8300) as port:\n"
        "    print(port, flush=True)\n"
        "    time.sleep(60)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env={**runtime})
    assert holder.stdout is not None
    leased = int(holder.stdout.readline())
    with leased_port(HOST, leased, runtime) as other:
        assert other != leased
    holder.kill()
    holder.communicate()
    with leased_port(HOST, leased, runtime) as again:
        assert again == leased
