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
    frame: pd.DataFrame = getattr(EvaluationRecords.open(study), name.removesuffix(".parquet"))
    return frame


def edit(study: Study, name: str, column: str) -> None:
    """Add a tenth to each number of a column."""
    path = study.folder / name
    table = pq.read_table(path)
    number = table.schema.get_field_index(column)
    pq.write_table(table.set_column(number, table.schema.field(column), pc.add(table[column], pa.scalar(0.1))), path)


@pytest.mark.parametrize(("name", "column"), [("scores.parquet", "score"), ("drift.parquet", "drift")])
def test_an_edited_table_is_neither_kept_nor_shown_and_can_be_made_again(
    study: Study, loader: Loader, name: str, column: str
) -> None:
    evaluate(study, models=["one"], load=loader)
    made = shown(study, name)
    edit(study, name, column)
    says = rf"{name} differs from what was written .*; restore it from a copy, or move it away and run `plumbline eval"
    with pytest.raises(DataError, match=says):
        shown(study, name)
    with pytest.raises(DataError, match=f"{says}.*the next run computes it again"):
        evaluate(study, models=["one"], load=loader)
    (study.folder / name).unlink()
    evaluate(study, models=["one"], load=loader)
    assert shown(study, name).equals(made)


def test_edited_scores_of_accepted_pairs_are_refused(rated: Study) -> None:
    test_measures.run(rated, "one")
    edit(rated, "accepted_scores.parquet", "score")
    with pytest.raises(DataError, match=r"accepted_scores\.parquet differs from what was written"):
        shown(rated, "accepted_scores.parquet")
    with pytest.raises(DataError, match=r"accepted_scores\.parquet differs from what was written"):
        test_measures.run(rated, "one")


def test_a_score_that_was_edited_while_it_was_set_aside_is_refused(
    study: Study, tmp_path: Path, loader: Loader
) -> None:
    evaluate(study, models=["one"], load=loader)
    evaluate(write_study(tmp_path, evaluation={"models": [{"name": "two", "revision": "1"}]}), load=Loader())
    for path in (study.folder / "scores_aside").iterdir():
        content = json_of(path)
        content["plumbline"]["score"] = 0.99
        path.write_text(json.dumps(content), encoding="utf-8")
    back = write_study(tmp_path)
    with pytest.raises(DataError, match=r"\.json differs from what was written \(edited by hand\); delete it"):
        evaluate(back, models=["one"], load=Loader())
