"""Servers that several tests share."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, settings
from servers import Server, serving

settings.register_profile("argilla-embedded", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("argilla-embedded")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Servers that run until the end of a module, by their options."""
    with contextlib.ExitStack() as stack:
        servers: dict[tuple[str, ...], Server] = {}

        def serve(*options: str) -> Server:
            if options not in servers:
                home = tmp_path_factory.mktemp("server") / "home"
                servers[options] = stack.enter_context(serving(home, *options))
            return servers[options]

        yield serve
