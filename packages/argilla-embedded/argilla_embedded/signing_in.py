"""Authentication: passwords are checked a few at a time and ever more slowly; roles of senders of large requests."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from argilla_server import database
from argilla_server.contexts import accounts
from argilla_server.errors import UnauthorizedError
from argilla_server.models import User
from argilla_server.security.authentication import provider
from argilla_server.security.authentication.db import api_key_backend, bearer_token_backend
from argilla_server.security.authentication.provider import AuthenticationProvider
from fastapi import HTTPException
from sqlalchemy import ColumnElement, select
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.types import Scope

from .guard import CLIENT
from .throttle import Throttle

MOST_LETTERS = 200  #: of names and passwords; Argilla's own limit on passwords is 100
FOUND = "user"  #: in a request's session: who sent it
CHECKS_AT_ONCE = 2  #: each takes a processor for a fifth of a second


class Door:
    """Replaces Argilla's check of a password, which blocks the whole server while it calculates."""

    def __init__(self, throttle: Throttle | None) -> None:
        self.throttle = throttle
        self.turn = asyncio.Semaphore(CHECKS_AT_ONCE)

    async def authenticate(self, db: AsyncSession, username: str, password: str) -> User | None:
        """Return the user with this name and password, or None, in the same time whether or not the user exists."""
        if len(username) > MOST_LETTERS or len(password) > MOST_LETTERS or "\0" in username + password:
            return None
        if self.throttle is None:
            return await self.check(db, username, password)
        address = CLIENT.get()
        with self.throttle.place(username, address) as free:
            if not free:
                raise HTTPException(429, "too many attempts at once; try again", headers={"Retry-After": "10"})
            await asyncio.sleep(self.throttle.seconds(username, address))
            user = await self.check(db, username, password)
            self.throttle.note(username, address, user is not None)
            return user

    async def check(self, db: AsyncSession, username: str, password: str) -> User | None:
        """Check a password without waiting."""
        user: User | None = await accounts.get_user_by_username(db, username)
        against = user.password_hash if user is not None else accounts._DUMMY_HASH
        async with self.turn:
            fits = await run_in_threadpool(accounts.verify_password, password, against)
        return user if fits else None


def apply(throttle: Throttle | None) -> None:
    """Install the check of passwords, with or without waiting. Call it once, after Argilla is imported."""
    accounts.authenticate_user = Door(throttle).authenticate
    read_once()


def read_once() -> None:
    """Let a request read its user only once, without the user's workspaces.

    Argilla's check of a key reads the user, and then reads the user again by name, each time with all workspaces, which
    no request uses.
    """

    async def found(db: AsyncSession, condition: ColumnElement[bool]) -> User | None:
        db.info[FOUND] = user = (await db.execute(select(User).where(condition))).scalar_one_or_none()
        return user

    async def of_key(db: AsyncSession, api_key: str) -> User | None:
        return await found(db, User.api_key == api_key)

    async def of_name(db: AsyncSession, username: str) -> User | None:
        known: User | None = db.info.get(FOUND)
        return known if known is not None and known.username == username else await found(db, User.username == username)

    for module, name, reading in (
        (api_key_backend, "get_user_by_api_key", of_key),
        (bearer_token_backend, "get_user_by_username", of_name),
        (provider, "get_user_by_username", of_name),
    ):
        module.accounts = SimpleNamespace(**{name: reading})


async def role_of(scope: Scope) -> str | None:
    """Return the role of a request's sender, by its key or its session; None if not signed in."""
    request = Request({**scope, "state": {}})
    async with database.AsyncSessionLocal() as db:
        try:
            found = await AuthenticationProvider()._authenticate_request_user(db, request)
        except UnauthorizedError:
            return None
        return None if found is None else str(found.role.value)
