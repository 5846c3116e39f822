"""The guard before Argilla: allowed hosts, limits on size and duration of requests, and security headers.

Somebody who is not signed in can send little, and only for a moment: a larger body is read only from a signed-in
sender, at the speed of an ordinary line at least. A request that is too slow, too large or from an unknown sender gets
an answer, and the connection is closed.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .gate import READS
from .hosts import Hosts

#: Bytes of a body that anybody may send: more than any form or any answer to a record has.
ANYBODY = 64 * 1024
#: Bytes by role: an annotator's largest request is 100 answers, the owner sends 1,000 records at a time.
SIGNED_IN = {"annotator": 2 * 1024 * 1024, "admin": 64 * 1024 * 1024, "owner": 64 * 1024 * 1024}
#: A body may take GRACE seconds, and one more for every SLOWEST bytes received.
GRACE, SLOWEST = 20.0, 10_000
LONGEST_PATH, LONGEST_NAME = 2000, 255
ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
NO_PAGE = "default-src 'none'; frame-ancestors 'none'"
#: The address from which the request that is being answered came.
CLIENT: ContextVar[str] = ContextVar("client", default="")

Role = Callable[[Scope], Awaitable[str | None]]


class RefusedRequestError(Exception):
    """A refused request: the status and words of its answer."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class Guard:
    """ASGI middleware around everything else."""

    def __init__(self, app: ASGIApp, hosts: Hosts, page_policy: str | None, role_of: Role) -> None:
        """`page_policy` is the content security policy of Argilla's pages; `role_of` returns the sender's role.

        Without a policy there are no limits and no headers: only hosts and paths are checked.
        """
        self.app, self.hosts, self.page_policy, self.role_of = app, hosts, page_policy, role_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102  # ASGI's
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        CLIENT.set(scope["client"][0] if scope.get("client") else "")
        if self.page_policy is not None:
            send = self.with_headers(scope["path"], send, self.page_policy)
        try:
            if not self.hosts.allow(Headers(scope=scope).getlist("host")):
                raise RefusedRequestError(421, "this server does not answer under that name")
            if not readable(scope["path"]):
                raise RefusedRequestError(404, "this server has no such address")
            if scope["method"] not in READS:
                body = await self.body(scope, receive)
                if body is None:
                    return  # the client left
                receive = replay(body, receive)
        except RefusedRequestError as error:
            await refuse(send, error)
            return
        await self.app(scope, receive, send)

    async def body(self, scope: Scope, receive: Receive) -> bytes | None:
        """Return the whole body, or None if the client left before the end. Raises RefusedRequestError."""
        declared = Headers(scope=scope).get("content-length", "")
        expected = int(declared) if declared.isdecimal() and len(declared) < len(str(2**63)) else 0
        limited = self.page_policy is not None
        limit, begun, size = ANYBODY if limited else math.inf, time.monotonic(), 0
        parts: list[bytes] = []
        while True:
            if max(size, expected) > limit:
                limit = await self.limit_of(scope) if limit == ANYBODY else limit
                if max(size, expected) > limit:
                    raise RefusedRequestError(413, f"the request is larger than {limit} bytes")
            try:
                seconds = begun + GRACE + size / SLOWEST - time.monotonic() if limited else None
                async with asyncio.timeout(seconds):
                    message = await receive()
            except TimeoutError:
                raise RefusedRequestError(408, "the request came too slowly") from None
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if not message.get("more_body", False) and size <= limit:
                return b"".join(parts)

    async def limit_of(self, scope: Scope) -> int:
        """Return the number of bytes that the sender may send. Raises RefusedRequestError if not signed in."""
        if not scope["path"].startswith("/api/"):
            return ANYBODY
        role = await self.role_of(scope)
        if role is None:
            raise RefusedRequestError(401, "sign in to send a request of this size")
        return SIGNED_IN.get(role, ANYBODY)

    def with_headers(self, path: str, send: Send, page_policy: str) -> Send:
        """Return `send` with headers that protect browsers, unless the answer sets them itself."""

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                # "Not modified" names no type, and a browser gives what it has kept the headers that come with it.
                kept = message["status"] == HTTPStatus.NOT_MODIFIED
                is_page = kept or headers.get("content-type", "").startswith("text/html")
                headers.setdefault("Content-Security-Policy", page_policy if is_page else NO_PAGE)
                for name, value in ALWAYS.items():
                    headers.setdefault(name, value)
                if path.startswith("/api/"):
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        return sending


def readable(path: str) -> bool:
    """Return whether a path is valid: an invalid one would raise an error where the server reads files."""
    parts = path.encode("utf-8", "surrogateescape").split(b"/")
    return "\0" not in path and len(path) <= LONGEST_PATH and max(map(len, parts)) <= LONGEST_NAME


async def refuse(send: Send, error: RefusedRequestError) -> None:
    """Answer a refused request; a sender who goes on sending is disconnected (`protocol`)."""
    body = json.dumps({"detail": str(error)}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns `body` once, and then the connection's own messages (that the client left)."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
