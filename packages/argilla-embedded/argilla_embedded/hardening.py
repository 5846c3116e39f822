"""Corrections of Argilla's faults, always; and, on request, protection of a server that strangers can reach."""

from __future__ import annotations

import base64
import hashlib
import logging
import re
import traceback
from typing import Any

from argilla_server.api.handlers.v1 import records as record_handlers
from argilla_server.api.schemas.v1.info import Version
from argilla_server.constants import DEFAULT_API_KEY, DEFAULT_PASSWORD
from argilla_server.contexts import accounts, records, search
from argilla_server.contexts.info import argilla_version
from argilla_server.errors import base_errors
from argilla_server.errors.future import UnprocessableEntityError
from argilla_server.models import Record, Vector
from argilla_server.settings import settings
from asyncpg import PostgresError
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.orm import joinedload, selectinload
from sqlalchemy.orm.exc import StaleDataError
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.responses import JSONResponse

from .setup import api_of, pages_of

LOGGER = logging.getLogger("argilla_embedded.hardening")
#: Passwords and keys that Argilla's own guides and images have used; nobody here may have them.
WELL_KNOWN_PASSWORDS = frozenset({DEFAULT_PASSWORD, "1234", "12345678"})
WELL_KNOWN_KEYS = frozenset({DEFAULT_API_KEY, "argilla.apikey", "owner.apikey", "admin.apikey"})
#: The routes that describe the API, and Argilla's status, in whose place a shorter one is put.
DESCRIPTIONS = frozenset({"openapi", "swagger_ui_html", "swagger_ui_redirect", "redoc_html", "redirect_docs",
                          "redirect_api", "get_status"})  # fmt: skip
#: Where an error that is not one of theirs means a malformed body.
READERS = ("argilla_server.api.schemas", "argilla_server.validators")
MOST_ROWS = 2**31 - 1
LONGEST_NOTE, RECORDS_A_MINUTE = 300, 200
INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
FOREIGN_IMPORT = re.compile(r"@import url\((?:https?:)?//[^)]*\);?")


def mend(app: FastAPI) -> None:
    """Answer with a reason where Argilla fails, and keep texts and passwords out of the log.

    Call it once, after Argilla is imported and before it serves.
    """
    logging.getLogger("argilla").addFilter(without_request_bodies)
    for handler in logging.getLogger().handlers:
        handler.addFilter(Sparing())
    record_handlers.selectinload = loading
    refuse_what_handlers_fail_on()
    name_errors(api_of(app))
    find_fonts_under_a_path(app)


def apply(app: FastAPI) -> None:
    """Harden the application: what pages load, which passwords it takes, what strangers learn. Call it once."""
    strip_foreign_fonts(app)
    hash_password = accounts.hash_password

    def hash_unknown_password(password: str) -> str:
        if password in WELL_KNOWN_PASSWORDS:
            raise UnprocessableEntityError("this password is well known; choose another")
        return str(hash_password(password))

    accounts.hash_password = hash_unknown_password
    close_what_strangers_need_not_see(app)
    # It says in a header how long an answer took, and takes half a millisecond for it.
    app.user_middleware[:] = [one for one in app.user_middleware if one.cls is not BaseHTTPMiddleware]

    def without_words(self: Any, error: Exception) -> None:
        self.type, self.message = "error", "see the server's log for details"

    base_errors.GenericServerError.__init__ = without_words


def name_errors(api: FastAPI) -> None:
    """Answer bodies that break Argilla's checks, simultaneous writes and an absent database with fitting statuses."""

    async def told(request: Request, error: Exception) -> JSONResponse:
        frames = list(traceback.walk_tb(error.__traceback__))
        if not frames or not frames[-1][0].f_globals.get("__name__", "").startswith(READERS):
            raise error
        return JSONResponse({"detail": "the request's values do not fit together"}, 422)

    for kind in (TypeError, AttributeError, LookupError, ArithmeticError, RecursionError):
        api.add_exception_handler(kind, told)

    async def overtaken(_: Request, __: Exception) -> JSONResponse:
        return JSONResponse({"detail": "this was changed elsewhere at the same moment; reload it and try again"}, 409)

    for kind in (IntegrityError, StaleDataError):  # from two windows of one rater, written together (`gate`)
        api.add_exception_handler(kind, overtaken)

    for failure in (DBAPIError, PostgresError, OSError):
        api.add_exception_handler(failure, away)


async def away(_: Request, error: Exception) -> JSONResponse:
    """Log a request that the database failed in one line, so that an hour without it does not fill the disk."""
    if isinstance(error, DataError | ProgrammingError):
        raise error
    said = " ".join(str(getattr(error, "orig", error)).split())
    LOGGER.error("the database failed a request: %s", said[:LONGEST_NOTE])
    return JSONResponse({"detail": "the database does not answer; try again later"}, 503)


def close_what_strangers_need_not_see(app: FastAPI) -> None:
    """Remove the API's descriptions, and everything but the version from its status, which needs no sign-in."""
    api = api_of(app)
    for router in (app.router, api.router):
        router.routes[:] = [route for route in router.routes if getattr(route, "name", "") not in DESCRIPTIONS]

    async def status() -> Any:
        return Version(version=argilla_version())

    api.add_api_route("/status", status, response_model=Version)


def refuse_what_handlers_fail_on() -> None:
    """Refuse `{"and": null}` and offsets too large for a database, which Argilla's schemas accept."""
    validate = search.validate_search_records_query

    async def validated(db: Any, query: Any, dataset: Any) -> None:
        if query.filters is not None and query.filters.and_ is None:
            raise UnprocessableEntityError("a filter's 'and' must be a list of conditions")
        await validate(db, query, dataset)

    search.validate_search_records_query = validated
    whole_list = records.list_dataset_records

    async def listed(*, offset: int = 0, **more: Any) -> Any:
        if not 0 <= offset <= MOST_ROWS:
            raise UnprocessableEntityError(f"the offset must be between 0 and {MOST_ROWS}")
        return await whole_list(offset=offset, **more)

    records.list_dataset_records = listed


def loading(attribute: Any) -> Any:
    """Load as SQLAlchemy's `selectinload` does, but vectors with their names, which records with vectors need.

    Argilla 2.8.0 omits them when one record is requested, and answers with an error. A record's dataset is loaded with
    the record, in one statement.
    """
    if attribute is Record.dataset:
        return joinedload(attribute)
    loaded = selectinload(attribute)
    return loaded.selectinload(Vector.vector_settings) if attribute is Record.vectors else loaded


def page_policy(app: FastAPI) -> str:
    """The content security policy of Argilla's pages: their own files, and the scripts inside the pages by their hash.

    Styles are allowed everywhere, because the pages' editors create their own. Nothing is loaded from, or sent to,
    other servers.
    """
    scripts: set[str] = set()
    for page in pages_of(app).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        scripts.update(map(quoted_hash, INLINE_SCRIPT.findall(text)))
    return (
        f"default-src 'none'; script-src 'self' {' '.join(sorted(scripts))};"
        " style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:;"
        " connect-src 'self'; manifest-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
    )


def quoted_hash(text: str) -> str:
    """Return a script's hash as a policy writes it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


def strip_foreign_fonts(app: FastAPI) -> None:
    """Remove the requests to a font host from this start's copy of the pages; the fonts have fallbacks."""
    for sheet in pages_of(app).rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        stripped = FOREIGN_IMPORT.sub("", text)
        if stripped != text:
            sheet.write_text(stripped, encoding="utf-8")


def find_fonts_under_a_path(app: FastAPI) -> None:
    """Put the server's path before the fonts in this start's copy of the style sheets, as Argilla does in its pages."""
    for sheet in pages_of(app).rglob("*.css") if settings.base_url != "/" else ():
        text = sheet.read_text(encoding="utf-8")
        sheet.write_text(text.replace("url(/", f"url({settings.base_url}"), encoding="utf-8")


class Sparing:
    """Limits the log's records each minute, so that failing requests cannot fill the disk."""

    def __init__(self) -> None:
        self.minute, self.number = 0, 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write the record."""
        minute = int(record.created // 60)
        if minute != self.minute:
            self.minute, self.number = minute, 0
        self.number += 1
        if self.number == RECORDS_A_MINUTE:
            record.msg, record.args, record.exc_info = "further messages of this minute are left out", (), None
        return self.number <= RECORDS_A_MINUTE


def without_request_bodies(record: logging.LogRecord) -> bool:
    """Log a refused request by its fields' names only: the values may be passwords or texts."""
    if isinstance(record.msg, RequestValidationError):
        places = ", ".join(sorted({".".join(str(part) for part in error["loc"]) for error in record.msg.errors()}))
        # A name of a field is the sender's own, too: in one line, and not endless.
        record.msg, record.args = "a request had invalid values in: %s", (ascii(places[:LONGEST_NOTE]),)
        record.exc_info = record.exc_text = None
    return True
