from __future__ import annotations

import math

import mteb.benchmarks._create_table as leaderboard
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from plumbline.statistics.rankings import borda, points_of, rank_intervals, told_apart, told_apart_singly
from tests.scale import scaled

Scores = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def better_by(steps: list[float], n_tasks: int, seed: int = 0) -> pd.DataFrame:
    """Models whose true scores are `steps` apart in standard deviations of a score."""
    return pd.DataFrame(rng(seed).normal(size=(len(steps), n_tasks)) + np.array(steps)[:, None])


def test_two_models_by_hand() -> None:
    # a beats b on 9 of 10 tasks: points 1 or 0, their differences nine times 1 and once -1. Mean 0.8, sample variance
    # (10 - 10 * 0.64) / 9 = 0.4, t = 0.8 / sqrt(0.4 / 10) = 4, p = 0.0031: told apart.
    found = rank_intervals(pd.DataFrame([[1.0] * 9 + [0.0], [0.5] * 10], index=["a", "b"]), rng=rng())
    assert 2 * stats.t.sf(4, 9) == pytest.approx(0.0031, abs=1e-4)
    assert found[["borda", "rank", "rank_low", "rank_high"]].to_numpy().tolist() == [[9, 1, 1, 1], [1, 2, 2, 2]]
    assert found["group"].tolist() == ["a", "b"]
    # The count of a in a resample is binomial with n = 10 and p = 0.9; the tail on either side is
    # Phi(sqrt(10 / 9) * -2.262) = 0.0085: P(count <= 5) = 0.0016, P(count <= 6) = 0.0128, P(count = 10) = 0.35.
    assert found.loc["a", ["borda_low", "borda_high"]].tolist() == [6, 10]
    assert found.loc["b", ["borda_low", "borda_high"]].tolist() == [0, 4]


def test_a_sign_for_each_of_few_tasks_is_not_enough() -> None:
    # Five wins of five have p = 2 ** -4 at least; six have 2 ** -5, which is below 0.05 for one pair and not for three.
    for n_tasks, n_models, high in ((5, 2, 2), (6, 2, 1), (6, 3, 3)):
        steps = np.arange(n_models, 0, -1.0)[:, None] + np.zeros((1, n_tasks))
        found = rank_intervals(pd.DataFrame(steps), rng=rng())
        assert found.loc[0, "rank_high"] == high, (n_tasks, n_models)
        assert found["borda_low"].isna().all() and found["reason"].str.startswith("the same points on every").all()


def test_few_tasks_gaps_and_one_model_have_no_interval_and_say_why() -> None:
    few = rank_intervals(better_by([1, 0], 4), rng=rng())
    ends = ["borda_low", "borda_high", "rank_low", "rank_high", "rank_single_low", "mean_low", "mean_high"]
    assert few[ends].isna().all(axis=None) and (few["group"] == "").all()
    assert (few["reason"] == "an interval needs at least 5 tasks, not 4").all() and few["rank"].notna().all()
    holes = better_by([8, 4, 0], 8)
    holes.iloc[0, 1] = math.nan
    found = rank_intervals(holes, rng=rng())
    assert found.loc[0, ends].isna().all() and math.isnan(found.loc[0, "mean"])
    assert found.loc[0, "reason"] == "lacks 1 of 8 scores: it gets no points there, and no interval"
    # Nobody is told apart from it, so the others' ranks leave room for it on either side.
    assert found[["rank_low", "rank_high"]].iloc[1:].to_numpy().tolist() == [[1, 2], [2, 3]]
    assert found["borda"].tolist() == borda(holes)["borda"].tolist()
    alone = rank_intervals(better_by([1], 8), rng=rng())
    assert alone["reason"].tolist() == ["there is no other model to compare with"]
    assert rank_intervals(pd.DataFrame(index=["a", "b"]), rng=rng())["rank"].tolist() == [1, 1]


def test_letters_are_of_those_that_are_not_told_apart() -> None:
    scores = better_by([0.0, 0.3, 0.6, 0.9, 1.2, 4.0], 60)
    found = rank_intervals(scores, rng=rng())
    points = np.array(len(scores) - stats.rankdata(-scores, axis=0))
    apart = told_apart(points)
    assert apart.any() and not apart[apart.T].any()
    for one in range(6):
        for other in range(6):
            share = bool(set(found["group"][one]) & set(found["group"][other]))
            assert share == (not (apart[one, other] or apart[other, one]))
    assert found["group"][found["rank"] == 1].item() == "a"
    assert found["rank_low"].tolist() == (1 + apart.sum(axis=0)).tolist()


def test_more_models_than_letters_have_tiers() -> None:
    # Three bands of 14 models, far apart; within each band all are alike.
    found = rank_intervals(better_by([9.0] * 14 + [5.0] * 14 + [1.0] * 14, 60), rng=rng())
    assert found["group"].tolist() == ["1"] * 14 + ["2"] * 14 + ["3"] * 14
    assert (found["rank_high"][:14] <= 14).all() and (found["rank_low"][14:] >= 15).all()
    assert (rank_intervals(better_by([0.0] * 41, 6), rng=rng())["group"] == "1").all()


def test_two_models_looked_at_alone_by_hand() -> None:
    # a beats b on 8 of 10 tasks. Of 10 drawn with replacement it wins more than 5 with P(Bin(10, 0.8) > 5) = 0.967: not
    # in all but the tail, which is 0.85% of 10 tasks. On 9 of 10 tasks it is P(Bin(10, 0.9) > 5) = 0.9984.
    for wins, surely in ((8, False), (9, True)):
        points = points_of(np.array([[1.0] * wins + [0.0] * (10 - wins), [0.5] * 10]))
        assert stats.binom.sf(5, 10, wins / 10) == pytest.approx(0.9984 if surely else 0.967, abs=1e-3)
        apart = told_apart_singly(points, rng=rng())
        assert apart.tolist() == [[False, surely], [False, False]]
        # a's rank alone: 2 in a resample in which it does not win more.
        found = rank_intervals(pd.DataFrame(points), rng=rng())
        assert found["rank_single_high"].tolist() == [1 if surely else 2, 2]
    for n_tasks, surely in ((5, False), (6, True)):
        assert told_apart_singly(np.array([[1.0], [0.0]]).repeat(n_tasks, 1), rng=rng())[0, 1] == surely
    hole = told_apart_singly(np.array([[np.nan] + [9.0] * 8, [1.0] * 9, [0.0] * 9]), rng=rng())
    assert np.argwhere(hole).tolist() == [[1, 2]]


def test_models_that_tie_or_lack_scores_may_have_any_of_their_ranks() -> None:
    twins = better_by([3.0, 0.0], 12).iloc[[0, 0, 1]].reset_index(drop=True)
    found = rank_intervals(twins, rng=rng())
    assert found[["rank_single_low", "rank_single_high"]].to_numpy().tolist() == [[1, 2], [1, 2], [3, 3]]
    twins.iloc[2, 0] = math.nan
    found = rank_intervals(twins, rng=rng())
    assert found["rank_single_high"].tolist()[:2] == [3, 3] and math.isnan(found.loc[2, "rank_single_low"])


def test_scores_that_differ_by_rounding_are_ties() -> None:
    # 0.1 + 0.2 is 0.30000000000000004.
    scores = pd.DataFrame({"one": [0.1 + 0.2, 0.3], "other": [0.5, 0.4]}, index=["a", "b"])
    assert borda(scores)["borda"].tolist() == [1.5, 0.5]


def test_ranks_are_mtebs() -> None:
    scores = pd.DataFrame(rng().integers(0, 4, (9, 7)) / 4).set_axis(list("abcdefg"), axis=1)
    scores.iloc[2, 3] = math.nan
    long = scores.rename_axis("model_name").reset_index().melt("model_name", var_name="task_name", value_name="score")
    theirs = leaderboard._borda_rank_from_long(pl.from_pandas(long.dropna()), n_models=9).to_pandas()
    mine = rank_intervals(scores, rng=rng())["rank"]
    assert mine.to_dict() == theirs.set_index("model_name")["Rank (Borda)"].to_dict()


@pytest.mark.parametrize(("steps", "n_tasks"), [([0.0] * 6, 8), ([0.0, 0.0, 0.5, 0.5, 1.0, 1.5], 20)])
def test_intervals_cover_and_equal_models_are_hardly_ever_told_apart(steps: list[float], n_tasks: int) -> None:
    n = scaled(150, 1000)
    true_points = np.array(len(steps) - stats.rankdata(-better_by(steps, 40_000, 1), axis=0)).mean(axis=1)
    worse = np.array([sum(other > own for other in steps) for own in steps])
    least, most = 1 + worse, np.array([sum(other >= own for other in steps) for own in steps])
    counts = means = 0.0
    ranks = 0
    for seed in range(n):
        found = rank_intervals(better_by(steps, n_tasks, 100 + seed), n_resamples=500, rng=rng(seed))
        count = true_points * n_tasks
        counts += float(((found["borda_low"] <= count) & (count <= found["borda_high"])).mean()) / n
        means += float(((found["mean_low"] <= steps) & (steps <= found["mean_high"])).mean()) / n
        ranks += bool(((found["rank_low"] <= least) & (most <= found["rank_high"])).all())
    room = 4 * math.sqrt(0.05 * 0.95 / n)  # of ranks, which hold all at once or not; models' own are less far off
    assert counts > 0.95 - room / 2 and means > 0.95 - room / 2
    assert ranks / n > 0.95 - room
