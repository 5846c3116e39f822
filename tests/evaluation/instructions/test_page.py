"""From a long table to the report: what counts, what stands aside, what is said, and what a command refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mteb
import numpy as np
import pandas as pd
import pytest
from mteb.models.model_meta import ModelMeta
from mteb.results import TaskResult

from evaluation.instructions.analysis import PUBLISHED, Analysis, Settings, analyse
from evaluation.instructions.grid import marked, reasons
from evaluation.instructions.page import all_exhibits, doubts, headline
from evaluation.score_frames import of_folder
from plumbline.__main__ import run
from plumbline.errors import DataError, StudyError
from plumbline.exhibits.table import csv_bytes
from tests.evaluation.instructions.made import long

RNG = np.random.default_rng(7)
SCORES = RNG.random((3, 6, 5)) / 2 + 0.3
DEFAULTS = SCORES.mean(axis=-1) + 0.05


def made(frame: pd.DataFrame | None = None, **settings: Any) -> Analysis:
    """The analysis of a table, as the command makes it."""
    return analyse(long(SCORES, DEFAULTS) if frame is None else frame, Settings(**settings))


def test_a_default_of_other_data_is_marked_and_never_matched() -> None:
    frame = long(SCORES, DEFAULTS)
    defaults = frame["prompt_id"] == "default"
    for column, value, says in (
        ("split", "validation", "split validation, but the wordings that count have test"),
        ("subset", "", "subset unknown, but the wordings that count have en"),  # a mean over languages
        ("mteb_version", "1.38", "mteb version 1.38, but the wordings that count have 2"),
        ("revision", "old", "revision old, but the wordings that count have unknown"),
        ("dataset_revision", "d0", "data set revision d0, but the wordings that count have unknown"),
        ("run", "hub", "run hub, but the wordings that count have r"),
    ):
        found = marked(frame.assign(**{column: frame[column].mask(defaults, value)}))
        assert found.loc[defaults, "why"].unique().tolist() == [says] and (found.loc[~defaults, "why"] == "").all()
    one = made(frame.assign(split=frame["split"].mask(defaults, "validation")))
    assert np.isnan(one.grid.default).sum() == 18 and (one.distribution["verdict"] == "").all()
    assert "The defaults' positions are unknown" in headline(one)[1]
    assert any("18 of 18 defaults" in line for line in doubts(one))
    assert one.recommended["default_rank"].isna().all() and "from the ranks by defaults" not in headline(one)[2]
    assert all_exhibits(one)["recommended"].printed["Default's rank"].unique().tolist() == ["–"]
    assert reasons(one.marked)["reason"].tolist() == ["another split than that of the wordings that count"]


def test_the_gate_lets_in_what_people_accepted_and_shows_the_rest() -> None:
    frame = long(SCORES, DEFAULTS)
    labels = frame["prompt_id"].map({"p0": "acceptable", "p1": "acceptable", "p2": "acceptable", "p3": "irrelevant"})
    one = made(frame.assign(label=labels.fillna(""), simulated=True))
    assert one.distribution["n"].unique().tolist() == [3]
    assert one.distribution["mean"].tolist() == pytest.approx(SCORES[..., :3].mean(axis=-1).ravel().tolist())
    assert one.gate["wordings"].tolist() == [18] * 3 and one.gate["all_wordings"].tolist() == [30] * 3
    assert one.gate["all_mean"].tolist() == pytest.approx(SCORES.mean(axis=(1, 2)).tolist())
    assert any(line == "left out: 6 wordings without a label" for line in doubts(one))
    assert any(line.startswith("unaccepted wordings count only") for line in doubts(one))
    assert not any("not accepted" in line for line in doubts(made()))
    assert doubts(one)[0].startswith("SIMULATED LABELS") and one.simulated
    assert all(any("SIMULATED" in note for note in table.notes) for table in all_exhibits(one).values())
    with pytest.raises(StudyError, match="no task has 2 accepted wordings"):
        made(frame.assign(label=labels.where(labels == "irrelevant").fillna("")))


def test_published_defaults_are_analysed_on_request() -> None:
    frame = long(SCORES, DEFAULTS)
    reported = frame[frame["prompt_id"] == "default"].assign(prompt_id="reported", split="all", run="hub")
    both = pd.concat([frame, reported.assign(score=0.2)], ignore_index=True)
    by_published = made(both, defaults=PUBLISHED)
    assert (by_published.distribution["default"] == 0.2).all()
    assert any("published scores" in line for line in doubts(by_published))
    with pytest.raises(StudyError, match="no published defaults"):
        made(defaults=PUBLISHED)


def test_the_command_writes_one_page_and_all_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = long(SCORES, DEFAULTS)
    frame["text"] = frame["text"].replace("Word 0:", "<script>alert(1)</script>")
    frame.to_parquet(tmp_path / "scores.parquet")
    out = ["--scores", str(tmp_path / "scores.parquet"), "--out", str(tmp_path / "out")]
    assert run(["sensitivity-report", *out, "--seed", "3"]) == 0
    said = capsys.readouterr().out
    assert said.count("\n") == 4 and "Over 5 wordings a task" in said
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page
    files = {path.name for path in (tmp_path / "out").rglob("*") if path.is_file()}
    for name in ("recommended", "inflation", "distribution", "variation", "boards", "best_worst"):
        assert {f"{name}.csv", f"{name}.md", f"{name}.tex"} <= files
    assert {"ranks.svg", "inflation.svg", "distribution.svg", "variation.svg"} <= files
    again = all_exhibits(made(frame, seed=3))  # the same seed gives the same numbers
    for name in ("inflation", "recommended"):
        assert csv_bytes(again[name].frame) == (tmp_path / "out" / "tables" / f"{name}.csv").read_bytes()
    with pytest.raises(StudyError, match="'-1' is not a whole number from 0"):
        run(["sensitivity-report", "--study", "studies/demo.yaml", "--seed", "-1"])


def keep(cache: mteb.ResultCache, score: float, prompt: str | None, version: str = "2.1") -> None:
    """Put a result into mteb's cache as mteb does: the model's own prompt's, or an experiment's."""
    meta = mteb.get_model_meta("sentence-transformers/all-MiniLM-L6-v2")
    kwargs = None if prompt is None else {"model_prompts": {"STS12": prompt}}
    meta = ModelMeta.model_validate({**meta.model_dump(), "experiment_kwargs": kwargs})
    scores = {
        "test": [{"main_score": score, "hf_subset": "default", "languages": ["eng-Latn"], "mteb_version": version}]
    }
    result = TaskResult(
        dataset_revision="d1", task_name="STS12", mteb_version=version, evaluation_time=1.0, scores=scores
    )
    cache.save_to_cache(result, meta)


def test_a_folder_of_mtebs_results_is_read_with_its_experiments(tmp_path: Path) -> None:
    cache = mteb.ResultCache(tmp_path)
    with pytest.raises(DataError, match="no folder 'results'"):
        of_folder(tmp_path)
    keep(cache, 0.7, None, version="1.9")
    with pytest.raises(DataError, match="no results of experiments"):
        of_folder(tmp_path)
    for score, prompt in ((0.6, "Query:"), (0.5, "Represent this"), (0.4, "")):
        keep(cache, score, prompt)
    frame, notes = of_folder(tmp_path)
    by_text = dict(
        zip(frame["text"] + frame["prompt_id"].map({"default": "default"}).fillna(""), frame["score"], strict=True)
    )
    assert by_text == {"default": 0.7, "Query:": 0.6, "Represent this": 0.5, "": 0.4}
    assert frame["prompt_id"].isin(["default", "none"]).sum() == 2 and frame["metric"].unique().tolist() == [
        "cosine_spearman"
    ]
    assert frame["task_type"].unique().tolist() == ["STS"] and frame["dataset_revision"].unique().tolist() == ["d1"]
    assert any('"Query:"' in note and "folder names replace" in note for note in notes)
    found = marked(frame)
    assert found.loc[found["prompt_id"] == "default", "why"].tolist() == [
        "mteb version 1.9, but the wordings that count have 2.1"
    ]
    keep(cache, 0.1, "Query?")  # mteb has one folder for both, and the second takes the first one's place
    assert sorted(of_folder(tmp_path)[0]["score"]) == [0.1, 0.4, 0.5, 0.7]
