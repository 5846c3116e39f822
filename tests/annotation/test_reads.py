"""How often a command opens each file of a study: it loads, computes from what it has, and writes."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plumbline import store
from plumbline.__main__ import run
from tests.finished import finished_study

FILES = (
    *("manifest.json", "pairs.parquet", "controls.parquet", "ratings.parquet", "control_ratings.parquet"),
    *("rules.json", "looks.json", "waves.json", "sample.json", "offered.json", "decisions.json", "members.json"),
    *("verdicts.json", "agreement.json", "pair_means.parquet", "hteb.yaml"),
)
# Each file is read once for its rows and its hash, but what a command writes and notes: `accept` reads what it wrote
# when it notes that. Verdicts are hashed once against the manifest and read once, as is a sample against its offer;
# `status` and `preview` check the questions with the study.
TWICE = {
    "accept": {"verdicts.json", "pair_means.parquet", "pairs.parquet", "controls.parquet"},
    "status": {"verdicts.json", "hteb.yaml"},
    "export": {"rules.json"},  # once as what the export rests on
    "preview": {"hteb.yaml"},
}
_opened: list[str] = []
_watching = False


def _watch(event: str, values: tuple[object, ...]) -> None:
    if _watching and event == "open" and isinstance(values[0], (str, os.PathLike)):
        written = isinstance(values[2], int) and values[2] & (os.O_WRONLY | os.O_RDWR)
        _opened.extend([] if written else [os.fspath(values[0])])


sys.addaudithook(_watch)  # for good: a hook cannot be taken back


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The paths of what is opened for reading while the test runs."""
    global _watching  # noqa: PLW0603 (the hook is the process's)

    def native_file(path: Path) -> Any:  # no event tells of what Arrow opens
        _opened.append(os.fspath(path))
        return read(path)

    read = store.native_file
    monkeypatch.setattr(store, "native_file", native_file)
    _opened.clear()
    _watching = True
    yield _opened
    _watching = False


@pytest.mark.parametrize("command", ["accept", "status", "review", "export", "preview"])
def test_a_command_reads_a_file_as_often_as_it_must(
    command: str, tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the next step, which is decided by what the command left behind: `status` reads as much."""
    monkeypatch.setattr("plumbline.__main__._say_next", lambda _: None)
    file = finished_study(tmp_path).file
    time.sleep(0.05)  # a file that changed this very moment is read again
    opened.clear()
    words = [command, "--study", str(file), "--exports", str(tmp_path / "exports")]
    assert not run(words)
    times = Counter(Path(path).name for path in opened if path.startswith(str(tmp_path)) or path.endswith(".yaml"))
    twice = TWICE.get(command, set())
    assert times["manifest.json"] and times["pairs.parquet"] and times["ratings.parquet"]
    assert {name: times[name] for name in FILES if times[name] > 1 + (name in twice)} == {}
