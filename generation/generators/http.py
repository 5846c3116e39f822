"""A pool of kept HTTP/1.1 connections to one address, through which `generation.generators.openai` posts.

A general client takes 100 to 900 us of this process's only thread for a request; with hundreds of them in flight that
is the limit, not the server. This one posts bytes to one address and reads whole pages, in 30 us. Parsing is
httptools' (llhttp, which is Node's parser); sockets and TLS are asyncio's.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import httptools
from yarl import URL

CONNECT = 30.0  # seconds to connect; who takes longer is not there
IDLE = 4.0  # seconds that a connection is kept unused: servers (uvicorn, so vLLM) close theirs after 5
LARGEST = 16 * 2**20  # bytes of an answer


class BrokenError(Exception):
    """No answer, or only a part of one: nobody there, a connection that was cut, or no HTTP."""


class TooLargeError(Exception):
    """A page of more than `LARGEST` bytes."""


@dataclass(frozen=True)
class Page:
    """An answer; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes


@dataclass
class Connections:
    """Posts to one address, through an HTTP proxy if there is one; `timeout` is for one request, in seconds."""

    url: URL
    headers: Mapping[str, str] = field(repr=False)
    timeout: float
    proxy: URL | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self._tls = ssl.create_default_context() if self.url.scheme == "https" else None
        self._free: list[_Connection] = []
        self._open: set[_Connection] = set()
        through = self.proxy is not None and self._tls is None  # by TLS a proxy only sees the tunnel
        headers = {
            "Host": self.url.host_port_subcomponent or "",
            **self.headers,
            **(_proxy_key(self.proxy) if through else {}),
        }
        lines = [f"POST {self.url if through else self.url.raw_path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._head = "\r\n".join([*lines, "Content-Length: "]).encode("latin-1")

    async def post(self, body: bytes) -> Page:
        """One request, and the whole answer. Raises BrokenError, TooLargeError, and TimeoutError."""
        end = time.monotonic() + self.timeout
        connection = self._take() or await self._connect()
        try:
            request = b"%b%d\r\n\r\n%b" % (self._head, len(body), body)
            page = await connection.exchange(request, end - time.monotonic())
        except BaseException:
            connection.transport.abort()
            raise
        connection.since = time.monotonic()
        self._free.append(connection)
        return page

    async def close(self) -> None:
        """Close all connections."""
        for connection in tuple(self._open):
            connection.transport.abort()
        await asyncio.sleep(0)  # they are told of it by the loop

    def _take(self) -> _Connection | None:
        """The connection that was used last; those that are no good are closed."""
        while self._free:
            connection = self._free.pop()
            if connection.good and time.monotonic() - connection.since < IDLE:
                return connection
            connection.transport.abort()
        return None

    async def _connect(self) -> _Connection:
        seconds = min(CONNECT, self.timeout)
        try:
            async with asyncio.timeout(seconds):
                if self.proxy and self._tls:
                    return await self._through_tunnel(self.proxy, self._tls)
                return await self._directly(self.proxy or self.url)
        except TimeoutError:
            raise BrokenError(f"no connection within {seconds:g} s") from None
        except (OSError, EOFError) as error:
            raise BrokenError(" ".join(str(error).split()) or type(error).__name__) from None

    async def _directly(self, place: URL) -> _Connection:
        loop = asyncio.get_running_loop()
        host, port = place.host or "", place.port or 80
        _, connection = await loop.create_connection(lambda: _Connection(self._open), host, port, ssl=self._tls)
        return connection

    async def _through_tunnel(self, proxy: URL, tls: ssl.SSLContext) -> _Connection:
        """TLS to the server through a proxy (RFC 9110, 9.3.6)."""
        reader, writer = await asyncio.open_connection(proxy.host, proxy.port)
        try:
            place = f"{self.url.host_subcomponent}:{self.url.port}"
            headers = {"Host": place, **_proxy_key(proxy)}
            lines = [f"CONNECT {place} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
            writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
            status = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0].decode("latin-1")
            if status.split()[1:2] != ["200"]:
                raise BrokenError(f"the proxy says {status[:100]!r}")
            await writer.start_tls(tls, server_hostname=self.url.host)
        except BaseException:
            writer.transport.abort()
            raise
        connection = _Connection(self._open)
        writer.transport.set_protocol(connection)
        connection.connection_made(writer.transport)
        return connection


class _Connection(asyncio.Protocol):
    """One connection, one request at a time. `good`: another request may follow."""

    transport: asyncio.Transport

    def __init__(self, register: set[_Connection]) -> None:
        self.good = True
        self.since = 0.0  # when it was used last
        self._register = register
        self._waiting: asyncio.Future[Page] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._begin()

    async def exchange(self, request: bytes, seconds: float) -> Page:
        """Send a request; the answer to it."""
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        timer = loop.call_later(seconds, self._fail, TimeoutError())
        self.transport.write(request)
        try:
            return await self._waiting
        finally:
            timer.cancel()
            self._waiting = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        self.transport = transport  # type: ignore[assignment]  # uvloop's is no asyncio.Transport
        self._register.add(self)

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        if self._waiting is None or self._waiting.done():  # nobody knows whose it is
            self.good = False
            self.transport.abort()
            return
        self._size += len(data)
        if self._size > LARGEST:
            self._fail(TooLargeError())
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(BrokenError(f"no HTTP: {error}"))

    def connection_lost(self, error: Exception | None) -> None:
        """Called by asyncio."""
        self._register.discard(self)
        self.good = False
        if self._headed and not {"content-length", "transfer-encoding"} & self._headers.keys():
            self._answer()  # a page that ends where the connection does
        self._fail(BrokenError(f"the connection was cut: {error}" if error else "the connection was cut"))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Called by the parser."""
        self._headed = True

    def on_body(self, part: bytes) -> None:
        """Called by the parser."""
        self._parts.append(part)

    def on_message_complete(self) -> None:
        """Called by the parser."""
        if self._parser.get_status_code() >= 200:  # those below are remarks on the way
            sent = self.transport.get_write_buffer_size() == 0
            self.good = self.good and sent and self._parser.should_keep_alive()
            self._answer()
        self._begin()

    def _begin(self) -> None:
        self._headers: dict[str, str] = {}
        self._parts: list[bytes] = []
        self._size = 0
        self._headed = False

    def _answer(self) -> None:
        if self._waiting is None or self._waiting.done():
            self.good = False  # two answers to one request
        else:
            page = Page(self._parser.get_status_code(), self._headers, b"".join(self._parts))
            self._waiting.set_result(page)

    def _fail(self, error: Exception) -> None:
        self.good = False
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(error)


def _proxy_key(proxy: URL | None) -> dict[str, str]:
    """The header that a proxy with user and password wants."""
    if proxy is None or proxy.user is None:
        return {}
    pair = f"{proxy.user}:{proxy.password or ''}".encode()
    return {"Proxy-Authorization": f"Basic {base64.b64encode(pair).decode()}"}
