"""Argilla made safe to leave running: what its pages fetch, what its log keeps, which passwords it takes."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

from argilla_server.api.handlers.v1 import records as record_handlers
from argilla_server.api.schemas.v1.info import Version
from argilla_server.constants import DEFAULT_API_KEY, DEFAULT_PASSWORD
from argilla_server.contexts import accounts
from argilla_server.contexts.info import argilla_version
from argilla_server.errors.future import UnprocessableEntityError
from argilla_server.models import Record, Vector
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from sqlalchemy.orm import selectinload

#: Passwords and keys that Argilla's own guides and images have used; nobody here may have them.
WELL_KNOWN_PASSWORDS = frozenset({DEFAULT_PASSWORD, "1234", "12345678"})
WELL_KNOWN_KEYS = frozenset({DEFAULT_API_KEY, "argilla.apikey", "owner.apikey", "admin.apikey"})
#: The routes that describe the API, and Argilla's status, in whose place a shorter one is put.
DESCRIPTIONS = frozenset({"openapi", "swagger_ui_html", "swagger_ui_redirect", "redoc_html", "redirect_docs",
                          "redirect_api", "get_status"})  # fmt: skip
FOREIGN_IMPORT = re.compile(r"@import url\((?:https?:)?//[^)]*\);?")


def apply(app: FastAPI) -> None:
    """Harden the application. Call it once, after Argilla is imported and before it serves."""
    strip_foreign_fonts(app)
    logging.getLogger("argilla").addFilter(without_request_bodies)
    hash_password = accounts.hash_password

    def hash_unknown_password(password: str) -> str:
        if password in WELL_KNOWN_PASSWORDS:
            raise UnprocessableEntityError("this password is well known; choose another")
        return str(hash_password(password))

    accounts.hash_password = hash_unknown_password
    close_what_strangers_need_not_see(app)
    record_handlers.selectinload = with_settings_of_vectors


def close_what_strangers_need_not_see(app: FastAPI) -> None:
    """Take away the API's descriptions, and of its status, which needs no signing in, all but the version."""
    api = next(route.app for route in app.routes if getattr(route, "path", None) == "/api/v1")
    for router in (app.router, api.router):
        router.routes[:] = [route for route in router.routes if getattr(route, "name", "") not in DESCRIPTIONS]

    async def status() -> Any:
        return Version(version=argilla_version())

    api.add_api_route("/status", status, response_model=Version)


def with_settings_of_vectors(attribute: Any) -> Any:
    """As SQLAlchemy's `selectinload`; of vectors with their names, without which a record with vectors cannot be shown.

    Argilla 2.8.0 leaves them out where one record is asked for, and answers with an error.
    """
    loaded = selectinload(attribute)
    return loaded.selectinload(Vector.vector_settings) if attribute is Record.vectors else loaded


def strip_foreign_fonts(app: FastAPI) -> None:
    """Take the calls to a font host on the internet out of this start's copy of the pages; the fonts have fallbacks."""
    pages = next(Path(route.app.directory) for route in app.routes if getattr(route, "name", None) == "static")
    for sheet in pages.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        stripped = FOREIGN_IMPORT.sub("", text)
        if stripped != text:
            sheet.write_text(stripped, encoding="utf-8")


def without_request_bodies(record: logging.LogRecord) -> bool:
    """Let a refused request into the log by the names of its fields alone: its values may be passwords or texts."""
    if isinstance(record.msg, RequestValidationError):
        places = ", ".join(sorted({".".join(str(part) for part in error["loc"]) for error in record.msg.errors()}))
        record.msg, record.args = "a request was not valid in: %s", (places,)
        record.exc_info = record.exc_text = None
    return True
