"""The gate of the API: requests that write come one at a time, in the order of arrival; few read at once.

SQLite has one writer anyway. Waiting here, before the request has read anything, keeps the order fair, avoids busy
waiting in the database, and lets Argilla's read-then-write handlers see the previous request's writes. On PostgreSQL
several answers are written together: the database itself separates two answers of one rater to one record, and they are
counted under a lock of the record (`recount`). Requests that read never wait for a writer; but all share one event
loop, where each step of an answer would wait for a step of every search, if there were no limit.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import AbstractAsyncContextManager

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .turns import Turns

READS = frozenset({"GET", "HEAD", "OPTIONS"})
READERS = 8  #: requests of one process that read at the same time
SIGNING_IN = "/api/v1/token"
#: Requests that use POST only to carry a body.
READING_ENDS = ("/records/search", SIGNING_IN)
#: A rater's new answer: it takes its turn in `answering`, after the check of its sender.
NEW_ANSWER = re.compile(r"/api/v1/records/[^/]+/responses")
#: The other routes by which raters answer: to change, discard and delete.
ANSWERS = re.compile(r"/api/v1/(?:me/responses/bulk|responses/[^/]+)")


def writes(scope: Scope) -> bool:
    """Return whether this HTTP request may change the database."""
    path = scope["path"].rstrip("/")
    return scope["method"] not in READS and path.startswith("/api/") and not path.endswith(READING_ENDS)


class Gate:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, turns: Turns) -> None:
        self.app, self.turns, self.readers = app, turns, asyncio.Semaphore(READERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102  # ASGI's
        if scope["type"] == "http":
            scope = {**scope, "headers": without_many_ranges(scope["headers"])}
        turn = self.turn(scope) if scope["type"] == "http" else None
        if turn is None:
            await self.app(scope, receive, send)
            return
        # A slow client holds nobody up: the guard has read the body before, and the answer is sent after.
        answer: list[Message] = []

        async def keep(message: Message) -> None:
            answer.append(message)

        try:
            async with turn:
                await self.app(scope, receive, keep)
        finally:  # an error's answer is in here too
            for message in answer:
                await send(message)

    def turn(self, scope: Scope) -> AbstractAsyncContextManager[None] | None:
        """The turn of a request; None if it does not wait here."""
        path = scope["path"].rstrip("/")
        if not path.startswith("/api/") or path == SIGNING_IN or NEW_ANSWER.fullmatch(path):
            return None
        if not writes(scope):
            return self.readers
        return self.turns.answer() if ANSWERS.fullmatch(path) else self.turns.alone()


def without_many_ranges(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers without a Range of several parts: merging those takes starlette quadratic time (CVE-2025-62727)."""
    return [(name, value) for name, value in headers if not (name == b"range" and b"," in value)]
