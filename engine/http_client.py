"""GET over one kept connection, for looks once a second: h11 speaks HTTP, asyncio carries it.

httpx costs 12 MiB and 1.2 ms of CPU a request, which is much of what a program may cost that is open all day; this is
half a MiB and 0.3 ms. No proxies, no redirects, no cookies: a server's own address answers or does not.
"""

import asyncio
import base64
import ssl
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import SplitResult, quote, unquote, urlsplit

import h11

_CHUNK = 2**16
_ENCODED = ("gzip", "x-gzip", "deflate")


class HttpError(Exception):
    """No answer that could be read; the text says why, without the address."""


class Refused(HttpError):
    """Nobody listens there."""


class TooLarge(HttpError):
    """The body is longer than was allowed."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes


class Getter(Protocol):
    """What a Sampler asks; tests put their own in its place."""

    async def get(self, path: str, most: int) -> Answer:
        """The answer to GET `path` under the server's address, its body decoded and at most `most` bytes long.
        Raises HttpError. Cancelling closes the connection."""

    async def close(self) -> None: ...


class HttpClient:
    """Asks one server, one request at a time. `base_url` is `http[s]://[user:password@]host[:port][/prefix]`.

    On loopback no compression is asked for: it would only cost the server, whose event loop does it.
    """

    def __init__(self, base_url: str, headers: Mapping[str, str] | None = None) -> None:
        self._base_url = base_url
        self._headers = dict(headers or {})
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._state = h11.Connection(h11.CLIENT)
        self._tls: ssl.SSLContext | None = None  # made once: it reads all certificates of the machine

    async def get(self, path: str, most: int) -> Answer:
        """See Getter. A kept connection that the server has closed meanwhile is opened anew, once."""
        address = _split(self._base_url)
        kept = self._streams is not None
        try:
            request = self._request(address, path)
            try:
                return await self._ask(address, request, most)
            except (OSError, h11.RemoteProtocolError):
                if not kept:
                    raise
                self._drop()
                return await self._ask(address, request, most)
        except h11.RemoteProtocolError as error:
            self._drop()
            raise HttpError(f"its answer is no HTTP or breaks off ({error})") from None
        except (OSError, UnicodeError) as error:
            self._drop()
            raise HttpError(getattr(error, "strerror", None) or str(error) or type(error).__name__) from None
        except BaseException:
            self._drop()
            raise

    async def close(self) -> None:
        self._drop()

    def _request(self, address: SplitResult, path: str) -> h11.Request:
        host, port = address.hostname or "", address.port
        name = f"[{host}]" if ":" in host else host.encode("idna").decode() if host else ""
        headers = {
            "Host": name if port is None else f"{name}:{port}",
            "User-Agent": "llmtune",
            "Accept": "text/plain, */*;q=0.5",
            "Accept-Encoding": "identity" if _is_loopback(host) else "gzip",
        }
        if address.username is not None:
            pair = f"{unquote(address.username)}:{unquote(address.password or '')}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        headers |= self._headers
        try:
            return h11.Request(
                method="GET",
                target=quote(address.path.rstrip("/") + path, safe="/%:@!$&'()*+,;=~"),
                headers=[(name.encode(), value.encode()) for name, value in headers.items()],
            )
        except h11.LocalProtocolError:  # whose text would show the key
            raise HttpError("a header holds what no header can: look for line breaks in the API key") from None

    async def _ask(self, address: SplitResult, request: h11.Request, most: int) -> Answer:
        if self._streams is None:
            if self._tls is None and address.scheme == "https":
                self._tls = ssl.create_default_context()
            self._streams, self._state = await _connect(address, self._tls), h11.Connection(h11.CLIENT)
        reader, writer = self._streams
        writer.write(self._state.send(request) or b"")
        writer.write(self._state.send(h11.EndOfMessage()) or b"")
        await writer.drain()
        response: h11.Response | None = None
        body = bytearray()
        inflate = None
        while True:
            event = self._state.next_event()
            if event is h11.NEED_DATA:
                self._state.receive_data(await reader.read(_CHUNK))
            elif isinstance(event, h11.Response):
                response = event
                inflate = _decoder(event)
            elif isinstance(event, h11.Data):
                body += event.data if inflate is None else _inflated(inflate, event.data, most + 1 - len(body))
                if len(body) > most:
                    raise TooLarge(f"more than {most} bytes")
            elif isinstance(event, h11.EndOfMessage):
                break
            elif not isinstance(event, h11.InformationalResponse):  # closed, or another protocol from here on
                raise h11.RemoteProtocolError("no whole answer came")
        assert response is not None  # h11 gives no end before a response
        if self._state.our_state is h11.DONE and self._state.their_state is h11.DONE:
            self._state.start_next_cycle()
        else:
            self._drop()
        return Answer(response.status_code, bytes(body))

    def _drop(self) -> None:
        streams, self._streams = self._streams, None
        if streams is not None:
            streams[1].transport.abort()  # unlike close(), which would wait for what a hanging peer does not take


def _split(base_url: str) -> SplitResult:
    try:
        address = urlsplit(base_url)
        _ = address.port
    except ValueError as error:
        raise HttpError(str(error)) from None
    if address.scheme not in ("http", "https") or not address.hostname:
        raise HttpError("this is no address of a server, http://HOST:PORT")
    return address


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


async def _connect(
    address: SplitResult, tls: ssl.SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    port = address.port or (443 if tls else 80)
    try:
        return await asyncio.open_connection(address.hostname, port, ssl=tls, limit=4 * _CHUNK)
    except OSError as error:
        # A name with several addresses that all fail, such as localhost, gives one error without a number.
        if isinstance(error, ConnectionRefusedError) or (error.errno is None and "Connect call failed" in str(error)):
            raise Refused("nobody listens") from None
        raise


def _decoder(response: h11.Response) -> "zlib._Decompress | None":
    encoding = next((value for name, value in response.headers if name == b"content-encoding"), b"identity")
    if encoding == b"identity":
        return None
    if encoding.decode("latin-1").lower() not in _ENCODED:
        raise HttpError("its answer is compressed in a way that was not asked for")
    return zlib.decompressobj(wbits=47)  # gzip or zlib, by its header


def _inflated(inflate: "zlib._Decompress", data: bytes, most: int) -> bytes:
    try:
        return inflate.decompress(data, most)
    except zlib.error:
        raise HttpError("its answer says that it is compressed, and is not") from None
