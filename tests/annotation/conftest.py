"""One really started Argilla for all tests of a run that need one; each test uses a study of its own name."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from annotation import server
from annotation.argilla.client import Argilla, connect
from annotation.server import child
from tests import forks
from tests.annotation.argilla_site import Site, enter
from tests.scale import FULL

PLUGIN = child.PLUGIN


@pytest.fixture(scope="session", autouse=True)
def quick_passwords() -> Iterator[None]:
    """Servers that this process starts hash passwords at the least cost, but in `make test-all`."""
    with pytest.MonkeyPatch.context() as patch:
        if not FULL:
            patch.setattr(child, "PLUGIN", f"{PLUGIN}{os.pathsep}{Path(__file__).with_name('quick_passwords')}")
        yield


@pytest.fixture(scope="session", autouse=True)
def forked_servers() -> Iterator[None]:
    """Servers that this process starts are forked (`tests.forks`)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(child, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": forks.PopenArgilla}))
        yield


@pytest.fixture
def started_servers(forked_servers: None) -> Iterator[None]:
    """Servers that this process starts are started, as for people: for tests of how they start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(child, "subprocess", subprocess)
        yield


@pytest.fixture(scope="module")
def usual_passwords(quick_passwords: None) -> Iterator[None]:
    """Servers hash passwords as they do for people: for tests of what signing in costs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(child, "PLUGIN", PLUGIN)
        yield


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
