"""A small study with simulated ratings and licences, and its bundle."""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from annotation.campaign.records import CampaignRecords
from annotation.verdicts.acceptance import accept
from evaluation.bundle.export import export
from evaluation.scoring import evaluate
from plumbline.manifest import Manifest
from plumbline.records import Rating
from plumbline.study import Study
from tests.evaluation.conftest import note_supplies, write_outputs, write_pairs, write_study
from tests.shared import made_once, note_outputs, rating_of

Changes = Mapping[str, Callable[[bytes], bytes] | None]  # of files in a bundle, by name

NGRAMS = "character-n-grams"
_VALUES = ((5, 4), (4, 5), (4, 4))  # of quality and fluency, by each of three raters


def sample_study(folder: Path, **bundle: Any) -> Study:
    """A study of two data sets and transformations, all accepted by simulated raters, with these facts for a bundle."""
    rights = dict.fromkeys(("sts", "requests"), "apache-2.0")
    said = {"licence": "cc-by-4.0", "metadata": {"url": "https://example.org/sample"}, "licences": rights} | bundle
    models = [{"name": "one", "revision": "1", "path": "my-weights"}, {"name": NGRAMS, "kind": "lexical"}]
    study = write_study(folder, description="A small study", evaluation={"models": models}, bundle=said)
    write_outputs(study)
    rated = {pair.key for pair in write_pairs(study)}
    for name in study.transformations:  # other outputs lack a word, so that each set has another score
        frame = pd.read_parquet(study.transformation_file(name, 1337))
        frame["output"] = frame["output"].where(frame["key"].isin(rated), frame["output"].str.partition(" ")[2])
        note_outputs(study, name, 1337, frame)
    note_supplies(study)
    ratings = [
        rating_of(
            pair,
            f"simulated-{number:08x}",
            question,
            value,
            source="simulated",
            batch="the batch",
            seconds=7.0,
            comment=f"I read {pair.original}",
            simulated=True,
        )
        for pair in CampaignRecords(study).pairs
        for number, values in enumerate(_VALUES)
        for question, value in zip(("quality", "fluency"), values, strict=True)
    ]
    Manifest.of(study).write_table("ratings.parquet", ratings, Rating)
    Manifest.of(study).write_table("control_ratings.parquet", list[Rating](), Rating)
    accept(study)
    return study


def _make(folder: Path) -> None:
    study = sample_study(folder)
    evaluate(study, models=[NGRAMS])
    export(study, folder / "a.zip")
    (folder / "a.zip").chmod(0o444)


def made_bundle() -> Path:
    """The folder of the study and its bundle, `a.zip`, made once; not to be written to."""
    return made_once("bundle", _make)


def changed(bundle: Path, path: Path, changes: Changes, added: dict[str, bytes] | None = None) -> Path:
    """A copy with files changed: a function of their bytes, None to leave one out, or new ones by name."""
    with zipfile.ZipFile(bundle) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.infolist():
            change = changes.get(member.filename, bytes)
            if change is not None:
                new.writestr(member.filename, change(old.read(member)))
        for name, content in (added or {}).items():
            info = zipfile.ZipInfo(name)
            link = stat.S_IFLNK if name.startswith("link") else stat.S_IFREG
            info.external_attr = (link | 0o644) << 16
            new.writestr(info, content)
    return path
