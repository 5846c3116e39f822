"""Measures of counted resamples are those of the resamples written out, by scipy and scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score, f1_score, v_measure_score

from plumbline.statistics.resampled_measures import Measure, macro_f1, mean, precision, rho, v_measure, weighted_f1

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
