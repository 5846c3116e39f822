"""Means, intervals and AC2 against published values, against an independent computation, and at the edges."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.agreement import counting_ratings, gwet_ac2, mean_interval, summarise, table_two

SCALE = [1, 2, 3, 4, 5]
NA = None

# Gwet's example of four raters and twelve units with missing ratings (also irrCAC's own, from Gwet, Handbook of
# Inter-Rater Reliability). Published: AC1 0.77544; AC2 with ordinal weights 0.89894.
GWET = [
    (1, 1, NA, 1),
    (2, 2, 3, 2),
    (3, 3, 3, 3),
    (3, 3, 3, 3),
    (2, 2, 2, 2),
    (1, 2, 3, 4),
    (4, 4, 4, 4),
    (1, 1, 2, 1),
    (2, 2, 2, 2),
    (NA, 5, 5, 5),
    (NA, NA, 1, 1),
    (NA, NA, 3, NA),
]


def long(
    matrix: list[tuple[int | None, ...]], question: str = "quality", transformation: str = "paraphrasing"
) -> pd.DataFrame:
    """A pairs x raters matrix as a long frame of ratings."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    return pd.DataFrame(
        [
            {
                "pair_id": f"{transformation}{row}",
                "rater_id": f"rater{column}",
                "question": question,
                "transformation": transformation,
                "value": value,
                "status": "submitted",
                "submitted_at": start + timedelta(minutes=column),
                "simulated": False,
            }
            for row, values in enumerate(matrix)
            for column, value in enumerate(values)
            if value is not None
        ]
    )


def independent_ac2(matrix: list[tuple[int | None, ...]], scale: list[int]) -> float:
    """AC2 with ordinal weights straight from Gwet's formulas, without a library.

    Weight of points k, l of q: 1 - C(|k-l|+1, 2) / C(q, 2).
    Agreement: mean over units with two or more ratings of sum_k r_k (r*_k - 1) / (r (r - 1)), r*_k = sum_l w_kl r_l.
    Chance: T_w / (q (q-1)) * sum_k pi_k (1 - pi_k), pi_k the mean over all rated units of the share of k.
    """
    q = len(scale)
    w = np.array([[1 - math.comb(abs(i - j) + 1, 2) / math.comb(q, 2) for j in range(q)] for i in range(q)])
    counts = np.array([[sum(value == point for value in row) for point in scale] for row in matrix], dtype=float)
    counts = counts[counts.sum(axis=1) > 0]
    r = counts.sum(axis=1)
    two = r >= 2
    agree = ((counts[two] * (counts[two] @ w - 1)).sum(axis=1) / (r[two] * (r[two] - 1))).mean()
    pi = (counts / r[:, None]).mean(axis=0)
    chance = w.sum() / (q * (q - 1)) * (pi * (1 - pi)).sum()
    return float((agree - chance) / (1 - chance))


def test_ac2_gives_gwets_published_value() -> None:
    assert gwet_ac2(long(GWET), SCALE).value == pytest.approx(0.89894, abs=5e-6)
    assert independent_ac2(GWET, SCALE) == pytest.approx(0.89894, abs=5e-6)


def test_the_library_gives_gwets_published_ac1_only_with_the_full_scale() -> None:
    """The trap that `gwet_ac2` avoids: without categories, irrCAC on pandas 3 counts missing ratings as one."""
    from irrCAC.raw import CAC

    matrix = pd.DataFrame(GWET, dtype=float)
    ac1 = CAC(matrix, weights="identity", categories=SCALE).gwet()["est"]["coefficient_value"]
    assert ac1 == pytest.approx(0.77544, abs=5e-6)


@given(
    st.lists(
        st.tuples(*[st.one_of(st.none(), st.sampled_from(SCALE))] * 3).filter(
            lambda row: any(v is not None for v in row)
        ),
        min_size=2,
        max_size=12,
    ).filter(lambda rows: sum(sum(v is not None for v in row) >= 2 for row in rows) >= 2)
)
def test_ac2_agrees_with_the_formulas(matrix: list[tuple[int | None, ...]]) -> None:
    ours = gwet_ac2(long(matrix), SCALE)
    assert ours.value == pytest.approx(independent_ac2(matrix, SCALE), abs=2e-5)
    if ours.reason:
        assert math.isnan(ours.low)
        assert math.isnan(ours.high)
    else:
        assert ours.low <= ours.value <= ours.high


def test_ac2_uses_points_that_nobody_chose() -> None:
    """Ratings of 4 and 5 alone: leaving 1 to 3 out of the scale would change weights and chance agreement."""
    matrix = [(5, 5), (5, 4), (4, 4), (5, 5)]
    # w(4,5) = 1 - C(2,2)/C(5,2) = 0.9; agreement (1 + 0.9 + 1 + 1)/4 = 0.975
    # pi = (0.375, 0.625): sum pi(1-pi) = 0.46875; T_w = 5*1 + 2*(4*0.9 + 3*0.7 + 2*0.4 + 1*0.0) = 18
    # chance = 18/20 * 0.46875 = 0.421875; AC2 = (0.975 - 0.421875)/(1 - 0.421875) = 0.95676
    assert gwet_ac2(long(matrix), SCALE).value == pytest.approx(0.95676, abs=5e-6)


def test_ac2_of_one_rater_is_undefined() -> None:
    estimate = gwet_ac2(long([(5,), (4,), (3,)]), SCALE)
    assert math.isnan(estimate.value)
    assert estimate.reason == "no pair has two ratings, so nothing can agree"


def test_ac2_of_nothing_is_undefined() -> None:
    assert math.isnan(gwet_ac2(long([(5, 5)]).iloc[:0], SCALE).value)


def test_ac2_without_variation_is_one_but_claims_no_certainty() -> None:
    """All 4: agreement 1, chance 0 (pi(1-pi) is 0 everywhere), so AC2 is 1 by its formula; its spread is unknown."""
    estimate = gwet_ac2(long([(4, 4, 4)] * 5), SCALE)
    assert estimate.value == 1.0
    assert math.isnan(estimate.low)
    assert estimate.reason == "every rating is the same, so the spread is unknown"


def test_mean_interval_of_equal_counts_is_the_t_interval_of_pair_means() -> None:
    ratings = long([(5, 4), (3, 3), (2, 5), (4, 4)])
    # pair means 4.5, 3, 3.5, 4; mean 3.75; SD = sqrt((0.75^2+0.75^2+0.25^2+0.25^2)/3) = 0.6454972
    # t(0.975; 3) = 3.1824463; reach = 3.1824463 * 0.6454972 / 2 = 1.0271301
    interval = mean_interval(ratings)
    assert interval.value == 3.75
    assert interval.low == pytest.approx(3.75 - 1.0271301, abs=1e-6)
    assert interval.high == pytest.approx(3.75 + 1.0271301, abs=1e-6)


def test_mean_interval_of_unequal_counts() -> None:
    ratings = long([(5, 5, 5), (2, NA, NA)])
    # mean over single ratings (15 + 2)/4 = 4.25; residuals 15 - 12.75 = 2.25 and 2 - 4.25 = -2.25
    # error = sqrt(2/1 * (2.25^2 + 2.25^2)) / 4 = 4.5/4 = 1.125; t(0.975; 1) = 12.7062047
    interval = mean_interval(ratings)
    assert interval.value == 4.25
    assert interval.high - interval.value == pytest.approx(12.7062047 * 1.125, abs=1e-6)


@pytest.mark.parametrize(
    ("matrix", "reason"),
    [
        ([(5, 4)], "one pair has no spread"),
        ([(4, 4), (4, 4)], "all pairs have the same mean, so their spread is unknown"),
    ],
)
def test_mean_without_an_interval_says_why(matrix: list[tuple[int | None, ...]], reason: str) -> None:
    interval = mean_interval(long(matrix))
    assert not math.isnan(interval.value)
    assert math.isnan(interval.low)
    assert interval.reason == reason


def test_no_ratings_have_no_mean() -> None:
    interval = mean_interval(long([(5,)]).iloc[:0])
    assert math.isnan(interval.value)
    assert interval.reason == "no ratings"


def test_summary_is_over_single_ratings() -> None:
    summary = summarise(long([(5, 4), (3, 2)]), "quality", SCALE)
    assert (summary.n_pairs, summary.n_ratings, summary.mean) == (2, 4, 3.5)
    # SD of 5, 4, 3, 2 with n - 1: sqrt((2.25 + 0.25 + 0.25 + 2.25)/3) = 1.2909944
    assert summary.sd == pytest.approx(1.2909944)


def test_table_two_pools_single_ratings_and_not_means() -> None:
    """One paraphrase rated 5, 5 and three backtranslations rated 1, 1: the axis' mean is (10 + 6)/8 = 2, not 3."""
    ratings = pd.concat([long([(5, 5)]), long([(1, 1)] * 3, transformation="backtranslation")])
    groups = {(g.level, g.name): g for g in table_two(ratings, ["quality"], SCALE)}
    assert list(groups) == [
        ("axis", "lexical_stylistic"),
        ("pool", "paraphrasing"),
        ("pool", "backtranslation"),
        ("overall", "overall"),
    ]
    assert groups["axis", "lexical_stylistic"].questions[0].mean == 2.0
    assert groups["pool", "paraphrasing"].questions[0].mean == 5.0


def test_table_two_rates_the_two_translations_as_one_pool() -> None:
    ratings = pd.concat(
        [long([(5, 5)], transformation="translation"), long([(3, 3)], transformation="cross_translation")]
    )
    pool = next(g for g in table_two(ratings, ["quality"], SCALE) if g.level == "pool")
    assert pool.name == "translation"
    assert pool.transformations == ("translation", "cross_translation")
    assert pool.questions[0].mean == 4.0


def test_only_the_first_submitted_raters_count() -> None:
    ratings = long([(1, 2, 3, 4)])
    ratings.loc[ratings["rater_id"] == "rater0", "status"] = "draft"
    ratings.loc[ratings["rater_id"] == "rater3", "submitted_at"] = datetime(2025, 1, 1, tzinfo=UTC)
    # rater0 is a draft; of the rest rater3 was first, rater1 second, rater2 third
    assert sorted(counting_ratings(ratings, 2)["rater_id"]) == ["rater1", "rater3"]


def test_counting_keeps_a_raters_questions_together() -> None:
    ratings = pd.concat([long([(1, 2)]), long([(3, 4)], question="fluency")])
    counting = counting_ratings(ratings, 1)
    assert sorted(zip(counting["rater_id"], counting["question"], strict=True)) == [
        ("rater0", "fluency"),
        ("rater0", "quality"),
    ]
