"""One really started Argilla for all tests of a run that need one; each test uses a study of its own name."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from annotation import server
from annotation.argilla.client import Argilla, connect
from annotation.server import process
from annotation.server.home import forget, prepare
from plumbline.study import Study
from tests import forks
from tests.annotation.argilla_site import RATERS, Site, enter
from tests.scale import FULL
from tests.shared import generate_once, made_once

PATHS, START = process.PATHS, process.start
_SHARED: list[Argilla] = []  # the started server, once a test needs it


@pytest.fixture
def brief(variant: Callable[..., Study]) -> Study:
    """The sample study with three of its eight transformations and their outputs; three queues have a control each."""
    study = variant(transformations=["paraphrasing", "expansion", "summarisation"])
    generate_once(study)
    return study


@pytest.fixture(scope="session", autouse=True)
def quick_passwords() -> Iterator[None]:
    """Servers that this process starts hash passwords at the least cost, but in `make test-all`."""
    with pytest.MonkeyPatch.context() as patch:
        if not FULL:
            patch.setattr(process, "PATHS", (*PATHS, Path(__file__).with_name("quick_passwords")))
        yield


@pytest.fixture(scope="session", autouse=True)
def forked_servers() -> Iterator[None]:
    """Servers that this process starts are forked (`tests.forks`)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": forks.PopenArgilla}))
        yield


@pytest.fixture(scope="session", autouse=True)
def migrated_databases(forked_servers: None, quick_passwords: None) -> Iterator[None]:
    """New homes begin with a copy of a migrated database without accounts, but in `make test-all`.

    Migrating takes 0.4 s of each first start. The secrets and the owner are each home's own, as ever.
    """

    def start(home: server.Home, *rest: Any) -> Any:
        if not home.database.exists() and not home.database_url_file.exists():
            empty = made_once("argilla", _make_database) / "argilla.db"
            home.database.touch(0o600)
            shutil.copyfile(empty, home.database)
        return START(home, *rest)

    with pytest.MonkeyPatch.context() as patch:
        if not FULL:
            patch.setattr(process, "start", start)
        yield


def _make_database(folder: Path) -> None:
    home = server.Home(folder)
    prepare(home)
    process.Child(home, server.ensure_environment(), ("127.0.0.1",), 0).stop()
    with contextlib.closing(sqlite3.connect(home.database, isolation_level=None)) as database:
        database.execute("DELETE FROM users")
        database.execute("PRAGMA journal_mode = DELETE")  # all of it in one file


@pytest.fixture
def started_servers(migrated_databases: None) -> Iterator[None]:
    """Servers that this process starts are started, as for people: for tests of how they start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "subprocess", subprocess)
        patch.setattr(process, "start", START)
        yield


@pytest.fixture
def without_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands do not say the next step, for which each reads the study once more (a third of a command's time)."""
    monkeypatch.setattr("plumbline.__main__._say_next", lambda options: None)


@pytest.fixture(scope="module")
def usual_passwords(quick_passwords: None) -> Iterator[None]:
    """Servers hash passwords as they do for people: for tests of what signing in costs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "PATHS", PATHS)
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
            _SHARED.append(connected)
            yield connected


@pytest.fixture(scope="module", autouse=True)
def leavers(home: server.Home) -> Iterator[None]:
    """A file's raters and datasets leave the shared server with it.

    A study that names nobody lets in all who have an account, and every command lists all datasets.
    """
    yield
    for argilla in _SHARED:
        for dataset in argilla.request("GET", "/me/datasets")["items"]:
            argilla.request("DELETE", f"/datasets/{dataset['id']}")
        for user in argilla.users():
            if user.role == "annotator" and user.username not in RATERS:
                argilla.request("DELETE", f"/users/{user.id}")
                forget(home, user.username)


@pytest.fixture(scope="session")
def site(argilla: Argilla, home: server.Home) -> Iterator[Site]:
    """The same server with three raters; each test publishes a dataset of its own name."""
    with server.running(home) as connection:
        yield enter(connection)
