"""One finished study for all bad inputs; each spoils a copy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.shared import made_once

from .ground import SECRET, Bad, Place, build, copy, left, run


@pytest.fixture(scope="session")
def ground() -> Place:
    """Not to be written to."""
    return Place(made_once("ground", build))


@pytest.fixture
def assert_refused(ground: Place, tmp_path: Path) -> Callable[[Bad], None]:
    """Hold that a command refuses a bad input in one line that says enough, and leaves everything as it was."""

    def check(bad: Bad) -> None:
        place = copy(ground, tmp_path / "place")
        bad.spoil(place)
        before = left(place)
        done = run(bad.command, place, bad.environment)
        assert (done.status, done.out) == (2, "")
        (line,) = [line for line in done.err.splitlines() if line.strip() and "text/s" not in line]  # no bars
        assert line.startswith("error: ")
        for words in bad.says:
            assert words in line
        assert SECRET not in done.err
        assert "Traceback" not in done.err
        assert len(line) < 1500
        assert left(place) == before

    return check
