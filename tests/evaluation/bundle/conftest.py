"""A bundle of the recorded study, made once; its ratings are simulated."""

from __future__ import annotations

import shutil
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.bundle.export import export
from evaluation.run import evaluate
from plumbline.study import ROOT, Study, load_study
from tests.shared import made_once

RECORDED = ROOT / "tests" / "recorded"
RIGHTS = {"licence": "apache-2.0", "domains": ["Written"], "reference": "https://example.org/sample"}


def recorded_study(folder: Path, **changes: Any) -> Study:
    """The recorded study with licences, in a folder of its own."""
    shutil.copytree(RECORDED / "exports", folder / "exports")
    said = yaml.safe_load((RECORDED / "study" / "recorded.yaml").read_text(encoding="utf-8"))
    for part in (*said["datasets"], said["generator"]):
        part["path"] = str(RECORDED / "study" / part["path"])
    said["evaluation"]["models"].append({"name": "character-n-grams", "kind": "lexical"})
    rights = {one["name"]: RIGHTS for one in said["datasets"]}
    said["bundle"] = {"licence": "cc-by-4.0", "contact": "maker@example.org", "datasets": rights} | changes
    file = folder / "recorded.yaml"
    file.write_text(yaml.safe_dump(said), encoding="utf-8")
    return load_study(file, folder / "exports")


def _make(folder: Path) -> None:
    study = recorded_study(folder)
    evaluate(study, models=["character-n-grams"])
    export(study, folder / "a.plumb")
    (folder / "a.plumb").chmod(0o444)


@pytest.fixture(scope="session")
def made() -> Path:
    """The folder of a study and its bundle, `a.plumb`; not to be written to."""
    return made_once("bundle", _make)


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
