"""Tables that evaluation wrote, changed by hand: no run keeps them, nothing shows them, and they can be made again."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from evaluation.records import EvaluationRecords
from evaluation.scoring import evaluate
from plumbline.errors import DataError
from plumbline.study import Study
from tests.evaluation import test_measures

from .conftest import Loader, json_of, write_study

rated = test_measures.rated


def shown(study: Study, name: str) -> pd.DataFrame:
    """A table as reports and pages read it."""
    frame: pd.DataFrame = getattr(EvaluationRecords(study), name.removesuffix(".parquet"))
    return frame


def edit(study: Study, name: str, column: str) -> None:
    """Add a tenth to each number of a column."""
    path = study.folder / name
    table = pq.read_table(path)
    number = table.schema.get_field_index(column)
    pq.write_table(table.set_column(number, table.schema.field(column), pc.add(table[column], pa.scalar(0.1))), path)


@pytest.mark.parametrize(("name", "column"), [("scores.parquet", "score"), ("drift.parquet", "drift")])
def test_an_edited_table_is_not_shown_and_can_be_made_again(
    evaluated_one: Study, loader: Loader, name: str, column: str
) -> None:
    made = shown(evaluated_one, name)
    edit(evaluated_one, name, column)
    says = rf"{name} differs from what was written .*; restore it from a copy, or move it away and run `plumbline eval"
    with pytest.raises(DataError, match=says):
        shown(evaluated_one, name)
    if name == "drift.parquet":
        with pytest.raises(DataError, match=f"{says}.*the next run computes it again"):
            evaluate(evaluated_one, models=["one"], load=loader)
        (evaluated_one.folder / name).unlink()
    evaluate(evaluated_one, models=["one"], load=loader)
    assert shown(evaluated_one, name).equals(made)


@pytest.mark.usefixtures("by_hand")
def test_edited_scores_of_accepted_pairs_are_not_shown(rated: Study) -> None:
    test_measures.run(rated, "one")
    edit(rated, "accepted_scores.parquet", "score")
    with pytest.raises(DataError, match=r"accepted_scores\.parquet differs from what was written"):
        shown(rated, "accepted_scores.parquet")


def test_a_score_under_the_name_of_another_is_refused(evaluated_one: Study, loader: Loader) -> None:
    first, second, *_ = (evaluated_one.folder / "made" / "scores").iterdir()
    first.write_bytes(second.read_bytes())
    with pytest.raises(DataError, match=rf"{first.name} differs from what was written"):
        evaluate(evaluated_one, models=["one"], load=loader)


@pytest.mark.parametrize("content", ['{"score": 1', "[]", '{"seal": "", "score": 1}'])
def test_a_damaged_score_is_refused(evaluated_one: Study, loader: Loader, content: str) -> None:
    path = next((evaluated_one.folder / "made" / "scores").iterdir())
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=rf"{path.name} is damaged \(.*\); delete it \(the score is computed again\)"):
        evaluate(evaluated_one, models=["one"], load=loader)
    path.unlink()
    assert evaluate(evaluated_one, models=["one"], load=loader).made == 1


def test_a_score_that_was_edited_while_the_study_did_not_want_it_is_refused(
    evaluated_one: Study, tmp_path: Path
) -> None:
    evaluate(write_study(tmp_path, evaluation={"models": [{"name": "two", "revision": "1"}]}), load=Loader())
    for path in (evaluated_one.folder / "made" / "scores").iterdir():
        path.write_text(json.dumps(json_of(path) | {"score": 0.99}), encoding="utf-8")
    back = write_study(tmp_path)
    with pytest.raises(DataError, match=r"\.json differs from what was written \(edited by hand\); delete it"):
        evaluate(back, models=["one"], load=Loader())
