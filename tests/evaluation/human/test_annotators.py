"""Language models that do people's tasks beside people: agreement, a rater's place, and what is hard for both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import adjusted_rand_score, cohen_kappa_score

from annotation.judges.alternative import alternative_test
from evaluation.human.agreement import annotators, difficulty, in_a_raters_place
from evaluation.human.answers import ScorerAnswers, TaskItems
from evaluation.human.exhibits import all_exhibits
from evaluation.human.material import read_material
from evaluation.human.metrics import metrics_of
from evaluation.human.records import (
    ANNOTATORS,
    COMMAND,
    DIFFICULTY,
    SCORES,
    HumanAnnotator,
    HumanDifficulty,
    HumanScore,
)
from plumbline.manifest import read_kept_frame
from plumbline.study import Study

N = 40


def task_of(asked: Any, right: Sequence[Any], candidates: int = 0) -> TaskItems:
    names = tuple(tuple(f"d{k}" for k in range(candidates)) for _ in right) if candidates else ()
    items = tuple(f"i{k}" for k in range(len(right)))
    metrics = metrics_of(asked, "map_at_1000" if candidates else "cosine_spearman")
    return TaskItems("t", "x", "en", asked, metrics, items, tuple(right), names)


def raters_of(values: np.ndarray, asked: str) -> list[ScorerAnswers]:
    made = [tuple((f"l{one}",) if asked == "label" else float(one) for one in column) for column in values.tolist()]
    return [ScorerAnswers(f"r{k}", "rater", column) for k, column in enumerate(made[:-1])] + [
        ScorerAnswers("m", "llm", made[-1])
    ]


def drawn(seed: int, points: int) -> np.ndarray:
    draw = np.random.default_rng(seed)
    truth = draw.integers(0, points, N)
    return np.where(draw.random((4, N)) < 0.7, truth, draw.integers(0, points, (4, N)))


@pytest.mark.parametrize("asked", ["score", "same"])
def test_the_test_is_that_of_judges_on_scores_and_marks(asked: str) -> None:
    values = drawn(1, 6 if asked == "score" else 2)
    *raters, model = raters_of(values, asked)
    found = in_a_raters_place(task_of(asked, [1.0] * N), model, raters)
    long = pd.DataFrame(
        [(f"i{i}", f"r{k}", values[k, i]) for k in range(3) for i in range(N)],
        columns=["pair_id", "rater_id", "value"],
    )
    judge = pd.Series(values[3], index=[f"i{i}" for i in range(N)])
    wanted = alternative_test(long, judge)
    assert (found.omega, found.rho, found.passes) == (wanted.omega, wanted.rho, wanted.passes)
    pd.testing.assert_frame_equal(found.raters, wanted.raters)


def test_labels_are_as_close_as_others_gave_the_same() -> None:
    # Of 4 items the raters say a a b, a b b, a a a, c a b; the model a, b, b, a. Beside r0 the others agree with r0 and
    # with the model in (1/2, 1/2), (0, 1), (1, 0), (0, 1/2): the model is as close or closer in 3 of 4, r0 in 2 of 4.
    said = [("a", "a", "b"), ("a", "b", "b"), ("a", "a", "a"), ("c", "a", "b")]
    raters = [ScorerAnswers(f"r{k}", "rater", tuple((one[k],) for one in said)) for k in range(3)]
    model = ScorerAnswers("m", "llm", (("a",), ("b",), ("b",), ("a",)))
    found = in_a_raters_place(task_of("label", ["a"] * 4), model, raters).raters.set_index("rater_id")
    assert found.loc["r0", ["n", "judge_closer", "rater_closer"]].tolist() == [4, 0.75, 0.5]


def test_agreement_with_people_is_the_mean_over_raters() -> None:
    rng = np.random.default_rng(0)
    values = drawn(2, 4)
    for asked, measure, by in (
        ("label", "Cohen's kappa", cohen_kappa_score),
        ("score", "Spearman", lambda x, y: stats.spearmanr(x, y).statistic),
    ):
        *raters, model = raters_of(values, asked)
        (row,) = annotators(task_of(asked, [0] * N), [model], raters, n_resamples=200, rng=rng).to_dict("records")
        assert row["measure"] == measure and row["n"] == N and row["raters"] == 3
        assert row["value"] == pytest.approx(np.mean([by(values[k], values[3]) for k in range(3)]))
        assert row["low"] < row["value"] < row["high"]
    clusters = [ScorerAnswers(f"r{k}", "rater", tuple(map(str, values[k]))) for k in range(3)]
    own = ScorerAnswers("m", "llm", tuple(map(str, values[3])))
    (row,) = annotators(task_of("cluster", ["x"] * N), [own], clusters, n_resamples=20, rng=rng).to_dict("records")
    assert row["value"] == pytest.approx(np.mean([adjusted_rand_score(values[k], values[3]) for k in range(3)]))
    assert math.isnan(row["winning_rate"]) and row["reason"] == "a cluster's number is each rater's own"


def test_candidates_are_ranked_alike_within_items() -> None:
    draw = np.random.default_rng(3)
    values = draw.integers(0, 4, (4, 9, 5)).astype(float)
    values[3, 0] = 2.0  # a model that does not vary has no rank correlation there
    given = [ScorerAnswers(f"r{k}", "rater", tuple(values[k])) for k in range(4)]
    task = task_of("graded", list(values[0]), 5)
    (row,) = annotators(task, [given[3]], given[:3], n_resamples=20, rng=draw).to_dict("records")
    each = [np.mean([stats.spearmanr(values[k, i], values[3, i]).statistic for k in range(3)]) for i in range(1, 9)]
    assert row["value"] == pytest.approx(np.mean(each)) and row["n"] == 8
    assert row["winning_rate"] >= 0
    # An order is on no common scale with grades.
    (row,) = annotators(task, [given[3]], given[:3], otherwise={"r3": "ranked"}, n_resamples=20,
                        rng=draw).to_dict("records")  # fmt: skip
    assert math.isnan(row["winning_rate"]) and not row["passes"] and "ranked" in row["reason"]


def test_two_raters_are_too_few_for_the_test_and_none_for_anything() -> None:
    *raters, model = raters_of(drawn(4, 3), "label")
    rng = np.random.default_rng(0)
    for number, measured in ((2, True), (0, False)):
        table = annotators(task_of("label", ["l1"] * N), [model], raters[:number], n_resamples=20, rng=rng)
        assert math.isfinite(table["value"].iloc[0]) == measured
        assert math.isnan(table["winning_rate"].iloc[0]) and "takes 3 raters" in table["reason"].iloc[0]


def test_what_is_hard_for_both_is_spearmans_rho_over_tasks() -> None:
    people, model = [0.9, 0.5, 0.7, 0.3, 0.8], [0.8, 0.6, 0.5, 0.4, 0.9]
    rows = [("x", f"t{k}", "", "en", "raters_mean", "raters_mean", one) for k, one in enumerate(people)]
    rows += [("x", f"t{k}", "", "en", "m", "llm", one) for k, one in enumerate(model)]
    rows += [("x", "t9", "", "en", "m", "llm", 0.1)]  # which people have no score on
    columns = ["task_type", "task", "subset", "language", "scorer", "scorer_kind", "score"]
    (row,) = difficulty(pd.DataFrame(rows, columns=columns), np.random.default_rng(0)).to_dict("records")
    wanted = stats.spearmanr(people, model)
    # Ranks 5 2 3 1 4 and 4 3 2 1 5: squared differences 1 1 1 0 1, rho = 1 - 6 * 4 / (5 * 24).
    assert row["rho"] == pytest.approx(0.8) == pytest.approx(wanted.statistic)
    assert row["p"] == pytest.approx(wanted.pvalue) and row["n"] == 5


def test_a_model_that_answered_stands_beside_people_in_all_tables(study: Study) -> None:
    name = "rule (recorded)"
    every = read_kept_frame(study, SCORES, HumanScore, study.command(COMMAND))
    scores = every[every["main"] & (every["scorer_kind"] == "llm")]
    assert set(scores["scorer"]) == {name} and len(scores) == 6 and scores["score"].notna().all()
    table = read_kept_frame(study, ANNOTATORS, HumanAnnotator, study.command(COMMAND))
    assert set(table["model"]) == {name} and len(table) == 6 and table["simulated"].all()
    assert table.loc[table["task"] != "sample_intent_clusters", "winning_rate"].notna().all()
    assert table["among_people"].notna().all()
    (row,) = read_kept_frame(study, DIFFICULTY, HumanDifficulty, study.command(COMMAND)).to_dict("records")
    assert row["model"] == name and row["n"] == 6 and -1 <= row["rho"] <= 1
    tables = all_exhibits(read_material(study))
    assert tables["annotators"].printed["Model"].unique().tolist() == [name] and len(tables["difficulty"].printed) == 1
    assert tables["models"].printed["Kind"].tolist().count("answers as people do") == 6
