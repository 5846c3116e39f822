"""Pages where participants of a crowd platform enter and get their completion code.

    GET  /crowd/enter/<room>?PROLIFIC_PID=..&STUDY_ID=..&SESSION_ID=..   consent, the work left, or the completion code
    POST /crowd/enter/<room>                                             an account, made once, and Argilla's session

The platform makes the rooms (`annotation.crowd.prolific.workspaces`) and writes them to the home's `crowd/rooms.json`.
A participant's id becomes a pseudonym at once and is never written. The form has a signed ticket, which works once.
Ids can be guessed: who has begun goes on in the browser that began, whose cookie has a secret, or by a link that is
signed for them. With the cookie the page needs no id: if people come by a link, it carries theirs in their own browser,
because the link at the end needs it. Passwords are drawn and never told to anyone.
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
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

from argilla_server import database
from argilla_server.contexts import accounts
from argilla_server.enums import ResponseStatus, UserRole
from argilla_server.models import Record, Response, User, WorkspaceUser
from argilla_server.models.database import generate_user_api_key
from argilla_server.security.authentication.jwt import JWT
from argilla_server.security.settings import settings
from fastapi import FastAPI
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.responses import Response as Reply
from starlette.routing import Route

from argilla_embedded.guard import CLIENT
from argilla_embedded.recent import Recent

from . import crowd_pages as pages
from .crowd_book import TICKET_SECONDS, Book, Seal
from .crowd_files import Newcomers, Rooms
from .crowd_words import on_platform as said
from .work_page import BASE

LOGGER = logging.getLogger("plumbline_argilla.crowd")
WORKER, WORKER_LENGTH = "worker-", len("worker-") + 12
ROOM, LIVE = re.compile(r"[0-9a-f]{16}-(?:live|test|sandbox)"), "-live"
PARTICIPANT = re.compile(r"[0-9a-f]{24}")
LINKED = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.~-]{0,127}")  # an id of a platform that sends people by a link
PARAMETERS = ("PROLIFIC_PID", "SESSION_ID", "STUDY_ID")
#: The share of a room's pairs that have to be rated, not discarded, for the completion code.
LEAST_RATED = 0.5
MOST_BYTES, MOST_FIELDS = 8192, 4
COOKIE = "plumbline_crowd"
USED = (
    "This page has been used already, or is too old. Please open the study from Prolific again: your answers are not"
    " lost."
)


UNLIKE_PROLIFIC = "Please open this page from Prolific: this link lacks the ids that Prolific adds to it."
UNLIKE_LINK = "Please open this page by the link that you were given: this one lacks your id, or was changed."


SHARED = "This link has been used by somebody else. Please open the study from Prolific."
FULL = "Too many people have entered here. Please return your place on Prolific."
NO_COOKIE = "Your browser sent no cookie. Please allow cookies for this site, and open the study from Prolific again."
ELSEWHERE = (
    "The study was begun with this link in another browser, and only that browser may go on. If it was yours, please"
    " open the link there. If you cannot, or never began, please write to"
)


class RefusedError(Exception):
    """A request that gets a page with the reason."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


def pseudonym(key: bytes, study: str, platform: str, worker: str) -> str:
    """Return the same pseudonym as the platform's `annotation.campaign.names.worker_pseudonym`."""
    digest = hmac.new(key, "\0".join((study, platform, worker)).encode(), hashlib.sha256)
    return f"{WORKER}{digest.hexdigest()[:12]}"


def mount(app: FastAPI, secret: str, recent: Recent) -> Entrance:
    """Add the pages to the application, before its own static ones. Call it once, with the home as working folder."""
    entry = Entrance(Path("crowd"), Seal(secret), Newcomers(recent))
    app.router.routes[:0] = [
        Route("/crowd/enter/{room}", answered(entry.show), methods=["GET"]),
        Route("/crowd/enter/{room}", answered(entry.let_in), methods=["POST"]),
    ]
    return entry


def answered(handler: Callable[[Request], Awaitable[Reply]]) -> Callable[[Request], Awaitable[Reply]]:
    """Wrap a handler so that a refusal becomes a page."""

    async def handle(request: Request) -> Reply:
        try:
            return await handler(request)
        except RefusedError as error:
            return pages.refusal(error.status, str(error))

    return handle


@dataclass(frozen=True)
class Browser:
    """A browser in one room, by its cookie."""

    secret: str
    worker: str = ""  #: who signed in last
    person: str = ""  #: their id, if the link at the end needs it

    @property
    def hash(self) -> str:
        """The browser as the book has it."""
        return hashlib.sha256(self.secret.encode()).hexdigest()


class Entrance:
    """The pages of a room."""

    def __init__(self, folder: Path, seal: Seal, newcomers: Newcomers) -> None:
        self._folder, self._seal, self._newcomers = folder, seal, newcomers
        self._one = asyncio.Lock()
        self._book: Book | None = None
        self._rooms, self._admitted = Rooms(folder / "rooms.json"), Rooms(folder / "admitted.json")

    async def show(self, request: Request) -> HTMLResponse:
        """Show the next page to a participant: who comes from the platform has an id, who comes back may have none."""
        room_id, room = self._room(request)
        before = self._browser(request, room_id)
        browser = before or Browser(secrets.token_urlsafe(24))
        names = room.get("parameters", PARAMETERS)
        pid, *others = (request.query_params.get(name, "") if name else "" for name in names)
        if browser.worker and not pid:
            worker, session, person = browser.worker, "", browser.person
        else:
            form = LINKED if linked(room) else PARTICIPANT
            if not form.fullmatch(pid) or not all(form.fullmatch(one) for one in others if one):
                raise RefusedError(400, UNLIKE_LINK if linked(room) else UNLIKE_PROLIFIC)
            key = bytes.fromhex(room["key"])
            worker = pseudonym(key, room["study"], room["platform"], pid)
            session = self._session(room_id, room, key, pid, *others)
            person = pid if linked(room) else ""
        ticket = self._seal.close("enter", room_id, worker, session, person, seconds=TICKET_SECONDS)
        if self._has_begun(room_id, room, worker, browser):
            left, rated = await self._answered(room, account_name(room_id, worker))
            shown = pages.resume(room_id, room, left, ticket) if left else self._end(room, rated, person)
        else:
            shown = pages.entrance(room_id, room, ticket)
        if before is None:
            self._hand_cookie(shown, request, room_id, browser)
        return shown

    def _has_begun(self, room_id: str, room: dict[str, Any], worker: str, browser: Browser) -> bool:
        """Return whether a participant has begun. Raises RefusedError if that was in another browser.

        A link that is signed for its person opens in every browser.
        """
        first = self._entries.browser(room_id, worker)
        if first in (None, browser.hash) or signed(room_id, room):
            return first is not None
        self._entries.note_refused(room_id, worker)
        raise RefusedError(403, f"{ELSEWHERE} {room.get('contact') or 'the people who sent you the link'}.")

    def is_released(self, account: str, browser: str) -> bool:
        """Return whether an account's browser is no longer the one of a session; of a key, if it has none now."""
        worker, room_id = account[:WORKER_LENGTH], account[WORKER_LENGTH + 1 :]
        first = self._entries.browser(room_id, worker)
        return first != browser if browser else first is None and self._entries.consented(room_id, worker)

    def _browser(self, request: Request, room_id: str) -> Browser | None:
        """Return the request's browser; None without a cookie of this room."""
        cookie = self._seal.open("browser", request.cookies.get(COOKIE, ""))
        return Browser(*cookie[2][1:]) if cookie is not None and cookie[2][0] == room_id else None

    def _hand_cookie(self, page: HTMLResponse, request: Request, room_id: str, browser: Browser) -> None:
        """Give the browser its cookie, for this room alone."""
        values = (room_id, browser.secret, browser.worker, browser.person)
        sealed = self._seal.close("browser", *values, seconds=pages.COOKIE_SECONDS)
        pages.hand_cookie(page, request, COOKIE, sealed, f"{BASE}/crowd/enter/{room_id}")

    def _session(self, room_id: str, room: dict[str, Any], key: bytes, pid: str, session: str, study: str = "") -> str:
        """Return a hash of the platform's session, empty in a rehearsal. Raises RefusedError for an unfit link.

        Without sessions of the platform, each participant has one. A mailing list's link is signed for its person.
        """
        if room_id.endswith("-sandbox"):
            return ""  # a rehearsal is tried out with made-up ids
        unlike = RefusedError(400, UNLIKE_LINK if linked(room) else UNLIKE_PROLIFIC)
        posted_id = self._admission(room_id).get("study", "")
        if signed(room_id, room) and not hmac.compare_digest(session, signature(key, room_id, pid)):
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
        if not same_site(request):
            raise RefusedError(403, "This form was sent from another site.")
        form = await small_form(request)
        ticket = self._seal.open("enter", form.get("ticket", ""))
        if ticket is None or ticket[2][0] != room_id or not self._entries.use(ticket[1], ticket[0]):
            raise RefusedError(409, said(room, USED))
        _, worker, session, person = ticket[2]
        before = self._browser(request, room_id)
        if before is None:
            raise RefusedError(403, said(room, NO_COOKIE))
        with self._entries.changing():  # of two browsers at once, one begins
            if not self._has_begun(room_id, room, worker, before):
                if form.get("consent") != "yes":
                    raise RefusedError(422, "Without your consent you cannot take part. Please return your place.")
                if not self._entries.consented(room_id, worker):
                    self._admit(room_id, room, worker, session)
                self._entries.consent(room_id, worker, before.hash)
        token = accounts.generate_user_token(await self._account(room, account_name(room_id, worker)))
        if not signed(room_id, room):
            token = JWT.encode(JWT.decode(token) | {"browser": before.hash})
        expires = round((time.time() + timedelta(seconds=settings.token_expiration).total_seconds()) * 1000)
        shown = pages.sign_in(room, token, expires, pages.pairs_page(room))
        self._hand_cookie(shown, request, room_id, Browser(before.secret, worker, person))
        return shown

    def _admit(self, room_id: str, room: dict[str, Any], worker: str, session: str) -> None:
        """Give a new participant a place. Raises RefusedError if none is left for people unknown to Prolific.

        An id can be made up. So a session belongs to one participant, an address may bring few newcomers an hour, and
        a participant who is not among Prolific's submissions holds a place only for some hours. Participants with a
        submission always get a place.
        """
        if session and not self._entries.owns(session, room_id, worker):
            raise RefusedError(403, said(room, SHARED))
        admission = self._admission(room_id)
        known = frozenset(admission.get("workers", ()))
        if worker in known:
            return
        if worker in admission.get("out", ()):
            raise RefusedError(403, "You have taken part in as much of this study as one person may. Thank you.")
        holding = self._entries.strangers(room_id, known)
        places = min(room["most"], admission.get("places", math.inf) - len(known))
        if holding >= places or not self._newcomers.take(CLIENT.get()):
            raise RefusedError(503, said(room, FULL))

    def _end(self, room: dict[str, Any], rated: int, person: str) -> HTMLResponse:
        """Show the completion code to participants who have rated enough pairs."""
        least = math.ceil(int(room["records"]) * LEAST_RATED)
        return pages.finished(room, person) if rated >= least else pages.too_few_rated(room, rated, least)

    async def _answered(self, room: dict[str, Any], name: str) -> tuple[int, int]:
        """Count the room's pairs that an account has neither submitted nor discarded, and the submitted ones."""
        counted = (
            select(Response.status, func.count(Response.id))
            .join(Record, Response.record_id == Record.id)
            .join(User, Response.user_id == User.id)
            .where(Record.dataset_id == UUID(room["dataset_id"]), User.username == name)
            .group_by(Response.status)
        )
        async with database.AsyncSessionLocal() as session:
            number = {status: int(count) for status, count in await session.execute(counted)}
        rated, discarded = (number.get(one, 0) for one in (ResponseStatus.submitted, ResponseStatus.discarded))
        return max(0, int(room["records"]) - rated - discarded), rated

    async def _account(self, room: dict[str, Any], name: str) -> User:
        """Return a participant's account with a new key, a member of the room's workspace; create it if missing."""
        try:
            return await self._account_made(room, name)
        except IntegrityError:  # another process has just made it
            return await self._account_made(room, name)

    async def _account_made(self, room: dict[str, Any], name: str) -> User:
        async with self._one, database.AsyncSessionLocal() as session:
            user = await accounts.get_user_by_username(session, name) or await made(session, name)
            if user.role != UserRole.annotator:
                raise RefusedError(403, "This participant cannot be let in.")
            await user.update(session, api_key=generate_user_api_key())  # whoever read the one before has no access
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

    def _admission(self, room_id: str) -> dict[str, Any]:
        """Return the room's `study` on Prolific, the `workers` with a submission there, the `places`, and who is `out`.

        Places are limited here only where the platform does not limit them itself.
        """
        try:
            return dict(self._admitted.all().get(room_id, {}))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            LOGGER.error("crowd/admitted.json cannot be read (%s); run plumbline collect", type(error).__name__)
            return {}


def linked(room: Mapping[str, Any]) -> bool:
    """Return whether people come by a link, and not from Prolific's API."""
    return bool(room["platform"] == "link")


def signed(room_id: str, room: Mapping[str, Any]) -> bool:
    """Return whether each person's link has a signature; a rehearsal checks none."""
    return bool(room.get("signed")) and room_id.endswith(LIVE)


def signature(key: bytes, room_id: str, person: str) -> str:
    """Return the signature of a personal link, the same as `annotation.crowd.link.signature`."""
    return hmac.new(key, "\0".join(("link-v1", room_id, person)).encode(), hashlib.sha256).hexdigest()[:32]


def account_name(room_id: str, worker: str) -> str:
    """Return the name of a participant's account, which sees one room: a room's session opens no other."""
    return f"{worker}-{room_id}"  # as `annotation.crowd.prolific.workspaces` reads it


async def made(session: AsyncSession, name: str) -> User:
    """Create an annotator whose password nobody knows."""
    drawn = await run_in_threadpool(accounts.hash_password, secrets.token_urlsafe(32))
    user = User(first_name="Participant", username=name, role=UserRole.annotator, password_hash=drawn)
    return await user.save(session)


def same_site(request: Request) -> bool:
    """Return whether a request comes from a page of ours, or from no page."""
    return request.headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")


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
