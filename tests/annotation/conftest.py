"""One really started Argilla for all tests of a run that need one; each test uses a study of its own name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from annotation import server
from annotation.argilla.client import Argilla, connect


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
