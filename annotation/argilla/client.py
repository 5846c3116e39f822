"""Access to an Argilla server: through the SDK where it suffices, and otherwise through its HTTP client.

`ARGILLA_API_URL` and `ARGILLA_API_KEY` name a server elsewhere; without them, the server of the project's own home
folder is used, and started for the length of the command if it does not run already.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from annotation.server import Connection, Home, has_database, is_loopback, running
from plumbline.addresses import key_in, proxy_for, refuse_no_address
from plumbline.errors import PlumblineError, ServiceError
from plumbline.importing import argilla, httpx

SIMULATED = "simulated-"  # prefix of simulated raters' user names; people's names never have it
#: Keys of Argilla's own images and guides.
WELL_KNOWN_KEYS = ("argilla.apikey", "owner.apikey", "admin.apikey")
HEADER = "X-Argilla-Api-Key"
PAGE = 1000  # the most records that Argilla gives at once


@dataclass(frozen=True)
class ArgillaUser:
    """An account on the server."""

    id: str
    username: str
    role: str
    api_key: str

    @property
    def simulated(self) -> bool:
        """Whether the account is a simulated rater's."""
        return self.username.startswith(SIMULATED)


@dataclass(frozen=True)
class DatasetListing:
    """A dataset as the server lists it."""

    id: str
    workspace_id: str
    status: str  #: `draft` until it is published: annotators do not see it
    distribution: dict[str, Any]
    last_activity_at: str  #: changes with every new, changed or deleted answer


@dataclass(frozen=True)
class Argilla:
    """A server that answers, and the owner's access to it."""

    url: str
    sdk: Any  # argilla.Argilla; the SDK has no types
    connection: Connection | None  # None for a server elsewhere

    def request(self, method: str, path: str, *, api_key: str | None = None, **arguments: Any) -> Any:
        """Return the JSON answer of a call of the HTTP API, as the owner or as the user of `api_key`.

        Raises ServiceError with the server's own words if it refuses or does not answer.
        """
        headers = {HEADER: api_key} if api_key else {}
        with translated(self.url):
            answer = self.sdk.api.http_client.request(method, f"/api/v1{path}", headers=headers, **arguments)
            answer.raise_for_status()
            return answer.json() if answer.content else None

    def workspaces(self) -> dict[str, str]:
        """The ids of all workspaces, by name."""
        return {item["name"]: item["id"] for item in self.request("GET", "/me/workspaces")["items"]}

    def datasets(self) -> dict[tuple[str, str], DatasetListing]:
        """All datasets, by the names of workspace and dataset."""
        names = {workspace_id: name for name, workspace_id in self.workspaces().items()}
        listed = self.request("GET", "/me/datasets")["items"]
        listings = [(names.get(item["workspace_id"], ""), item) for item in listed]
        return {
            (workspace, item["name"]): DatasetListing(
                item["id"], item["workspace_id"], item["status"], item["distribution"], item["last_activity_at"]
            )
            for workspace, item in listings
        }

    def members(self, workspace_id: str) -> dict[str, ArgillaUser]:
        """The users of a workspace, by id."""
        items = self.request("GET", f"/workspaces/{workspace_id}/users")["items"]
        return {item["id"]: _user(item) for item in items}

    def users(self) -> list[ArgillaUser]:
        """All accounts."""
        return [_user(item) for item in self.request("GET", "/users")["items"]]

    def records(self, dataset_id: str) -> Iterator[dict[str, Any]]:
        """Yield all records of a dataset with all users' responses, in the API's form.

        Raises ServiceError if their number is wrong, because records changed while they were read.
        """
        ids: set[str] = set()
        for offset in itertools.count(0, PAGE):
            params = {"include": "responses", "offset": offset, "limit": PAGE}
            page = self.request("GET", f"/datasets/{dataset_id}/records", params=params)
            ids.update(item["id"] for item in page["items"])
            yield from page["items"]
            if len(page["items"]) < PAGE:
                break
        if len(ids) != page["total"]:
            raise ServiceError(
                f"Argilla at {self.url}: records were added or deleted while they were read; run the command again"
            )


def _user(item: Mapping[str, str]) -> ArgillaUser:
    return ArgillaUser(item["id"], item["username"], item["role"], item["api_key"])


@contextlib.contextmanager
def connect(home: Home, *, existing: bool = False) -> Iterator[Argilla]:
    """Connect to the server that the environment names, or to the home's.

    With `existing`, a home on which no server ever ran is refused (ServiceError) and no server is started there: for
    commands that read existing data.
    """
    with reach(home, existing=existing) as connection, attach(connection) as argilla:
        yield argilla


@contextlib.contextmanager
def reach(home: Home, *, existing: bool = False) -> Iterator[Connection]:
    """Find the server that the environment names, or start the home's, without importing the SDK (a second)."""
    if (elsewhere := configured()) is not None:
        guard(elsewhere.url, elsewhere.api_key)
        yield elsewhere
        return
    if existing and not has_database(home):
        raise ServiceError(
            f"{home.path}: no Argilla has run in this folder, so it has no accounts or answers; name another folder"
            " (--data), or start a server (`plumbline serve`)"
        )
    with running(home) as connection:
        yield connection


def configured() -> Connection | None:
    """Return the server that the environment names, unasked; None for none. Raises ServiceError for bad values."""
    url = os.environ.get("ARGILLA_API_URL", "").strip()
    try:
        key = key_in("ARGILLA_API_KEY")
        if url:
            refuse_no_address(url, "https://argilla.example.org")
            parts = urlsplit(url)
            proxy_for(parts.scheme, parts.netloc)
    except ValueError as error:
        raise ServiceError(f"ARGILLA_API_URL, ARGILLA_API_KEY: {error}") from None
    if bool(url) != bool(key):
        no_key = "ARGILLA_API_URL is set but ARGILLA_API_KEY is not"
        no_url = "ARGILLA_API_KEY is set but ARGILLA_API_URL is not"
        raise ServiceError(f"{no_key if url else no_url}; set both, or neither for the local server")
    return Connection(url.rstrip("/"), key) if url else None


def guard(url: str, key: str) -> None:
    """Check that an Argilla elsewhere accepts the key, and refuses the key that its guides print.

    Raises ServiceError if the server does not answer or refuses the key, or if the key is well known and the server is
    not on this machine; warns on stderr if such a server accepts a well-known key.
    """
    parts = urlsplit(url)
    private = is_loopback(parts.hostname or "")
    if key in WELL_KNOWN_KEYS and not private:
        raise ServiceError(f"ARGILLA_API_KEY is the key that Argilla's guides print, and {url} is open to the network: "
                           "give its owner a new password and key first")  # fmt: skip
    me = f"{url.rstrip('/')}/api/v1/me"
    with translated(url), httpx.Client(timeout=30.0) as client:
        answer = client.get(me, headers={HEADER: key})
        answer.raise_for_status()
        answer.json()["username"]
        if private:
            return
        open_to = [
            well_known for well_known in WELL_KNOWN_KEYS if client.get(me, headers={HEADER: well_known}).is_success
        ]
    if open_to:
        print(f"Warning: {url} lets everyone in who sends the key {open_to[0]}, which Argilla's guides print; have the "
              "key changed before people answer there", file=sys.stderr)  # fmt: skip


@contextlib.contextmanager
def attach(connection: Connection) -> Iterator[Argilla]:
    """Connect the SDK to a server that answers."""
    local = connection if connection.home is not None else None
    with translated(connection.url):
        sdk = argilla.Argilla(api_url=connection.url, api_key=connection.api_key)
    try:
        yield Argilla(connection.url, sdk, local)
    finally:
        sdk.api.http_client.close()


@contextlib.contextmanager
def translated(url: str) -> Iterator[None]:
    """Turn errors of the SDK and of the HTTP client into one line with advice."""
    from argilla._exceptions import ArgillaError  # noqa: PLC0415 (takes a second)

    try:
        yield
    except PlumblineError:
        raise
    except (httpx.HTTPError, ArgillaError) as error:
        raise _named(url, error) from None
    except (ValueError, KeyError, TypeError):  # not JSON, or not Argilla's
        raise ServiceError(f"the reply of {url} is not an Argilla response; check ARGILLA_API_URL") from None


def _named(url: str, error: BaseException) -> ServiceError:
    """Translate an error of the HTTP client, or of the SDK, which hides the client's errors in its own."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, httpx.HTTPStatusError):
            return _refused(url, cause.response.status_code, cause.response.text)
        if isinstance(cause, httpx.HTTPError):
            reason = str(cause) or type(cause).__name__
            return ServiceError(
                f"Argilla at {url} does not answer ({reason}); start it (plumbline serve) or correct the URL,"
                " then run the same command again"
            )
        if status := getattr(cause, "status_code", 0):
            return _refused(url, status, str(cause))
        cause = cause.__cause__
    return _refused(url, 0, str(error))


def _refused(url: str, status: int, words: str) -> ServiceError:
    if status == HTTPStatus.UNAUTHORIZED or "credential" in words.lower():
        return ServiceError(f"Argilla at {url} does not accept the key; set ARGILLA_API_KEY to the owner's key")
    if status == HTTPStatus.FORBIDDEN:
        return ServiceError(f"Argilla at {url}: this user may not do that; use the owner's key")
    reason = words[:300] or "no reason given"
    return ServiceError(f"Argilla at {url} refused{f' with status {status}' if status else ''}: {reason}")
