"""Calls of Prolific's REST API, with its answers and errors in our terms (docs.prolific.com/api-reference).

Only calls that change nothing are retried automatically. Any other call that broke off may have taken effect: the
ledger asks before it tries again.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx

from annotation import server
from annotation.crowd.platform import RefusedError, State, Submission, UncertainError
from plumbline.addresses import proxy_for, refuse_no_address
from plumbline.errors import ServiceError

ADDRESS = "https://api.prolific.com"
TOKEN_VARIABLE, ADDRESS_VARIABLE = "PROLIFIC_TOKEN", "PROLIFIC_ADDRESS"
TRIES = 4
LONGEST_PAUSE = 60.0  # seconds to wait at most for a Retry-After
PAGE = 100  # items in a page of a list
_PASSING = (httpx.codes.REQUEST_TIMEOUT, httpx.codes.TOO_MANY_REQUESTS)  # not about the call itself
WORDS = 300  # characters of Prolific's own words in an error


def token_of(token: str | None = None) -> str:
    """Return the token; without one, the environment's. Raises ServiceError if neither is set."""
    token = (token or os.environ.get(TOKEN_VARIABLE, "")).strip()
    if not token:
        raise ServiceError(f"{TOKEN_VARIABLE} is not set; set it to a token from Prolific's settings")
    if not (token.isascii() and token.isprintable()):
        raise ServiceError(f"{TOKEN_VARIABLE} contains invalid characters; copy it again from Prolific's settings")
    return token


class Api:
    """Prolific's API with one researcher's token."""

    def __init__(
        self, token: str | None = None, address: str | None = None, pause: Callable[[float], None] = time.sleep
    ) -> None:
        """None takes token and address from the environment. Raises ServiceError if they cannot be used."""
        token = token_of(token)
        address = (address or os.environ.get(ADDRESS_VARIABLE) or ADDRESS).rstrip("/")
        try:
            refuse_no_address(address, ADDRESS)
            parts = urlsplit(address)
            proxy_for(parts.scheme, parts.netloc)
        except ValueError as error:
            raise ServiceError(f"{ADDRESS_VARIABLE}: {error}") from None
        if not (parts.scheme == "https" or (parts.scheme == "http" and server.is_loopback(parts.hostname or ""))):
            raise ServiceError(f"{ADDRESS_VARIABLE} is {address!r}, which is not an https address; unset it")
        self.pause = pause
        self._http = httpx.Client(
            base_url=f"{address}/api/v1/", headers={"Authorization": f"Token {token}"}, timeout=30.0
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def get(self, path: str, params: Mapping[str, str | int] | None = None) -> dict[str, Any]:
        """Return the resource at a path, after a few tries. Raises ServiceError."""
        return self._tried("GET", path, params=dict(params or {}))

    def harmless(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Make a POST that may happen twice, with a few tries. Raises ServiceError."""
        return self._tried("POST", path, json=dict(body))

    def change(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Make a call that changes something, once. Raises UncertainError, or RefusedError if it had no effect."""
        try:
            answer = self._http.request(method, path, json=body)
        except httpx.HTTPError as error:
            raise UncertainError(
                f"Prolific did not answer {_what(method, path)} ({type(error).__name__}); run the command again"
            ) from None
        if answer.status_code in _PASSING or answer.is_server_error:
            raise UncertainError(
                f"Prolific answered {answer.status_code} to {_what(method, path)}; run the command again later"
            )
        return _content(answer, method, path)

    def pages(self, path: str, params: Mapping[str, str | int] | None = None) -> Iterator[dict[str, Any]]:
        """Yield all items of a list, from every page. Raises ServiceError, also if the list changed meanwhile."""
        query: dict[str, str | int] = {"page_size": PAGE, **(params or {})}
        ids: set[str] = set()
        while True:
            answer = self.get(path, query)
            items = answer.get("results")
            if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
                raise ServiceError(f"Prolific did not return a list of {_shown(path)}; check {ADDRESS_VARIABLE}")
            new = [item for item in items if str(item.get("id")) not in ids]
            ids.update(str(item.get("id")) for item in items)
            yield from new
            following = ((answer.get("_links") or {}).get("next") or {}).get("href")
            if not following or not new:
                break
            # Only the query changes: the token never follows a link to another host.
            query = dict(parse_qsl(urlsplit(str(following)).query))
        count = (answer.get("meta") or {}).get("count")
        if isinstance(count, int) and len(ids) < count:
            raise ServiceError(f"Prolific's list of {_shown(path)} changed while it was read; run the command again")

    def _tried(self, method: str, path: str, **arguments: Any) -> dict[str, Any]:
        trouble = ""
        for attempt in range(TRIES):
            wait = float(2**attempt)
            try:
                answer = self._http.request(method, path, **arguments)
            except httpx.HTTPError as error:
                trouble = f"gave no answer ({type(error).__name__})"
            else:
                if answer.status_code not in _PASSING and not answer.is_server_error:
                    return _content(answer, method, path)
                trouble = f"answered {answer.status_code}"
                retry_after = answer.headers.get("Retry-After", "")
                wait = float(retry_after) if retry_after.isdecimal() else wait
            if attempt < TRIES - 1:
                self.pause(min(wait, LONGEST_PAUSE))
        raise ServiceError(f"Prolific {trouble} to {_what(method, path)}, {TRIES} times; run the command again later")


def _content(answer: httpx.Response, method: str, path: str) -> dict[str, Any]:
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        raise ServiceError(f"Prolific does not accept the token; set {TOKEN_VARIABLE} to a token from its settings")
    if not answer.is_success:
        raise RefusedError(f"Prolific refused {_what(method, path)} ({answer.status_code}): {_words(answer)}")
    try:
        content = answer.json() if answer.content else {}
    except ValueError:
        content = None
    if isinstance(content, dict):
        return content
    if method == "GET":
        raise ServiceError(f"the reply of {answer.url.host} is not a Prolific response; check {ADDRESS_VARIABLE}")
    return {}  # some calls are answered with a mere sentence


def _words(answer: httpx.Response) -> str:
    """Return Prolific's own words in one line, without ids, because some are people's."""
    try:
        content = answer.json()
        message = content.get("error", content) if isinstance(content, dict) else content
        message = message.get("detail", message) if isinstance(message, dict) else message
    except ValueError:
        message = answer.text
    return shortened(message) or "no reason given"


def shortened(message: object) -> str:
    """Return a message as one short line without ids."""
    text = " ".join(re.sub(r"[{}\[\]'\"]", " ", str(message)).split())
    return re.sub(r"\b[0-9a-fA-F]{24}\b", "...", text)[:WORDS]


def _what(method: str, path: str) -> str:
    return f"{method} {_shown(path)}"


def _shown(path: str) -> str:
    return re.sub(r"\b[0-9a-fA-F]{24}\b", "...", path).strip("/")


STATES: dict[str, State] = {
    "RESERVED": "working",
    "ACTIVE": "working",
    "AWAITING REVIEW": "submitted",
    "PROCESSING": "working",  # undocumented, for moments: nothing can be decided then
    "APPROVED": "approved",
    "PARTIALLY APPROVED": "approved",
    "REJECTED": "rejected",
    "RETURNED": "returned",
    "TIMED OUT": "returned",
    "SCREENED OUT": "returned",
}


def plain(status: object) -> str:
    """Return a state in capitals with spaces, however the API writes it."""
    return str(status).upper().replace("_", " ").replace("-", " ")


def submission_of(item: dict[str, Any], posted_id: str) -> Submission:
    """Return a submission from a list or a single call. Raises ServiceError for an unknown state."""
    state = STATES.get(plain(item.get("status")))
    worker = item.get("participant_id") or item.get("participant")
    if state is None or not worker:
        status = shortened(item.get("status"))
        raise ServiceError(
            f"Prolific returned a submission with an unknown state ({status}) or no participant; nothing was done"
        )
    begun, ended = _moment(item.get("started_at")), _moment(item.get("completed_at"))
    duration = item.get("time_taken")
    if isinstance(duration, int | float):
        seconds = float(duration)
    else:
        seconds = (ended - begun).total_seconds() if begun and ended else math.nan
    paid = tuple(round(amount) for amount in item.get("bonus_payments") or ())
    return Submission(str(item.get("id")), posted_id, str(worker), state, seconds, ended, paid)


def _moment(text: object) -> datetime | None:
    if not text:
        return None
    moment = datetime.fromisoformat(str(text))
    return moment if moment.tzinfo else datetime.fromisoformat(f"{text}+00:00")
