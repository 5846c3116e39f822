"""The long table of scores by prompt: what its reader takes, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from evaluation.instructions.analysis import Settings, analyse
from evaluation.instructions.scores import PromptScore, checked_scores, read_scores
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


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (table().drop(columns="score"), "no column 'score'"),
        (table(score=[0.5, 71.2, 0.4]), "row 2: 71.2 is not between -1 and 1; divide percentages by 100"),
        (table(label=["", "acceptible", ""]), "row 2: label 'acceptible' is unknown; did you mean 'acceptable'?"),
        (table(prompt_id=["default", "a", "a"]), "two scores of model m, task t, prompt_id a; keep one"),
        (table(prompt_id=["default", "a", ""]), "row 3 has no prompt_id; fill it in"),
        (table(prompt_id="a", model=["m", "n", "o"], text=["x", "x", "y"]), "'a' of task t has two texts"),
        (table(prompt_id=["Default", "a", "b"]), "row 1: prompt_id 'Default' differs from 'default' only in"),
        (table(prompt_id=["default", "a", " none"]), "row 3: prompt_id ' none' differs from 'none' only in"),
        (table(seed=[1, 1.5, 1]), "row 2: seed 1.5 is not a whole number of at most 15 digits"),
        (table(seed=10.0**30), "row 1: seed 1e+30 is not a whole number"),
        (
            table().drop(columns="prompt_id").assign(prompt=["default", "Find:", ""]),
            "row 3 has no prompt; write `none` for no prompt, `default` for the model's own",
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
