"""Scores of people and of wordings, and the links to reports."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from evaluation.instructions.scores import SCORES, PromptScore
from plumbline.manifest import Manifest
from plumbline.study import ROOT, load_study
from tests.evaluation.human.rehearsed import human_study, make_human
from tests.evaluation.instructions.made import long
from tests.shared import made_once
from tests.streamlit_app.conftest import DEMO, Open
from tests.streamlit_app.test_app import assert_calm, commands, specs, table_with, texts


def test_scores_of_wordings_are_those_of_the_report(page: Open, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    scores = rng.random((3, 5, 6)) / 2 + 0.3
    frame = long(scores, scores.mean(axis=-1), label="acceptable", simulated=True)
    study = load_study(ROOT / "studies" / "instructions.yaml", tmp_path)
    Manifest.of(study).write_table(SCORES, frame, PromptScore)
    shown = page("--study", ROOT / "studies" / "instructions.yaml", "--exports", tmp_path, view="scores")
    assert_calm(shown)
    assert [heading.value for heading in shown.header] == ["In short", "In full"]
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
    assert [heading.value for heading in shown.header] == ["In short", "In full"] and len(specs(shown)) == 2
    assert len(table_with(shown, "Raters' mean [95%]", "Best model")) == 7  # one task in two languages
    assert commands(shown)[-1].startswith("plumbline human-report --study")


def test_a_written_report_is_linked(page: Open, exports: Path) -> None:
    (exports / "demo" / "report").mkdir()
    (exports / "demo" / "report" / "index.html").write_text("whole", encoding="utf-8")
    shown = page("--study", DEMO, "--exports", exports, view="verdicts")
    assert str(exports / "demo" / "report" / "index.html") in texts(shown)
    assert "Download the report" in [button.label for button in shown.download_button]
