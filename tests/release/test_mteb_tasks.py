"""Accepted sets as tasks of mteb's for somebody who has mteb alone."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import mteb

from tests.commands import here
from tests.evaluation.bundle.samples import sample_study
from tests.evaluation.bundle.test_bundle import unpacked

# A program of somebody who has mteb and not Plumbline: importing any of its packages is an error.
PLAIN = """
import importlib.abc, json, sys

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("plumbline", "annotation", "evaluation", "generation", "streamlit_app"):
            raise ImportError(f"{name} is Plumbline's")

sys.meta_path.insert(0, Refuse())
sys.path.insert(0, sys.argv[1])
import mteb, small_tasks

found = {}
for task in small_tasks.TASKS:
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


def test_plain_mteb_loads_and_scores_the_tasks_without_plumbline(tmp_path: Path) -> None:
    study = sample_study(tmp_path)
    command = ("export", "--study", str(study.file), "--exports", str(tmp_path / "exports"))
    done = here("bundle", *command, "--out", str(tmp_path / "a.zip"))
    assert done.returncode == 0 and "(6 tasks for mteb) written, read back and checked" in done.stdout, done.stderr
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_CACHE": str(tmp_path / "cache")}
    alone = [sys.executable, "-P", "-c", PLAIN, str(unpacked(tmp_path / "a.zip", tmp_path / "out"))]
    loaded = subprocess.run(alone, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert loaded.returncode == 0, loaded.stderr
    plain = json.loads(loaded.stdout.splitlines()[-1])
    assert len(plain) == 6 and all(math.isfinite(facts["score"]) for facts in plain.values())
    assert all(facts["filled"] for facts in plain.values())
    assert "StsOriginal" in plain and not set(plain).intersection(task.metadata.name for task in mteb.get_tasks())
    assert plain["StsParaphrasing"]["languages"] == ["eng-Latn"]
    assert "Verdict of simulated raters on en: accepted; quality 4.33" in plain["StsTranslation"]["description"]
