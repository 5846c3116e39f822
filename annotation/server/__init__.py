"""The platform's own Argilla: the real server and its real web pages, with SQLite and nothing else to install.

    home = Home()                                  # ./.argilla
    with running(home) as connection:              # the server that already runs on this home, or a new one
        rater = ensure_user(connection, "ada", first_name="Ada")
        client = argilla.Argilla(api_url=connection.url, api_key=connection.api_key)

The server has its own environment (its pins exclude the platform's versions), created on first use from
`constraints/argilla-server.txt`. The server itself is in `packages/argilla-embedded`, and Plumbline's additions are in
`plugin/`; nothing here imports them.
"""

from __future__ import annotations

from .backup import backup, restore
from .database import URL_VARIABLE, has_database
from .home import OWNER, Connection, Credentials, Home, User, credentials, ensure_user, is_loopback, make_folder
from .process import ensure_environment, running, serve

__all__ = [
    "OWNER",
    "URL_VARIABLE",
    "Connection",
    "Credentials",
    "Home",
    "User",
    "backup",
    "credentials",
    "ensure_environment",
    "ensure_user",
    "has_database",
    "is_loopback",
    "make_folder",
    "restore",
    "running",
    "serve",
]
