"""Accounts for raters, made through Argilla's own HTTP API with drawn passwords."""

from __future__ import annotations

from typing import Any, Literal

from plumbline.errors import ServiceError

from .connection import Connection
from .home import Home, User, credentials, new_user, remember
from .process import running

Role = Literal["annotator", "admin", "owner"]


def ensure_user(server: Home | Connection, username: str, first_name: str, role: Role = "annotator") -> User:
    """The account `username`, made if it is missing; calling it again changes nothing.

    On our own server the account is kept in the home's credentials file; one that exists there but whose password the
    file does not know gets a new password. On an Argilla that runs elsewhere an existing account is left as it is and
    returned with an empty password. Nothing is printed. Raises ServiceError when the server refuses or the account
    has another role.
    """
    if isinstance(server, Home):
        with running(server) as connection:
            return ensure_user(connection, username, first_name, role)
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
