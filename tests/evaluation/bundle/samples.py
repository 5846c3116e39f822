"""The finished study with licences, and its bundle."""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from evaluation.bundle.export import export
from evaluation.bundle.records import REPORTS
from evaluation.scoring import evaluate
from plumbline.study import ROOT, Study, load_study
from tests.finished import finished_study
from tests.shared import made_once

Changes = Mapping[str, Callable[[bytes], bytes] | None]  # of members, by name

DATA = ROOT / "studies" / "demo"
RIGHTS = {"licence": "apache-2.0", "domains": ["Written"], "reference": "https://example.org/sample"}
REFERENCE = RIGHTS | {"texts": "reference"}


def recorded_study(folder: Path, **changes: Any) -> Study:
    """The finished study with licences, in a folder of its own."""
    file = finished_study(folder).file
    said = yaml.safe_load(file.read_text(encoding="utf-8"))
    said["evaluation"]["models"].append({"name": "character-n-grams", "kind": "lexical"})
    rights = {one["name"]: RIGHTS for one in said["datasets"]}
    said["bundle"] = {"licence": "cc-by-4.0", "contact": "maker@example.org", "datasets": rights} | changes
    file.write_text(yaml.safe_dump(said), encoding="utf-8")
    return load_study(file, folder / "exports")


def _make(folder: Path) -> None:
    study = recorded_study(folder)
    evaluate(study, models=["character-n-grams"])
    for report in REPORTS.values():
        (study.folder / report).parent.mkdir(exist_ok=True)
        (study.folder / report).write_text("<p>a report</p>", encoding="utf-8")
    export(study, folder / "a.plumb")
    (folder / "a.plumb").chmod(0o444)


def changed(bundle: Path, path: Path, changes: Changes, added: dict[str, bytes] | None = None) -> Path:
    """A copy with members changed: a function of their bytes, None to leave one out, or new ones by name."""
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


def made_bundle() -> Path:
    """The folder of the study and its bundle, `a.plumb`, made once; not to be written to."""
    return made_once("bundle", _make)
