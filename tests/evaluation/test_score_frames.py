"""The long frame of scores: what its readers take of tables and of mteb's result files, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mteb
import pandas as pd
import pytest
from mteb.models.model_meta import ModelMeta
from mteb.results import TaskResult

from evaluation.benchmarks.scores import of_results
from evaluation.instructions.analysis import Settings, analyse
from evaluation.score_frames import PromptScore, checked_scores, of_folder, read_scores
from plumbline.errors import DataError

WHERE = Path("scores.csv")


def table(**columns: object) -> pd.DataFrame:
    """Two wordings and the default of one model and task."""
    made = {"model": "m", "task": "t", "prompt_id": ["default", "a", "b"], "score": [0.5, 0.6, 0.4]}
    return pd.DataFrame(made | columns)


def test_a_table_gets_all_columns_in_their_types() -> None:
    frame = checked_scores(table(prompt_source=["default", "machine", "human"], model_revision="r1"), WHERE)
    assert list(frame) == list(PromptScore.model_fields)
    assert frame["source"].tolist() == ["", "machine", "human"]  # whose words a default is, its model says
    assert frame["revision"].unique().tolist() == ["r1"]
    assert frame["seed"].dtype == "int64" and not frame["simulated"].any() and (frame["label"] == "").all()


def test_a_model_that_has_only_defaults_of_two_revisions_is_in_no_table() -> None:
    other = pd.DataFrame(
        {"model": "other", "task": "t", "prompt_id": "default", "score": [0.3, 0.2], "revision": ["a", "b"]}
    )
    frame = pd.concat([table(revision="a"), other], ignore_index=True)
    analysis = analyse(checked_scores(frame, WHERE), Settings(parts={"t": ("", "")}))
    assert analysis.grid.models == ("m",) and analysis.grid.scores.shape == (1, 1, 2)


def test_prompts_without_ids_are_told_apart_by_their_exact_text() -> None:
    frame = table().drop(columns="prompt_id").assign(prompt=["none", "Query:", "Query?"])
    found = checked_scores(frame, WHERE)
    assert found["prompt_id"].iloc[0] == "none" and found["prompt_id"].nunique() == 3
    assert found["text"].tolist() == ["", "Query:", "Query?"]


def test_a_file_is_read_with_its_empty_cells(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("model,task,prompt_id,score,simulated\nm,t,default,0.5,\nm,t,a,,true\n")
    found = read_scores(path)
    assert found["score"].isna().tolist() == [False, True] and found["simulated"].tolist() == [False, True]
    for score, label in (("high", ""), ("0.1", "acceptible")):
        path.write_text(f"model,task,prompt_id,score,label\nm,t,default,0.5,\n\nm,t,a,{score},{label}\n")
        with pytest.raises(DataError, match="row 4"):
            read_scores(path)


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (table().drop(columns="score"), "no column 'score'"),
        (table(score=[0.5, 71.2, 0.4]), "row 3: 71.2 is not between -1 and 1; divide percentages by 100"),
        (table(label=["", "acceptible", ""]), "row 3: label 'acceptible' is unknown; did you mean 'acceptable'?"),
        (table(prompt_id=["default", "a", "a"]), "two scores of model m, task t, prompt_id a; keep one"),
        (table(prompt_id=["default", "a", ""]), "row 4 has no prompt_id; fill it in"),
        (table(prompt_id="a", model=["m", "n", "o"], text=["x", "x", "y"]), "'a' of task t has two texts"),
        (table(prompt_id=["Default", "a", "b"]), "row 2: prompt_id 'Default' differs from 'default' only in"),
        (table(prompt_id=["default", "a", " none"]), "row 4: prompt_id ' none' differs from 'none' only in"),
        (table(seed=[1, 1.5, 1]), "row 3: seed 1.5 is not a whole number of at most 15 digits"),
        (table(seed=10.0**30), "row 2: seed 1e+30 is not a whole number"),
        (
            table().drop(columns="prompt_id").assign(prompt=["default", "Find:", ""]),
            "row 4 has no prompt; write `none` for no prompt, `default` for the model's own",
        ),
    ],
)  # fmt: skip
def test_what_is_no_such_table_is_one_line(frame: pd.DataFrame, says: str) -> None:
    with pytest.raises(DataError) as error:
        checked_scores(frame, WHERE)
    assert str(error.value).startswith("scores.csv: ") and says in str(error.value)


def test_public_results_of_the_default_are_defaults_of_their_run() -> None:
    frame = table(prompt_id=["official", "a", "b"], source=["default", "machine", "machine"], run=["hub", "r", "r"])
    assert checked_scores(frame, WHERE)["prompt_id"].tolist() == ["default", "a", "b"]


def write_result(folder: Path, score: float, prompt: str | None = None) -> None:
    """A result of `org/model` on STS12, as mteb writes it, by its own prompt or in an experiment."""
    kwargs = None if prompt is None else {"model_prompts": {"STS12": prompt}}
    meta = ModelMeta.create_empty({"name": "org/model", "revision": "r1", "experiment_kwargs": kwargs})
    part: Any = {"main_score": score, "hf_subset": "default", "languages": ["eng-Latn"]}
    result = TaskResult(
        dataset_revision="d1", task_name="STS12", mteb_version="2.1", evaluation_time=1.0, scores={"test": [part]}
    )
    mteb.ResultCache(folder).save_to_cache(result, meta)


def test_a_board_and_a_report_on_wordings_say_the_same_of_a_broken_result_file(tmp_path: Path) -> None:
    write_result(tmp_path, 0.6, "Query:")
    write_result(tmp_path, 0.7)
    (file,) = tmp_path.glob("results/*/*/STS12.json")
    result, about = json.loads(file.read_text()), file.with_name("model_meta.json")
    (part,) = result["scores"]["test"]
    broken = {
        "{": "not a result file of mteb; delete it, or fetch it again",
        "[]": "not a result file of mteb; delete it, or fetch it again",
        json.dumps(result | {"scores": {"test": [{"hf_subset": "default"}]}}): "not a result file of mteb; delete it",
        **{
            json.dumps(result | {"scores": {"test": [part | {"main_score": score}]}}): "main_score .* is no number"
            for score in ("high", True, float("inf"))
        },
    }
    tasks = [mteb.get_task("STS12")]
    for content, says in broken.items():
        file.write_text(content)
        for read in (lambda: of_folder(tmp_path), lambda: of_results(tmp_path, tasks, lambda: None)):
            with pytest.raises(DataError, match=f"{file}: {says}"):
                read()
    file.write_text(json.dumps(result))
    about.write_text("[]")
    for read in (lambda: of_folder(tmp_path), lambda: of_results(tmp_path, tasks, lambda: None)):
        with pytest.raises(DataError, match=f"{about}: not a file of mteb"):
            read()


def test_a_model_without_a_revision_is_on_the_board(tmp_path: Path) -> None:
    write_result(tmp_path, 0.7)
    (about,) = tmp_path.glob("results/*/*/model_meta.json")
    about.write_text(json.dumps(json.loads(about.read_text()) | {"revision": None}))
    scores = of_results(tmp_path, [mteb.get_task("STS12")], lambda: None)
    assert scores.frame.to_dict() == {"STS12": {"org/model": 0.7}}


def test_a_file_without_scores_is_a_gap_on_the_board_and_no_score_of_a_wording(tmp_path: Path) -> None:
    write_result(tmp_path, 0.6, "Query:")
    write_result(tmp_path, 0.7)
    (file,) = tmp_path.glob("results/*/*/STS12.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"scores": {}}))
    frame = of_results(tmp_path, [mteb.get_task("STS12")], lambda: None).frame
    assert list(frame.index) == ["org/model"] and frame["STS12"].isna().all()
    assert of_folder(tmp_path)[0]["score"].tolist() == [0.6]
