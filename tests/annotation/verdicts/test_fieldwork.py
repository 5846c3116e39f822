"""Skewed ratings as campaigns bring them: how often a lower end is above the mean."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.annotation.verdicts.fieldwork import (
    THRESHOLDS,
    WAYS,
    WORST,
    Way,
    by_quality,
    even,
    just_missed,
    of_the_worse_language,
    rare,
    surely,
    two_or_three,
)
from tests.scale import FULL, scaled

MOST = 0.03  # of campaigns whose lower end is above the mean; docs/decisions/0005-verdicts.md has what was measured


def noise(share: float, number: int) -> float:
    return 3 * math.sqrt(share * (1 - share) / number)


@pytest.mark.parametrize("make", WAYS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("raters", [False, True], ids=["pairs", "raters"])
def test_rare_bad_pairs_accept_little_however_ratings_come(make: Callable[[int], Way], raters: bool) -> None:
    """1, 2 and 5% of pairs are a 1, the others a 5, or nearly; then a threshold that is the mean."""
    number, most = scaled(1000, 20_000), MOST * len(make(20).looks)
    for varied in (False, True):
        for n in (20, 50, 100) if FULL else (20, 100):
            found = rare(make(n), number, varied=varied, raters=raters)
            assert found <= most + noise(most, number)
    for threshold in THRESHOLDS:
        for n in (20, 100) if FULL else (100,):
            assert just_missed(make(n), number, threshold, raters=raters) <= most + noise(most, number)


def test_a_verdict_of_20_pairs_in_the_worse_language_accepts_little() -> None:
    """All bad pairs of two languages are in one; by t alone 38% of such campaigns have a lower end above the mean."""
    for varied in (False, True):
        found = of_the_worse_language(1000, varied=varied, raters=False)
        by_t = of_the_worse_language(1000, varied=varied, raters=False, t_alone=True)
        assert found <= MOST + noise(MOST, 1000)
        assert not varied or by_t > 3 * found


@pytest.mark.parametrize("make", WAYS, ids=lambda make: make.__name__)
def test_intervals_hold_the_mean_however_ratings_come(make: Callable[[int], Way]) -> None:
    """Over pairs that of these raters, over pairs and raters that of all: normal quality, offsets of raters SD 0.4."""
    number = 2000
    for n in (20, 100):
        found = by_quality(make(n), number, np.random.default_rng(1))
        for raters in (False, True):
            above, below = surely(found, n, raters=raters)
            assert 1 - (above | below).mean() >= 0.95 - noise(0.95, number)


@pytest.mark.parametrize("threshold", WORST)
@pytest.mark.parametrize("make", [even, two_or_three], ids=lambda make: make.__name__)
def test_a_lower_end_keeps_its_level_where_good_pairs_differ_and_a_few_are_bad(
    threshold: float, make: Callable[[int], Way]
) -> None:
    """Wrong acceptances of 20 and 50 pairs whose mean is the threshold; by t up to 15%."""
    number = scaled(2000, 20_000)
    for n in (20, 50):
        found = just_missed(make(n), number, threshold, raters=False, good=WORST[threshold])
        assert found <= MOST + noise(MOST, number)
    plain = just_missed(make(20), number, threshold, raters=False, good=WORST[threshold], t_alone=True)
    assert plain > 0.05
