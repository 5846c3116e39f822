"""Scores of people, of wordings and of models that failed, and the links to reports."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from evaluation.score_frames import SCORES, PromptScore
from plumbline.manifest import Manifest
from plumbline.records import DriftRecord, Score
from plumbline.store import read_frame
from plumbline.study import ROOT, Study, load_study
from tests.evaluation.human.rehearsed import human_study, make_human
from tests.evaluation.instructions.made import long
from tests.shared import made_once
from tests.streamlit_app.conftest import DEMO, MODELS, Open
from tests.streamlit_app.test_app import assert_calm, boxes, captions, commands, specs, table_with, texts


def test_scores_of_wordings_are_those_of_the_report(page: Open, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    scores = rng.random((3, 5, 6)) / 2 + 0.3
    frame = long(scores, scores.mean(axis=-1), label="acceptable", simulated=True)
    study = load_study(ROOT / "studies" / "instructions.yaml", tmp_path)
    Manifest.of(study).write_table(SCORES, frame, PromptScore)
    shown = page("--study", ROOT / "studies" / "instructions.yaml", "--exports", tmp_path, view="scores")
    assert_calm(shown)
    assert [heading.value for heading in shown.header] == ["In full"]
    assert "Over 6 wordings a task, the scores of 3 models on 5 tasks vary by" in texts(shown)
    assert any("SIMULATED LABELS" in warning.value for warning in shown.warning)
    assert len(specs(shown)) == 2
    board = table_with(shown, "Mean over wordings [95%]").set_index("Model")
    for model, mean in zip(("m0", "m1", "m2"), 100 * scores.mean(axis=(1, 2)), strict=True):
        assert board.loc[model, "Mean over wordings [95%]"].startswith(f"{mean:.2f} [")


def test_scores_of_people_are_those_of_the_report(page: Open, tmp_path: Path) -> None:
    shutil.copytree(made_once("human", make_human) / "exports", tmp_path / "exports")
    study = human_study(tmp_path)
    for view in ("answer", "scores"):
        shown = page("--study", study.file, "--exports", tmp_path / "exports", view=view)
        assert_calm(shown)
        assert "On 6 tasks people score" in texts(shown)
        assert sum("SIMULATED" in warning.value for warning in shown.warning) == 1
    assert [heading.value for heading in shown.header] == ["In full"] and len(specs(shown)) == 2
    assert len(table_with(shown, "Raters' mean [95%]", "Best model")) == 7  # one task in two languages
    assert commands(shown)[-1].startswith("plumbline human-report --study")


def test_a_written_report_is_linked(page: Open, exports: Path) -> None:
    (exports / "demo" / "report").mkdir()
    (exports / "demo" / "report" / "index.html").write_text("whole", encoding="utf-8")
    shown = page("--study", DEMO, "--exports", exports, view="verdicts")
    assert str(exports / "demo" / "report" / "index.html") in texts(shown)
    assert "Download the report" in [button.label for button in shown.download_button]


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


@pytest.mark.parametrize(
    ("models", "views"), [(MODELS, ("answer", "drift", "scores", "texts")), (MODELS[:1], ("drift", "scores"))]
)
def test_pages_with_models_show_a_study_whose_models_failed(
    page: Open, exports: Path, study: Study, models: tuple[str, ...], views: tuple[str, ...]
) -> None:
    fail(study, *models)
    for view in views:
        shown = page("--study", DEMO, "--exports", exports, view=view)
        assert boxes(shown, "cannot be shown") == 0
        if view == "scores":
            assert WHY in texts(shown)  # in the table of what was left out
        if view == "drift" and models == MODELS:
            assert "No pair has a drift." in captions(shown)
