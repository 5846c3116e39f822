"""Errors that keep the server from starting; `launch` turns them into one line and an exit status."""

from __future__ import annotations


class StartError(Exception):
    """The server cannot start; one line that says why and what to do."""


class MigrationNeededError(Exception):
    """The database holds an older Argilla's tables: whoever starts the server backs it up first, and starts again."""
