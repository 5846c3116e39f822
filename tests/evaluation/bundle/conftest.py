"""A bundle of the recorded study, made once; its ratings are simulated."""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline.study import Study, load_study
from tests.evaluation.bundle.samples import made_bundle


@pytest.fixture(scope="session")
def made() -> Path:
    """The folder of a study and its bundle, `a.plumb`; not to be written to."""
    return made_bundle()


@pytest.fixture
def study(made: Path) -> Study:
    return load_study(made / "recorded.yaml", made / "exports")


@pytest.fixture
def bundle(made: Path) -> Path:
    return made / "a.plumb"


@pytest.fixture
def edited(bundle: Path, tmp_path: Path) -> Callable[..., Path]:
    """The bundle with members changed: a function of their bytes, None to leave one out, or new ones by name."""

    def edit(changes: dict[str, Callable[[bytes], bytes] | None], added: dict[str, bytes] | None = None) -> Path:
        path = tmp_path / "edited.plumb"
        with zipfile.ZipFile(bundle) as old, zipfile.ZipFile(path, "w") as new:
            for one in old.infolist():
                change = changes.get(one.filename, bytes)
                if change is not None:
                    new.writestr(one, change(old.read(one)))
            for name, content in (added or {}).items():
                info = zipfile.ZipInfo(name)
                link = stat.S_IFLNK if name.startswith("link") else stat.S_IFREG
                info.external_attr = (link | 0o644) << 16
                new.writestr(info, content)
        return path

    return edit
