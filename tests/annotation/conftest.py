"""One really started Argilla for all tests of a run that need one; each test uses a study of its own name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from annotation import server
from annotation.argilla.client import Argilla, connect
from tests.annotation.argilla_site import Site, enter


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> server.Home:
    return server.Home(tmp_path_factory.mktemp("argilla"))


@pytest.fixture(scope="session")
def argilla(home: server.Home) -> Iterator[Argilla]:
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("ARGILLA_API_URL", "ARGILLA_API_KEY"):
            patch.delenv(variable, raising=False)
        with connect(home) as connected:
            yield connected


@pytest.fixture(scope="session")
def site(argilla: Argilla, home: server.Home) -> Iterator[Site]:
    """The same server with three raters; each test publishes a dataset of its own name."""
    with server.running(home) as connection:
        yield enter(connection)
