"""GET over one kept connection, for looks once a second: httpcore, which is httpx without its conveniences.

In a program that is open all day a look by httpx costs 9 MiB and half a millisecond more. No proxies, no redirects, no
cookies: a server's own address answers or does not.
"""

import base64
import ssl
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import SplitResult, quote, unquote, urlsplit

import httpcore

_ENCODED = (b"gzip", b"x-gzip", b"deflate")
_PORTS = {"http": 80, "https": 443}


class HttpError(Exception):
    """No answer that could be read; the text says why, without the address."""


class Refused(HttpError):
    """Nobody listens there."""


class TooLarge(HttpError):
    """The body is longer than was allowed."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`body` is decoded."""

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

    On loopback no compression is asked for: it would only cost the server, whose event loop does it. `tls` says whom to
    trust, those whom the machine trusts without it.
    """

    def __init__(
        self, base_url: str, headers: Mapping[str, str] | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self._base_url = base_url
        self._headers = dict(headers or {})
        if tls is None and base_url.startswith("https:"):
            tls = ssl.create_default_context()
        self._pool = httpcore.AsyncConnectionPool(ssl_context=tls, max_connections=1)
        self._kept = False

    async def get(self, path: str, most: int) -> Answer:
        """See Getter. Where the server closed the kept connection just as it was asked, it is asked once more."""
        address = _split(self._base_url)
        try:
            url, headers = _url(address, path), self._request_headers(address)
            try:
                answer = await self._ask(url, headers, most)
            except (httpcore.NetworkError, httpcore.RemoteProtocolError):
                if not self._kept:
                    raise
                self._kept = False
                answer = await self._ask(url, headers, most)
            self._kept = True
            return answer
        except httpcore.LocalProtocolError:  # whose text would show the key
            raise HttpError("a header holds what no header can: look for line breaks in the API key") from None
        except httpcore.RemoteProtocolError as error:
            raise HttpError(f"its answer is no HTTP or breaks off ({error})") from None
        except (httpcore.NetworkError, httpcore.TimeoutException, OSError, UnicodeError) as error:
            if _is_refused(error):
                raise Refused("nobody listens") from None
            raise HttpError(str(error) or type(error).__name__) from None

    async def close(self) -> None:
        await self._pool.aclose()

    def _request_headers(self, address: SplitResult) -> list[tuple[bytes, bytes]]:
        host, port = address.hostname or "", address.port
        name = f"[{host}]" if ":" in host else host.encode("idna").decode()
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
        return [(name.encode(), value.encode()) for name, value in headers.items()]

    async def _ask(self, url: httpcore.URL, headers: list[tuple[bytes, bytes]], most: int) -> Answer:
        async with self._pool.stream("GET", url, headers=headers) as response:
            inflate = _decoder(response)
            body = bytearray()
            async for data in response.aiter_stream():
                body += data if inflate is None else _inflated(inflate, data, most + 1 - len(body))
                if len(body) > most:
                    raise TooLarge(f"more than {most} bytes")
            return Answer(response.status, bytes(body))


def _split(base_url: str) -> SplitResult:
    try:
        address = urlsplit(base_url)
        _ = address.port
    except ValueError as error:
        raise HttpError(str(error)) from None
    if address.scheme not in _PORTS or not address.hostname:
        raise HttpError("this is no address of a server, http://HOST:PORT")
    return address


def _url(address: SplitResult, path: str) -> httpcore.URL:
    return httpcore.URL(
        scheme=address.scheme.encode(),
        host=(address.hostname or "").encode("idna"),
        port=address.port,
        target=quote(address.path.rstrip("/") + path, safe="/%:@!$&'()*+,;=~").encode(),
    )


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _is_refused(error: BaseException | None) -> bool:
    """Whether nobody listens: a name with several addresses fails with one error of its own and theirs behind it."""
    while error is not None:
        if isinstance(error, ConnectionRefusedError):
            return True
        if isinstance(error, BaseExceptionGroup):
            return any(_is_refused(each) for each in error.exceptions)
        error = error.__cause__ or error.__context__
    return False


def _decoder(response: httpcore.Response) -> "zlib._Decompress | None":
    encoding = next((value for name, value in response.headers if name.lower() == b"content-encoding"), b"identity")
    if encoding == b"identity":
        return None
    if encoding.lower() not in _ENCODED:
        raise HttpError("its answer is compressed in a way that was not asked for")
    return zlib.decompressobj(wbits=47)  # gzip or zlib, by its header


def _inflated(inflate: "zlib._Decompress", data: bytes, most: int) -> bytes:
    try:
        return inflate.decompress(data, most)
    except zlib.error:
        raise HttpError("its answer says that it is compressed, and is not") from None
