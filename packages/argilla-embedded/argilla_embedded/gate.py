"""The gate for writing requests: one at a time, in the order of arrival.

SQLite has one writer anyway. Waiting here, before the request has read anything, keeps the order fair, avoids busy
waiting in the database, and lets Argilla's read-then-write handlers see the previous request's writes. On PostgreSQL
several answers are written together: the database itself separates two answers of one rater to one record, and they are
counted under a lock of the record (`recount`).
"""

from __future__ import annotations

import re
from contextlib import AbstractAsyncContextManager

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .turns import Turns

READS = frozenset({"GET", "HEAD", "OPTIONS"})
#: Requests that use POST only to carry a body: searches and signing in.
READING_ENDS = ("/records/search", "/api/v1/token")
#: The routes by which raters answer: to submit, save, discard, change and delete.
ANSWERS = re.compile(r"/api/v1/(?:records/[^/]+/responses|me/responses/bulk|responses/[^/]+)")


def writes(scope: Scope) -> bool:
    """Return whether this HTTP request may change the database."""
    path = scope["path"].rstrip("/")
    return scope["method"] not in READS and path.startswith("/api/") and not path.endswith(READING_ENDS)


class WriteGate:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, turns: Turns, answers_together: bool) -> None:
        self.app, self.turns, self.answers_together = app, turns, answers_together

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102  # ASGI's
        if scope["type"] == "http":
            scope = {**scope, "headers": without_many_ranges(scope["headers"])}
        if scope["type"] != "http" or not writes(scope):
            await self.app(scope, receive, send)
            return
        # A slow client holds nobody up: the guard has read the body before, and the answer is sent after.
        answer: list[Message] = []

        async def keep(message: Message) -> None:
            answer.append(message)

        try:
            async with self.turn(scope):
                await self.app(scope, receive, keep)
        finally:  # an error's answer is in here too
            for message in answer:
                await send(message)

    def turn(self, scope: Scope) -> AbstractAsyncContextManager[None]:
        """The turn of a writing request."""
        together = self.answers_together and ANSWERS.fullmatch(scope["path"].rstrip("/"))
        return self.turns.together() if together else self.turns.alone()


def without_many_ranges(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers without a Range of several parts: merging those takes starlette quadratic time (CVE-2025-62727)."""
    return [(name, value) for name, value in headers if not (name == b"range" and b"," in value)]
