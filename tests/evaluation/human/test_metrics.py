"""Metrics of answers against scikit-learn, and what a clustering gets without reading anything."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as theirs

from evaluation.human.metrics import accuracy, ami, ari, cohen, metrics_of
from plumbline.statistics.resampled_measures import v_measure

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
    assert [one.name for one in metrics_of("graded", "ndcg_at_10")][:2] == ["ndcg_at_10", "map"]
    assert [one.name for one in metrics_of("binary", "map_at_1000")][:2] == ["map_at_1000", "ndcg_at_10"]
    assert metrics_of("cluster", "v_measure")[0].name == "v_measure"
    (of_summaries,) = metrics_of("score", "cosine_spearman", candidates=True)
    assert of_summaries.of_rows is not None
    right, given = np.array([[1.0, 2, 3, 4], [1, 2, 3, 4]]), np.array([[1.0, 3, 2, 4], [2, 2, 2, 2]])
    assert of_summaries.of_rows(right, given) == pytest.approx([0.8, np.nan], nan_ok=True)
    with pytest.raises(ValueError, match="no way of asking"):
        metrics_of("guess", "accuracy")


def test_a_tie_is_right_as_often_as_a_draw_of_it() -> None:
    assert [accuracy("joy", one) for one in (("joy",), ("joy", "love"), ("fear", "love"))] == [1.0, 0.5, 0.0]
    mark = metrics_of("same", "cosine_ap")[1].of_item
    assert mark is not None
    assert [mark(1.0, 1.0), mark(0.0, 2 / 3), mark(1.0, 0.5)] == [1.0, 0.0, 0.5]
