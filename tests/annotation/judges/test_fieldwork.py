"""People and judges, as campaigns bring ratings: with pools that have near-duplicates, and raters as a sample."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from plumbline.study import Study
from tests.annotation.judges.judged_fieldwork import MIXES, PEOPLES, SLOPES, drawings, holding, worse_sign
from tests.annotation.verdicts.fieldwork import Way, uneven, waves
from tests.scale import FULL, scaled


@pytest.mark.parametrize("make", PEOPLES, ids=lambda make: make.__name__)
def test_over_raters_the_interval_holds_whatever_the_judge_says(make: Callable[[int], Way]) -> None:
    """The mean of all raters; with a judge of slope zero it is people's own interval, not that over pairs alone."""
    number = scaled(150, 1000)
    for slope in SLOPES if FULL else (0.0, 0.6):
        for n in (30, 100):
            found = holding(make(n), slope, number)
            assert min(found.people, found.both) >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / number)
            assert slope or (found.both == found.people and found.pairs_alone < 0.93)


@pytest.mark.parametrize("mix", MIXES if FULL else list(MIXES)[-1:])
@pytest.mark.parametrize("make", PEOPLES if FULL else (uneven, waves), ids=lambda make: make.__name__)
def test_near_duplicates_in_the_pool_accept_no_more_than_people_alone(
    demo: Study, make: Callable[[int], Way], mix: str
) -> None:
    """The threshold at the true mean, 1,000 outputs of which a share is 0.8 better or worse, and liked by the judge."""
    number, draws = scaled(80, 1000), drawings(demo, make(100), mix)
    for raters in (False, True):
        found = worse_sign(make(100), draws, number, raters=raters)
        most = max(found.people, 0.025)
        assert found.both <= most + 3 * math.sqrt(most * (1 - most) / number)
