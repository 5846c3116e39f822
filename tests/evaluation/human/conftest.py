from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from annotation.sampling.sample import draw_sample
from evaluation.human.run import evaluate_human
from plumbline.study import ROOT, Study, load_study
from tests.evaluation.human.rehearsed import write_rehearsed
from tests.shared import made_once


def _study(folder: Path) -> Study:
    """The sample study with its local models that are no networks."""
    text = (ROOT / "studies" / "human.yaml").read_text()
    text = text.replace("demo/", f"{ROOT}/studies/demo/")
    network = text.index("    - name: sentence-transformers")
    text = text[:network] + text[text.index("    - name: character-n-grams") :]
    (folder / "human.yaml").write_text(text)
    return load_study(folder / "human.yaml", folder / "exports")


def _make(folder: Path) -> None:
    study = _study(folder)
    draw_sample(study)
    write_rehearsed(study)
    evaluate_human(study)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    shutil.copytree(made_once("human", _make) / "exports", tmp_path / "exports")
    return _study(tmp_path)
