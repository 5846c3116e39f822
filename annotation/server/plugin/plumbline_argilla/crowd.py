"""Pages where participants of a crowd platform enter and get their completion code.

    GET  /crowd/enter/<room>?PROLIFIC_PID=..&STUDY_ID=..&SESSION_ID=..   consent; or the remaining work
    POST /crowd/enter/<room>                                             an account, made once, and Argilla's session
    GET  /crowd/done/<room>                                              the code, once every pair is answered

The platform makes the rooms (`annotation.crowd.prolific.workspaces`) and writes them to the home's `crowd/rooms.json`.
A participant's id becomes a pseudonym at once and is never written. The form has a signed ticket, which works once. If
people come by a link, ticket and cookie carry their id in their own browser, because the link at the end needs it.
Passwords are drawn and never told to anyone.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import math
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

from argilla_server import database
from argilla_server.contexts import accounts
from argilla_server.enums import ResponseStatus, UserRole
from argilla_server.models import Record, Response, User, WorkspaceUser
from argilla_server.security.settings import settings
from fastapi import FastAPI
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from argilla_embedded.guard import CLIENT
from argilla_embedded.recent import Recent

from . import crowd_pages as pages
from .crowd_book import TICKET_SECONDS, Book, Seal
from .crowd_files import Newcomers, Rooms
from .crowd_words import on_platform as said

LOGGER = logging.getLogger("plumbline_argilla.crowd")
ROOM = re.compile(r"[0-9a-f]{16}-(?:live|sandbox)")
PARTICIPANT = re.compile(r"[0-9a-f]{24}")
LINKED = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.~-]{0,127}")  # an id of a platform that sends people by a link
PARAMETERS = ("PROLIFIC_PID", "SESSION_ID", "STUDY_ID")
#: The share of a room's pairs that have to be rated, not discarded, for the completion code.
LEAST_RATED = 0.5
MOST_BYTES, MOST_FIELDS = 8192, 4
COOKIE, COOKIE_SECONDS = "plumbline_crowd", 2 * 86400
USED = (
    "This page has been used already, or is too old. Please open the study from Prolific again: your answers are not"
    " lost."
)


UNLIKE_PROLIFIC = "Please open this page from Prolific: this link lacks the ids that Prolific adds to it."
UNLIKE_LINK = "Please open this page by the link that you were given: this one lacks your id, or was changed."


SHARED = "This link has been used by somebody else. Please open the study from Prolific."
FULL = "Too many people have entered here. Please return your place on Prolific."


class RefusedError(Exception):
    """A request that gets a page with the reason."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


def pseudonym(key: bytes, study: str, platform: str, worker: str) -> str:
    """Return the same pseudonym as the platform's `annotation.names.worker_pseudonym`."""
    digest = hmac.new(key, "\0".join((study, platform, worker)).encode(), hashlib.sha256)
    return f"worker-{digest.hexdigest()[:12]}"


def mount(app: FastAPI, secret: str, recent: Recent) -> None:
    """Add the pages to the application, before its own static ones. Call it once, with the home as working folder."""
    entry = Entrance(Path("crowd"), Seal(secret), Newcomers(recent))
    app.router.routes[:0] = [
        Route("/crowd/enter/{room}", answered(entry.show), methods=["GET"]),
        Route("/crowd/enter/{room}", answered(entry.let_in), methods=["POST"]),
        Route("/crowd/done/{room}", answered(entry.done), methods=["GET"]),
    ]


def answered(handler: Callable[[Request], Awaitable[HTMLResponse]]) -> Callable[[Request], Awaitable[HTMLResponse]]:
    """Wrap a handler so that a refusal becomes a page."""

    async def handle(request: Request) -> HTMLResponse:
        try:
            return await handler(request)
        except RefusedError as error:
            return pages.refusal(error.status, str(error))

    return handle


class Entrance:
    """The three pages."""

    def __init__(self, folder: Path, seal: Seal, newcomers: Newcomers) -> None:
        self._folder, self._seal, self._newcomers = folder, seal, newcomers
        self._one = asyncio.Lock()
        self._book: Book | None = None
        self._rooms, self._admitted = Rooms(folder / "rooms.json"), Rooms(folder / "admitted.json")

    async def show(self, request: Request) -> HTMLResponse:
        """Show the next page to a participant who comes from the crowd platform."""
        room_id, room = self._room(request)
        names = room.get("parameters", PARAMETERS)
        pid, *others = (request.query_params.get(name, "") if name else "" for name in names)
        form = LINKED if linked(room) else PARTICIPANT
        if not form.fullmatch(pid) or not all(form.fullmatch(one) for one in others if one):
            raise RefusedError(400, UNLIKE_LINK if linked(room) else UNLIKE_PROLIFIC)
        key = bytes.fromhex(room["key"])
        worker = pseudonym(key, room["study"], room["platform"], pid)
        session = self._session(room_id, room, key, pid, *others)
        return await self._next_page(room_id, room, worker, session, pid if linked(room) else "")

    def _session(self, room_id: str, room: dict[str, Any], key: bytes, pid: str, session: str, study: str = "") -> str:
        """Return a hash of the platform's session, empty in a rehearsal. Raises RefusedError for an unfit live link.

        Without sessions of the platform, each participant has one. A mailing list's link is signed for its person.
        """
        if not room_id.endswith("-live"):
            return ""  # a rehearsal is tried out with made-up ids
        unlike = RefusedError(400, UNLIKE_LINK if linked(room) else UNLIKE_PROLIFIC)
        posted_id, _ = self._known(room_id)
        if room.get("signed") and not hmac.compare_digest(session, signature(key, room_id, pid)):
            raise unlike
        if linked(room) and not room["parameters"][1]:
            session = pid
        if not session or (posted_id and not hmac.compare_digest(posted_id, study)):
            raise unlike
        if linked(room):
            session = f"{room_id}/{session}"  # a platform may give a person the same one in two studies
        return hmac.new(key, f"session\0{session}".encode(), hashlib.sha256).hexdigest()

    async def let_in(self, request: Request) -> HTMLResponse:
        """Record the consent, create the account if missing, and sign the browser in."""
        room_id, room = self._room(request)
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise RefusedError(403, "This form was sent from another site.")
        form = await small_form(request)
        ticket = self._seal.open("enter", form.get("ticket", ""))
        if ticket is None or ticket[2][0] != room_id or not self._entries.use(ticket[1], ticket[0]):
            raise RefusedError(409, said(room, USED))
        _, worker, session, person = (*ticket[2], "")[:4]
        if not self._entries.consented(room_id, worker):
            if form.get("consent") != "yes":
                raise RefusedError(422, "Without your consent you cannot take part. Please return your place.")
            with self._entries.changing():
                self._admit(room_id, room, worker, session)
                self._entries.consent(room_id, worker)
        user = await self._account(room, worker)
        cookie = self._seal.close("worker", room["study"], room["platform"], worker, person, seconds=COOKIE_SECONDS)
        secure = "; Secure" if request.headers.get("x-forwarded-proto", request.url.scheme) == "https" else ""
        headers = {
            "Set-Cookie": f"{COOKIE}={cookie}; Path=/crowd; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Lax{secure}"
        }
        expires = round((time.time() + timedelta(seconds=settings.token_expiration).total_seconds()) * 1000)
        return pages.sign_in(room, accounts.generate_user_token(user), expires, pages.pairs_page(room), headers)

    def _admit(self, room_id: str, room: dict[str, Any], worker: str, session: str) -> None:
        """Give a new participant a place. Raises RefusedError if none is left for people unknown to Prolific.

        An id can be made up. So a session belongs to one participant, an address may bring few newcomers an hour, and
        a participant who is not among Prolific's submissions holds a place only for some hours. Participants with a
        submission always get a place.
        """
        if session and not self._entries.owns(session, room_id, worker):
            raise RefusedError(403, said(room, SHARED))
        _, known = self._known(room_id)
        self._refuse_beyond(room_id, room, worker, known)
        if worker in known:
            return
        if not self._newcomers.take(CLIENT.get()) or self._entries.strangers(room_id, known) >= room["most"]:
            raise RefusedError(503, said(room, FULL))

    def _refuse_beyond(self, room_id: str, room: dict[str, Any], worker: str, known: frozenset[str]) -> None:
        """Raise RefusedError for excluded participants or too many, if the platform itself does not limit them."""
        limits = self._limits(room_id)
        if worker in known or "places" not in limits:
            return
        if worker in limits.get("out", ()):
            raise RefusedError(403, "You have taken part in as much of this study as one person may. Thank you.")
        if len(known) + self._entries.strangers(room_id, known | {worker}) >= int(limits["places"]):
            raise RefusedError(503, said(room, FULL))

    async def done(self, request: Request) -> HTMLResponse:
        """Show the completion code, or the number of pairs left."""
        _, room = self._room(request)
        known = self._seal.open("worker", request.cookies.get(COOKIE, ""))
        if known is None or known[2][:2] != [room["study"], room["platform"]]:
            raise RefusedError(
                403, said(room, "Please open the study from Prolific again in this browser, and then this page.")
            )
        left, rated = await self._answered(room, known[2][2])
        return pages.unfinished(room, left) if left else self._end(room, rated, (*known[2], "")[3])

    def _end(self, room: dict[str, Any], rated: int, person: str) -> HTMLResponse:
        """Show the completion code to participants who have rated enough pairs."""
        least = math.ceil(int(room["records"]) * LEAST_RATED)
        return pages.finished(room, person) if rated >= least else pages.too_few_rated(room, rated, least)

    async def _next_page(
        self, room_id: str, room: dict[str, Any], worker: str, session: str, person: str
    ) -> HTMLResponse:
        """Return the page for a participant's state; `person` is the id if the link at the end needs it."""
        ticket = self._seal.close("enter", room_id, worker, session, person, seconds=TICKET_SECONDS)
        if not self._entries.consented(room_id, worker):
            return pages.entrance(room_id, room, ticket)
        left, rated = await self._answered(room, worker)
        return pages.resume(room_id, room, left, ticket) if left else self._end(room, rated, person)

    async def _answered(self, room: dict[str, Any], worker: str) -> tuple[int, int]:
        """Count the room's pairs that a participant has neither submitted nor discarded, and the submitted ones."""
        counted = (
            select(Response.status, func.count(Response.id))
            .join(Record, Response.record_id == Record.id)
            .join(User, Response.user_id == User.id)
            .where(Record.dataset_id == UUID(room["dataset_id"]), User.username == worker)
            .group_by(Response.status)
        )
        async with database.AsyncSessionLocal() as session:
            number = {status: int(count) for status, count in await session.execute(counted)}
        rated, discarded = (number.get(one, 0) for one in (ResponseStatus.submitted, ResponseStatus.discarded))
        return max(0, int(room["records"]) - rated - discarded), rated

    async def _account(self, room: dict[str, Any], worker: str) -> User:
        """Return the participant's account, a member of the room's workspace; create it if missing."""
        try:
            return await self._account_made(room, worker)
        except IntegrityError:  # another process has just made it
            return await self._account_made(room, worker)

    async def _account_made(self, room: dict[str, Any], worker: str) -> User:
        async with self._one, database.AsyncSessionLocal() as session:
            user = await accounts.get_user_by_username(session, worker) or await made(session, worker)
            if user.role != UserRole.annotator:
                raise RefusedError(403, "This participant cannot be let in.")
            workspace_id = UUID(room["workspace_id"])
            if await WorkspaceUser.get_by(session, workspace_id=workspace_id, user_id=user.id) is None:
                await WorkspaceUser.create(session, workspace_id=workspace_id, user_id=user.id)
            return user

    @property
    def _entries(self) -> Book:
        # Only homes with rooms get a file.
        if self._book is None:
            self._book = Book(self._folder / "entries.db")
        return self._book

    def _room(self, request: Request) -> tuple[str, dict[str, Any]]:
        room_id = request.path_params["room"]
        room = self._all().get(room_id) if ROOM.fullmatch(room_id) else None
        if room is None:
            raise RefusedError(404, "There is no such study here.")
        return room_id, room

    def _all(self) -> dict[str, dict[str, Any]]:
        """All rooms."""
        try:
            return self._rooms.all()
        except (OSError, ValueError, KeyError, TypeError) as error:
            LOGGER.error(
                "crowd/rooms.json cannot be read (%s); move it away and run `plumbline crowd launch` for each study",
                type(error).__name__,
            )
            raise RefusedError(503, "This study cannot be opened at the moment. Please try again later.") from None

    def _known(self, room_id: str) -> tuple[str, frozenset[str]]:
        """Return a room's study on Prolific, if known, and the participants with a submission there."""
        try:
            found = self._admitted.all().get(room_id, {})
            return str(found.get("study", "")), frozenset(found.get("workers", ()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            LOGGER.error("crowd/admitted.json cannot be read (%s); run crowd status", type(error).__name__)
            return "", frozenset()

    def _limits(self, room_id: str) -> dict[str, Any]:
        """Return a room's places and excluded participants; {} if the platform limits them itself."""
        try:
            return dict(self._admitted.all().get(room_id, {}))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}  # `_known` says so


def linked(room: Mapping[str, Any]) -> bool:
    """Return whether people come by a link, and not from Prolific's API."""
    return bool(room["platform"] == "link")


def signature(key: bytes, room_id: str, person: str) -> str:
    """Return the signature of a personal link, the same as `annotation.crowd.link.signature`."""
    return hmac.new(key, "\0".join(("link-v1", room_id, person)).encode(), hashlib.sha256).hexdigest()[:32]


async def made(session: AsyncSession, worker: str) -> User:
    """Create an annotator whose password nobody knows."""
    drawn = await run_in_threadpool(accounts.hash_password, secrets.token_urlsafe(32))
    user = User(first_name="Participant", username=worker, role=UserRole.annotator, password_hash=drawn)
    return await user.save(session)


async def small_form(request: Request) -> dict[str, str]:
    """Read the fields of a form, each once. Raises RefusedError if it is larger than any of ours."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise RefusedError(413, "The form is too large.")
    try:
        fields = parse_qs(body.decode("utf-8"), max_num_fields=MOST_FIELDS)
    except ValueError:
        raise RefusedError(400, "The form cannot be read.") from None
    return {name: values[0] for name, values in fields.items()}
