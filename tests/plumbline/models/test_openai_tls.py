"""Chat servers behind TLS, directly and through a proxy's tunnel, with a certificate made on the spot."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from generation.production import generate
from plumbline.errors import ServiceError
from tests.generation.helpers import small_study
from tests.stubs import ChatStub, upper

WORDS = ("apple", "bread", "cider")


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server's context for 127.0.0.1, whose certificate this process trusts."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
               "-days", "1", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
               "-keyout", str(key), "-out", str(certificate)]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setattr("plumbline.models.openai.pause", lambda *_: 0.0)  # before a retry
    for name in ("https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return context


def openai(url: str) -> dict[str, object]:
    return {"kind": "openai", "model": "m", "base_url": url, "settings": {"concurrency": 2}}


def test_a_server_behind_tls_is_spoken_to(tmp_path: Path, tls: ssl.SSLContext) -> None:
    with ChatStub(upper, tls) as stub:
        assert stub.url.startswith("https://")
        assert generate(small_study(tmp_path, WORDS, generator=openai(stub.url))) == Counter(ok=3)


def test_a_certificate_that_nobody_trusts_ends_the_run(
    tmp_path: Path, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with ChatStub(upper, tls) as stub:
        with pytest.raises(ServiceError, match=r"(?i)certificate.*verify"):
            generate(small_study(tmp_path, WORDS, generator=openai(stub.url)))
        assert stub.asked == []


def test_tls_goes_through_a_proxys_tunnel_that_sees_nothing_of_it(
    tmp_path: Path, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChatStub(upper, tls) as stub, tunnel("200 Connection established") as (address, heads, passed):
        monkeypatch.setenv("https_proxy", address.replace("//", "//me:word@"))
        assert generate(small_study(tmp_path, WORDS, generator=openai(stub.url))) == Counter(ok=3)
        place = stub.url.removeprefix("https://").removesuffix("/v1")
    assert 1 <= len(heads) <= 2  # kept: 3 requests over at most the 2 connections that may be open
    for head in heads:
        assert head.startswith(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n")
        assert "Proxy-Authorization: Basic bWU6d29yZA==" in head
    assert passed and not any(b"apple" in part or b"Bearer" in part for part in passed)


def test_a_proxy_that_opens_no_tunnel_ends_the_run_with_what_it_says(
    tmp_path: Path, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChatStub(upper, tls) as stub, tunnel("403 Forbidden") as (address, _, passed):
        monkeypatch.setenv("https_proxy", address.replace("//", "//me:s3cret@"))
        with pytest.raises(ServiceError, match=r"the proxy answers 403 Forbidden") as error:
            generate(small_study(tmp_path, WORDS, generator=openai(stub.url)))
        assert "s3cret" not in str(error.value)
        assert stub.asked == passed == []


@contextlib.contextmanager
def tunnel(status: str) -> Iterator[tuple[str, list[str], list[bytes]]]:
    """A proxy that answers CONNECT with a status, and with 200 passes bytes on both ways.

    Its address, the heads of the requests that it got, and what clients sent through it.
    """
    heads: list[str] = []
    passed: list[bytes] = []

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kept: list[bytes]) -> None:
        with contextlib.suppress(ConnectionError):
            while part := await reader.read(1 << 16):
                kept.append(part)
                writer.write(part)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        heads.append(head)
        writer.write(f"HTTP/1.1 {status}\r\n\r\n".encode())
        if not status.startswith("200"):
            writer.close()
            return
        host, _, port = head.split()[1].rpartition(":")
        there, back = await asyncio.open_connection(host, int(port))
        await asyncio.gather(pump(reader, back, passed), pump(there, writer, []))

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(asyncio.start_server(serve, "127.0.0.1", 0), loop).result(10)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heads, passed
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
