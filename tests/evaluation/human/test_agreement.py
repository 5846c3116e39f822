"""Agreement of raters against irrCAC, scikit-learn and scipy; bands and flags as the paper has them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import krippendorff
import numpy as np
import pandas as pd
import pytest
from irrCAC.raw import CAC
from scipy import stats
from scipy.stats import kendalltau, spearmanr
from sklearn.metrics import adjusted_rand_score, cohen_kappa_score

from annotation.judges.people import alternative_test
from evaluation.human.agreement import agreement, annotators, band, difficulty, flag, in_a_raters_place
from evaluation.human.answers import ScorerAnswers, TaskItems
from evaluation.human.metrics import metrics_of
from tests.evaluation.human.made import people, task_of

ITEMS = 24


def found(asked: str, right: list[Any], said: dict[str, list[Any]], **options: Any) -> pd.DataFrame:
    task = task_of(right, asked, "metric")
    table = agreement(task, people(task, said), n_resamples=300, rng=np.random.default_rng(3), **options)
    return table.set_index("measure")


def labels(raters: int = 3) -> tuple[list[str], dict[str, list[Any]]]:
    rng = np.random.default_rng(8)
    right = [f"l{k % 3}" for k in range(ITEMS)]
    said: dict[str, list[Any]] = {
        f"r{k}": [one if rng.random() < 0.7 else f"l{rng.integers(3)}" for one in right] for k in range(raters)
    }
    said["r0"][4], said["r1"][7] = None, "?"
    return right, said


def test_labels_have_irrcacs_coefficients_and_scikit_learns_kappas() -> None:
    right, said = labels()
    table = found("label", right, said, labels=["l0", "l1", "l2"])
    plain = pd.DataFrame({one: [None if v == "?" else v for v in column] for one, column in said.items()})
    theirs = CAC(plain.replace({"l0": 0.0, "l1": 1.0, "l2": 2.0}).astype(float), categories=[0.0, 1.0, 2.0])
    assert table.at["Fleiss' kappa", "value"] == pytest.approx(theirs.fleiss()["est"]["coefficient_value"], abs=1e-5)
    assert table.at["AC1", "value"] == pytest.approx(theirs.gwet()["est"]["coefficient_value"], abs=1e-5)
    alpha = theirs.krippendorff()["est"]["coefficient_value"]
    assert table.at["alpha (nominal)", "value"] == pytest.approx(alpha, abs=1e-5)
    kappas = []
    for one, other in combinations(plain, 2):
        both = plain[[one, other]].dropna()
        kappas.append(cohen_kappa_score(both[one], both[other]))
    assert table.at["Cohen's kappa", "value"] == pytest.approx(np.mean(kappas))
    assert (table["low"] < table["value"]).all() and (table["value"] < table["high"]).all()
    assert table.index[0] == "Fleiss' kappa" and set(table["n"]) == {ITEMS}


def test_fleiss_kappa_of_two_by_hand() -> None:
    """48 items, 25 of them equal (52.08%, as HUME's Emotion has it), of two labels here, 48 answers each.

    p_e = 1/2, kappa = (25/48 - 1/2) / (1/2) = 2/48.
    """
    one = ["a"] * 24 + ["b"] * 24
    other = ["a"] * 12 + ["b"] * 12 + ["b"] * 13 + ["a"] * 11
    assert sum(x == y for x, y in zip(one, other, strict=True)) == 25
    shares = (one + other).count("a") / 96
    by_hand = (25 / 48 - shares**2 - (1 - shares) ** 2) / (1 - shares**2 - (1 - shares) ** 2)
    table = found("label", one, {"x": one, "y": other})
    assert table.at["Fleiss' kappa", "value"] == pytest.approx(by_hand)
    assert table.at["equal answers", "value"] == pytest.approx(25 / 48)


def test_clusterings_have_scikit_learns_rand_index_whatever_clusters_are_called() -> None:
    right, said = labels()
    table = found("cluster", right, {"r0": said["r0"], "r2": said["r2"]})
    both = [(a, b) for a, b in zip(said["r0"], said["r2"], strict=True) if a is not None]
    assert table.at["ARI", "value"] == pytest.approx(adjusted_rand_score(*zip(*both, strict=True)))
    assert table.at["ARI", "n"] == ITEMS - 1 and table.at["ARI", "interval"] == "jackknife over items"
    assert table.at["ARI", "band"] == table.at["ARI", "flag"] == ""


def test_an_interval_of_the_rand_index_ends_at_one() -> None:
    """One of eight items apart, and a t interval of the jackknife that would go on beyond 1."""
    one, other = list("aaaabbbb"), list("aaaabbba")
    table = found("cluster", one, {"x": one, "y": other})
    without = np.array([adjusted_rand_score(*(np.delete(side, k) for side in (one, other))) for k in range(8)])
    error = np.sqrt(7 * without.var())
    value = adjusted_rand_score(one, other)
    assert value + 2.364624 * error > 1 and table.at["ARI", "high"] == 1  # Student's t, 7 degrees of freedom
    assert table.at["ARI", "low"] == pytest.approx(max(-1, value - 2.364624 * error), abs=1e-5)


def test_scores_have_the_mean_of_scipys_rho_over_raters_two_by_two() -> None:
    rng = np.random.default_rng(2)
    right = [float(one) for one in rng.integers(0, 6, ITEMS)]
    said = {one: [float(np.clip(v + rng.integers(-1, 2), 0, 5)) for v in right] for one in "abc"}
    table = found("score", right, said, scale=range(6))
    rhos = [spearmanr(said[one], said[other]).statistic for one, other in combinations("abc", 2)]
    assert table.at["Spearman", "value"] == pytest.approx(np.mean(rhos))
    assert table.at["Spearman", "low"] < np.mean(rhos) < table.at["Spearman", "high"]
    theirs = krippendorff.alpha(list(said.values()), value_domain=list(range(6)), level_of_measurement="ordinal")
    assert table.at["alpha", "value"] == pytest.approx(theirs)


def test_marks_have_means_over_items_without_those_that_do_not_vary() -> None:
    right = [[1, 1, 1, 0, 0, 0, 0]] * 4
    said = {
        "a": [[1, 1, 1, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0], [1, 0, 0, 0, 1, 0, 0], [0] * 7],
        "b": [[1, 1, 0, 1, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 1, 0, 1], [1, 0, 0, 0, 0, 0, 0]],
    }
    table = found("binary", right, said)
    both = list(zip(said["a"], said["b"], strict=True))
    rhos = [spearmanr(*one).statistic for one in both[:3]]
    taus = [kendalltau(*one).statistic for one in both[:3]]
    kappas = [cohen_kappa_score(*one) for one in both]  # of the last item 0: one side alone varies
    assert table.at["Spearman within items", "value"] == pytest.approx(np.mean(rhos)) == pytest.approx(np.mean(taus))
    assert table.at["Kendall within items", "value"] == pytest.approx(np.mean(taus))
    assert table.at["Cohen's kappa within items", "value"] == pytest.approx(np.mean(kappas))
    assert table["n"].tolist() == [3, 3, 4]
    graded = found("graded", right, said)
    assert "Cohen's kappa within items" not in graded.index


def test_grades_and_orders_have_krippendorffs_ordinal_alpha_over_candidates() -> None:
    """By hand, of two raters on one scale of three grades, two items of two candidates: (0, 0) (0, 1) (1, 1) (2, 2).

    Each candidate adds both orders of its grades: 00 twice, 01 and 10 once, 11 twice, 22 twice; 8 values, of which
    n_0 = n_1 = 3, n_2 = 2. Ordinal distances: between 0 and 1 3, between 1 and 2 5/2, between 0 and 2 3/2 + 3 + 1.
    Observed: 2 * 9. Expected: 2 (9 * 9 + 6 * 6.25 + 6 * 30.25) / 7 = 600 / 7. alpha = 1 - 18 * 7 / 600 = .79.
    """
    right = [[1, 0], [2, 1]]
    table = found("graded", right, {"a": [[0, 0], [1, 2]], "b": [[0, 1], [1, 2]]}, scale=range(3))
    assert table.at["alpha (ordinal)", "value"] == pytest.approx(0.79) and table.at["alpha (ordinal)", "n"] == 2
    rng = np.random.default_rng(6)
    truth = [list(map(float, rng.permutation(5) + 1)) for _ in range(ITEMS)]
    said = {one: [list(np.argsort(np.argsort(row + rng.normal(0, 1.5, 5))) + 1.0) for row in truth] for one in "abc"}
    said["c"][3] = None
    table = found("ranked", truth, said)
    flat = [[value for row in rows for value in (row or [math.nan] * 5)] for rows in said.values()]
    theirs = krippendorff.alpha(flat, value_domain=[1, 2, 3, 4, 5], level_of_measurement="ordinal")
    row = table.loc["alpha (ordinal)"]
    assert row["value"] == pytest.approx(theirs) and row["low"] < row["value"] < row["high"] and row["n"] == ITEMS
    alone = found("graded", right, {"a": [[0, 0], [1, 2]]}, scale=range(3)).loc["alpha (ordinal)"]
    assert math.isnan(alone["value"]) and alone["reason"] and alone["n"] == 0


def test_bands_and_flags_are_the_papers() -> None:
    """F.1's bands, and Table 8's kappas and rhos with what section 5.3 calls them."""
    words = {0.81: "excellent", 0.8: "substantial", 0.6: "moderate", 0.4: "fair", 0.2: "poor", -0.1: "poor"}
    assert {value: band("Fleiss' kappa", value) for value in words} == words
    assert [band("Spearman", value) for value in (0.75, 0.7, 0.4)] == ["strong", "moderate", "weak"]
    emotion, toxic, robust, sts = 0.39, 0.55, 0.75, 0.58
    assert [flag("Fleiss' kappa", one) for one in (emotion, toxic, 0.61)] == ["problematic", "", "reliable"]
    assert [flag("Spearman", one) for one in (robust, sts, 0.63)] == ["reliable", "problematic", ""]
    assert band("ARI", 0.91) == band("Spearman", math.nan) == flag("Spearman", math.nan) == flag("ARI", 0.0) == ""


N = 40


def plain_task(asked: Any, right: Sequence[Any], candidates: int = 0) -> TaskItems:
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
    found = in_a_raters_place(plain_task(asked, [1.0] * N), model, raters)
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
    found = in_a_raters_place(plain_task("label", ["a"] * 4), model, raters).raters.set_index("rater_id")
    assert found.loc["r0", ["n", "judge_closer", "rater_closer"]].tolist() == [4, 0.75, 0.5]


def test_agreement_with_people_is_the_mean_over_raters() -> None:
    rng = np.random.default_rng(0)
    values = drawn(2, 4)
    for asked, measure, by in (
        ("label", "Cohen's kappa", cohen_kappa_score),
        ("score", "Spearman", lambda x, y: stats.spearmanr(x, y).statistic),
    ):
        *raters, model = raters_of(values, asked)
        (row,) = annotators(plain_task(asked, [0] * N), [model], raters, n_resamples=200, rng=rng).to_dict("records")
        assert row["measure"] == measure and row["n"] == N and row["raters"] == 3
        assert row["value"] == pytest.approx(np.mean([by(values[k], values[3]) for k in range(3)]))
        assert row["low"] < row["value"] < row["high"]
    clusters = [ScorerAnswers(f"r{k}", "rater", tuple(map(str, values[k]))) for k in range(3)]
    own = ScorerAnswers("m", "llm", tuple(map(str, values[3])))
    (row,) = annotators(plain_task("cluster", ["x"] * N), [own], clusters, n_resamples=20, rng=rng).to_dict("records")
    assert row["value"] == pytest.approx(np.mean([adjusted_rand_score(values[k], values[3]) for k in range(3)]))
    assert math.isnan(row["winning_rate"]) and row["reason"] == "raters' cluster numbers are not comparable"


def test_candidates_are_ranked_alike_within_items() -> None:
    draw = np.random.default_rng(3)
    values = draw.integers(0, 4, (4, 9, 5)).astype(float)
    values[3, 0] = 2.0  # a model that does not vary has no rank correlation there
    given = [ScorerAnswers(f"r{k}", "rater", tuple(values[k])) for k in range(4)]
    task = plain_task("graded", list(values[0]), 5)
    (row,) = annotators(task, [given[3]], given[:3], n_resamples=20, rng=draw).to_dict("records")
    each = [np.mean([stats.spearmanr(values[k, i], values[3, i]).statistic for k in range(3)]) for i in range(1, 9)]
    assert row["value"] == pytest.approx(np.mean(each)) and row["n"] == 8
    assert row["winning_rate"] >= 0


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
