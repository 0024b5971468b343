import json
import os
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from engine.processes.ports import connect_host, free_port, is_free, require_free
from engine.records import EngineError, PortTaken

HOST = "127.0.0.1"


class _Models(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps({"data": [{"id": "qwen", "owned_by": "vllm"}]}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def vllm_like() -> Iterator[int]:
    server = HTTPServer((HOST, 0), _Models)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def bound(*, reuse: bool) -> socket.socket:
    sock = socket.socket()
    if reuse:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((HOST, 0))
    return sock


def test_another_server_is_named_with_pid_and_model(vllm_like: int) -> None:
    with pytest.raises(PortTaken) as taken:
        require_free(HOST, vllm_like)
    assert f"process {os.getpid()}" in str(taken.value)
    assert "a vLLM server of qwen" in str(taken.value)
    assert "\n" not in str(taken.value)
    assert not is_free("0.0.0.0", vllm_like)


def test_a_vllm_that_still_loads_has_bound_its_port_without_listening() -> None:
    with bound(reuse=True) as sock:
        port = sock.getsockname()[1]
        with pytest.raises(PortTaken, match="does not listen yet"):
            require_free(HOST, port)
        assert free_port(HOST, port) != port


def test_connections_that_linger_do_not_take_a_port() -> None:
    with bound(reuse=True) as server:
        port = server.getsockname()[1]
        server.listen()
        client = socket.create_connection((HOST, port))
        accepted, _ = server.accept()
        accepted.close()  # the side that closes first keeps the port in TIME_WAIT
        client.close()
    assert is_free(HOST, port)


def test_a_free_port_is_free() -> None:
    require_free(HOST, free_port(HOST, 8900))


@pytest.mark.parametrize(("host", "port"), [(HOST, 0), (HOST, 70000), ("203.0.113.9", 8000), ("no host", 8000)])
def test_an_impossible_place_is_one_line(host: str, port: int) -> None:
    with pytest.raises(EngineError) as error:
        require_free(host, port)
    assert "\n" not in str(error.value)


def test_where_to_connect_for_a_wildcard() -> None:
    assert [connect_host(host) for host in ("0.0.0.0", "::", "10.0.0.1")] == ["127.0.0.1", "[::1]", "10.0.0.1"]
