from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from evaluation.tables.comparisons import (
    OVERALL,
    baseline_table,
    difference_table,
    kendall_table,
    ranking_table,
    shift_table,
    split_half_table,
)
from evaluation.tables.datasets import dataset_totals, drift_by_quality, drift_correlations, profile_table, score_drops
from evaluation.tables.generators import generator_table
from evaluation.tables.scores import axis_table, left_out_table, transformation_table
from plumbline.study import Study
from plumbline.study.transformations import AXES, EIGHT, Axes
from tests.evaluation.conftest import verdict
from tests.evaluation.made_scores import score_row

_REJECTED = {"status": "left_out", "reason": "rejected: too low"}


@pytest.fixture
def scores() -> pd.DataFrame:
    return pd.DataFrame(
        [
            score_row("m", "a", "original", 0.80),
            score_row("m", "b", "original", 0.60),
            score_row("m", "a", "paraphrasing", 0.70, seed=1),
            score_row("m", "a", "paraphrasing", 0.78, seed=2),
            score_row("m", "b", "paraphrasing", 0.50, seed=1),
            score_row("m", "a", "backtranslation", 0.60),
            score_row("m", "b", "backtranslation", 0.40),
            score_row("m", "a", "expansion", 0.72),
            score_row("m", "b", "expansion", math.nan, **_REJECTED),
            score_row("m", "a", "translation", 0.40),
            score_row("m", "b", "translation", 0.20),
        ]
    )


def test_means_are_over_seeds_data_sets_transformations_and_axes_in_turn(scores: pd.DataFrame) -> None:
    table = axis_table(scores).iloc[0]
    # paraphrasing: a = (0.70 + 0.78) / 2 = 0.74, b = 0.50, together 0.62; backtranslation: (0.60 + 0.40) / 2 = 0.50.
    # The axis: (0.62 + 0.50) / 2 = 0.56; a mean over all five rows would be 0.596.
    assert table["lexical_stylistic"] == pytest.approx(0.56)
    assert table["original"] == pytest.approx(0.70)
    assert table["lexical_stylistic_difference"] == pytest.approx(100 * (0.56 - 0.70))
    assert table["lexical_stylistic_reason"] == ""
    # Expansion has data set a alone, whose original is 0.80: 0.72 - 0.80 = -8 points, and not 0.72 - 0.70.
    assert (table["length"], table["length_difference"]) == pytest.approx((0.72, -8))
    assert table["length_reason"] == "expansion: 1 of 2 data sets"
    assert table["hteb_total"] == pytest.approx((0.56 + 0.72 + 0.30) / 3)  # the unweighted mean of the axes
    assert table["hteb_total_difference"] == pytest.approx((-14 - 8 - 40) / 3)


def test_an_axis_with_nothing_evaluated_is_nan_and_so_is_the_total(scores: pd.DataFrame) -> None:
    table = axis_table(scores[scores["axis"] != "length"]).iloc[0]
    assert math.isnan(table["length"])
    assert table["length_reason"] == "no transformation of this axis was evaluated"
    assert math.isnan(table["hteb_total"])
    assert table["hteb_total_reason"] == "no score for: length"
    assert table["language"] == pytest.approx(0.30)


def test_an_axis_without_a_rejected_transformation_says_so_and_so_does_the_total(scores: pd.DataFrame) -> None:
    """Else a mean of two transformations passes for the paper's mean of three."""
    rejected = pd.DataFrame([score_row("m", name, "summarisation", math.nan, **_REJECTED) for name in ("a", "b")])
    table = axis_table(pd.concat([scores, rejected])).iloc[0]
    assert table["length"] == pytest.approx(0.72)
    assert table["length_reason"] == "without summarisation; expansion: 1 of 2 data sets"
    # There are paraphrasing, backtranslation, expansion and translation; summarisation was left out.
    assert table["hteb_total_reason"] == "rests on 4 of 5 transformations"
    assert axis_table(scores).iloc[0]["hteb_total_reason"] == ""


def test_rejected_ones_count_only_when_asked_for_and_are_named(scores: pd.DataFrame) -> None:
    included = {"status": "included_rejected", "reason": "rejected: too low"}
    scores = pd.concat([scores, pd.DataFrame([score_row("m", "a", "summarisation", 0.1, **included)])])
    without, with_it = axis_table(scores).iloc[0], axis_table(scores, include_rejected=True).iloc[0]
    assert (without["length"], without["included_rejected"]) == (pytest.approx(0.72), "")
    assert (with_it["length"], with_it["included_rejected"]) == (pytest.approx((0.72 + 0.1) / 2), "summarisation")
    marks = transformation_table(scores, include_rejected=True).set_index("transformation")["included_rejected"]
    assert marks.to_dict() == {
        "paraphrasing": False,
        "backtranslation": False,
        "expansion": False,
        "summarisation": True,
        "translation": False,
    }


def test_what_was_left_out_and_what_is_undefined_is_listed(scores: pd.DataFrame) -> None:
    more = [
        score_row("m", "a", "expansion", math.nan, seed=2, **_REJECTED),
        score_row("m", "c", "original", math.nan, reason="undefined"),
    ]
    table = left_out_table(pd.concat([scores, pd.DataFrame(more)]))
    assert table.to_dict(orient="records") == [
        {
            "transformation": "expansion",
            "status": "left_out",
            "reason": "rejected: too low",
            "datasets": "b, a",
            "seeds": "1, 2",
        },
        {"transformation": "original", "status": "evaluated", "reason": "undefined", "datasets": "c", "seeds": "0"},
    ]


def test_failed_outputs_are_counted_in_every_table_and_said_once_for_all_models(scores: pd.DataFrame) -> None:
    """Paraphrasing of a lost 2 and 1 items with its two seeds, paraphrasing of b 4; backtranslation of a 5."""
    lost = {("a", "paraphrasing", 1): 2, ("a", "paraphrasing", 2): 1, ("b", "paraphrasing", 1): 4}
    lost |= {("a", "backtranslation", 1): 5}
    places = scores[["dataset", "transformation", "seed"]].itertuples(index=False, name=None)
    scores["n_failed"] = [lost.get(place, 0) for place in places]
    by_name = transformation_table(scores).set_index("transformation")["n_failed"]
    assert by_name.to_dict() == {"paraphrasing": 2 + 1 + 4, "backtranslation": 5, "expansion": 0, "translation": 0}
    assert axis_table(scores)["n_failed"].tolist() == [7 + 5]
    table = left_out_table(pd.concat([scores, scores.assign(model="other")])).set_index("transformation")
    assert table.loc["paraphrasing"].to_dict() == {
        "status": "evaluated",
        "reason": "7 items whose outputs failed were dropped",
        "datasets": "a, b",
        "seeds": "1, 2",
    }
    assert table.loc["backtranslation", "reason"] == "5 items whose outputs failed were dropped"
    assert set(table.index) == {"paraphrasing", "backtranslation", "expansion"}


def test_simulated_ratings_are_said(scores: pd.DataFrame, study: Study) -> None:
    assert not axis_table(scores, [verdict(study, "translation")])["simulated"].any()
    assert axis_table(scores, [verdict(study, "translation", simulated=True)])["simulated"].all()


def test_nothing_evaluated_is_a_row_of_nan(scores: pd.DataFrame) -> None:
    table = axis_table(scores[scores["transformation"] == "original"])
    assert len(table) == 1
    assert math.isnan(table.iloc[0]["original"])


def _ratings(values: dict[str, list[int]]) -> pd.DataFrame:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    return pd.DataFrame(
        [
            {
                "pair_id": pair,
                "transformation": "paraphrasing",
                "language": "en",
                "rater_id": f"r{number}",
                "question": question,
                "value": value if question == "quality" else 1,
                "status": "submitted",
                "submitted_at": start + timedelta(minutes=number),
                "source": "argilla",
                "excluded": "",
                "simulated": pair == "p1",
            }
            for pair, given in values.items()
            for number, value in enumerate(given)
            for question in ("quality", "fluency")
        ]
    )


@pytest.fixture
def pairs() -> pd.DataFrame:
    common = {"transformation": "paraphrasing", "axis": "lexical_stylistic", "language": "en", "output_language": "en"}
    return pd.DataFrame([{"pair_id": f"p{i}", "original": f"o{i}", "transformed": f"t{i}", **common} for i in range(6)])


def test_quality_is_the_mean_of_the_ratings_that_count(pairs: pd.DataFrame) -> None:
    ratings = _ratings({"p0": [5, 4, 1], "p1": [3, 3]})  # two a pair count: the third of p0 came too late
    drift = pd.DataFrame({"pair_id": ["p0", "p1", "p2"], "model": "m", "drift": [0.1, 0.2, 0.3]})
    frame = drift_by_quality(pairs, ratings, drift, per_pair=2).set_index("pair_id")
    assert list(frame.index) == ["p0", "p1"]
    assert frame["mean_quality"].to_dict() == {"p0": 4.5, "p1": 3.0}
    assert frame["n_ratings"].to_dict() == {"p0": 2, "p1": 2}
    assert frame["simulated"].to_dict() == {"p0": False, "p1": True}
    assert frame.loc["p0", ["original", "transformed", "drift"]].tolist() == ["o0", "t0", 0.1]


def test_correlations_of_drift_and_quality(pairs: pd.DataFrame) -> None:
    quality = {f"p{i}": [value] for i, value in enumerate([5, 4, 4, 3, 2, 1])}
    moved = [0.1, 0.3, 0.2, 0.4, 0.6, 0.5]
    drift = pd.DataFrame({"pair_id": list(quality), "model": "m", "drift": moved})
    frame = drift_by_quality(pairs, _ratings(quality), drift, per_pair=3)
    row = drift_correlations(frame, 0).iloc[0]
    assert row["rho"] == pytest.approx(spearmanr(moved, [5, 4, 4, 3, 2, 1]).statistic)
    assert row["low"] <= row["rho"] <= row["high"]
    assert (row["n"], row["reason"], row["simulated"]) == (6, "", True)


def test_an_interval_is_the_same_whatever_other_models_stand_beside_it() -> None:
    """Also where they have other pairs, and of one draw for those that have the same."""
    moved, felt = np.random.default_rng(0).normal(size=(2, 30))
    common = {"transformation": "paraphrasing", "axis": "lexical_stylistic", "simulated": False}
    pairs = {"a": range(30), "b": range(30), "few": range(20)}
    frames = [
        pd.DataFrame({"model": model, "pair_id": ids, "drift": moved[ids], "mean_quality": felt[ids], **common})
        for model, ids in pairs.items()
    ]
    found = drift_correlations(pd.concat(frames), 0)
    alone = pd.concat([drift_correlations(frame, 0) for frame in frames], ignore_index=True)
    pd.testing.assert_frame_equal(found, alone)
    assert found["n"].tolist() == [30, 30, 20] and found["low"][:2].nunique() == 1


def test_constant_quality_has_no_rho(pairs: pd.DataFrame) -> None:
    drift = pd.DataFrame({"pair_id": ["p0", "p1", "p2"], "model": "m", "drift": [0.1, 0.2, 0.3]})
    frame = drift_by_quality(pairs, _ratings({"p0": [4], "p1": [4], "p2": [4]}), drift, per_pair=3)
    row = drift_correlations(frame, 0).iloc[0]
    assert math.isnan(row["rho"])
    assert "equal" in row["reason"]


def test_no_ratings_give_an_empty_frame(pairs: pd.DataFrame) -> None:
    drift = pd.DataFrame({"pair_id": ["p0"], "model": "m", "drift": [0.1]})
    frame = drift_by_quality(pairs, _ratings({"p0": [4]}).iloc[:0], drift, per_pair=3)
    assert frame.empty
    assert drift_correlations(frame, 0).empty


MODELS, DATASETS = ("one", "two", "three"), tuple("abcdef")
OWN = {"typos": "noise", "shuffle": "syntax"}


def own_row(model: str, dataset: str, name: str, score: float) -> dict[str, Any]:
    return score_row(model, dataset, name, score, axis=OWN[name], seed=1)


@pytest.fixture
def htebs() -> pd.DataFrame:
    """All eight on six data sets, by three models."""
    rng = np.random.default_rng(5)
    names = ("original", *EIGHT)
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
    "drops": score_drops,
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
    own = both[~both["transformation"].isin(list(EIGHT))]
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
