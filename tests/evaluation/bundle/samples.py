"""The recorded study with licences, and its bundle."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import yaml

from evaluation.bundle.export import export
from evaluation.bundle.members import REPORTS
from evaluation.run import evaluate
from plumbline.study import ROOT, Study, load_study
from tests.shared import made_once

RECORDED = ROOT / "tests" / "recorded"
RIGHTS = {"licence": "apache-2.0", "domains": ["Written"], "reference": "https://example.org/sample"}
REFERENCE = RIGHTS | {"texts": "reference"}


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
    for report in REPORTS.values():
        (study.folder / report).parent.mkdir(exist_ok=True)
        (study.folder / report).write_text("<p>a report</p>", encoding="utf-8")
    export(study, folder / "a.plumb")
    (folder / "a.plumb").chmod(0o444)


def made_bundle() -> Path:
    """The folder of the study and its bundle, `a.plumb`, made once; not to be written to."""
    return made_once("bundle", _make)
