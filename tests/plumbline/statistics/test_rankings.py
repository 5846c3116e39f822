from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from plumbline.statistics.rankings import borda, kendall, kendall_rows, split_half, stratified_halves


def test_tau_b_by_hand() -> None:
    # x 1 2 3 4 against y 1 3 2 3. Of the 6 pairs four agree (12 13 14 34), one does not (23), one is tied in y (24):
    # tau-b = (4 - 1) / sqrt(6 * 5)
    found = kendall([1, 2, 3, 4], [1, 3, 2, 3])
    assert found.value == pytest.approx(3 / math.sqrt(30))
    assert (found.n, found.reason) == (4, "")


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [([1], [1], "at least 2 models"), ([1, 1], [1, 2], "equal"), ([1, 2], [1, math.nan], "finite")],
)
def test_an_undefined_tau_is_nan_with_a_reason(x: list[float], y: list[float], reason: str) -> None:
    found = kendall(x, y)
    assert math.isnan(found.value) and reason in found.reason


@pytest.mark.parametrize("models", [1, 2, 3, 20, 101])
def test_tau_of_many_rows_is_that_of_each(models: int) -> None:
    """To the last digit, ties, constant rows and scores that are not finite included; `kendall` is scipy's."""
    rng = np.random.default_rng(models)
    x, y = (np.round(rng.normal(size=(60, models)), digits) for digits in (0, 1))
    x[3, 0], x[4, -1], y[5] = math.nan, math.inf, 1.0
    each = [kendall(one, other).value for one, other in zip(x, y, strict=True)]
    np.testing.assert_array_equal(kendall_rows(x, y), each)


def test_halves_by_hand() -> None:
    # Two tasks of two data sets: a split takes one of a and one of b. Split {a1, b1} | {a2, b2} has the means
    # 2 4 6 | 3 2 1, rho = -1; {a1, b2} | {a2, b1} has 2 3 4 | 3 3 3, undefined: equal on one side.
    scores = np.array([[1, 3, 3, 3], [3, 1, 5, 3], [5, -1, 7, 3]], dtype=float)
    found = split_half(scores, ["a", "a", "b", "b"], n_splits=200, rng=np.random.default_rng(0))
    assert math.isnan(found.value) and "undefined in" in found.reason
    assert 60 < found.n < 140  # about half of the splits
    # Without b there is one split, {a1} | {a2}: 1 3 5 | 3 1 -1
    assert split_half(scores[:, :2], ["a", "a"], rng=np.random.default_rng(0)).value == -1


def test_splits_are_stratified_and_halves_as_equal_as_can_be() -> None:
    tasks = list("aaabcbd")
    halves = stratified_halves(tasks, 500, np.random.default_rng(0))
    for half in halves:
        counts = Counter(task for task, taken in zip(tasks, half, strict=True) if taken)
        assert counts["a"] in (1, 2) and counts["b"] == 1 and half.sum() in (3, 4)
    # Of a one of 3 or 2 of 3, of b one of 2, and of the odd ones of a, c, d one or two: 3 * 2 * (2 + 2 + 2) splits.
    assert len({tuple(half) for half in halves}) == 36
    assert halves.mean(axis=0) == pytest.approx(np.full(7, 0.5), abs=0.1)


def test_one_split_is_spearman_between_means() -> None:
    rng = np.random.default_rng(7)
    scores, tasks = rng.random((6, 9)), list("aaabbbccd")
    half = stratified_halves(tasks, 1, np.random.default_rng(3))[0]
    expected = stats.spearmanr(scores[:, half].mean(axis=1), scores[:, ~half].mean(axis=1)).statistic
    assert split_half(scores, tasks, n_splits=1, rng=np.random.default_rng(3)).value == pytest.approx(expected)


def test_data_sets_that_agree_are_reliable_and_noise_is_not() -> None:
    rng = np.random.default_rng(0)
    quality, tasks = np.arange(11.0)[:, None], ["a"] * 3 + ["b"] * 8
    assert split_half(quality + np.zeros((11, 11)), tasks, rng=rng).value == pytest.approx(1)
    noise = split_half(rng.normal(size=(200, 11)), tasks, rng=rng)
    assert abs(noise.value) < 0.2


@pytest.mark.parametrize(
    ("shape", "reason"), [((2, 4), "at least 3 models"), ((3, 1), "at least 2 data sets"), ((3, 4), "finite")]
)
def test_what_cannot_be_split_is_nan_with_a_reason(shape: tuple[int, int], reason: str) -> None:
    scores = np.full(shape, np.nan)
    found = split_half(scores, ["a"] * shape[1], rng=np.random.default_rng(0))
    assert math.isnan(found.value) and reason in found.reason
    with pytest.raises(ValueError, match="a task for each"):
        split_half(scores, ["a"] * 9, rng=np.random.default_rng(0))


def test_borda_by_hand() -> None:
    # First data set: a beats b and c, b beats c: 2 1 0. Second: b and c tie above a: 0 1.5 1.5. Third: a has no score,
    # c beats b; each of the two has a point for a: 0 1 2. Sums: a 2, b 3.5, c 3.5.
    found = borda(pd.DataFrame([[0.9, 0.1, np.nan], [0.8, 0.5, 0.2], [0.7, 0.5, 0.3]], index=["a", "b", "c"]))
    assert found["borda"].to_dict() == {"a": 2, "b": 3.5, "c": 3.5}
    assert found["rank"].to_dict() == {"a": 3, "b": 1, "c": 1}


@given(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=2, max_size=6))
def test_borda_is_a_tournament(rows: list[list[int]]) -> None:
    points = borda(pd.DataFrame(rows, dtype=float))["borda"]
    for i, mine in enumerate(rows):
        others = [theirs for j, theirs in enumerate(rows) if j != i]
        won = sum((a > b) + 0.5 * (a == b) for theirs in others for a, b in zip(mine, theirs, strict=True))
        assert points[i] == won
