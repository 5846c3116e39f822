"""Argilla made safe to leave running: what its pages fetch, what its log keeps, which passwords it takes."""

from __future__ import annotations

import logging
import re
from pathlib import Path

from argilla_server.api.handlers.v1 import info as info_handlers
from argilla_server.constants import DEFAULT_API_KEY, DEFAULT_PASSWORD
from argilla_server.contexts import accounts
from argilla_server.errors.future import UnprocessableEntityError
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError

#: Passwords and keys that Argilla's own guides and images have used; nobody here may have them.
WELL_KNOWN_PASSWORDS = frozenset({DEFAULT_PASSWORD, "1234", "12345678"})
WELL_KNOWN_KEYS = frozenset({DEFAULT_API_KEY, "argilla.apikey", "owner.apikey", "admin.apikey"})
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
    whole = info_handlers.Status

    def status_without_details(version: str, **details: object) -> object:
        # Everyone may ask for it without signing in: how much memory and which engine there is, is not theirs to know.
        return whole(version=version, search_engine={}, memory={})

    info_handlers.Status = status_without_details


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
