"""Finding the server that runs on a home, and the key with which to talk to it."""

from __future__ import annotations

import fcntl
import ipaddress
import time
from dataclasses import dataclass, field
from typing import Any

from plumbline.errors import DataError, ServiceError
from plumbline.reading import read_json

from .home import Home, credentials, private

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
    import httpx  # noqa: PLC0415 (a tenth of a second, and most commands ask no server)

    try:
        state: Any = read_json(home.state)
        url = str(state["url"])
    except (DataError, OSError, KeyError, TypeError):
        return None  # not written yet, or left behind by a server that was killed
    owner = credentials(home).owner
    try:
        # trust_env: a proxy of the user's environment must not see the key of a server on this machine.
        with httpx.Client(trust_env=False, timeout=5.0) as client:
            answer = client.get(f"{url}/api/v1/me", headers={"X-Argilla-Api-Key": owner.api_key})
    except httpx.HTTPError:
        return None
    return Connection(url, owner.api_key, home) if answer.status_code == httpx.codes.OK else None
