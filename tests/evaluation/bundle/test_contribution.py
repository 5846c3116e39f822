"""Accepted sets as tasks of mteb's: loaded by plain mteb, with all that its tests of new tasks ask for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mteb.results import TaskResult

from evaluation.bundle.contribution import export_tasks
from plumbline.errors import StudyError
from tests.commands import here
from tests.evaluation.bundle.samples import recorded_study

# A program of somebody who has mteb and not Plumbline: importing any of its packages is an error.
PLAIN = """
import importlib.abc, json, sys

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("plumbline", "annotation", "evaluation", "generation", "streamlit_app"):
            raise ImportError(f"{name} is Plumbline's")

sys.meta_path.insert(0, Refuse())
sys.path.insert(0, sys.argv[1])
import mteb, recorded_tasks

found = {}
for task in recorded_tasks.TASKS:
    task.metadata._validate_metadata()
    result = mteb.evaluate(mteb.get_model("mteb/baseline-random-encoder"), task, cache=None, co2_tracker=False)
    found[task.metadata.name] = {
        "filled": task.metadata.is_filled(),
        "score": result[0].get_score(),
        "description": task.metadata.description,
        "languages": task.metadata.eval_langs,
    }
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tasks")
    study = recorded_study(place)
    command = ("export", "--study", str(study.file), "--exports", str(place / "exports"), "--format", "mteb")
    done = here("evaluation.bundle", *command, "--out", str(place / "out"))
    assert done.returncode == 0, done.stderr
    assert "6 tasks for mteb, loaded and scored, its ratings SIMULATED" in done.stdout
    return place / "out"


@pytest.fixture(scope="module")
def plain(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What somebody with mteb alone makes of the folder."""
    place = tmp_path_factory.mktemp("plain")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_CACHE": str(place / "cache")}
    command = [sys.executable, "-P", "-c", PLAIN, str(folder)]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_plain_mteb_loads_and_scores_the_tasks_without_plumbline(folder: Path, plain: Any) -> None:
    results = folder / "results" / "mteb__baseline-random-encoder"
    filed = {file.stem: TaskResult.from_disk(file).get_score() for file in results.glob("*/Sample*.json")}
    assert len(filed) == 6 and {name: facts["score"] for name, facts in plain.items()} == pytest.approx(filed, abs=1e-6)
    assert all(facts["filled"] for facts in plain.values())
    assert plain["SampleStsTranslation"]["languages"] == ["spa-Latn"]
    assert "Verdict of simulated raters on en: accepted; quality 4.67" in plain["SampleStsTranslation"]["description"]


def test_statistics_are_where_mteb_looks_for_them(folder: Path, plain: Any) -> None:
    filed = {file.stem: json.loads(file.read_bytes()) for file in folder.glob("descriptive_stats/*/*.json")}
    assert set(filed) == set(plain)
    sts, intents = filed["SampleStsParaphrasing"]["test"], filed["SampleIntentsParaphrasing"]
    assert (sts["num_samples"], sts["unique_pairs"], sts["label_statistics"]["max_score"]) == (23, 23, 5.0)
    assert (intents["test"]["num_samples"], intents["test"]["samples_in_train"]) == (12, 0)
    assert intents["test"]["text_statistics"]["unique_texts"] == 12


def test_what_mteb_asks_and_the_study_does_not_say_is_named(tmp_path: Path) -> None:
    rights = {name: {"licence": "apache-2.0"} for name in ("sample_sts", "sample_intents")}
    with pytest.raises(StudyError, match="the address of a page about each data set.*'sample_sts'"):
        export_tasks(recorded_study(tmp_path, datasets=rights), tmp_path / "out")
    assert not (tmp_path / "out").exists()
