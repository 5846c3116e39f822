"""A bundle of a small study, made once; its ratings are simulated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline.study import Study, load_study
from tests.evaluation.bundle.samples import Changes, changed, made_bundle


@pytest.fixture(scope="session")
def made() -> Path:
    """The folder of a study and its bundle, `a.zip`; not to be written to."""
    return made_bundle()


@pytest.fixture
def study(made: Path) -> Study:
    return load_study(made / "study.yaml", made / "exports")


@pytest.fixture
def bundle(made: Path) -> Path:
    return made / "a.zip"


@pytest.fixture
def edited(bundle: Path, tmp_path: Path) -> Callable[..., Path]:
    """The bundle with files changed: a function of their bytes, None to leave one out, or new ones by name."""

    def edit(changes: Changes, added: dict[str, bytes] | None = None) -> Path:
        return changed(bundle, tmp_path / "edited.zip", changes, added)

    return edit
