"""Servers that several tests share."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, settings
from servers import Server, serving

settings.register_profile("argilla-embedded", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("argilla-embedded")


#: All that Argilla itself does not do.
ASKED = ("--hand-out", "--private", "--hardened", "--address", "https://argilla.example.org")


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[bool], Server]]:
    """Two servers that run until the end: Argilla as it is, and with all that it does not do."""
    with contextlib.ExitStack() as stack:

        @functools.cache
        def serve(asked: bool) -> Server:
            home = tmp_path_factory.mktemp("server") / "home"
            return stack.enter_context(serving(home, *(ASKED if asked else ())))

        yield serve
