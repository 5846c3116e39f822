"""From a long table to the report: what counts, what stands aside, what is said, and what a command refuses."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import altair as alt
import mteb
import numpy as np
import pandas as pd
import pytest
from mteb.models.model_meta import ModelMeta
from mteb.results import TaskResult

from evaluation.instructions.__main__ import report
from evaluation.instructions.analysis import PUBLISHED, Analysis, Settings, analyse, published_table
from evaluation.instructions.grid import Choice, marked, reasons, sharing_folders
from evaluation.instructions.page import all_exhibits, doubts, fallen, headline, write_report
from evaluation.instructions.scores import no_items, of_folder
from plumbline.errors import DataError, StudyError
from plumbline.exhibits.page import svg
from plumbline.exhibits.table import csv_bytes
from tests.evaluation.instructions import published
from tests.evaluation.instructions.made import long
from tests.evaluation.instructions.test_spread import PAPERS, REPORTED

RNG = np.random.default_rng(7)
SCORES = RNG.random((3, 6, 5)) / 2 + 0.3
DEFAULTS = SCORES.mean(axis=-1) + 0.05


def made(frame: pd.DataFrame | None = None, **settings: Any) -> Analysis:
    """The analysis of a table, as the command makes it."""
    return analyse(long(SCORES, DEFAULTS) if frame is None else frame, no_items(), Settings(**settings))


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
    assert one.holes == 18 and (one.distribution["verdict"] == "").all()
    assert "The defaults' positions are unknown" in headline(one)[1]
    assert any("18 of 18 defaults" in line for line in doubts(one))
    assert one.recommended["default_rank"].isna().all() and "from the ranks by defaults" not in headline(one)[2]
    assert all_exhibits(one)["recommended"].printed["Default's rank"].unique().tolist() == ["–"]
    assert reasons(one.marked)["reason"].tolist() == ["another split than that of the wordings that count"]


def test_of_a_task_with_parts_one_counts() -> None:
    """The test split of equally many; another where it is asked for."""
    frame = pd.concat([long(SCORES, DEFAULTS, split=name) for name in ("dev", "test")], ignore_index=True)
    assert marked(frame).groupby("split")["why"].agg(lambda why: bool((why == "").all())).to_dict() == {
        "dev": False,
        "test": True,
    }
    one = made(frame, choice=Choice((), {"t0": ("dev", "en")}))
    kept = one.marked[one.marked["why"] == ""]
    assert kept.loc[kept["task"] == "t0", "split"].unique().tolist() == ["dev"]
    assert any(
        "of tasks with several parts, one part is analysed (t0: dev/en; t1: test/en;" in line for line in doubts(one)
    )
    with pytest.raises(StudyError, match="no wording was scored on train/en of t0; scored parts are: dev/en, test/en"):
        marked(frame, Choice((), {"t0": ("train", "en")}))
    with pytest.raises(StudyError, match="no scores on task 't9'"):
        marked(frame, Choice(("t9",)))


def test_equal_texts_are_one_wording_and_mtebs_twins_are_named() -> None:
    frame = long(SCORES, DEFAULTS)
    worded = frame["prompt_id"] != "default"
    same = frame.assign(text=frame["text"].replace("Word 1:", "Word 0:"))
    assert marked(same).loc[same["prompt_id"] == "p1", "why"].unique().tolist() == ["the same text as p0"]
    assert made(same).distribution["n"].unique().tolist() == [4]
    twins = frame.assign(text=frame["text"].replace({"Word 0:": "Query:", "Word 1:": "Query?"}))
    assert sharing_folders(marked(twins)) == []
    copied = twins.set_index(["model", "task"])
    copied.loc[copied["prompt_id"] == "p1", "score"] = copied.loc[copied["prompt_id"] == "p0", "score"]
    assert sharing_folders(marked(copied.reset_index())) == [("Query:", "Query?")]
    assert any("share a folder in mteb's cache" in line for line in doubts(made(copied.reset_index())))
    empty = frame.assign(text=frame["text"].mask(worded & (frame["prompt_id"] == "p2"), ""))
    assert any(line.startswith("6 wordings without a text may be") for line in doubts(made(empty)))


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


def test_people_are_compared_with_machines_and_analysed_where_asked() -> None:
    scores = np.concatenate([SCORES, SCORES + 0.1], axis=-1)
    frame = long(scores, DEFAULTS)
    human = frame["prompt_id"].isin([f"p{k}" for k in range(5, 10)])
    frame = frame.assign(source=frame["source"].mask(human, "human"))
    one = made(frame)
    assert one.distribution["n"].unique().tolist() == [5] and len(one.origins) == 18
    assert one.origins["difference"].tolist() == pytest.approx([10.0] * 18)
    assert (one.origins["p_holm"] >= one.origins["p"]).all() and "sources" in all_exhibits(one)
    assert made(frame, source="human").distribution["mean"][0] == pytest.approx(scores[0, 0, 5:].mean())
    assert made(frame, source="all").distribution["n"].unique().tolist() == [10]
    with pytest.raises(StudyError, match="no wording has the source 'human'; sources are: machine"):
        made(source="human")


def test_the_report_says_where_a_conclusion_falls_once_the_default_is_matched() -> None:
    lines = fallen(published_table(replace(PAPERS, reported=REPORTED, models=tuple(published.MODELS))))
    assert "(bge-base 5 to 4; bge-small 6 to 4; KaLM 1 to 2) and matched ones (Qwen 2 to 1)" in lines[1]
    assert lines[2].startswith("published defaults are missing on some tasks of KaLM, Qwen")
    frame = long(SCORES, DEFAULTS)
    reported = frame[frame["prompt_id"] == "default"].assign(prompt_id="reported", split="all", run="hub")
    both = pd.concat([frame, reported.assign(score=0.2)], ignore_index=True)
    assert made(both).published["above_published"].tolist() == [0, 0, 0]
    by_published = made(both, defaults=PUBLISHED)
    assert (by_published.distribution["default"] == 0.2).all()
    assert any("published scores" in line for line in doubts(by_published))
    with pytest.raises(StudyError, match="no published defaults"):
        made(defaults=PUBLISHED)


def test_items_tell_what_a_choice_is_worth() -> None:
    items = RNG.random((5, 40))
    scores = np.stack([np.broadcast_to(items.mean(axis=1), (6, 5)), SCORES[0]])
    rows = [
        {"model": f"m{m}", "task": "t0", "prompt_id": f"p{k}", "item": str(n), "score": items[k, n]}
        for m in (0, 1) for k in range(5) for n in range(40)
    ]  # fmt: skip
    one = analyse(long(scores, DEFAULTS[:2]), pd.DataFrame(rows), Settings())
    right, wrong = (one.halves[one.halves["model"] == name].iloc[0] for name in ("m0", "m1"))
    assert right["naive"] == pytest.approx(items.mean(axis=1).max()) and right["lost"] > 0
    assert math.isnan(wrong["naive"]) and wrong["reason"] == "its score is not the mean over its items"


@pytest.mark.parametrize("shape", [(1, 6, 5), (3, 1, 5), (1, 1, 2)])
def test_one_model_or_one_task_has_a_report_that_says_what_it_lacks(shape: tuple[int, ...], tmp_path: Path) -> None:
    scores = SCORES[: shape[0], : shape[1], : shape[2]]
    one = made(long(scores, scores.mean(axis=-1)))
    assert len(headline(one)) == 3
    assert ("a single model has no rank" in headline(one)[2]) == (shape[0] == 1)
    assert any("intervals over tasks are unreliable" in line for line in doubts(one)) == (shape[1] == 1)
    if shape == (1, 1, 2):
        write_report(tmp_path / "out", one, "One")
    else:
        assert {"recommended", "boards", "random_wordings"} <= set(all_exhibits(one))


def test_what_cannot_be_compared_is_one_line() -> None:
    frame = long(SCORES, DEFAULTS)
    with pytest.raises(DataError, match="no wording has a score, only defaults"):
        made(frame[frame["prompt_id"] == "default"])
    with pytest.raises(DataError, match="prompt sensitivity needs at least 2"):
        made(frame[frame["prompt_id"].isin(["default", "p0"])])
    negative = made(frame.assign(score=-frame["score"]))
    assert negative.distribution["cv"].isna().all() and "mean is not above 0" in negative.distribution["reason"][0]
    assert "The coefficient of variation is undefined for" in headline(negative)[0]


def test_what_a_mean_rests_on_is_said() -> None:
    level = made(long(np.full((3, 6, 5), 0.5), np.full((3, 6), 0.5)))
    assert "all wordings" in headline(level)[2] and "first of 3, together with 2 other models" in headline(level)[2]
    lacking = SCORES.copy()
    lacking[0, 0, 3:] = math.nan
    assert any(
        line.startswith("in 1 of 18 cases (model and task) the model has no score under")
        for line in doubts(made(long(lacking)))
    )
    frame = long(SCORES, DEFAULTS)
    unsaid = frame.assign(source=frame["source"].mask(frame["prompt_id"] == "p4", ""))
    assert "left out: 6 wordings without a source (--source all includes them)" in doubts(made(unsaid))


def test_a_board_of_complete_tasks_counts_them_and_needs_one() -> None:
    defaults = DEFAULTS.copy()
    defaults[0, 0] = math.nan
    one = made(long(SCORES, defaults), holes="complete")
    assert one.boards.loc[one.boards["scenario"] == "defaults", "n_tasks"].tolist() == [5, 5, 5]
    defaults[1] = math.nan
    with pytest.raises(StudyError, match="no task has default scores of all models"):
        made(long(SCORES, defaults), holes="complete")


def test_a_figure_may_hold_many_scores() -> None:
    """12 models on 12 tasks under 44 wordings are more than altair's 5,000 rows."""
    assert len(svg(alt.Chart(pd.DataFrame({"x": range(5001)})).mark_tick().encode(x="x:Q"))) > 5001


def test_the_command_writes_one_page_and_all_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = long(SCORES, DEFAULTS)
    frame["text"] = frame["text"].replace("Word 0:", "<script>alert(1)</script>")
    frame.to_parquet(tmp_path / "scores.parquet")
    assert report(["--scores", str(tmp_path / "scores.parquet"), "--out", str(tmp_path / "out"), "--seed", "3"]) == 0
    said = capsys.readouterr().out
    assert said.count("\n") == 4 and "Over 5 wordings a task" in said
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page
    files = {path.name for path in (tmp_path / "out").rglob("*") if path.is_file()}
    for name in ("recommended", "inflation", "distribution", "variation", "boards", "random_wordings", "best_worst"):
        assert {f"{name}.csv", f"{name}.md", f"{name}.tex"} <= files
    assert {"ranks.svg", "inflation.svg", "distribution.svg", "variation.svg", "coverage.svg"} <= files
    again = all_exhibits(made(frame, seed=3))  # the same seed gives the same numbers
    for name in ("inflation", "random_wordings", "recommended"):
        assert csv_bytes(again[name].frame) == (tmp_path / "out" / "tables" / f"{name}.csv").read_bytes()
    for options, says in (
        (["--items", "x"], "--items belongs to --scores"),
        (["--seed", "-1"], "'-1' is not a whole number of at least 0"),
    ):
        with pytest.raises(StudyError, match=says):
            report(["--study", "studies/demo.yaml", *options])


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
