"""Agreement on rankings against published values and scipy; where labels stand; what cannot be told."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from annotation.questions.ranking import RankingQuestion, Rankings, kendall_tau, kendall_w, ranked
from plumbline.study.campaign import AcceptanceSpec

ABC = RankingQuestion("order", labels=("a", "b", "c"))
# Kendall, Rank Correlation Methods, 4th ed., chapter 6: three rankings of ten with ties; he gives S = 591, W = 0.828.
KENDALL = (
    (1, 4.5, 2, 4.5, 3, 7.5, 6, 9, 7.5, 10), (2.5, 1, 2.5, 4.5, 4.5, 8, 9, 6.5, 10, 6.5),
    (2, 1, 4.5, 4.5, 4.5, 4.5, 8, 8, 8, 10),
)  # fmt: skip
# The data `anxiety` of R's package irr, 20 ranked by 3 with ties: its `kendall(anxiety, TRUE)` gives Wt = 0.54.
ANXIETY = (
    (3, 3, 3, 4, 5, 5, 2, 3, 5, 2, 2, 6, 1, 5, 2, 2, 1, 2, 4, 3),
    (3, 6, 4, 6, 2, 4, 2, 4, 3, 3, 2, 3, 3, 3, 2, 2, 1, 3, 3, 4),
    (2, 1, 4, 4, 3, 2, 1, 6, 1, 1, 1, 2, 3, 3, 1, 1, 3, 3, 2, 2),
)  # fmt: skip


def frame(*pairs: str) -> pd.DataFrame:
    """A row of text a pair: the rankings of its raters, parted by commas."""
    rows = [
        {"pair_id": f"p{number}", "rater_id": f"r{rater}", "answer": answer.strip()}
        for number, row in enumerate(pairs)
        for rater, answer in enumerate(row.split(","))
    ]
    return pd.DataFrame(rows)


def of(*pairs: str) -> Rankings:
    return Rankings.of(frame(*pairs), ABC.labels)


def one_pair(ranks: tuple[tuple[float, ...], ...]) -> Rankings:
    names = tuple(f"l{i:02}" for i in range(len(ranks[0])))
    answers = [ranked({name: int(2 * rank) for name, rank in zip(names, one, strict=True)}) for one in ranks]
    return Rankings.of(frame(",".join(answers)), names)


@pytest.mark.parametrize(("ranks", "w", "digits"), [(KENDALL, 0.828, 3), (ANXIETY, 0.54, 2)])
def test_w_with_ties_is_as_published(ranks: tuple[tuple[float, ...], ...], w: float, digits: int) -> None:
    found = kendall_w(one_pair(ranks))
    assert round(found.value, digits) == w
    assert math.isnan(found.low) and found.reason == "only one pair, so no interval"


def test_tau_is_scipys_and_w_the_textbooks_formula_whatever_raters_are_missing() -> None:
    """40 pairs with 1 to 4 raters and many ties: the mean of each pair's own mean of scipy's tau-b, and of its W."""
    rng = np.random.default_rng(5)
    names = ("a", "b", "c", "d")
    rows, taus, ws = [], [], []
    for _ in range(40):
        given = [rng.integers(1, 4, 4) for _ in range(rng.integers(1, 5))]
        rows.append(",".join(ranked(dict(zip(names, map(int, one), strict=True))) for one in given))
        ordered = [one for one in given if len(set(one)) > 1]
        if len(ordered) > 1:
            taus.append(np.mean([stats.kendalltau(*two).statistic for two in combinations(ordered, 2)]))
        if len(given) > 1 and ordered:
            m, sums = len(given), np.sum([stats.rankdata(one) for one in given], axis=0)
            ties = sum((n**3 - n) for one in given for n in np.unique(one, return_counts=True)[1])
            ws.append((12 * (sums**2).sum() - 3 * m**2 * 4 * 25) / (m**2 * 4 * 15 - m * ties))
    own = Rankings.of(frame(*rows), names)
    for found, values in ((kendall_tau(own), taus), (kendall_w(own), ws)):
        assert found.value == pytest.approx(np.mean(values), abs=1e-12)
        ends = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
        assert (found.low, found.high) == pytest.approx(ends, abs=1e-12)


def test_two_raters_by_hand() -> None:
    """a > b > c beside a > c > b: of three twos two agree, one does not: tau 1/3. R = 2, 5, 5: W = 12 * 6 / 96 = 3/4.

    The same twice: 1 and 1. The means of the two pairs are 2/3 and 7/8.
    """
    two = of("a > b > c, a > c > b", "a > b > c, a > b > c")
    assert kendall_tau(two).value == pytest.approx(2 / 3) and kendall_w(two).value == pytest.approx(7 / 8)
    assert kendall_tau(two).high == 1.0 == kendall_w(two).high
    opposite = of("a > b > c, c > b > a", "b > a > c, c > a > b")
    assert (kendall_tau(opposite).value, kendall_w(opposite).value) == (-1, 0)
    assert kendall_tau(opposite).reason == "all pairs have the same value, so their spread is unknown"


def test_no_interval_reaches_below_what_the_coefficient_can_be() -> None:
    """tau -1, -1, -1/3: mean -7/9, SD 0.385, so 0.956 (4.303 * 0.222) to either side. W 0, 0, 1/4: mean 1/12."""
    rows = of("a > b > c, c > b > a", "b > a > c, c > a > b", "a > b > c, c > a > b")
    tau, w = kendall_tau(rows), kendall_w(rows)
    assert (tau.value, w.value) == (pytest.approx(-7 / 9), pytest.approx(1 / 12))
    assert (tau.low, w.low) == (-1, 0) and tau.high == pytest.approx(-7 / 9 + 0.9562, abs=1e-4)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (("a > b > c", "b > a > c"), "no pair has two rankings"),
        (("a = b = c, a = b = c",), "no pair has two rankings in which not all are equal"),
    ],
)
def test_what_cannot_be_told_is_nan_with_its_reason(rows: tuple[str, ...], reason: str) -> None:
    for found in (kendall_tau(of(*rows)), kendall_w(of(*rows))):
        assert math.isnan(found.value) and found.reason == reason
    assert ABC.summary(frame(*rows).iloc[:0], AcceptanceSpec(), 1).coefficients == ()


def test_who_holds_all_for_equal_has_no_tau_but_counts_in_w() -> None:
    """Ranks 1 2 3 and 2 2 2: sums 3 4 5, S = 2, 3 raters' own sums of squares 2 + 0: W = 2 / (2 * 2)."""
    rows = of("a > b > c, a = b = c")
    assert kendall_tau(rows).reason == "no pair has two rankings in which not all are equal"
    assert kendall_w(rows).value == pytest.approx(0.5)


def test_where_labels_stand() -> None:
    """Ranks of a: 1, 1.5, 2, 1; its pairs' sums 2.5 and 3 of 2 each: 5.5 / 4, residuals -+0.25, error 0.25 / 2.

    Error^2 = 2 / 1 * 2 * 0.25^2 / 16 = 1/64: t(0.975; 1) = 12.7062 times 1/8 to either side. First is a in 3 of 4.
    """
    given = frame("a > b > c, a = b > c", "b > a > c, a > c > b")
    a, b, c = (one.rank for one in ABC.mean_ranks(given, "pairs"))
    assert (a.value, b.value, c.value) == pytest.approx((5.5 / 4, (2 + 1.5 + 1 + 3) / 4, (3 + 3 + 3 + 2) / 4))
    assert a.high - a.value == pytest.approx(12.7062047 / 8)
    firsts = {one.label: one.share.value for one in ABC.shares(given, "pairs")}
    assert firsts == {"a": 3 / 4, "b": 2 / 4, "c": 0}
    (alone, *_) = ABC.mean_ranks(given.iloc[:2], "pairs")
    assert alone.rank.reason == "only one pair, so no interval" and math.isnan(alone.rank.low)
    empty = ABC.mean_ranks(given.iloc[:0], "pairs")[0].rank
    assert math.isnan(empty.value) and empty.reason == "no ratings"


def test_intervals_cover_the_agreement_of_all_pairs() -> None:
    """Raters who order by a pair's own values with noise: of 600 campaigns of 30 pairs 93% or more cover the mean."""
    rng = np.random.default_rng(11)

    def rankings(pairs: int) -> Rankings:
        felt = rng.normal(0, 1, (pairs, 1, 3)) + rng.normal(0, 1, (pairs, 3, 3))
        ranks = stats.rankdata(np.round(felt), axis=2).reshape(-1, 3)
        return Rankings(np.repeat(np.arange(pairs), 3), np.tile(np.arange(3), pairs), ranks)

    whole = rankings(60_000)
    for coefficient in (kendall_tau, kendall_w):
        truth = coefficient(whole).value
        found = [coefficient(rankings(30)) for _ in range(600)]
        assert np.mean([one.low <= truth <= one.high for one in found]) >= 0.93


def test_ranks_by_other_intervals_hold_their_mean() -> None:
    rng = np.random.default_rng(2)
    rows = [
        ", ".join(ranked(dict(zip("abc", map(int, rng.permutation(3)), strict=True))) for _ in "xyz") for _ in range(50)
    ]
    given = frame(*rows)
    plain, both = (ABC.mean_ranks(given, over)[0].rank for over in ("pairs", "pairs_and_raters"))
    assert both.value == plain.value
    assert 1 <= both.low < plain.low < plain.value < plain.high < both.high <= 3
