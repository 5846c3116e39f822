"""Metrics of answers against scikit-learn, and what a clustering gets without reading anything."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from sklearn import metrics as theirs
from sklearn.metrics import average_precision_score, ndcg_score

from evaluation.human.metrics import (
    accuracy,
    ami,
    ari,
    cohen,
    counted_ap,
    expected_ap,
    expected_ndcg,
    rr_of_rows,
    sklearn_of_rows,
)
from evaluation.human.questions import question_of
from plumbline.statistics.resampled_measures import v_measure


def _ap(relevant: np.ndarray) -> float:
    """Average precision of a ranking without ties: the mean precision at the relevant places."""
    places = np.flatnonzero(relevant) + 1
    return float(np.mean(np.arange(1, len(places) + 1) / places))


def _ndcg(grades: np.ndarray, at: int) -> float:
    def dcg(one: np.ndarray) -> float:
        return sum(gain / math.log2(place + 1) for place, gain in enumerate(one[:at], 1))

    return dcg(grades) / dcg(np.sort(grades)[::-1])


def _rr(relevant: np.ndarray, at: int) -> float:
    first = int(np.flatnonzero(relevant)[0]) + 1
    return 1 / first if first <= at else 0.0


def rows(gold: list[int], given: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """One query as the only row of two tables."""
    return np.array([gold], float), np.array([given], float)


def orders(given: list[float]) -> list[list[int]]:
    """Every order of the candidates that ranks larger values first."""
    groups = [[k for k, one in enumerate(given) if one == value] for value in sorted(set(given), reverse=True)]
    each = itertools.product(*(itertools.permutations(group) for group in groups))
    return [list(itertools.chain(*one)) for one in each]


CASES = [
    ([1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0, 0]),
    ([1, 0, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0]),
    ([0, 0, 1, 1, 0, 1, 0], [0, 0, 0, 0, 0, 0, 0]),
    ([1, 0, 1, 0, 0], [0, 1, 1, 0, 2]),
    ([2, 0, 1, 3, 0, 0], [3, 3, 1, 1, 1, 0]),
    ([0, 0, 1], [3, 2, 1]),
]


@pytest.mark.parametrize(("gold", "given"), CASES)
def test_expected_metrics_are_the_mean_over_all_orders_of_ties(gold: list[int], given: list[int]) -> None:
    grades = np.array(gold, float)
    every = [grades[order] for order in orders([float(one) for one in given])]
    assert expected_ap(gold, given) == pytest.approx(np.mean([_ap(one > 0) for one in every]))
    for at in (2, 10):
        assert expected_ndcg(gold, given, at) == pytest.approx(np.mean([_ndcg(one, at) for one in every]))
        assert rr_of_rows(*rows(gold, given), at)[0] == pytest.approx(np.mean([_rr(one > 0, at) for one in every]))
    assert sklearn_of_rows(*rows(gold, given))[0] == pytest.approx(average_precision_score(grades > 0, given))
    assert expected_ndcg(gold, given, 3) == pytest.approx(ndcg_score([gold], [given], k=3))


def test_what_scikit_learn_makes_of_binary_marks_is_below_what_random_orders_get() -> None:
    # All three relevant ones and a false mark in front: places 1 to 4, one of them irrelevant at any with 1/4.
    # It stands last: 1; third: (1 + 1 + 3/4) / 3; second: (1 + 2/3 + 3/4) / 3; first: (1/2 + 2/3 + 3/4) / 3.
    by_hand = (1 + 2.75 / 3 + (1 + 2 / 3 + 0.75) / 3 + (0.5 + 2 / 3 + 0.75) / 3) / 4
    assert expected_ap(*CASES[0]) == pytest.approx(by_hand)
    assert round(by_hand, 2) == 0.84
    assert [sklearn_of_rows(*rows(*case))[0] for case in CASES[:2]] == pytest.approx([0.75, 0.5])
    assert expected_ap(*CASES[1]) == pytest.approx(0.75)


def test_resamples_have_the_expected_precision_of_the_items_drawn() -> None:
    rng = np.random.default_rng(7)
    gold, made = rng.integers(0, 2, 12).astype(float), rng.integers(0, 3, 12).astype(float)
    counts = rng.multinomial(12, np.full(12, 1 / 12), 40).astype(float)
    found = counted_ap(gold, made)(counts)
    for row, value in zip(counts.astype(int), found, strict=True):
        assert value == pytest.approx(expected_ap(np.repeat(gold, row), np.repeat(made, row)))
    nothing = counted_ap(np.zeros(3), np.ones(3))(np.ones((1, 3)))
    assert math.isnan(nothing[0])


def test_without_anything_relevant_there_is_no_value_and_sides_must_match() -> None:
    assert all(math.isnan(one([0, 0], [1, 0])) for one in (expected_ap, expected_ndcg))
    assert all(math.isnan(one(*rows([0, 0], [1, 0]))[0]) for one in (rr_of_rows, sklearn_of_rows))
    with pytest.raises(ValueError, match="same candidates"):
        expected_ap([1, 0], [1])
    with pytest.raises(ValueError, match="must be finite"):
        expected_ap([1, 0], [1, math.nan])
    with pytest.raises(ValueError, match="grades of at least 0"):
        expected_ndcg([-1, 0], [1, 0])


ONCE = np.ones((1, 30))


@pytest.mark.parametrize(
    ("mine", "other"),
    [(ari, theirs.adjusted_rand_score), (ami, theirs.adjusted_mutual_info_score), (cohen, theirs.cohen_kappa_score)],
)
def test_measures_are_scikit_learns_on_all_items_and_on_all_but_one(mine, other) -> None:
    rng = np.random.default_rng(5)
    gold = np.arange(30) % 5
    made = np.where(rng.random(30) < 0.6, gold, rng.integers(0, 6, 30))
    assert mine(gold, made)(ONCE)[0] == pytest.approx(other(gold, made))
    for left, found in enumerate(mine(gold, made)(1 - np.eye(30))):
        assert found == pytest.approx(other(np.delete(gold, left), np.delete(made, left)))


def test_agreement_without_variation_is_no_number_and_equal_clusterings_are_one() -> None:
    same = np.zeros(30)
    assert np.isnan(cohen(same, same)(ONCE)[0])
    assert ari(np.arange(30) % 3, 7 - np.arange(30) % 3)(ONCE)[0] == 1.0
    assert ari(np.arange(30), np.arange(30))(ONCE)[0] == theirs.adjusted_rand_score(range(30), range(30)) == 1.0


def test_one_cluster_an_item_has_a_v_measure_without_reading_and_no_adjusted_one() -> None:
    """HUME: 30 items of 5 (arXiv) or 6 labels. h = 1, c = log 5 / log 30: V = 2 log 5 / (log 30 + log 5) = .642."""
    singles = np.arange(30)
    for labels, printed in ((5, 0.642), (6, 0.690)):
        found = v_measure(singles % labels, singles)(ONCE)[0]
        assert found == pytest.approx(2 * np.log(labels) / (np.log(30) + np.log(labels)))
        assert round(found, 3) == printed
        assert ari(singles % labels, singles)(ONCE)[0] == pytest.approx(0)
        assert ami(singles % labels, singles)(ONCE)[0] == pytest.approx(0, abs=1e-9)
    by_people = {"HUMEArxivClusteringP2P": 0.492, "HUMESIB200ClusteringS2S eng": 0.540}  # Table 8
    assert max(by_people.values()) < 0.642  # below what is had without reading


def test_each_way_of_asking_has_the_tasks_own_metric_first() -> None:
    assert [one.name for one in question_of("graded").metrics("ndcg_at_10")][:2] == ["ndcg_at_10", "map"]
    assert [one.name for one in question_of("binary").metrics("map_at_1000")][:2] == ["map_at_1000", "ndcg_at_10"]
    assert question_of("cluster").metrics("v_measure")[0].name == "v_measure"
    (of_summaries,) = question_of("score", candidates=True).metrics("cosine_spearman")
    right, given = np.array([[1.0, 2, 3, 4], [1, 2, 3, 4]]), np.array([[1.0, 3, 2, 4], [2, 2, 2, 2]])
    assert of_summaries.read(right, given) == pytest.approx([0.8, np.nan], nan_ok=True)
    with pytest.raises(ValueError, match="unknown kind of question"):
        question_of("guess")


def test_a_tie_is_right_as_often_as_a_draw_of_it() -> None:
    assert [accuracy("joy", one) for one in (("joy",), ("joy", "love"), ("fear", "love"))] == [1.0, 0.5, 0.0]
    _, marks = question_of("same").metrics("cosine_ap")
    assert marks.read([1.0, 0.0, 1.0, None], [1.0, 2 / 3, 0.5, 1.0]) == pytest.approx([1, 0, 0.5, np.nan], nan_ok=True)
