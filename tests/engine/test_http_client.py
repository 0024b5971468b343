"""One kept connection against every way in which a server can answer."""

import asyncio
import socket
import ssl

import pytest

from engine.scrape.http_client import HttpClient, HttpError, Refused, TooLarge
from tests.engine.observed import FIXTURES
from tests.lying_exporter import LyingExporter
from tests.served_pages import Served

MOST = 2**20
PAIR = (
    FIXTURES / "tls" / "localhost-for-tests.pem"
)  # a key that protects nothing, and its certificate, signed by itself


async def ask(client: HttpClient, within_s: float = 2.0) -> tuple[int, bytes]:
    async with asyncio.timeout(within_s):
        answer = await client.get("/metrics", MOST)
    return answer.status, answer.body


async def test_looks_share_one_connection_and_ask_for_no_compression_on_loopback() -> None:
    async with LyingExporter() as exporter:
        client = HttpClient(exporter.url, {"Authorization": "Bearer grüße"})
        for _ in range(5):
            status, body = await ask(client)
            assert (status, body[:5]) == (200, b"vllm:")
            assert exporter.open == 1
        assert exporter.headers[0]["accept-encoding"] == "identity"
        assert exporter.headers[0]["authorization"].encode("latin-1").decode() == "Bearer grüße"
        assert exporter.headers[0]["host"] == exporter.url.removeprefix("http://")
        await client.close()


@pytest.mark.parametrize(
    ("url", "path", "authorization"),
    [
        ("{}/prefix/", "/prefix/metrics", None),
        ("{}/a b/é?x=1", "/a%20b/%C3%A9/metrics", None),
        ("http://us%3Aer:pass@{}", "/metrics", "Basic dXM6ZXI6cGFzcw=="),
    ],
)
async def test_prefixes_and_passwords_of_an_address(url: str, path: str, authorization: str | None) -> None:
    async with LyingExporter() as exporter:
        bare = exporter.url.removeprefix("http://")
        client = HttpClient(url.format(bare if "@" in url else exporter.url))
        await ask(client)
        assert exporter.asked == [path]
        assert exporter.headers[0].get("authorization") == authorization
        await client.close()


async def test_a_server_that_dies_and_returns_is_found_again_at_the_next_look() -> None:
    async with LyingExporter() as exporter:
        client = HttpClient(exporter.url)
        await ask(client)
        exporter.behave("refuse")
        with pytest.raises(Refused):
            await ask(client)
        exporter.behave("answer")
        assert (await ask(client))[0] == 200
        # Closed and taken up again between two looks: the kept connection is dead, which costs no look.
        exporter.behave("refuse")
        exporter.behave("answer")
        assert (await ask(client))[0] == 200
        await client.close()


@pytest.mark.parametrize("behaviour", ["hang", "stop", "trickle"])
async def test_giving_up_closes_the_connection_and_the_next_look_is_a_new_one(behaviour: str) -> None:
    async with LyingExporter(behaviour=behaviour) as exporter:
        client = HttpClient(exporter.url)
        with pytest.raises(TimeoutError):
            await ask(client, 0.1)
        exporter.behave("answer")
        assert (await ask(client))[0] == 200
        await client.close()


@pytest.mark.parametrize(
    ("behaviour", "says"),
    [
        ("die", "breaks off"),
        ("drop", "."),
        ("not-http", "no HTTP"),
        ("bad-gzip", "says that it is compressed, and is not"),
    ],
)
async def test_answers_that_cannot_be_read(behaviour: str, says: str) -> None:
    async with LyingExporter(behaviour=behaviour) as exporter:
        client = HttpClient(exporter.url)
        with pytest.raises(HttpError, match=says):
            await ask(client)
        exporter.behave("answer")
        assert (await ask(client))[0] == 200
        await client.close()


@pytest.mark.parametrize("behaviour", ["huge", "bomb"])
async def test_no_answer_is_longer_than_allowed(behaviour: str) -> None:
    async with LyingExporter(behaviour=behaviour) as exporter:
        client = HttpClient(exporter.url)
        with pytest.raises(TooLarge):
            await ask(client)
        await client.close()


async def test_compressed_answers_are_read_and_redirects_are_not_followed() -> None:
    async with LyingExporter(Served(model="m" * 5000), behaviour="gzip") as exporter:
        client = HttpClient(exporter.url)
        for _ in range(2):
            assert b"m" * 5000 in (await ask(client))[1]
        exporter.behave("redirect")
        assert (await ask(client))[0] == 307
        await client.close()


async def test_chunks_and_a_connection_that_the_server_ends() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
        writer.write(b"5\r\nvllm:\r\n3\r\nx 1\r\n0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as served:
        client = HttpClient(f"http://127.0.0.1:{served.sockets[0].getsockname()[1]}")
        for _ in range(2):
            assert await ask(client) == (200, b"vllm:x 1")
        await client.close()


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 3 + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204),
        (b"HTTP/1.0 200 OK\r\n\r\nok", 200),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nrest", None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nok", None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nok", None),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", None),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nvl", None),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000 + b"\r\n\r\n", None),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\nok", None),
        (b"HTTP/1.1 999999 OK\r\n\r\n", None),
        (b"\x00" * 1000, None),
        (b"", None),
    ],
)
async def test_answers_of_every_shape_are_read_or_refused(raw: bytes, status: int | None) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as served:
        client = HttpClient(f"http://127.0.0.1:{served.sockets[0].getsockname()[1]}")
        if status is None:
            with pytest.raises(HttpError):
                await ask(client)
        else:
            assert (await ask(client))[0] == status
        await client.close()


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://h:port", "Port could not be cast to integer value as 'port'"),
        ("http://127.0.0.1:99999", "Port out of range 0-65535"),
        ("ftp://h", "this is no address of a server, http://HOST:PORT"),
        ("h", "this is no address of a server, http://HOST:PORT"),
        ("http://a..b", "label empty or too long"),
    ],
)
async def test_what_is_no_address(url: str, says: str) -> None:
    with pytest.raises(HttpError, match=says):
        await ask(HttpClient(url))


async def test_nobody_listens_at_any_address_of_a_name() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for host in ("localhost", "127.0.0.1"):
        with pytest.raises(Refused):
            await ask(HttpClient(f"http://{host}:{port}"))


async def test_a_key_that_no_header_can_hold_is_never_said() -> None:
    async with LyingExporter() as exporter:
        with pytest.raises(HttpError) as told:
            await ask(HttpClient(exporter.url, {"Authorization": "Bearer sec\nret"}))
    assert "sec" not in str(told.value)


async def test_a_server_behind_tls_is_asked_and_one_whose_certificate_nobody_vouches_for_is_not() -> None:
    ours = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ours.load_cert_chain(PAIR)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        writer.close()

    async with await asyncio.start_server(serve, "localhost", 0, ssl=ours, family=socket.AF_INET) as served:
        url = f"https://localhost:{served.sockets[0].getsockname()[1]}"
        with pytest.raises(HttpError, match="certificate verify failed"):
            await ask(HttpClient(url))
        trusting = HttpClient(url, tls=ssl.create_default_context(cafile=str(PAIR)))
        assert await ask(trusting) == (200, b"ok")
        await trusting.close()
