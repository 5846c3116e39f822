"""Tables that compare: data sets over runs, transformations, models, rankings. All numbers by hand."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from evaluation.tables.comparisons import (
    baseline_table,
    difference_table,
    kendall_table,
    ranking_table,
    shift_table,
    split_half_table,
)
from evaluation.tables.datasets import dataset_averages, dataset_totals, size_table, translation_table
from tests.evaluation.made_scores import made_scores, score_row

REJECTED = {"status": "left_out", "reason": "rejected: too low"}


def runs(*rows: tuple[str, int, float]) -> pd.DataFrame:
    """One model on one data set, whose original is 0.90: (transformation, seed, score)."""
    made = [score_row("m", "d", "original", 0.9)]
    return pd.DataFrame([*made, *(score_row("m", "d", name, score, seed=seed) for name, seed, score in rows)])


THREE_AXES = [("paraphrasing", 1, 0.8), ("style_change", 1, 0.6), ("expansion", 1, 0.4), ("translation", 1, 0.3)]


def test_a_data_sets_total_is_balanced_over_axes_and_spreads_over_runs() -> None:
    # Run 1: ((0.8 + 0.6) / 2 + 0.4 + 0.3) / 3 = 1.4 / 3; run 2 with 0.3 more on expansion: 1.7 / 3. Their mean is
    # 1.55 / 3, their SD 0.1 / sqrt(2): two values differ by 0.1.
    second = [(name, 2, score + (0.3 if name == "expansion" else 0)) for name, _, score in THREE_AXES]
    row = dataset_totals(runs(*THREE_AXES, *second)).iloc[0]
    assert row["score"] == pytest.approx(1.55 / 3)
    assert row["sd"] == pytest.approx(0.1 / math.sqrt(2))
    assert row["difference"] == pytest.approx(100 * (1.55 / 3 - 0.9))
    assert (row["n_runs"], row["reason"]) == (2, "")


def test_a_run_that_lacks_a_transformation_is_not_in_the_spread() -> None:
    """Else the SD over runs would hold the difference between transformations."""
    second = [(name, 2, score) for name, _, score in THREE_AXES if name != "style_change"]
    row = dataset_totals(runs(*THREE_AXES, *second)).iloc[0]
    assert row["score"] == pytest.approx(1.4 / 3)
    assert math.isnan(row["sd"]) and row["n_runs"] == 1


def test_without_an_axis_there_is_no_total_and_without_a_transformation_it_says_so() -> None:
    rejected = pd.DataFrame(
        [score_row("m", "d", name, math.nan, **REJECTED) for name in ("expansion", "summarisation")]
    )
    some = [row for row in THREE_AXES if row[0] != "expansion"]
    row = dataset_totals(pd.concat([runs(*some), rejected])).iloc[0]
    assert math.isnan(row["score"]) and math.isnan(row["difference"])
    assert row["reason"] == "an axis has no score: rests on 3 of 5 transformations"
    row = dataset_totals(pd.concat([runs(*THREE_AXES), rejected.iloc[1:]])).iloc[0]
    assert row["score"] == pytest.approx(1.4 / 3)
    assert row["reason"] == "rests on 4 of 5 transformations"


def test_one_transformation_by_data_set() -> None:
    """PTEB's Tables 6, 9 and 10, which have paraphrases alone."""
    scores = runs(("paraphrasing", 1, 0.8), ("paraphrasing", 2, 0.7), ("paraphrasing", 3, 0.9), ("expansion", 1, 0.1))
    row = dataset_totals(scores, "paraphrasing").iloc[0]
    assert (row["score"], row["sd"], row["difference"]) == pytest.approx((0.8, 0.1, -10))


def test_what_the_gate_refused_does_not_count() -> None:
    scores = runs(*THREE_AXES)
    scores.loc[scores["transformation"] == "expansion", "status"] = "included_rejected"
    assert math.isnan(dataset_totals(scores).iloc[0]["score"])


def test_averages_are_over_the_data_sets_that_have_scores() -> None:
    scores = made_scores({"m": {name: {"original": 0.9, "paraphrasing": s} for name, s in (("a", 0.6), ("b", 0.8))}})
    more = pd.DataFrame([score_row("m", "c", "original", 0.2)])
    row = dataset_averages(dataset_totals(pd.concat([scores, more]), "paraphrasing")).iloc[0]
    assert (row["original"], row["score"], row["difference"]) == pytest.approx((0.9, 0.7, -20))
    assert row["reason"] == "rests on 2 of 3 data sets"


def models(*rows: tuple[str, float, float, float]) -> dict[str, dict[str, dict[str, float]]]:
    """By model: (original, paraphrasing, expansion) on data set a."""
    return {m: {"a": {"original": o, "paraphrasing": p, "expansion": e}} for m, o, p, e in rows}


def test_tau_of_a_transformation_of_an_axis_and_overall() -> None:
    scores = models(("x", 0.9, 0.8, 0.1), ("y", 0.8, 0.7, 0.6), ("z", 0.7, 0.6, 0.5))
    scores["x"]["b"] = {"original": 0.5, "paraphrasing": 0.1}
    scores["y"]["b"] = {"original": 0.4, "paraphrasing": 0.2}
    scores["z"]["b"] = {"original": 0.3, "paraphrasing": 0.3}
    table = kendall_table(made_scores(scores)).set_index("name")
    # Paraphrasing keeps the order on a (1) and turns it round on b (-1): mean 0, SD sqrt(2). Expansion has x last:
    # of xy, xz, yz only yz agrees: (1 - 2) / 3. Overall on a: 0.45 0.65 0.55, again one of three; on b -1.
    assert table.loc["paraphrasing", ["tau", "sd"]].tolist() == pytest.approx([0, math.sqrt(2)])
    assert table.loc["lexical_stylistic", "tau"] == pytest.approx(0)
    assert table.loc["expansion", "tau"] == pytest.approx(-1 / 3) and math.isnan(table.loc["expansion", "sd"])
    assert table.loc["overall", "tau"] == pytest.approx((-1 / 3 - 1) / 2)
    assert table.loc["overall", ["n_datasets", "n_models"]].tolist() == [2, 3]
    assert math.isnan(table.loc["language", "tau"])
    assert table.loc["language", "reason"] == "no part of it was evaluated"
    assert math.isnan(table.loc["hteb_total", "tau"])
    assert table.loc["hteb_total", "reason"].startswith("no part of it was evaluated; without 2 of 2 data sets")


def test_tau_of_the_total_weighs_axes_and_overall_transformations() -> None:
    """Lexical .5 of four transformed scores but a third of the total: the order of x and y is another."""
    numbers = {
        "x": {"original": 0.9, "paraphrasing": 0.9, "style_change": 0.9, "expansion": 0.5, "translation": 0.2},
        "y": {"original": 0.8, "paraphrasing": 0.6, "style_change": 0.6, "expansion": 0.6, "translation": 0.6},
    }
    lacking = {name: value for name, value in numbers["x"].items() if name != "expansion"}
    scores = {m: {"a": own, "b": lacking | {"original": own["original"]}} for m, own in numbers.items()}
    table = kendall_table(made_scores(scores)).set_index("name")
    # On a: x (.9 + .5 + .2) / 3 = .533 and y .6, but over transformations x 2.5 / 4 = .625 and y .6. b has no total.
    assert table.loc["hteb_total", ["tau", "n_datasets"]].tolist() == [-1, 1]
    assert table.loc["hteb_total", "reason"] == "without 1 of 2 data sets, which lack an axis"
    assert table.loc["overall", "n_datasets"] == 1  # equal scores on b have no tau


def test_constant_scores_have_no_tau_and_do_not_count() -> None:
    scores = models(("x", 0.9, 0.8, 0.1), ("y", 0.8, 0.8, 0.6))
    row = kendall_table(made_scores(scores)).set_index("name").loc["paraphrasing"]
    assert math.isnan(row["tau"]) and row["n_datasets"] == 0
    assert row["reason"] == "undefined on 1 of 1 data sets: tau is undefined: all scores of one side are equal"


@pytest.mark.parametrize(
    "table",
    [
        lambda scores: kendall_table(scores).set_index("name").loc["expansion"],
        lambda scores: shift_table(scores).set_index("name").loc["paraphrasing"],
        lambda scores: split_half_table(scores, 0).set_index("axis").loc["lexical_stylistic"],
    ],
)
def test_what_not_every_model_has_is_left_out_and_said(table: Callable[[pd.DataFrame], pd.Series]) -> None:
    scores = models(("x", 0.9, 0.8, 0.1), ("y", 0.8, 0.7, 0.6))
    del scores["y"]["a"]["expansion"]
    assert "without 1 of 2 data sets x transformations, which some models lack" in table(made_scores(scores))["reason"]


def test_split_halves_of_an_axis() -> None:
    # Model k scores k on every data set but d, so the halves agree wherever d is; on the length axis nothing is.
    names = ["a", "b", "c", "d"]
    numbers = {f"m{k}": {n: {"original": 0.5, "paraphrasing": k / 10} for n in names} for k in range(4)}
    table = split_half_table(made_scores(numbers), 0, n_splits=50).set_index("axis")
    assert table.loc["lexical_stylistic", "rho"] == pytest.approx(1)
    assert table.loc["lexical_stylistic", ["n_splits", "n_datasets", "n_models"]].tolist() == [50, 4, 4]
    assert math.isnan(table.loc["length", "rho"]) and "at least 3 models" in table.loc["length", "reason"]


def test_split_halves_are_stratified_by_task() -> None:
    # x before y before z on task s, the other way round and ten times as far on t: a half without t would disagree.
    rows = []
    for k, model in enumerate("xyz"):
        for dataset, task, step in (("a", "s", 0.01), ("b", "s", 0.01), ("c", "t", -0.1), ("d", "t", -0.1)):
            place = {"model": model, "dataset": dataset, "task_type": task}
            rows.append(score_row(transformation="original", score=0.5, **place))
            rows.append(score_row(transformation="paraphrasing", score=0.5 + k * step, **place))
    table = split_half_table(pd.DataFrame(rows), 0).set_index("axis")
    assert table.loc["lexical_stylistic", ["rho", "n_splits"]].tolist() == [pytest.approx(1), 1000]


def test_shifts_of_transformations() -> None:
    # Means over the two models move by -1 to -6 points on six data sets: the Walsh averages' median is -3.5, all 21
    # lie within [-6, -1], and no sign is positive: p = 2 / 2^6. Expansion moves by +2 on one: nothing can be said.
    numbers: dict[str, dict[str, dict[str, float]]] = {"x": {}, "y": {}}
    for k in range(1, 7):
        numbers["x"][f"d{k}"] = {"original": 0.5, "paraphrasing": 0.5 - 0.02 * k}
        numbers["y"][f"d{k}"] = {"original": 0.7, "paraphrasing": 0.7}
    for model in "xy":
        numbers[model]["d1"]["expansion"] = numbers[model]["d1"]["original"] + 0.02
    table = shift_table(made_scores(numbers)).set_index("name")
    row = table.loc["paraphrasing"]
    assert row[["shift", "low", "high"]].tolist() == pytest.approx([-3.5, -6, -1])
    assert (row["p"], row["method"], row["n"]) == (2 / 2**6, "exact", 6)
    # Expansion's one difference has p = 1, and is a hypothesis too: 2 * 2 / 2^6.
    assert row["p_holm"] == pytest.approx(4 / 2**6)
    assert row["median_absolute"] == pytest.approx(3.5)
    assert math.isnan(table.loc["expansion", "shift"]) and "at least 2" in table.loc["expansion", "reason"]
    assert table.loc["lexical_stylistic", "median_absolute"] == pytest.approx(3.5)
    assert math.isnan(table.loc["lexical_stylistic", "p"]) and table.loc["lexical_stylistic", "method"] == ""
    assert table.loc["length", "median_absolute"] == pytest.approx(2)


def test_runs_are_pooled_or_averaged_against_a_baseline() -> None:
    rows = []
    for dataset in "ab":
        rows += [score_row(model, dataset, "original", 0.9) for model in ("base", "other")]
        for seed, ahead in ((1, 0.01), (2, 0.03)):
            rows.append(score_row("base", dataset, "paraphrasing", 0.5 + ahead, seed=seed))
            rows.append(score_row("other", dataset, "paraphrasing", 0.5, seed=seed))
    rows.append(score_row("base", "c", "paraphrasing", 0.5))
    scores = pd.DataFrame(rows)
    pooled = baseline_table(scores, "base", seed=0).iloc[0]
    # 1 3 1 3: Walsh averages 1 1 1 3 3 3 and four times 2, median 2; the sign of none is negative: p = 2 / 2^4.
    assert (pooled["model"], pooled["n"]) == ("other", 4)
    assert (pooled["shift"], pooled["p"]) == pytest.approx((2, 2 / 2**4))
    assert 1 <= pooled["low"] <= 2 <= pooled["high"] <= 3
    assert pooled["reason"] == "without 1 of 5 scores, which one of the two models lacks"
    averaged = baseline_table(scores, "base", seed=None).iloc[0]
    assert (averaged["n"], averaged["shift"], averaged["p"]) == (2, pytest.approx(2), 2 / 2**2)
    assert "its spread is unknown" in averaged["reason"]


def test_ranks_and_means_as_mmteb_has_them() -> None:
    rows = []
    for model, values in (("x", (0.2, 0.3, 0.9)), ("y", (0.4, 0.5, 0.1)), ("z", (0.1, 0.1, math.nan))):
        for dataset, task, score in zip("abc", ("sts", "sts", "retrieval"), values, strict=True):
            rows.append(score_row(model, dataset, "original", score, task_type=task))
    table = ranking_table(pd.DataFrame(rows), transformed=False).set_index("model")
    # y: 2 + 2 + 1, x: 1 + 1 + 2, z: nothing. Means over data sets: y 1 / 3, x 1.4 / 3; over categories: y (0.45 + 0.1)
    # / 2, x (0.25 + 0.9) / 2. z lacks a score, so it has no mean of all.
    assert table["borda"].to_dict() == {"y": 5, "x": 4, "z": 0}
    assert table["rank"].to_dict() == {"y": 1, "x": 2, "z": 3}
    assert table["mean"].to_dict() == pytest.approx({"y": 1 / 3, "x": 1.4 / 3, "z": math.nan}, nan_ok=True)
    assert table["category_mean"].to_dict() == pytest.approx({"y": 0.275, "x": 0.575, "z": math.nan}, nan_ok=True)
    assert table.loc["x", ["sts", "retrieval"]].tolist() == pytest.approx([0.25, 0.9])
    assert table["reason"].to_dict() == {"y": "", "x": "", "z": "lacks 1 of 3 scores"}
    nothing = ranking_table(pd.DataFrame(rows), transformed=True)
    assert nothing["mean"].isna().all() and (nothing["reason"] == "0 of 3 data sets have scores").all()


def test_families_by_size() -> None:
    names = [
        "Qwen3-Embedding-4B",
        "Qwen3-Embedding-0.6B",
        "harrier-oss-v1-270m",
        "all-MiniLM-L6-v2",
        "E5-Mistral-7B-it",
    ]
    table = size_table(made_scores({name: {"a": {"original": 0.5, "paraphrasing": 0.4}} for name in names}))
    assert table["model"].tolist() == ["Qwen3-Embedding-0.6B", "Qwen3-Embedding-4B"]
    assert table["parameters"].tolist() == [600, 4000] and set(table["family"]) == {"Qwen3-Embedding"}


@pytest.mark.parametrize("what", ["nothing accepted", "no rows"])
def test_nothing_to_compare_is_empty_or_nan_and_never_an_error(what: str) -> None:
    scores = models(("x", 0.9, math.nan, math.nan), ("y", 0.8, math.nan, math.nan))
    frame = made_scores(scores)
    frame.loc[frame["transformation"] != "original", ["status", "reason"]] = "left_out", "rejected: too low"
    frame = frame if what == "nothing accepted" else frame.iloc[:0]
    assert dataset_totals(frame)["score"].isna().all()
    assert kendall_table(frame)["tau"].isna().all()
    assert split_half_table(frame, 0)["rho"].isna().all()
    assert shift_table(frame)["p"].isna().all()
    assert baseline_table(frame, "x", seed=None)["p"].isna().all()
    assert baseline_table(frame, "x", seed=0)["shift"].isna().all()
    assert ranking_table(frame, transformed=True)["mean"].isna().all()
    assert dataset_averages(dataset_totals(frame)).empty and size_table(frame).empty
    assert translation_table(dataset_totals(frame), "a", "b", {"all": ["x", "y"]}).empty


def axes_at(total: float) -> dict[str, float]:
    """A data set whose axis-balanced score is `total`."""
    return {"original": 0.9, "paraphrasing": total - 0.1, "expansion": total, "translation": total + 0.1}


def test_models_are_compared_by_the_paired_bootstrap_with_holms_correction() -> None:
    spread = np.linspace(0.3, 0.6, 12)
    numbers = {
        "a": {f"d{k}": axes_at(value) for k, value in enumerate(spread)},
        "b": {f"d{k}": axes_at(value - 0.05 - 0.01 * (k % 2)) for k, value in enumerate(spread)},
        "c": {f"d{k}": axes_at(value + 0.02 * (-1) ** k) for k, value in enumerate(spread)},
    }
    table = difference_table(made_scores(numbers), 0, n_resamples=999).set_index(["first", "second"])
    assert list(table.index) == [("a", "b"), ("a", "c"), ("b", "c")]
    sure, even = table.loc[("a", "b")], table.loc[("a", "c")]
    assert sure["difference"] == pytest.approx(5.5) and 5 <= sure["low"] < 5.5 < sure["high"] <= 6
    assert sure["p"] == 0.001 and sure["p_holm"] == 0.003  # the least of 999 resamples, times three hypotheses
    assert even["difference"] == pytest.approx(0) and even["low"] < 0 < even["high"] and even["p_holm"] == 1
    assert set(table["n"]) == {12}


def test_models_without_shared_data_sets_have_no_difference_but_a_reason() -> None:
    scores = made_scores({"a": {"d": axes_at(0.5)}, "b": {"e": axes_at(0.4)}})
    (row,) = difference_table(scores, 0).to_dict(orient="records")
    assert math.isnan(row["difference"]) and math.isnan(row["p_holm"]) and "needs at least 2 values" in row["reason"]
    assert difference_table(made_scores({"a": {"d": axes_at(0.5)}}), 0).empty


def test_a_models_interval_is_the_same_whatever_other_models_stand_beside_it() -> None:
    values = np.random.default_rng(0).uniform(0.2, 0.7, (4, 12))
    numbers = {name: {f"d{k}": axes_at(v) for k, v in enumerate(row)} for name, row in zip("abcd", values, strict=True)}
    for table, key in (
        (lambda scores: difference_table(scores, 0, n_resamples=99), ["first", "second"]),
        (lambda scores: baseline_table(scores, "d", seed=0, n_resamples=99), ["model"]),
    ):
        whole, part = (table(made_scores(some)) for some in (numbers, {n: numbers[n] for n in "bcd"}))
        columns = [*key, "low", "high", "p"]
        same = whole[~whole[key].isin(["a"]).any(axis=1)][columns].reset_index(drop=True)
        assert same["low"].notna().all()
        pd.testing.assert_frame_equal(same, part[columns])
