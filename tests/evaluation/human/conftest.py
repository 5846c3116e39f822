from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from plumbline.study import Study
from tests.evaluation.human.rehearsed import human_study, make_human
from tests.shared import made_once


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """The sample study, evaluated; for one test to change."""
    shutil.copytree(made_once("human", make_human) / "exports", tmp_path / "exports")
    return human_study(tmp_path)
