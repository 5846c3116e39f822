"""The Python API: what its names compute of frames is what the commands wrote, and a bad frame is one line."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from annotation import AcceptanceSpec, Design, ac2, alpha, judge, kappa, mean_interval
from evaluation import axis_table, hodges_lehmann, wilcoxon
from tests.finished import NAME as FINISHED
from tests.finished import finished_once

NOT_OF_FRAMES = {"supply", "review"}  # what could be drawn, and checks of raters


def records() -> Path:
    """The folder of a finished study's records."""
    return finished_once() / "exports" / FINISHED


def recorded(name: str) -> pd.DataFrame:
    return pd.read_parquet(records() / f"{name}.parquet")


def content(name: str) -> Any:
    return json.loads((records() / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("with_pairs", [True, False])
def test_verdicts_of_frames_are_those_of_the_command(with_pairs: bool) -> None:
    design = Design(rule=AcceptanceSpec(threshold=3.0, min_pairs=10))
    found = judge(recorded("ratings"), recorded("pairs") if with_pairs else None, design)
    then = {one["transformation"]: one for one in content("verdicts")}
    assert len(found) == len(then) == 2
    for one in found:
        now, before = one.model_dump(mode="json"), then[one.transformation]
        unsaid = set() if with_pairs else {"output_languages", "origin"}
        for name in before.keys() - NOT_OF_FRAMES - unsaid - {"questions"}:
            assert now[name] == (pytest.approx(before[name]) if isinstance(before[name], float) else before[name]), name
        for mine, theirs in zip(one.questions, before["questions"], strict=True):
            assert (mine.mean, mine.low, mine.high) == pytest.approx((theirs["mean"], theirs["low"], theirs["high"]))


def answers(**columns: object) -> pd.DataFrame:
    """Six good ratings, with other columns where they are given, or without them where these are None."""
    good = {"pair_id": [1, 1, 2, 2, 3, 3], "rater_id": ["a", "b"] * 3, "value": [1, 2, 3, 3, 5, 4]}
    whole = {**good, "question": "quality", "transformation": "paraphrasing", **columns}
    return pd.DataFrame({name: column for name, column in whole.items() if column is not None})


SERIES = pd.Series([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
STATISTICS = (ac2, alpha, kappa, mean_interval)
BAD: dict[str, tuple[Any, str]] = {
    "no frame": ([[1, 2, 3]], "ratings must be a pandas DataFrame, not a list"),
    "no rater": (answers(rater_id=None), "ratings lack the column 'rater_id' (required: "),
    "off the scale": (
        answers(value=[1, 2, 3, 3, 5, 6]),
        "6 in column 'value' is not on the scale 1, 2, 3, 4, 5 (1 of 6 values are not)",
    ),
    "between points": (answers(value=[1, 2, 3, 3.5, 5, 4]), "3.5 in column 'value' is not on the scale"),
    "no number": (answers(value=["1", "2", "3", "good", "5", "4"]), "'good' in column 'value' is not a number"),
    "a rater twice": (answers(rater_id=["a", "a"] * 3), "appears more than once"),
    "a column twice": (
        pd.concat([answers(), answers()[["value"]]], axis=1),
        "ratings have more than one column 'value'",
    ),
    "columns of two levels": (
        answers().set_axis(pd.MultiIndex.from_product([answers().columns, [""]]), axis=1),
        "ratings: the columns have 2 levels; they must have one",
    ),
    "lengths of time": (answers(value=pd.Timedelta(1)), "column 'value' must hold numbers, not timedelta64"),
    "complex numbers": (answers(value=[1 + 1j] * 6), "column 'value' must hold numbers, not complex128"),
    "nobody": (answers(rater_id=["a", None] * 3), "'rater_id' is missing in 3 rows (the first: row 1)"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_frame_is_one_line(case: str) -> None:
    frame, line = BAD[case]
    functions: list[Callable[[Any], object]] = [*STATISTICS, lambda own: judge(own, design=Design(("quality",)))]
    for function in functions:
        with pytest.raises(ValueError, match=re.escape(line)) as caught:
            function(frame)
        assert type(caught.value) is ValueError and "\n" not in str(caught.value)


def test_scales_are_points_in_order() -> None:
    scales: list[Any] = [(), (3,), (5, 4, 3, 2, 1), (1, 1, 2), 5, None, "12345", ("1", "2"), (1, np.nan, 5)]
    for scale in [*scales, (1, 2, np.inf), (2**60, 2**60 + 1), np.ones((2, 2))]:  # those two are one number in a float
        with pytest.raises(ValueError, match="in ascending order"):
            ac2(answers(), scale)
        with pytest.raises(ValueError, match="in ascending order"):
            Design(("quality",), scale=scale)
    assert ac2(answers(), range(101)).value > ac2(answers()).value  # far points of a long scale are near each other


def test_columns_may_be_called_otherwise() -> None:
    ratings = recorded("ratings").query("transformation == 'translation'")
    names = {"pair_id": "rater_id", "rater_id": "worker", "value": "score"}  # one name is another's column
    called = ratings.rename(columns=names).assign(value="of something else")
    columns = {"pair": "rater_id", "rater": "worker", "value": "score"}
    for question, answers in called.groupby("question"):
        plain = ratings[ratings["question"] == question]
        assert ac2(answers, **columns) == ac2(plain)
        assert alpha(answers, **columns) == alpha(plain)
        assert kappa(answers, **columns) == kappa(plain)
        assert mean_interval(answers, **columns) == mean_interval(plain)
    pairs = recorded("pairs").rename(columns={"pair_id": "rater_id"})
    verdicts, plain = judge(called, pairs, **columns), judge(ratings, recorded("pairs"))
    assert [verdict.model_dump_json() for verdict in verdicts] == [verdict.model_dump_json() for verdict in plain]
    with pytest.raises(
        ValueError, match=r"ratings lack the column 'coder' \(required: pair_id, coder, value; present: "
    ):
        ac2(ratings, rater="coder")
    with pytest.raises(ValueError, match="ratings: pair_id, rater_id, value must name different columns"):
        ac2(ratings, rater="pair_id")


def test_ratings_read_from_csv_are_judged_as_those_written() -> None:
    times = pd.to_datetime(["2026-01-02 10:00:00.5", "2026-01-01"] * 3, utc=True, format="ISO8601")
    marks = {"status": "submitted", "excluded": ["", "a bot", "", "", "", ""], "simulated": False}
    given = answers(submitted_at=times, **marks)
    read = pd.read_csv(io.StringIO(given.to_csv(index=False)))
    assert read["excluded"].isna().sum() == 5
    design = Design(("quality",), per_pair=1, rule=AcceptanceSpec(min_pairs=1, min_raters=1))
    (one,), (other,) = judge(given, design=design), judge(read, design=design)
    assert repr(one) == repr(other) and one.questions[0].mean == pytest.approx(8 / 3)  # a's 1, b's 3 and 4


def test_a_transformation_of_ones_own_is_judged_too() -> None:
    (found,) = judge(answers(transformation="mine"), design=Design(("quality",), rule=AcceptanceSpec(min_pairs=3)))
    assert (found.transformation, found.pool, found.axis, found.decision) == ("mine", "mine", "", "accepted")


def test_scores_that_say_the_least_give_the_table_of_the_whole_records() -> None:
    scores = recorded("scores").query("status == 'evaluated'").assign(n_failed=0)
    least = scores[["model", "dataset", "transformation", "seed", "score"]]
    assert_frame_equal(axis_table(least), axis_table(scores))
    assert axis_table(least)["original"].item() == pytest.approx(
        least.query("transformation == 'original'")["score"].mean()
    )


def test_series_with_one_index_are_paired_and_arrays_by_place() -> None:
    other = SERIES + 1
    assert wilcoxon(SERIES, other) == wilcoxon(SERIES.to_numpy(), other[::-1].to_numpy()[::-1])
    assert hodges_lehmann(other, SERIES).value == 1


def of_one_model(**columns: object) -> pd.DataFrame:
    """Scores of a model on two data sets, with other columns where they are given."""
    names = ["original", "paraphrasing", "expansion", "translation"]
    whole = pd.MultiIndex.from_product([["a"], ["d", "e"], names], names=["model", "dataset", "transformation"])
    return whole.to_frame(index=False).assign(score=[0.8, 0.7, 0.6, 0.5] * 2).assign(**columns)


def test_scores_read_from_csv_are_those_written() -> None:
    whole = of_one_model(task_type="", reason="", n_failed=0, status="evaluated")
    read = pd.read_csv(io.StringIO(whole.to_csv(index=False)))
    assert read["task_type"].isna().all()
    assert_frame_equal(axis_table(read), axis_table(whole))
    assert_frame_equal(axis_table(of_one_model().astype({"score": str})), axis_table(whole))
    assert axis_table(whole.assign(n_failed=np.nan))["n_failed"].item() == 0
