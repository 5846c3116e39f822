"""Libraries that are imported before the page that needs them is opened."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

from streamlit_app import server
from streamlit_app.readers import OverviewReader
from tests.streamlit_app.conftest import DEMO, Open


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What is imported, which nothing really is."""
    modules: list[str] = []
    monkeypatch.setattr(server, "import_module", modules.append)
    monkeypatch.setattr(server, "SECONDS", 0)
    server.import_soon.cache_clear()
    yield modules
    server.import_soon.cache_clear()


def test_the_first_page_has_them_imported_once_and_the_others_at_once(
    page: Open, finished: Path, imported: list[str]
) -> None:
    for _ in range(2):
        page("--study", DEMO, "--exports", finished)
        server.import_soon().join()
    once = [*server.MODULES]  # for the figure of the first page, which is drawn last, and then beside it
    assert imported == [*once, *once, server.LATER, *once]
    page("--study", DEMO, "--exports", finished, view="rankings")
    assert imported == [*once, *once, server.LATER, *once, *once]


def test_one_thread_imports_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    first, go_on, inside = Event(), Event(), []

    def slow(name: str) -> None:
        inside.append(name)
        first.set()
        assert go_on.wait(60)

    monkeypatch.setattr(server, "import_module", slow)
    thread, second = Thread(target=server.import_all), Thread(target=server.import_all)
    thread.start()
    assert first.wait(60)
    second.start()
    second.join(0.05)  # would be inside by then, but for the lock
    assert inside == [server.MODULES[0]]
    go_on.set()
    thread.join()
    second.join()
    assert inside == 2 * list(server.MODULES)


@pytest.mark.usefixtures("imported")
def test_garbage_is_collected_again_once_all_is_imported() -> None:
    try:
        gc.disable()
        server.import_all()
        assert gc.isenabled()
    finally:
        gc.enable()


def test_an_extra_that_is_missing_is_left_to_the_page_that_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MODULES", ("plumbline_has_no_such_module",))
    server.import_all()
    waiting = Thread(target=server.import_all)  # which is not kept waiting for ever
    waiting.start()
    waiting.join(60)
    assert not waiting.is_alive()


def test_the_first_page_is_read_ahead_once_the_server_stands(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stands, calls = iter([False, True]), list[str]()
    monkeypatch.setattr(server.runtime, "exists", lambda: next(stands))
    for name in ("simulated", "status", "amendments", "looks"):
        monkeypatch.setattr(OverviewReader, name, lambda reader, name=name: calls.append(f"{name} {reader.study.name}"))
    server.read_ahead(str(DEMO), str(finished)).join()
    assert calls == ["simulated demo", "status demo", "amendments demo", "looks demo"]


def test_what_cannot_be_read_ahead_is_left_to_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.runtime, "exists", lambda: True)
    failed: list[object] = []
    monkeypatch.setattr("threading.excepthook", failed.append)
    server.read_ahead(str(tmp_path / "nowhere.yaml"), None).join()
    assert not failed
