"""Libraries that are imported before the page that needs them is opened."""

from __future__ import annotations

from threading import Event, Thread

import pytest

from streamlit_app import server


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
