"""Axes of a study's own beside HTEB's: they have rows of their own, and no number of HTEB's changes by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evaluation.tables import (
    axis_table,
    baseline_table,
    dataset_totals,
    difference_table,
    drop_table,
    generator_table,
    kendall_table,
    profile_table,
    ranking_table,
    shift_table,
    split_half_table,
)
from evaluation.tables.comparisons import OVERALL
from plumbline.transformations import AXES, TRANSFORMATIONS, Axes
from tests.evaluation.made_scores import score_row

MODELS, DATASETS = ("one", "two", "three"), tuple("abcdef")
OWN = {"typos": "noise", "shuffle": "syntax"}


def own_row(model: str, dataset: str, name: str, score: float) -> dict[str, Any]:
    return score_row(model, dataset, name, score, axis=OWN[name], seed=1)


@pytest.fixture
def htebs() -> pd.DataFrame:
    """All eight on six data sets, by three models."""
    rng = np.random.default_rng(5)
    names = ("original", *TRANSFORMATIONS)
    return pd.DataFrame(
        [score_row(m, d, t, float(rng.uniform(0.3, 0.9))) for m in MODELS for d in DATASETS for t in names]
    )


@pytest.fixture
def both(htebs: pd.DataFrame) -> pd.DataFrame:
    """The same with two of one's own; the second model lacks one of them on a data set."""
    rng = np.random.default_rng(6)
    rows = [own_row(m, d, t, float(rng.uniform(0.3, 0.9))) for m in MODELS for d in DATASETS for t in OWN]
    lacking = [row for row in rows if (row["model"], row["dataset"], row["transformation"]) != ("two", "c", "typos")]
    return pd.concat([htebs, pd.DataFrame(lacking)], ignore_index=True)


TABLES: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "totals": dataset_totals,
    "differences": lambda scores: difference_table(scores, 1, n_resamples=50),
    "baseline": lambda scores: baseline_table(scores, "one", seed=None),
    "ranking": lambda scores: ranking_table(scores, transformed=True),
    "originals": lambda scores: ranking_table(scores, transformed=False),
    "profiles": profile_table,
    "drops": drop_table,
}


@pytest.mark.parametrize("name", TABLES)
def test_whole_tables_rest_on_htebs_axes_alone(name: str, htebs: pd.DataFrame, both: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(TABLES[name](both), TABLES[name](htebs))


def test_rows_of_htebs_stay_what_they_are(htebs: pd.DataFrame, both: pd.DataFrame) -> None:
    made = {
        "axis": lambda scores: kendall_table(scores).drop(columns="reason"),
        "shift": lambda scores: shift_table(scores).drop(columns="reason"),
        "split": lambda scores: split_half_table(scores, 1, n_splits=20).rename(columns={"axis": "name"}),
        "generators": lambda scores: generator_table(scores, scores),
    }
    for name, make in made.items():
        found, plain = make(both).set_index("name"), make(htebs).set_index("name")
        assert set(found.index) - set(plain.index) >= {"noise", "syntax"}, name
        shown = [column for column in plain if column != "reason"]
        pd.testing.assert_frame_equal(found.loc[plain.index, shown], plain[shown])
    assert OVERALL in set(kendall_table(both)["name"])


def test_an_axis_of_ones_own_has_its_mean_and_no_place_in_the_total(htebs: pd.DataFrame, both: pd.DataFrame) -> None:
    found, plain = axis_table(both).set_index("model"), axis_table(htebs).set_index("model")
    typos = both[(both["transformation"] == "typos") & (both["model"] == "one")]["score"]
    assert found.loc["one", "noise"] == pytest.approx(typos.mean())
    assert found.loc["two", "noise_reason"] == "typos: 5 of 6 data sets"
    pd.testing.assert_frame_equal(found[list(plain)], plain)
    assert found.loc["one", "hteb_total"] == pytest.approx(found.loc["one", list(AXES)].astype(float).mean())


def test_without_htebs_the_total_is_of_ones_own_axes(both: pd.DataFrame) -> None:
    own = both[~both["transformation"].isin(list(TRANSFORMATIONS))]
    table = axis_table(own).set_index("model")
    assert table.loc["one", "total"] == pytest.approx(table.loc["one", ["noise", "syntax"]].astype(float).mean())
    assert not [name for name in table if "hteb" in str(name) or name in AXES]
    assert Axes.of(own) == Axes.of_columns(table.reset_index()) == Axes(("noise", "syntax"), ("noise", "syntax"))
    assert "total" in set(kendall_table(own)["name"])


def test_frames_that_somebody_brings_may_have_own_axes_but_none_of_htebs(both: pd.DataFrame) -> None:
    brought = both[["model", "dataset", "transformation", "axis", "score"]]
    assert axis_table(brought)["noise"].notna().all()
    moved = brought.assign(axis=brought["axis"].replace("noise", "length"))
    with pytest.raises(
        ValueError, match="axis 'length' is only for HTEB's transformations; give others their own axis"
    ):
        axis_table(moved)
    with pytest.raises(ValueError, match="unknown transformation 'typos'"):
        axis_table(brought.drop(columns="axis"))
