"""A folder in which files are imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline import __main__
from tests.annotation.imports.importing import Workplace


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    """No next step is worked out, which takes longer than the imports: `test_flow.py` has a place where it is."""
    monkeypatch.setattr(__main__, "_say_next", lambda _: None)
    return Workplace(tmp_path)
