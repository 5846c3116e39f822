"""Ratings that are needed: expected with looks, precision at n against simulation, cheaper designs, and the command."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from annotation.needed import designs, needed, precision
from annotation.planning import Pricing, RatingVariation
from annotation.rubric import load_rubric
from annotation.statistics.summaries import Design
from plumbline.statistics.group_sequential import Blocks
from plumbline.study import Study

SCALE = (1, 2, 3, 4, 5)
BLOCKS = Blocks((20, 40, 60, 80, 100), 3.0, (1, 5))


def test_pairs_needed_are_few_far_from_the_threshold_and_most_at_it() -> None:
    table = needed(Design(), BLOCKS, [2.0, 3.0, 3.3, 4.0], campaigns=300).set_index("mean")
    assert table["pairs"].idxmax() == 3.0
    assert table["pairs"][4.0] <= 22 and table["pairs"][2.0] <= 25
    assert table["accepted"][3.0] <= 0.025 and table["accepted"][4.0] == 1 == table["rejected"][2.0]
    assert table[["accepted", "rejected", "undecided"]].sum(axis=1).tolist() == pytest.approx([1] * 4)
    assert table["share"].tolist() == pytest.approx((table["pairs"] / 100).tolist())


def test_a_rule_by_the_mean_leaves_nothing_undecided() -> None:
    rule = Blocks(BLOCKS.ends, 3.0, (1, 5), by="value")
    table = needed(Design(("quality",)), rule, [3.0], campaigns=400)
    assert table["undecided"][0] == 0
    assert table["accepted"][0] == pytest.approx(0.5, abs=0.08)


def test_a_correlation_reaches_as_far_as_simulated_ones_do() -> None:
    rng = np.random.default_rng(1)
    latent = rng.multivariate_normal([0, 0], [[1, 0.618], [0.618, 1]], (2000, 60))  # Spearman's rho 0.6
    rhos = [stats.spearmanr(sample).statistic for sample in latent]
    assert np.mean(rhos) == pytest.approx(0.6, abs=0.02)
    reach = precision([60], SCALE, 1, 4.0)["rho_reach"][0]
    assert reach == pytest.approx(1.96 * np.std(rhos), rel=0.08)


def test_precision_grows_with_the_root_of_the_pairs_and_one_rater_has_no_ac2() -> None:
    table = precision([3, 50, 200], SCALE, 3, 4.0)
    assert math.isnan(table["rho_reach"][0])
    assert table["ac2_reach"][1] / table["ac2_reach"][2] == pytest.approx(2, rel=0.15)
    assert precision([50], SCALE, 1, 4.0)["ac2"].isna().all()


def test_more_pairs_are_cheaper_than_more_raters_at_the_same_error(variant: Callable[..., Study]) -> None:
    study = variant()
    rubric = load_rubric(study)
    design = Design.of(study, rubric)
    table = designs(Pricing.of(study, rubric, design), design.rule, (100, 3), RatingVariation(0.8, 0.25, 1.1))
    assert table["raters"].tolist() == [2, 3, 4, 5]  # acceptance.min_raters is 2
    assert table.loc[table["cheapest"], "raters"].tolist() == [2]
    assert table["pairs"].tolist() == [
        math.ceil(100 * (0.64 + 1.21 / r) / (0.64 + 1.21 / 3) - 1e-9) for r in range(2, 6)
    ]
    assert table["error"].max() == table["error"][1] == pytest.approx(math.sqrt((0.64 + 1.21 / 3) / 100))
