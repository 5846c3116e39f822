"""Sessions and keys end with the browser that they belong to: of participants of a crowd, and of raters with a link."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argilla_server.enums import UserRole
from argilla_server.security.authentication.db.api_key_backend import APIKeyAuthenticationBackend
from argilla_server.security.authentication.db.bearer_token_backend import BearerTokenAuthenticationBackend
from argilla_server.security.authentication.jwt import JWT
from argilla_server.security.authentication.userinfo import UserInfo
from starlette.requests import Request


def end_sessions(is_released: Callable[[UserInfo, str], bool]) -> None:
    """Ask for each session of a browser, and with an empty browser for each key, whether it has ended. Call it once."""
    authenticate, by_key = BearerTokenAuthenticationBackend.authenticate, APIKeyAuthenticationBackend.authenticate

    async def key_checked(self: APIKeyAuthenticationBackend, request: Request) -> Any:
        found = await by_key(self, request)
        return None if found is not None and is_released(found[1], "") else found

    async def checked(self: BearerTokenAuthenticationBackend, request: Request) -> Any:
        found = await authenticate(self, request)
        if found is None:
            return None
        browser = JWT.decode((await self.scheme(request)).credentials).get("browser")
        if browser and (found[1].role != UserRole.annotator or is_released(found[1], browser)):
            return None  # a link, or a page of the crowd, lets an annotator in and nobody else
        return found

    BearerTokenAuthenticationBackend.authenticate = checked
    APIKeyAuthenticationBackend.authenticate = key_checked
