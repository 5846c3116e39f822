"""Errors that keep the server from starting; `launch` turns them into one line and an exit status."""

from __future__ import annotations


class StartError(Exception):
    """The server cannot start; one line with the reason and what to do."""


class MigrationNeededError(Exception):
    """The database has an older Argilla's tables: back it up, then start again with migration."""
