"""A server on loopback that answers /metrics and /version as vLLM does, and lies in every way that one can meet.

async with LyingExporter() as exporter:         # exporter.url; in the test's own event loop
    exporter.served.running = 7                 # what an honest page says: see Served
    exporter.served.restart()                   # the process is another one: counters from 0
    exporter.behave("hang")                     # how the next answers come: see BEHAVIOURS
    exporter.page = "vllm:num_requests_running 1\\n"   # this text, whatever is served (None: an honest page again)

with exporter_thread() as exporter: ...         # the same in a thread, for tests that are not asynchronous
python -m tests.lying_exporter [PORT [FILE]]    # a process of its own, with that page; steered by GET /-/behave/hang
                                                # and /-/restart
"""

import asyncio
import contextlib
import gzip
import http.client
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from tests.served_pages import Served

BEHAVIOURS = {
    "answer": "as a healthy server",
    "slow": "after `delay_s`",
    "trickle": "a few bytes each 50 ms",
    "hang": "takes the connection and never answers",
    "stop": "begins to answer and then says nothing more",
    "die": "closes in the middle of an answer whose length it has said",
    "cut": "closes in the middle of an answer without a length, as if it were its end",
    "drop": "closes without a word",
    "refuse": "nobody listens (a dead server); any other behaviour listens on the same port again",
    "garbage": "bytes that are no text",
    "html": "a page of some other server, status 200",
    "json": "a JSON object, status 200",
    "empty": "nothing, status 200",
    "500": "an error",
    "503": "a dead engine",
    "401": "wants a key",
    "404": "has no /metrics",
    "redirect": "sends elsewhere",
    "gzip": "compressed, whether it was asked to or not",
    "bad-gzip": "says that it is compressed, and is not",
    "huge": "20 MB of series",
    "bomb": "20 MB in a few kB",
    "not-http": "another protocol",
}


class LyingExporter:
    """Listens while it is entered. `asked` has the paths of all requests, `open` how many connections stand now."""

    def __init__(self, served: Served | None = None, behaviour: str = "answer", port: int = 0) -> None:
        self.served = served or Served()
        self.page: str | None = None
        self.delay_s = 1.0
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.open = 0
        self._behaviour = behaviour
        self._port = port
        self._server: asyncio.Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._listening: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def behave(self, behaviour: str) -> None:
        """From now on; connections that hang are closed when the behaviour changes. From any thread."""
        assert behaviour in BEHAVIOURS, behaviour
        assert self._loop is not None
        if threading.get_ident() == self._thread:
            self._change(behaviour)
            return
        changed = threading.Event()

        def change() -> None:
            self._change(behaviour)
            changed.set()

        self._loop.call_soon_threadsafe(change)
        changed.wait(5)

    async def __aenter__(self) -> Self:
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        behaviour, self._behaviour = self._behaviour, "refuse"
        self._change(behaviour if behaviour != "refuse" else "answer")
        assert self._listening is not None
        await self._listening
        if behaviour == "refuse":
            self._change("refuse")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _change(self, behaviour: str) -> None:
        was, self._behaviour = self._behaviour, behaviour
        if behaviour == was:
            return
        for task in tuple(self._tasks):
            task.cancel()
        if behaviour == "refuse":
            self._close()
        elif was == "refuse":
            listener = socket.create_server(("127.0.0.1", self._port), backlog=64)  # takes connections from here on
            self._port = listener.getsockname()[1]
            self._listening = asyncio.get_running_loop().create_task(self._listen(listener))

    async def _listen(self, listener: socket.socket) -> None:
        self._server = await asyncio.start_server(self._accept, sock=listener)

    def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        self.open += 1
        try:
            while await self._answer(reader, writer):
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has gone, or the behaviour changed
        finally:
            self._tasks.discard(task)
            self._writers.discard(writer)
            self.open -= 1
            writer.transport.abort() if self._behaviour in ("die", "drop") else writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection goes on."""
        request = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        path = request[0].split(" ")[1]
        self.asked.append(path)
        self.headers.append({name.lower(): value for name, _, value in (line.partition(": ") for line in request[1:])})
        if path.startswith("/-/"):
            return self._steer(path, writer)
        behaviour = self._behaviour
        if behaviour in ("hang", "stop"):
            if behaviour == "stop":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\nvllm:num_requests_running")
            await reader.read()  # until the client gives up
            return False
        if behaviour == "drop":
            return False
        if behaviour == "not-http":
            writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")
            return False
        if behaviour == "slow":
            await asyncio.sleep(self.delay_s)
        if path == "/version" and behaviour in ("answer", "slow", "gzip"):
            known = "version" not in self.served.leave_out
            body = f'{{"version":"{self.served.version}"}}' if known else '{"detail":"Not Found"}'
            writer.write(_response(200 if known else 404, body.encode(), "application/json"))
            return True
        return await self._lie(behaviour, writer)

    async def _lie(self, behaviour: str, writer: asyncio.StreamWriter) -> bool:
        body = (self.served.page() if self.page is None else self.page).encode("utf-8", "surrogatepass")
        kind = (
            "application/openmetrics-text; version=1.0.0"
            if self.served.names == "rust"
            else "text/plain; version=0.0.4"
        )
        if behaviour == "trickle":
            writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode())
            for at in range(0, len(body), 16):
                writer.write(body[at : at + 16])
                await writer.drain()
                await asyncio.sleep(0.05)
        elif behaviour == "die":
            writer.write(_response(200, body, kind)[: len(body) // 2])
            await writer.drain()
            return False
        elif behaviour == "cut":
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body[: len(body) // 2])
            return False
        elif behaviour == "gzip":
            writer.write(_response(200, gzip.compress(body), kind, "Content-Encoding: gzip"))
        elif behaviour == "bad-gzip":
            writer.write(_response(200, body, kind, "Content-Encoding: gzip"))
        elif behaviour == "huge":
            writer.write(_response(200, b'vllm:num_requests_running{engine="0"} 1.0\n' * 500_000, kind))
        elif behaviour == "bomb":
            bomb = gzip.compress(b'vllm:num_requests_running{engine="0"} 1.0\n' * 500_000)
            writer.write(_response(200, bomb, kind, "Content-Encoding: gzip"))
        elif behaviour == "redirect":
            writer.write(_response(307, b"", kind, "Location: http://127.0.0.1:9/metrics"))
        else:
            writer.write(_response(*_OTHER.get(behaviour, (200, body)), kind))
        return True

    def _steer(self, path: str, writer: asyncio.StreamWriter) -> bool:
        """`/-/behave/NAME` and `/-/restart`, for an exporter in a process of its own."""
        _, _, what, *rest = path.split("/")
        if what == "restart":
            self.served.restart()
        writer.write(_response(200, b"ok\n", "text/plain"))
        if what == "behave":
            asyncio.get_running_loop().call_later(0.05, self._change, rest[0])
        return False


_OTHER: dict[str, tuple[int, bytes]] = {
    "garbage": (200, bytes(range(256)) * 40),
    "html": (200, b"<html><body>It works!</body></html>\n"),
    "json": (200, b'{"object":"list","data":[]}\n'),
    "empty": (200, b""),
    "500": (500, b"Internal Server Error"),
    "503": (503, b""),
    "401": (401, b'{"error":"Unauthorized"}'),
    "404": (404, b'{"detail":"Not Found"}'),
}


def _response(status: int, body: bytes, kind: str, *headers: str) -> bytes:
    lines = [
        f"HTTP/1.1 {status} {http.client.responses[status]}",
        f"Content-Length: {len(body)}",
        f"Content-Type: {kind}",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


@contextlib.contextmanager
def exporter_thread(served: Served | None = None, behaviour: str = "answer") -> Iterator[LyingExporter]:
    """An exporter in an event loop of its own, on a thread."""
    exporter = LyingExporter(served, behaviour)
    ready, done = threading.Event(), asyncio.Event()

    async def live() -> None:
        async with exporter:
            ready.set()
            await done.wait()

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=(live(),), daemon=True)
    thread.start()
    assert ready.wait(30)
    try:
        yield exporter
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(5)
        loop.close()


async def _main(port: int, page: str | None) -> None:
    async with LyingExporter(port=port) as exporter:
        exporter.page = page
        print(exporter.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        port, page = [*sys.argv[1:], "", ""][:2]
        asyncio.run(_main(int(port or 0), Path(page).read_text() if page else None))
