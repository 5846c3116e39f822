"""The bootstrap, counted resamples and the jackknife by other packages and by hand; what is undefined says why."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score, f1_score, v_measure_score

from plumbline.statistics.estimates import ALIKE, Bootstrap, bootstrap, draw_counts, draw_indices, jackknife
from plumbline.statistics.resampled_measures import Measure, macro_f1, mean, precision, rho, v_measure, weighted_f1


def test_the_percentile_interval_is_scipys_of_the_same_draws() -> None:
    values = np.random.default_rng(7).gamma(2, 1, 40)
    draws = draw_indices(np.random.default_rng(8), 40, 2000, at_once=1000)
    found = bootstrap(lambda rows: values[rows].mean(axis=1), draws, value=float(values.mean()), n=40)
    scipys = stats.bootstrap((values,), np.mean, method="percentile", n_resamples=2000, rng=np.random.default_rng(8))
    estimate = found.percentile()
    assert (estimate.low, estimate.high) == pytest.approx(tuple(scipys.confidence_interval), rel=1e-12)
    assert found.standard_error == pytest.approx(scipys.standard_error, rel=1e-12)


def test_draws_do_not_depend_on_how_many_are_in_memory() -> None:
    for draw in (draw_indices, draw_counts):
        whole, parts = (
            np.concatenate(list(draw(np.random.default_rng(1), 7, 50, at_once=size))) for size in (10_000, 20)
        )
        assert (whole == parts).all()


def test_what_has_no_interval_says_why() -> None:
    some = np.where(np.arange(100) < 15, math.nan, np.arange(100.0))
    assert Bootstrap(50.0, 9, some).percentile("rho is undefined").reason == "rho is undefined in 15 of 100 resamples"
    alike = Bootstrap(1.0, 9, np.ones(100))
    assert math.isnan(alike.percentile().low) and alike.percentile().reason == ALIKE
    assert Bootstrap(0.9, 9, np.linspace(0.5, 1.5, 100)).percentile(ends=(0.0, 1.0)).high == 1.0
    assert jackknife(1.0, np.ones(5)).reason == ALIKE


CASES: dict[str, tuple[Measure, Callable[[Any, Any], float], int, int]] = {
    "mean": (mean, lambda _, made: float(np.mean(made)), 2, 5),
    "rho": (rho, lambda gold, made: float(spearmanr(gold, made).statistic), 6, 9),
    "precision": (precision, lambda gold, made: float(average_precision_score(gold, made)), 2, 9),
    "v_measure": (v_measure, lambda gold, made: float(v_measure_score(gold, made)), 4, 5),
    "weighted_f1": (
        weighted_f1, lambda gold, made: float(f1_score(gold, made, average="weighted", zero_division=0)), 5, 5,
    ),
    "macro_f1": (macro_f1, lambda gold, made: float(f1_score(gold, made, average="macro", zero_division=0)), 5, 7),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_counts_give_what_the_resample_written_out_gives(name: str) -> None:
    measure, plain, labels, values = CASES[name]
    rng = np.random.default_rng(11)
    gold, made = rng.integers(0, labels, 30), rng.integers(0, values, 30)  # ties on both sides
    drawn = rng.integers(0, 30, size=(40, 30))
    counts = np.stack([np.bincount(row, minlength=30) for row in drawn]).astype(np.float64)
    expected = [plain(gold[row], made[row]) for row in drawn]
    assert measure(gold, made)(counts) == pytest.approx(expected, abs=1e-12)


def test_what_is_undefined_is_nan() -> None:
    one = np.array([[2.0, 1.0, 0.0]])
    assert np.isnan(rho(np.array([1, 1, 2]), np.array([1, 2, 3]))(one)).all()  # the third, which differs, is not drawn
    assert np.isnan(precision(np.array([0, 0, 1]), np.array([1, 2, 3]))(one)).all()
    assert v_measure(np.array([0, 0, 1]), np.array([5, 5, 6]))(one) == pytest.approx([1.0])
