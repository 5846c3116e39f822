"""How often a command opens each file of a study: it loads, computes from what it has, and writes."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from annotation.__main__ import main
from plumbline import store
from plumbline.study import ROOT

RECORDED = ROOT / "tests" / "recorded"
READ_ONCE = (
    "rules.json",
    "looks.json",
    "waves.json",
    "sample.json",
    "members.json",
    "pair_means.parquet",
    "agreement.json",
)
# Each file is read once for its rows and its hash. `accept` reads the manifest again after each write of its own (what
# changed within the clock's tick is read once more), and
# what it wrote when it notes that; verdicts are hashed once against the manifest and read once.
MOST = {
    "accept": {"manifest.json": 6, "pairs.parquet": 1, "controls.parquet": 1, "ratings.parquet": 1,
               "control_ratings.parquet": 1, "verdicts.json": 2, "pair_means.parquet": 2, "offered.json": 1,
               "hteb.yaml": 1},
    "status": {"manifest.json": 1, "pairs.parquet": 1, "controls.parquet": 1, "ratings.parquet": 1,
               "control_ratings.parquet": 1, "verdicts.json": 2, "offered.json": 1, "hteb.yaml": 1},
}  # fmt: skip
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


@pytest.mark.parametrize("command", ["accept", "status"])
def test_a_command_reads_a_file_as_often_as_it_must(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: list[str]
) -> None:
    shutil.copytree(RECORDED / "exports", tmp_path / "exports")
    time.sleep(0.05)  # a file that changed this very moment is read again
    opened.clear()
    words = [command, "--study", str(RECORDED / "study" / "recorded.yaml"), "--exports", str(tmp_path / "exports")]
    monkeypatch.setattr(sys, "argv", ["annotation", *words])
    assert not main()
    times = Counter(Path(path).name for path in opened if path.startswith(str(tmp_path)) or path.endswith(".yaml"))
    most = dict.fromkeys(READ_ONCE, 1) | MOST[command]
    assert times["rules.json"] == 1
    assert {name: times[name] for name in most if times[name] > most[name]} == {}
