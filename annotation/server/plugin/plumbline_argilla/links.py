"""Links that sign one annotator in without a password, each in one browser: the first in which it is used.

    GET    LINK                      the page that a link opens; it hands the browser its cookie
    POST   LINK                      Argilla's session, for the token in the form or, later, in the browser's cookie
    DELETE LINK                      signs out: the cookie forgets the token
    POST   /api/v1/users/<id>/link   a new link's token, for owners; none if there is one, which `again` ends with its
                                     sessions
    DELETE /api/v1/users/<id>/link   ends it

A token stands behind the # of its link, which browsers send to no server and tell no other page, and then in a form's
body, which nothing logs. It is signed, so it cannot be guessed; the book has which of an account's tokens is valid, and
a hash of the secret in the cookie of the browser that used it first. The page alone binds nothing, for programs open
links in letters. An account that has had a link cannot use its key: whoever used a link that was not theirs could have
read it.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated
from uuid import UUID

from argilla_server import database
from argilla_server.api.policies.v1 import UserPolicy, authorize
from argilla_server.contexts import accounts
from argilla_server.database import get_async_db
from argilla_server.errors.future import UnprocessableEntityError
from argilla_server.models import User
from argilla_server.security import auth
from argilla_server.security.authentication.jwt import JWT
from fastapi import Depends, Security
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from argilla_embedded.setup import Setup

from .crowd import WORKER, answered, same_site, small_form
from .crowd_book import Book, Seal
from .crowd_pages import COOKIE_SECONDS, hand_cookie
from .rate import LINK
from .work_page import BASE, link_page

COOKIE = "plumbline_rater"
DAYS = 30
SECONDS = (DAYS + 2) * 86400  # the last day is whole in every time zone
NOTHING, NO_COOKIE, ELSEWHERE, GONE = 204, 400, 409, 410  # statuses, for which link.js has words


async def account(
    user_id: UUID,
    db: Annotated[AsyncSession, Depends(get_async_db)],
    current_user: Annotated[User, Security(auth.get_current_user)],
) -> User:
    """Return the account of an id, for who may change accounts."""
    await authorize(current_user, UserPolicy.update)
    return await User.get_or_raise(db, user_id)


Account = Annotated[User, Depends(account)]


class Links:
    """The links of a server."""

    def __init__(self, file: Path, secret: str) -> None:
        self._file, self._seal = file, Seal(secret)
        self._opened: Book | None = None

    def mount(self, setup: Setup) -> None:
        """Add the pages to the application, before its static ones. Call it once."""
        own = {"GET": self.show, "POST": self.use, "DELETE": self.forget}
        setup.app.router.routes[:0] = [
            Route(LINK, answered(answer), methods=[method]) for method, answer in own.items()
        ]
        setup.api.add_api_route("/users/{user_id}/link", self.make, methods=["POST"])
        setup.api.add_api_route("/users/{user_id}/link", self.revoke, methods=["DELETE"])

    def is_released(self, account: str, browser: str) -> bool:
        """Return whether an account's browser is no longer the one of a session; of a key, if it has had a link."""
        if not self._file.exists():
            return False
        found = self._book.link(account)
        return found is not None if not browser else found is None or found[1] != browser

    async def show(self, request: Request) -> HTMLResponse:
        """Return the page of every link, which says what it is and waits for a person."""
        secret, token = self._browser(request)
        page = await link_page(request)
        self._hand_cookie(page, request, secret or secrets.token_urlsafe(24), token)
        return page

    async def use(self, request: Request) -> Response:
        """Sign the browser in if the token is valid and was used in no other."""
        secret, kept = self._browser(request)
        token = ((await small_form(request)).get("token") or kept) if same_site(request) else ""
        if not token or not secret:
            return Response(status_code=NO_COOKIE if token else NOTHING)
        browser = hashlib.sha256(secret.encode()).hexdigest()
        account, number = self._opened_token(token)
        async with database.AsyncSessionLocal() as session:
            user = await User.get(session, UUID(account)) if account else None
        first = self._book.bind(account, number, browser) if user is not None and user.is_annotator else None
        if user is None or first != browser:
            return Response(status_code=ELSEWHERE if first else GONE)
        made = JWT.encode(JWT.decode(accounts.generate_user_token(user)) | {"browser": browser})
        reply = JSONResponse({"access_token": made}, headers={"Cache-Control": "no-store"})
        self._hand_cookie(reply, request, secret, token)
        return reply

    async def forget(self, request: Request) -> Response:
        """Take the token out of the browser's cookie."""
        secret, _ = self._browser(request)
        reply = Response(status_code=NOTHING)
        if secret and same_site(request):
            self._hand_cookie(reply, request, secret, "")
        return reply

    async def make(self, user: Account, *, again: bool = False) -> dict[str, str]:
        """Return the token of an annotator's new link, and the day on which it ends; empty if an earlier one stays."""
        if not user.is_annotator or user.username.startswith(WORKER):
            raise UnprocessableEntityError("only annotators' accounts can have a link")
        if self._has_link(user) and not again:
            return {"token": "", "until": ""}
        token = self._seal.close("link", str(user.id), seconds=SECONDS)
        self._book.renew(*self._opened_token(token))
        return {"token": token, "until": f"{datetime.now(UTC) + timedelta(days=DAYS):%Y-%m-%d}"}

    async def revoke(self, user: Account) -> dict[str, bool]:
        """End an account's link, which would open again if it became an annotator's; return whether there was one."""
        if found := self._has_link(user):
            self._book.renew(str(user.id), "")
        return {"ended": found}

    def _has_link(self, user: User) -> bool:
        return self._file.exists() and bool((self._book.link(str(user.id)) or ("",))[0])

    def _opened_token(self, token: str) -> tuple[str, str]:
        """Return a token's account and number, empty for one that is not ours or too old."""
        sealed = self._seal.open("link", token)
        return (sealed[2][0], sealed[1]) if sealed is not None else ("", "")

    def _browser(self, request: Request) -> tuple[str, str]:
        """Return the secret and the token of the request's browser, empty without a cookie."""
        cookie = self._seal.open("rater", request.cookies.get(COOKIE, ""))
        secret, token = cookie[2] if cookie is not None else ("", "")
        return secret, token

    def _hand_cookie(self, reply: Response, request: Request, secret: str, token: str) -> None:
        hand_cookie(
            reply, request, COOKIE, self._seal.close("rater", secret, token, seconds=COOKIE_SECONDS), f"{BASE}{LINK}"
        )

    @property
    def _book(self) -> Book:
        # Only homes with links or rooms get a file.
        if self._opened is None:
            self._opened = Book(self._file)
        return self._opened
