"""The pages of a study whose models failed: every page stands, and says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.records import DriftRecord, Score
from plumbline.store import read_frame, write_table
from plumbline.study import Study

from .conftest import DEMO, MODELS, VIEWS, Open
from .test_app import assert_calm, boxes, captions

WHY = "model cannot be loaded: no such folder"


def fail(study: Study, *models: str) -> None:
    """Leave what `evaluate` leaves where these models failed, and were not even tried on one data set."""
    path, drift = study.folder / "scores.parquet", study.folder / "drift.parquet"
    scores = read_frame(path, Score, "")
    mine = scores["model"].isin(models)
    scores.loc[mine, ["score", "status", "reason"]] = [float("nan"), "failed", WHY]
    write_table(path, scores[~(mine & (scores["dataset"] == "sample_retrieval"))], Score)
    moved = read_frame(drift, DriftRecord, "")
    write_table(drift, moved[~moved["model"].isin(models)], DriftRecord)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("models", [MODELS, MODELS[:1]])
def test_every_page_shows_a_study_whose_models_failed(
    page: Open, exports: Path, study: Study, view: str, models: tuple[str, ...]
) -> None:
    fail(study, *models)
    shown = page("--study", DEMO, "--exports", exports, view=view)
    assert_calm(shown)
    assert boxes(shown, "cannot be shown") == 0
    if view == "model":
        assert WHY in "".join(str(line.value) for line in (*shown.caption, *shown.text, *shown.markdown))
        assert [heading.value for heading in shown.header] == ["Scores"]  # it has no more
    if view == "robustness":
        assert any(WHY in frame.to_string() for frame in (table.value for table in shown.dataframe))
    if view == "drift" and models == MODELS:
        assert "No pair has a drift." in captions(shown)


def test_ranks_are_shown_for_the_same_items(page: Open, exports: Path, study: Study) -> None:
    """On the items that are left the second model is the better one before and after: its line does not fall."""
    path = study.folder / "scores.parquet"
    scores = read_frame(path, Score, "")
    changed = (scores["transformation"] != "original") & (scores["status"] == "evaluated")
    first = scores["model"] == MODELS[0]
    scores.loc[~changed & (scores["transformation"] == "original"), "score"] = 0.8
    scores.loc[~changed & first & (scores["transformation"] == "original"), "score"] = 0.9
    scores.loc[changed, ["n_failed", "failed_policy", "original_score", "score"]] = [5, "drop", 0.6, 0.5]
    scores.loc[changed & first, ["original_score", "score"]] = [0.5, 0.4]
    write_table(path, scores, Score)
    shown = page("--study", DEMO, "--exports", exports, view="model", model="first")
    assert_calm(shown)
    assert "rank 2 on the original texts, rank 2 on the transformed ones" in "".join(text.value for text in shown.text)
    assert next(metric for metric in shown.metric if metric.label == "Language").delta == "−10.00 points"
