"""A small study that has come to its end, for each bad input to spoil a copy of, and what a command then did."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml

from annotation.campaign.records import CampaignRecords
from evaluation.models.encoder import Encoder, ModelHost
from plumbline.study import ROOT, load_study
from plumbline.study.evaluation import ModelSpec
from tests.annotation.imports.importing import Done
from tests.commands import here
from tests.evaluation.conftest import Loader

COLUMNS = "pair=Pair,rater=Who,quality=Q,fluency=F,time=When"
SECRET = "hunter2"
LOOSE = (".lock", ".key")  # files that a refused command may leave


@dataclass(frozen=True)
class Place:
    """A folder with a study of its own: its file, data, records and home."""

    root: Path

    @property
    def file(self) -> Path:
        return self.root / "study.yaml"

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def records(self) -> Path:
        return self.root / "exports" / "small"

    @property
    def csv(self) -> Path:
        return self.root / "answers.csv"

    def change(self, path: str, value: Any) -> None:
        """Set a value of the study, by its keys with dots between."""
        content = yaml.safe_load(self.file.read_text(encoding="utf-8"))
        *way, last = (int(key) if key.isdecimal() else key for key in path.split("."))
        at = content
        for key in way:
            at = at.setdefault(key, {}) if isinstance(at, dict) else at[key]
        at[last] = value
        self.file.write_text(yaml.safe_dump(content), encoding="utf-8")


Spoil = Callable[[Place], None]


def instead(file: Callable[[Place], Path], make: Callable[[Path], object]) -> Spoil:
    """Put something else in the place of a file."""

    def spoil(place: Place) -> None:
        file(place).unlink(missing_ok=True)
        make(file(place))

    return spoil


@dataclass(frozen=True)
class Bad:
    """One bad input: which command meets it, how it comes about, and what the line holds."""

    name: str
    command: str
    spoil: Spoil
    says: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


def run(words: str, place: Place, environment: Mapping[str, str]) -> Done:
    """Run a command in this process: {p} is the place, {s} its study."""
    ours = {"ARGILLA_API_URL": None, "ARGILLA_API_KEY": None, "PLUMBLINE_ARGILLA_HOME": str(place.root / "home")}
    rest = [word.format(p=place.root, s=f"{place.file}", e=f"{place.root / 'exports'}") for word in words.split()]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**ours, **environment}.items():
            patch.delenv(name, raising=False) if value is None else patch.setenv(name, value)
        patch.setattr(ModelHost, "load", _load)
        done = here(*rest)
    return Done(done.returncode, done.stdout, done.stderr)


def _load(host: ModelHost, spec: ModelSpec, load: Any = ModelHost.load) -> Encoder:
    """The model `fake` is made up, others are what they are."""
    return Loader()(host, spec) if spec.name == "fake" else load(host, spec)


def left(place: Place) -> dict[str, str]:
    """Name and content of every file of a place but locks and keys, as a sum."""
    found = {}
    for file in sorted(place.root.rglob("*")):
        if file.is_file() and not file.name.endswith(LOOSE):
            found[str(file.relative_to(place.root))] = sha256(file.read_bytes()).hexdigest()
    return found


def build(root: Path) -> Place:
    place = Place(root)
    shutil.copytree(ROOT / "studies" / "demo", place.data)
    content = {
        "name": "small",
        "datasets": [
            {"name": "sentences", "task": "sts", "path": "data/pairs.csv", "language": "en"},
            {"name": "requests", "task": "classification", "path": "data/requests.csv", "language": "en",
             "columns": {"label": "intent"}},
            {"name": "search", "task": "retrieval", "path": "data/retrieval", "language": "en"},
        ],
        "transformations": ["paraphrasing", "style_change"],
        "seeds": [1337],
        "generator": {"kind": "recorded", "model": "m", "path": "data/outputs"},
        "sample": {"pairs": 6, "controls": 1, "repeats": 1},
        "raters": {"per_pair": 3},
        "acceptance": {"min_pairs": 4},
        "evaluation": {"models": [{"name": "fake", "revision": "1"}]},
    }  # fmt: skip
    place.file.write_text(yaml.safe_dump(content), encoding="utf-8")
    _must(run("generate --study {s} --exports {e}", place, {}))
    _must(run("sample --study {s} --exports {e}", place, {}))
    study = load_study(place.file, root / "exports")
    rows = ["Pair,Who,Q,F,When"]
    for number, pair in enumerate(CampaignRecords(study).pairs):
        rows += [
            f"{pair.pair_id},{who},{3 + (number + turn) % 3},{4 + turn % 2},2026-03-0{turn + 1}T10:{number:02d}:00"
            for turn, who in enumerate(("ada", "bob", "cleo"))
        ]
    place.csv.write_text("\n".join(rows) + "\n", encoding="utf-8")
    _must(run(f"collect --study {{s}} --exports {{e}} --csv {{p}}/answers.csv --columns {COLUMNS}", place, {}))
    _must(run("accept --study {s} --exports {e}", place, {}))
    _must(run("evaluate --study {s} --exports {e}", place, {}))
    return place


def _must(done: Done) -> None:
    if done.status:
        raise AssertionError(done.err)


def copy(place: Place, root: Path) -> Place:
    shutil.copytree(place.root, root, copy_function=shutil.copy)
    os.utime(root)
    return Place(root)
