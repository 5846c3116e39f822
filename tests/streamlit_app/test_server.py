"""Libraries that are imported before the page that needs them is opened."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread

import pytest

from streamlit_app import server
from streamlit_app.readers import StudyReader
from tests.streamlit_app.conftest import DEMO


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


def test_the_first_page_is_read_and_the_others_imported_once_the_server_runs(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stands, calls = iter([False, True]), list[str]()
    monkeypatch.setattr(server.runtime, "exists", lambda: next(stands))
    monkeypatch.setattr(server, "_SHOWN", 0)
    monkeypatch.setattr(server, "import_module", calls.append)
    for name in ("simulated", "status", "amendments", "looks"):
        monkeypatch.setattr(StudyReader, name, lambda reader, name=name: calls.append(f"{name} {reader.study.name}"))
    server.prepare(str(DEMO), str(finished))
    assert calls == ["simulated demo", "status demo", "amendments demo", "looks demo", *server.MODULES]


def test_what_cannot_be_read_ahead_is_left_to_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = list[str]()
    monkeypatch.setattr(server.runtime, "exists", lambda: True)
    monkeypatch.setattr(server, "_SHOWN", 0)
    monkeypatch.setattr(server, "import_module", calls.append)
    server.prepare(str(tmp_path / "nowhere.yaml"), None)
    assert calls == list(server.MODULES)
