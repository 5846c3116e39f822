"""The bootstrap and the jackknife against scipy's and by hand; what is undefined says why."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from plumbline.statistics.estimates import ALIKE, Bootstrap, bootstrap, draw_counts, draw_indices, jackknife


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
