"""Finding the server that runs on a home, talking to it, and accounts for raters with drawn passwords."""

from __future__ import annotations

import fcntl
import ipaddress
import time
from dataclasses import dataclass, field
from typing import Any, Literal

from plumbline.errors import DataError, ServiceError
from plumbline.reading import read_json

from .home import Home, User, credentials, new_user, private, remember

START_SECONDS = 90.0  #: the first start migrates an empty database; later ones take a few seconds
POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Connection:
    """A server that answers, and the key with which to talk to it."""

    url: str  #: for example http://127.0.0.1:6900, without a slash at the end
    api_key: str = field(repr=False)  #: the owner's
    home: Home | None = None  #: None for an Argilla that runs elsewhere


def is_loopback(host: str) -> bool:
    """Whether `host` can only be reached from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def find(home: Home) -> Connection | None:
    """The ready server on `home`, or None when none runs; waits for one that is starting. Raises ServiceError."""
    return wait_for(home) if is_locked(home) else None


def is_locked(home: Home) -> bool:
    """Whether a server, ready or not, holds `home`."""
    try:
        with open(home.lock, "a", opener=private) as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        raise ServiceError(
            f"{home.lock}: cannot be opened ({error.strerror}); mend the folder's permissions"
        ) from error
    return False


def wait_for(home: Home) -> Connection | None:
    """Another process's server on `home`, once it answers; None if it ends meanwhile.

    Raises ServiceError when it does neither in time.
    """
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if not is_locked(home):
            return None
        if (connection := probe(home)) is not None:
            return connection
        time.sleep(POLL_SECONDS)
    raise ServiceError(f"{home.path}: in use by a server that does not come up; see {home.log}, or stop that server")


def probe(home: Home) -> Connection | None:
    """The server that `home`'s state names, if it accepts the owner's key now."""
    try:
        state: Any = read_json(home.state)
        url = str(state["url"])
    except (DataError, OSError, KeyError, TypeError):
        return None  # not written yet, or left behind by a server that was killed
    import httpx  # noqa: PLC0415 (a fifth of a second, and most commands ask no server)

    owner = credentials(home).owner
    try:
        # trust_env: a proxy of the user's environment must not see the key of a server on this machine.
        with httpx.Client(trust_env=False, timeout=5.0) as client:
            answer = client.get(f"{url}/api/v1/me", headers={"X-Argilla-Api-Key": owner.api_key})
    except httpx.HTTPError:
        return None
    return Connection(url, owner.api_key, home) if answer.status_code == httpx.codes.OK else None


Role = Literal["annotator", "admin", "owner"]


def ensure_user(server: Connection, username: str, first_name: str, role: Role = "annotator") -> User:
    """The account `username`, made if it is missing; calling it again changes nothing.

    On our own server the account is kept in the home's credentials file; one that exists there but whose password the
    file does not know gets a new password. On an Argilla that runs elsewhere an existing account is left as it is and
    returned with an empty password. Nothing is printed. Raises ServiceError when the server refuses or the account
    has another role.
    """
    home = server.home
    account = next((user for user in call(server, "GET", "users")["items"] if user["username"] == username), None)
    if account is not None and account["role"] != role:
        raise ServiceError(
            f"the account {username} exists with the role {account['role']}, not {role}; choose another name"
        )
    credential = credentials(home).find(username) if home is not None else None
    if account is not None and credential is not None and credential.api_key == account["api_key"]:
        return credential
    if account is not None and home is None:
        return User(username, "", str(account["api_key"]))
    drawn = new_user(username)
    if account is None:
        body = {"username": username, "first_name": first_name, "role": role, "password": drawn.password}
        account = call(server, "POST", "users", body)
    else:
        account = call(server, "PATCH", f"users/{account['id']}", {"password": drawn.password})
    user = User(username, drawn.password, str(account["api_key"]))
    if home is not None:
        remember(home, user)
    return user


def call(server: Connection, method: str, path: str, body: dict[str, str] | None = None) -> Any:
    """One call of Argilla's API, its JSON back. Raises ServiceError, one line, without the body that was sent."""
    import httpx  # noqa: PLC0415 (a tenth of a second, and most commands ask no server)

    ours = server.home is not None
    try:
        # Our own server is on this machine: no proxy of the user's environment shall stand between.
        with httpx.Client(trust_env=not ours, timeout=30.0) as client:
            answer = client.request(
                method, f"{server.url}/api/v1/{path}", json=body, headers={"X-Argilla-Api-Key": server.api_key}
            )
    except httpx.HTTPError as error:
        raise ServiceError(f"{server.url}: Argilla does not answer ({type(error).__name__}); is it running?") from error
    if answer.is_error:
        # Not the answer's text: for a body that is not valid it repeats the body, and with it the password.
        unknown = answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN)
        advice = "check that the key is an owner's" if unknown else "the server's log says why"
        raise ServiceError(f"{server.url}: Argilla refused {method} {path} ({answer.status_code}); {advice}")
    try:
        return answer.json()
    except ValueError as error:
        raise ServiceError(f"{server.url}: does not answer as Argilla does; check the address") from error
