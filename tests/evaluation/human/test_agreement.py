"""Agreement of raters against irrCAC, scikit-learn and scipy; bands and flags as the paper has them."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from irrCAC.raw import CAC
from scipy import stats
from scipy.stats import spearmanr
from sklearn.metrics import adjusted_rand_score, cohen_kappa_score

from evaluation.human.agreement import band, difficulty, flag
from evaluation.human.scores import agreement
from tests.evaluation.human.made import people, task_of

ITEMS = 24


def found(asked: str, right: list[Any], said: dict[str, list[Any]]) -> pd.DataFrame:
    task = task_of(right, asked, "metric")
    table = agreement(task, people(task, said), n_resamples=300, rng=np.random.default_rng(3))
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
    table = found("label", right, said)
    plain = pd.DataFrame({one: [None if v == "?" else v for v in column] for one, column in said.items()})
    theirs = CAC(plain.replace({"l0": 0.0, "l1": 1.0, "l2": 2.0}).astype(float), categories=[0.0, 1.0, 2.0])
    assert table.at["Fleiss' kappa", "value"] == pytest.approx(theirs.fleiss()["est"]["coefficient_value"], abs=1e-5)
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
    table = found("score", right, said)
    rhos = [spearmanr(said[one], said[other]).statistic for one, other in combinations("abc", 2)]
    assert table.at["Spearman", "value"] == pytest.approx(np.mean(rhos))
    assert table.at["Spearman", "low"] < np.mean(rhos) < table.at["Spearman", "high"]


def test_marks_have_means_over_items_without_those_that_do_not_vary() -> None:
    right = [[1, 1, 1, 0, 0, 0, 0]] * 4
    said = {
        "a": [[1, 1, 1, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0], [1, 0, 0, 0, 1, 0, 0], [0] * 7],
        "b": [[1, 1, 0, 1, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 1, 0, 1], [1, 0, 0, 0, 0, 0, 0]],
    }
    table = found("binary", right, said)
    both = list(zip(said["a"], said["b"], strict=True))
    rhos = [spearmanr(*one).statistic for one in both[:3]]
    assert table.at["Spearman within items", "value"] == pytest.approx(np.mean(rhos))
    assert table["n"].tolist() == [3]


def test_bands_and_flags_are_the_papers() -> None:
    """F.1's bands, and Table 8's kappas and rhos with what section 5.3 calls them."""
    words = {0.81: "excellent", 0.8: "substantial", 0.6: "moderate", 0.4: "fair", 0.2: "poor", -0.1: "poor"}
    assert {value: band("Fleiss' kappa", value) for value in words} == words
    assert [band("Spearman", value) for value in (0.75, 0.7, 0.4)] == ["strong", "moderate", "weak"]
    emotion, toxic, robust, sts = 0.39, 0.55, 0.75, 0.58
    assert [flag("Fleiss' kappa", one) for one in (emotion, toxic, 0.61)] == ["problematic", "", "reliable"]
    assert [flag("Spearman", one) for one in (robust, sts, 0.63)] == ["reliable", "problematic", ""]
    assert band("ARI", 0.91) == band("Spearman", math.nan) == flag("Spearman", math.nan) == flag("ARI", 0.0) == ""


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
