"""What is said about wordings, against published numbers, arithmetic by hand and computations of another kind."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from evaluation import coefficient_of_variation, default_ecdf, median_ecdf, median_permutation_test, share_above_median
from evaluation.instructions import analysis, spread
from evaluation.instructions.boards import (
    AGAINST_DEFAULTS,
    AGAINST_WORST,
    DEFAULTS,
    chosen_boards,
    mean_over_wordings,
    ranked,
    recommended_board,
)
from tests.evaluation.instructions import published
from tests.evaluation.instructions.made import grid

RNG = np.random.default_rng(1)
REPORTED, MATCHED = published.REPORTED, published.MATCHED
E5 = np.array([[*row, *[math.nan] * (15 - len(row))] for row in published.E5])
PAPERS = grid(np.stack([published.BEST, published.WORST], axis=-1), MATCHED)


def test_variation_is_the_papers() -> None:
    """Figure 3: e5's median is 5.7%, bge-small's largest 44.4% (on Touche)."""
    own = [statistics.pstdev(row) / statistics.fmean(row) for row in published.E5]  # another way to compute it
    cv = spread.variation(E5)
    assert cv == pytest.approx(own, abs=1e-12)
    assert round(100 * float(np.median(cv)), 1) == 5.7
    assert round(100 * coefficient_of_variation(published.TOUCHE_BGE_SMALL).value, 1) == 44.4


def test_undefined_variation_says_why() -> None:
    for scores, reason in (
        ([0.5], "1 distinct wording, but 2 are needed"),
        ([], "0 distinct wordings, but 2 are needed"),
        ([0.1, -0.1], "the mean is not above 0"),
        ([0.1, math.nan], "1 distinct wording, but 2 are needed"),
    ):
        found = coefficient_of_variation(scores)
        assert math.isnan(found.value) and found.reason.startswith(reason)
    assert coefficient_of_variation([0.5, 0.5]).value == 0  # equal scores do not vary


def test_the_defaults_place_counts_ties_as_at_most_and_itself_where_asked() -> None:
    assert default_ecdf([0.1, 0.2, 0.2, 0.3], 0.2) == 3 / 4
    assert default_ecdf([0.1, 0.2, 0.2, 0.3], 0.2, with_itself=True) == 4 / 5
    assert default_ecdf([0.2, 0.3], 0.1, with_itself=True) == 1 / 3  # the floor of the paper's quantity
    assert np.isnan(default_ecdf([0.2], math.nan)) and np.isnan(default_ecdf([math.nan], 0.2))
    assert default_ecdf([0.1 + 0.2], 0.3) == 1  # equal but for rounding


def test_inflation_is_the_papers_and_what_its_caption_says_is_not() -> None:
    """By Figure 5's formula e5 has 86.7%, from 62.5 to 100; the share of tasks is 9 of 11."""
    default = REPORTED[published.MODELS.index("e5")]
    figure5 = median_ecdf(E5, default, rng=np.random.default_rng(1))
    share = share_above_median(E5, default, rng=np.random.default_rng(1))
    assert [round(100 * one, 1) for one in (figure5.value, figure5.low, figure5.high)] == [86.7, 62.5, 100.0]
    own = [(1 + sum(x <= d for x in row)) / (1 + len(row)) for d, row in zip(default, published.E5, strict=True)]
    assert figure5.value == statistics.median(own)
    again = np.median(np.random.default_rng(2).choice(own, (5000, 11)), axis=1)  # resamples written out
    assert [figure5.low, figure5.high] == pytest.approx(np.percentile(again, [2.5, 97.5]))
    above = [own > statistics.median(row) for own, row in zip(default, published.E5, strict=True)]
    assert share.value == sum(above) / 11 == 9 / 11
    assert share.low < share.value <= share.high


def test_no_interval_where_every_task_says_the_same() -> None:
    found = share_above_median(E5, E5.max(axis=1, initial=0, where=~np.isnan(E5)), rng=RNG)
    assert found.value == 1 and math.isnan(found.low) and "the same" in found.reason
    one = share_above_median(E5[:1], np.array([1.0]), rng=RNG)
    assert one.n == 1 and math.isnan(one.low) and one.reason
    none = share_above_median(E5, np.full(11, math.nan), rng=RNG)
    assert none.n == 0 and math.isnan(none.value) and none.reason
    with pytest.raises(ValueError, match="tasks by wordings, with one default per task"):
        share_above_median(E5, np.array([1.0]), rng=RNG)


def boards(one: object, holes: str) -> list[list[int]]:
    found = chosen_boards(one, holes)  # type: ignore[arg-type]
    return found["rank"].to_numpy().reshape(13, 6).tolist()


def test_the_thirteen_boards_are_figure_4s() -> None:
    """From the published defaults, points averaged over the tasks that a model has."""
    assert boards(replace(PAPERS, default=REPORTED), "present") == published.FIGURE_4


def test_what_falls_once_the_default_is_of_the_same_data() -> None:
    """Then only Qwen moves with its best wordings; best against worst still puts every model first."""
    found = chosen_boards(PAPERS, "present")
    assert found.loc[found["scenario"] == DEFAULTS, "rank"].tolist() == [5, 4, 6, 1, 2, 3]
    for scenario, ranks in ((AGAINST_DEFAULTS, [5, 4, 6, 1, 1, 3]), (AGAINST_WORST, [1] * 6)):
        own = found[(found["scenario"] == scenario) & (found["chosen"] == found["model"])]
        assert own["rank"].tolist() == ranks


def test_a_hole_counts_by_the_rule_that_is_named() -> None:
    """Three models on three tasks; a lacks the last: points 2 1 0 there are 1 0 among two."""
    scores = np.array([[0.9, 0.9, math.nan], [0.8, 0.8, 0.8], [0.7, 0.7, 0.9]])
    assert ranked(scores, "mteb")[0].tolist() == [4, 3, 2]  # a: 2 + 2 + 0, b: 1 + 1 + 1, c: 0 + 0 + 2
    assert ranked(scores, "present")[0].tolist() == [2, 2 / 3, 1 / 3]  # a: 4/2, b: (1 + 1 + 0)/3, c: (0 + 0 + 1)/3
    assert ranked(np.full((2, 2), math.nan), "present")[1].tolist() == [1, 1]


def test_medians_are_shared_out_in_all_ways() -> None:
    """Against scipy's exact permutation test, which tries every way, with ties and of odd and even sizes."""

    def gap(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
        return np.asarray(np.median(x, axis=axis) - np.median(y, axis=axis))

    rng = np.random.default_rng(3)
    for n, m in ((2, 3), (5, 6), (4, 4), (3, 8)):
        first, second = rng.random(n).round(1), rng.random(m).round(1)
        wanted = stats.permutation_test((first, second), gap, vectorized=True, n_resamples=10_000).pvalue
        found = median_permutation_test(first, second, rng=rng)
        assert found.method == "exact" and found.p == pytest.approx(wanted, abs=1e-12)


def test_many_wordings_are_drawn_and_come_near_the_exact_p(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    first, second = rng.normal(0.5, 1, 10), rng.normal(0, 1, 15)
    exact = median_permutation_test(first, second, rng=rng)
    monkeypatch.setattr(spread, "_EXACT", 0)
    drawn = median_permutation_test(first, second, rng=np.random.default_rng(5))
    assert exact.method == "exact" and drawn.method == "100,000 resamples"
    assert drawn.p == pytest.approx(exact.p, abs=4 * math.sqrt(exact.p / 100_000))
    assert math.comb(25, 10) == 3_268_760 == int(spread._median_places(10, 15)[1].sum())


def test_a_test_that_says_nothing_says_why() -> None:
    for first, second, reason in (([0.1], [0.2, 0.3], "at least 2"), ([0.1, 0.1], [0.1, 0.1], "score the same")):
        found = median_permutation_test(first, second, rng=RNG)
        assert math.isnan(found.p) and reason in found.reason


def test_the_recommended_score_holds_the_mean_of_all_wordings() -> None:
    """In simulations: the 95% interval over wordings covers; and one task's is Student's of its wordings."""
    rng = np.random.default_rng(1)
    one = rng.normal(0.5, 0.1, (1, 1, 8))
    low, high = stats.t.interval(0.95, 7, one.mean(), stats.sem(one.ravel()))
    found = mean_over_wordings(one)
    assert [found["wordings_low"][0], found["wordings_high"][0]] == pytest.approx([low, high])
    n = 5000
    drawn = mean_over_wordings(rng.normal(0.5, [[[0.05], [0.02], [0.1]]], (n, 3, 6)))
    covers = np.mean((drawn["wordings_low"] < 0.5) & (drawn["wordings_high"] > 0.5))
    assert covers == pytest.approx(0.95, abs=4 * math.sqrt(0.05 * 0.95 / n) + 0.01)
    for wordings in (1, 3):  # a single one, and three that score the same: nothing shows how far others may lie
        assert np.isnan(mean_over_wordings(np.full((1, 2, wordings), 0.5))["wordings_low"][0])


def test_the_recommended_board_ranks_by_means_over_wordings() -> None:
    scores = np.array([[[0.5, 0.9]] * 6, [[0.6, 0.6]] * 6])
    found = recommended_board(grid(scores, [[0.5] * 6, [0.6] * 6]), seed=1)
    assert found["model"].tolist() == ["m0", "m1"] and found["default_rank"].tolist() == [2, 1]
    assert found["mean"].tolist() == pytest.approx([0.7, 0.6]) and found.attrs["tau"] == -1
    holey = grid(scores, [[0.5] * 6, [0.6] + [math.nan] * 5])  # m1 is the better one where both have a default
    ranks = {rule: recommended_board(holey, rule, seed=1)["default_rank"].tolist() for rule in ("mteb", "present")}
    assert ranks == {"mteb": [1, 2], "present": [2, 1]}


def test_the_gates_two_columns_rest_on_the_same_tasks() -> None:
    """The second task has no accepted wording: accepted (0.5 + 0.7) / 2, with the refused one (0.5 + 0.7 + 0.9) / 3."""
    scores = np.array([[[0.5, 0.7, 0.9], [0.1, 0.2, 0.3]]])
    whole = grid(scores, [[0.65, 0.0]])
    label = np.array([["acceptable", "acceptable", "irrelevant"], ["irrelevant"] * 3], object)
    row = analysis.gate_table(replace(whole, facts=whole.facts | {"label": label}, gated=True)).iloc[0]
    assert (row["wordings"], row["all_wordings"], row["share"], row["all_share"]) == (2, 3, 1, 0)
    assert [row["mean"], row["all_mean"], row["best"], row["all_best"]] == pytest.approx([0.6, 0.7, 0.7, 0.9])
    label[0, 2] = "acceptable"
    assert analysis.gate_table(replace(whole, facts=whole.facts | {"label": label}, gated=True)).empty
