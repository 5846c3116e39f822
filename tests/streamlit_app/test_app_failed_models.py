"""The pages of a study whose models failed: every page stands, and says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.manifest import Manifest
from plumbline.records import DriftRecord, Score
from plumbline.store import read_frame
from plumbline.study import Study

from .conftest import DEMO, MODELS, VIEWS, Open
from .test_app import boxes, captions

WHY = "model cannot be loaded: no such folder"


def fail(study: Study, *models: str) -> None:
    """Leave what `evaluate` leaves where these models failed, and were not even tried on one data set."""
    path, drift = study.folder / "scores.parquet", study.folder / "drift.parquet"
    scores = read_frame(path, Score, "")
    mine = scores["model"].isin(models)
    scores.loc[mine, ["score", "status", "reason"]] = [float("nan"), "failed", WHY]
    Manifest.of(study).write_table(path.name, scores[~(mine & (scores["dataset"] == "sample_retrieval"))], Score)
    moved = read_frame(drift, DriftRecord, "")
    Manifest.of(study).write_table(drift.name, moved[~moved["model"].isin(models)], DriftRecord)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("models", [MODELS, MODELS[:1]])
def test_every_page_shows_a_study_whose_models_failed(
    page: Open, exports: Path, study: Study, view: str, models: tuple[str, ...]
) -> None:
    fail(study, *models)
    shown = page("--study", DEMO, "--exports", exports, view=view)
    assert boxes(shown, "cannot be shown") == 0
    if view == "scores":
        said = [*(line.value for line in shown.text), *(table.value.to_string() for table in shown.dataframe)]
        assert any(WHY in line for line in said)
    if view == "drift" and models == MODELS:
        assert "No pair has a drift." in captions(shown)
