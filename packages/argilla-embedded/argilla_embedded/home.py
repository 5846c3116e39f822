"""The files that a home needs before its server's first start: a secret, and the owner's account.

Nothing in them is ever a default: both are drawn here, and written with mode 0600. A program that starts the server may
have created the two files before.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from pathlib import Path

from .errors import StartError

SECRET, CREDENTIALS = Path("secret"), Path("credentials.json")
DATABASE = Path("database-url")  #: PostgreSQL's address; without it the database is SQLite's, in the home
VARIABLE = "ARGILLA_EMBEDDED_DATABASE_URL"  #: for an address with a password: every user can read a command line
POSTGRESQL = re.compile(r"postgres(?:ql)?(?:\+\w+)?://")
PASSWORD = re.compile(r"://[^/?@]*:[^?]*@|[?&]password=")  #: which may contain a slash
OWNER = "owner"


def prepare(home: Path, database_url: str | None = None) -> bool:
    """Create the folder and its missing files; return whether the owner is new. Raises StartError.

    `database_url`, or else the variable VARIABLE, is this home's PostgreSQL database from now on.
    """
    address = database_url or os.environ.get(VARIABLE)
    if address and not POSTGRESQL.match(address):
        named = "--database-url" if database_url else VARIABLE
        raise StartError(f"{named}: write it as postgresql://user@host/database")
    if database_url and PASSWORD.search(database_url):
        raise StartError(
            f"--database-url: has a password, which other users of this machine can read; put the address into"
            f" {VARIABLE}"
        )
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not (home / SECRET).exists():
            write(home / SECRET, secrets.token_urlsafe(48))
        if address:
            write(home / DATABASE, POSTGRESQL.sub("postgresql+asyncpg://", address, count=1) + "\n")
        if (home / CREDENTIALS).exists():
            return False
        owner = {"username": OWNER, "password": secrets.token_urlsafe(16), "api_key": secrets.token_urlsafe(32)}
        write(home / CREDENTIALS, json.dumps({"owner": owner}, indent=2) + "\n")
        return True
    except OSError as error:
        raise StartError(
            f"{home}: not usable as the server's folder ({error.strerror}); choose another folder (--home)"
        ) from error


def write(file: Path, text: str) -> None:
    """Write a file in one step; only its owner can read it."""
    new = file.with_name(file.name + ".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    new.replace(file)


def owner(home: Path) -> dict[str, str]:
    """The owner's username, password and api_key. Raises StartError where the file is damaged."""
    try:
        content = json.loads((home / CREDENTIALS).read_text(encoding="utf-8"))["owner"]
        return {name: str(content[name]) for name in ("username", "password", "api_key")}
    except (ValueError, KeyError, TypeError) as error:
        raise StartError(
            f"{home / CREDENTIALS} is damaged; move it away and start again: the owner gets a new password"
        ) from error
