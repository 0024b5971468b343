"""Ports: whether one can be had, and who has it. Asked by bind(), not connect(): vLLM binds its port at once and
listens only minutes later, when the model is loaded, and meanwhile refuses connections."""

import errno
import http.client
import json
import socket

from engine.processes.process import command_line, listener_pids, tcp_sockets
from engine.records import EngineError, PortTaken
from engine.text import clean, redact

_SEARCHED = 1000
_ANSWER_WITHIN_S = 2.0


def is_free(host: str, port: int) -> bool:
    """Whether a server could bind `port` on `host` now. Raises EngineError if the host is not this machine's or the
    port needs privileges."""
    if _can_bind(host, port, reuse=False):
        return True
    # A plain bind also fails for minutes after connections that ended (TIME_WAIT), which vLLM's SO_REUSEADDR passes
    # over. But so it passes over another server that has bound and does not listen yet: with no connection to blame
    # in the kernel's table, it is that.
    if not _can_bind(host, port, reuse=True):
        return False
    sockets = tcp_sockets(port)
    return bool(sockets) and not any(sock.listens for sock in sockets)


def free_port(host: str, start: int = 8000) -> int:
    """The first free port from `start` on. Raises PortTaken if a thousand in a row are taken."""
    for port in range(start, min(start + _SEARCHED, 65536)):
        if is_free(host, port):
            return port
    raise PortTaken(f"no free port on {host} from {start} on: give one with --port")


def require_free(host: str, port: int) -> None:
    """Nothing if the port is free. Raises PortTaken with who holds it, or EngineError for an impossible port."""
    if not 1 <= port <= 65535:
        raise EngineError(f"port {port} does not exist: give one from 1 to 65535")
    if not is_free(host, port):
        raise PortTaken(f"port {port} on {host} is taken by {holder(host, port)}: stop it or choose another port")


def holder(host: str, port: int) -> str:
    """Who has the port, as far as it can be seen: model server or not, pid and command line."""
    answer = _answering_models(host, port)
    pids = sorted(listener_pids(port))
    if pids:
        command = redact(clean(command_line(pids[0]) or "?", 120))
        who = f"process {pids[0]} ({command})"
    elif any(sock.listens for sock in tcp_sockets(port)):
        who = "a process of another user or container"
    else:
        who = "a process that does not listen yet (a server that is still loading?)"
    return f"{who}, {answer}" if answer else who


def accepts(host: str, port: int) -> bool:
    """Whether anything accepts a connection there now."""
    try:
        with socket.create_connection((connect_host(host).strip("[]"), port), timeout=1.0):
            return True
    except OSError:
        return False


def connect_host(host: str) -> str:
    """The host to connect to for a server that listens on `host`, in the form that a URL takes."""
    address = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{address}]" if ":" in address else address


def _can_bind(host: str, port: int, *, reuse: bool) -> bool:
    try:
        addresses = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError):
        raise EngineError(f"{clean(host)} is no host of this machine: give 127.0.0.1 or 0.0.0.0") from None
    family, kind, protocol, _, address = addresses[0]
    with socket.socket(family, kind, protocol) as sock:
        if reuse:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(address)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            if error.errno == errno.EADDRNOTAVAIL:
                raise EngineError(f"{host} is no address of this machine: give 127.0.0.1 or 0.0.0.0") from None
            if error.errno in (errno.EACCES, errno.EPERM):
                raise EngineError(f"port {port} needs privileges: give one from 1024 on") from None
            raise EngineError(f"port {port} on {host} cannot be had: {error.strerror}") from None
    return True


def _answering_models(host: str, port: int) -> str | None:
    """ "a vLLM server of MODEL" if what listens there answers /v1/models like one, None if it does not answer."""
    connection = http.client.HTTPConnection(connect_host(host).strip("[]"), port, timeout=_ANSWER_WITHIN_S)
    try:
        connection.request("GET", "/v1/models")
        response = connection.getresponse()
        body = response.read(65536)
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    try:
        models = json.loads(body)["data"]
        owner, name = models[0].get("owned_by"), clean(str(models[0]["id"]), 80)
    except (ValueError, LookupError, TypeError, AttributeError):
        return "which answers HTTP"
    return f"a vLLM server of {name}" if owner == "vllm" else f"a model server of {name}"
