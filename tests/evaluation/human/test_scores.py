"""Scores of people beside models: who is scored on what, ties of a vote, what is left out and said."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import accuracy_score, v_measure_score

from evaluation.human.answers import EmbeddingScorer, aggregate
from evaluation.human.compare import closeness
from evaluation.human.scores import score, with_holm
from tests.evaluation.human.made import people, task_of


def rng() -> np.random.Generator:
    return np.random.default_rng(1337)


def by_scorer(scores: pd.DataFrame, column: str = "score", metric: str | None = None) -> dict[str, float]:
    own = scores[scores["metric"] == (metric or scores["metric"].iloc[0])]
    names = own["scorer"]
    return dict(zip(names, own[column], strict=True))


RIGHT = ["joy", "joy", "fear", "fear", "love", "love"]
SAID = {
    "a": ["joy", "joy", "fear", "love", "love", "love"],  # 5 of 6
    "b": ["joy", "fear", "fear", "fear", "joy", "love"],  # 4 of 6
}


def test_a_vote_of_two_is_the_chance_of_a_draw_and_the_alphabet_where_it_is_asked_for() -> None:
    task = task_of(RIGHT, "label", "accuracy")
    both = people(task, SAID)
    # They agree and are right on items 1, 3, 6; item 2 joy or fear, 4 love or fear, 5 love or joy: each half right.
    expected = by_scorer(score(task, both, rng=rng()).scores)
    assert expected["a"] == pytest.approx(5 / 6)
    assert expected["b"] == pytest.approx(4 / 6)
    assert expected["raters_mean"] == pytest.approx(4.5 / 6)
    assert expected["aggregate"] == pytest.approx((3 + 3 * 0.5) / 6)
    # The alphabet: fear (wrong), fear (right), joy (wrong).
    assert by_scorer(score(task, both, ties="first", rng=rng()).scores)["aggregate"] == pytest.approx(4 / 6)
    assert by_scorer(score(task, both, rng=rng()).scores)["random label"] == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="'expected' or 'first'"):
        aggregate(both, task.question, ties="last")  # type: ignore[arg-type]


def test_the_expected_vote_is_the_mean_over_all_ways_to_settle_ties() -> None:
    generator = rng()
    labels = np.array(["a", "b", "c"])
    said = {str(k): labels[generator.integers(0, 3, 8)].tolist() for k in range(4)}
    right = labels[generator.integers(0, 3, 8)].tolist()
    best = []
    for each in zip(*said.values(), strict=True):
        votes = pd.Series(each).value_counts()
        best.append(list(votes.index[votes == votes.max()]))
    assert any(len(one) > 1 for one in best)
    every = [accuracy_score(right, one) for one in itertools.product(*best)]
    task = task_of(right, "label", "accuracy")
    assert by_scorer(score(task, people(task, said), rng=rng()).scores)["aggregate"] == pytest.approx(np.mean(every))


def test_numbers_are_scipys_rho_and_the_aggregate_is_the_mean_rating() -> None:
    gold = [1.0, 2.0, 2.5, 3.0, 4.0, 5.0, 0.5]
    said = {"a": [1.0, 2, 2, 4, 4, 5, 0], "b": [2.0, 1, 3, 3, 5, 4, 2]}
    task = task_of(gold, "score", "cosine_spearman")
    found = by_scorer(score(task, people(task, said), rng=rng()).scores)
    rhos = [spearmanr(gold, said[one]).statistic for one in "ab"]
    assert [found["a"], found["b"], found["raters_mean"]] == pytest.approx([*rhos, np.mean(rhos)])
    assert found["aggregate"] == pytest.approx(spearmanr(gold, np.mean(list(said.values()), axis=0)).statistic)


def test_who_gives_one_score_throughout_has_none_and_the_mean_says_so() -> None:
    gold = [1.0, 2.0, 3.0, 4.0, 5.0, 2.0]
    task = task_of(gold, "score", "cosine_spearman")
    scores = score(task, people(task, {"a": gold, "b": [3.0] * 6}), rng=rng()).scores.set_index("scorer")
    assert math.isnan(scores.at["b", "score"]) and "do not vary" in scores.at["b", "reason"]
    assert scores.at["raters_mean", "score"] == pytest.approx(1.0)
    assert "of 1 of 2 raters" in scores.at["raters_mean", "reason"]


def test_clusterings_have_a_mean_of_raters_no_common_answer_and_jackknife_intervals() -> None:
    generator = rng()
    right = [f"topic {k % 3}" for k in range(18)]
    said = {one: [str(k % 3 if generator.random() < 0.8 else generator.integers(3)) for k in range(18)] for one in "ab"}
    task = task_of(right, "cluster", "v_measure")
    scores = score(task, people(task, said), rng=rng()).scores
    found = by_scorer(scores, metric="v_measure")
    plain = [v_measure_score(right, said[one]) for one in "ab"]
    assert [found["a"], found["b"], found["raters_mean"]] == pytest.approx([*plain, np.mean(plain)])
    assert math.isnan(found["aggregate"])
    own = scores[(scores["metric"] == "v_measure") & (scores["scorer"] == "a")].iloc[0]
    assert own["interval"] == "jackknife over items" and own["low"] < own["score"] < own["high"]
    assert by_scorer(scores, metric="ari")["one cluster an item"] == pytest.approx(0)
    assert by_scorer(scores, metric="v_measure")["one cluster an item"] > 0.5


def test_intervals_stay_within_what_a_metric_can_be() -> None:
    task = task_of(["a", "a", "b", "b", "c", "c"], "cluster", "v_measure")
    nearly = people(task, {"one": ["1", "1", "2", "2", "3", "4"], "two": ["1", "2", "2", "1", "3", "3"]})
    own = score(task, nearly, rng=rng()).scores
    known = own[own["low"].notna()]
    # The jackknife's own upper end of rater one's V-measure is above 1; the ARI of rater two may lie below 0.
    assert (known["high"] <= 1).all() and known["high"].max() == 1
    assert by_scorer(own, "low", "ari")["two"] < 0 <= by_scorer(own, "low")["two"]


def test_a_mean_of_raters_near_nought_may_lie_below_it() -> None:
    task = task_of([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "score", "cosine_spearman")
    raters = people(task, {"a": [2, 4, 1, 6, 3, 5], "b": [3, 1, 5, 2, 6, 4], "c": [4, 6, 2, 5, 1, 3]})
    own = score(task, raters, rng=rng()).scores
    assert by_scorer(own, "low")["raters_mean"] < 0


def test_marks_of_candidates_count_by_the_expected_precision_with_scikit_learns_beside() -> None:
    gold = [[1, 1, 1, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0], [0] * 7]
    said = {"a": [[1, 1, 1, 1, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0], [0] * 7]}
    task = task_of(gold, "binary", "map_at_1000")
    made = score(task, people(task, said), rng=rng())
    assert by_scorer(made.scores)["a"] == pytest.approx((0.840278 + 0.75) / 2, abs=1e-6)
    assert by_scorer(made.scores, metric="map (scikit-learn)")["a"] == pytest.approx((0.75 + 0.5) / 2)
    (rater,) = people(task, said)
    assert closeness(task, rater) == pytest.approx([0.840278, 0.75, math.nan], abs=1e-6, nan_ok=True)  # each item's own
    assert set(made.scores["n_items"]) == {2}
    assert made.notes == ("task made (eng): 1 of 3 items cannot be scored, as it has no gold or no relevant candidate",)


def test_what_somebody_compared_lacks_falls_out_for_all_and_is_said() -> None:
    right = ["x", "y"] * 10
    some = list(right)
    some[0], some[1] = "?", None  # cannot tell; no answer: 18 of 20 are enough to be compared
    half = [*right[:10], *[None] * 10]
    task = task_of(right, "label", "accuracy")
    model = EmbeddingScorer("m", item_values=np.array([0.0] + [1.0] * 19))
    made = score(task, people(task, {"a": right, "b": some, "c": half}), [model], rng=rng())
    scores = made.scores.query("metric == 'accuracy'").set_index(["scorer_kind", "scorer"])
    assert scores.at[("model", "m"), "n_items"] == scores.at[("rater", "a"), "n_items"] == 18
    assert scores.at[("model", "m"), "score"] == 1.0  # its mistake was on an item that b left out
    assert scores.at[("rater", "c"), "n_items"] == 10
    reason = (
        "scored on the 10 of 20 items that it answered, and left out of comparisons; the answers count in the mean of"
        " raters"
    )
    assert scores.at[("rater", "c"), "reason"].endswith(reason)
    assert not scores.at[("rater", "c"), "compared"] and scores.at[("rater", "b"), "compared"]
    assert scores.at[("rater", "b"), "n_abstained"] == 1
    assert made.notes == (
        "task made (eng): 2 of 20 items are left out, as not every compared scorer has a score on them (items without a"
        " score, by scorer: b 2)",
        "task made (eng): b abstained on 1 and has no answer to 1 of 20 items",
        "task made (eng): c has no answer to 10 of 20 items",
    )


def test_that_no_candidate_is_the_translation_is_an_answer_and_a_wrong_one_where_one_is() -> None:
    """It is no gap: of four sentences three are right, and two raters of three agree that the last has none."""
    right = ["r0", "r1", "r2", "r3"]
    task = task_of(right, "choice", "accuracy")
    given = people(task, {"a": [*right[:3], ""], "b": [*right[:3], ""], "c": right})
    assert not any(one.missing for one in given)
    scores = by_scorer(score(task, given, rng=rng()).scores)
    assert (scores["a"], scores["c"], scores["aggregate"]) == (0.75, 1.0, 0.75)
    assert scores["raters_mean"] == pytest.approx(2.5 / 3)


def test_a_rater_of_a_known_confusion_is_recovered() -> None:
    generator = rng()
    labels, n = ["anger", "fear", "joy"], 3000
    known = np.array([[0.8, 0.15, 0.05], [0.3, 0.6, 0.1], [0.0, 0.1, 0.9]])
    right = [labels[k % 3] for k in range(n)]
    said = [labels[generator.choice(3, p=known[k % 3])] for k in range(n)]
    task = task_of(right, "label", "accuracy")
    (given,) = people(task, {"a": said})
    row = score(task, [given], rng=rng()).scores.iloc[0]
    assert row["low"] < np.trace(known) / 3 < row["high"]


def test_differences_are_paired_and_corrected_over_tasks() -> None:
    right = ["x", "y"] * 20
    wrong = ["y", "x"] * 20
    said = [*right[:30], *wrong[30:]]
    task = task_of(right, "label", "accuracy")
    made = score(task, people(task, {"a": said}), [EmbeddingScorer("m", item_values=np.ones(40))], rng=rng())
    row = made.differences.iloc[0]
    # A quarter of the items is lost: the mean of 40 values of 0 and -1, whose error is sqrt(.25 * .75 / 40) = .068.
    assert row["difference"] == pytest.approx(-0.25)
    assert [row["low"], row["high"]] == pytest.approx([-0.25 - 1.96 * 0.068, -0.25 + 1.96 * 0.068], abs=0.03)
    tasks = pd.concat(
        [made.differences.assign(task=name, p=p) for name, p in zip("abc", (0.01, 0.04, 0.03), strict=True)]
    )
    holm = with_holm(tasks.reset_index(drop=True)).query("people == 'aggregate'")
    assert holm["p_holm"].tolist() == pytest.approx([0.03, 0.06, 0.06])  # 3 x .01; 2 x .03, and no less for .04
    same = score(
        task, people(task, {"a": right}), [EmbeddingScorer("m", item_values=np.ones(40))], rng=rng()
    ).differences
    assert same["difference"].tolist() == [0, 0] and same["p"].isna().all() and (same["reason"] != "").all()
