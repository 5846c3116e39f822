"""Looks after blocks of pairs: published bounds, errors and power by simulation, means unbiased by stopping."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from benchmarks.ratings_saved import (
    BLOCKS,
    SKEWED,
    THREE,
    by_blocks,
    decided,
    people,
    power,
    share_of_ratings,
    sulem_orders,
    wrongly_accepted,
)
from plumbline.statistics.estimates import Floats
from plumbline.statistics.group_sequential import (
    ALPHA,
    Blocks,
    Criterion,
    Spending,
    bounds,
    levels,
    looks,
    lower_end,
    p_above,
    spent,
    stage_wise,
    unbiased_of,
)
from tests.scale import FULL, scaled

LOOKS = (20, 40, 60, 80, 100)
FIFTHS = [0.2, 0.4, 0.6, 0.8, 1.0]
SPENDINGS: tuple[Spending, ...] = ("pocock", "quadratic", "obrien_fleming")


# Critical values of Lan and DeMets' program for five equal looks, one-sided 0.025 (also in R's ldbounds and gsDesign).
@pytest.mark.parametrize(
    ("spending", "published"),
    [
        ("obrien_fleming", [4.8769, 3.3569, 2.6803, 2.2898, 2.0310]),
        ("pocock", [2.4380, 2.4268, 2.4101, 2.3966, 2.3859]),
    ],
)
def test_bounds_are_the_published(spending: Spending, published: list[float]) -> None:
    assert bounds(FIFTHS, spending) == pytest.approx(published, abs=2e-4)


@pytest.mark.parametrize("spending", SPENDINGS)
@pytest.mark.parametrize("fractions", [[1.0], [0.1, 0.15, 0.9], FIFTHS], ids=str)
def test_all_looks_together_err_as_often_as_is_spent(spending: Spending, fractions: list[float]) -> None:
    rng, steps = np.random.default_rng(1), np.sqrt(np.diff(fractions, prepend=0.0))
    scores = np.cumsum(rng.normal(size=(200_000, len(fractions))) * steps, axis=1) / np.sqrt(fractions)
    crossed = np.logical_or.accumulate(scores >= bounds(fractions, spending), axis=1).mean(axis=0)
    errors = spent(fractions, spending)
    assert (np.abs(crossed - errors) < 4 * np.sqrt(errors / 200_000) + 1e-6).all()
    assert fractions[-1] < 1 or errors[-1] == pytest.approx(ALPHA)


@pytest.mark.parametrize("fractions", [[], [0.0, 1.0], [0.5, 0.5], [0.6, 0.4], [0.5, 1.2]], ids=str)
def test_looks_that_do_not_rise_are_refused(fractions: list[float]) -> None:
    with pytest.raises(ValueError, match="fractions of looks must rise"):
        bounds(fractions, "pocock")


def allowed(campaigns: int) -> float:
    """The error with what chance adds to it in so many campaigns."""
    return ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / campaigns)


def ratings(rng: np.random.Generator, campaigns: int, mean: float, sd: float) -> Floats:
    """Means of 100 pairs by three raters on 1 to 5."""
    values: Floats = people(rng, campaigns, mean, sd).mean(axis=2)
    return values


@pytest.mark.parametrize("spending", SPENDINGS)
def test_campaigns_at_the_threshold_are_hardly_ever_accepted(spending: Spending) -> None:
    number = scaled(500, 10_000)
    wrong = wrongly_accepted(np.random.default_rng(7), number, spending)
    assert len(wrong) == 14
    assert max(wrong.values()) <= allowed(number), wrong


@pytest.mark.parametrize("name", SKEWED)
def test_skewed_ratings_at_the_threshold_are_hardly_ever_rejected(name: str) -> None:
    values, shares = SKEWED[name]
    assert np.dot(values, shares) == pytest.approx(3)
    pairs = np.random.default_rng(7).choice(values, size=(1000, 100), p=shares)
    assert (decided(by_blocks(pairs), [THREE])[0] == -1).mean() <= allowed(1000)


def test_a_mean_above_the_threshold_is_found_nearly_as_often_as_by_a_single_look() -> None:
    for spending, lost in zip(SPENDINGS, (0.05, 0.02, 0.02), strict=True):
        at_33 = power(np.random.default_rng(5), scaled(3000, 20_000), spending, 3.3)
        assert at_33.at_once - at_33.by_looks <= lost + 0.01
        assert at_33.pairs < 75


def test_htebs_campaign_needs_a_quarter_of_its_ratings() -> None:
    assert share_of_ratings(np.random.default_rng(11), scaled(200, 2000), BLOCKS.spending) <= 0.25


def test_systems_that_people_rated_are_judged_as_by_all_ratings() -> None:
    table = sulem_orders(np.random.default_rng(1), scaled(30, 1000), BLOCKS.spending)
    assert len(table) == 28 and table["sure"].sum() == 16
    assert table[table["sure"]]["opposite"].max() == 0
    assert table["opposite"].mean() <= 0.001  # of systems at 2.98 and 3.01
    assert table[table["sure"]]["same"].mean() >= 0.975
    assert table["share"].mean() <= 0.57
    assert table[table["least"] >= 4]["share"].mean() <= 0.22


@pytest.mark.parametrize("after", [False, True])
def test_many_campaigns_are_decided_as_each_is(after: bool) -> None:
    rng, number = np.random.default_rng(4), scaled(6, 100)
    given = people(rng, number, 3.4, 1.1)
    given[:, :, 2] = rng.choice([4.0, 5.0], given.shape[:2])
    dirty, clean = by_blocks(given.mean(axis=2)), by_blocks(given[:, :, :2].mean(axis=2))
    campaigns = replace(dirty, cleaned=clean.seen, excluded_after=2) if after else dirty
    decision, pairs = decided(campaigns, [THREE])
    for ratings_of, says, used in zip(given, decision, pairs, strict=True):
        pair, rater = (axis.ravel() for axis in np.indices(ratings_of.shape))
        columns = {"pair_id": pair, "order": pair + 1, "rater": rater, "question": "quality"}
        rows = pd.DataFrame({**columns, "value": ratings_of.ravel()})
        result = looks(rows[rows["order"] <= 40] if after else rows, BLOCKS)
        if after:
            result = looks(rows[rows["rater"] < 2], BLOCKS, past=result.frame())
        assert result.decision == {1: "accepted", -1: "rejected", 0: "undecided"}[says]
        assert result.pairs == used


def test_p_after_a_stop_is_as_small_as_it_says() -> None:
    """Campaigns whose mean is the threshold: of those that stop wrongly P is no surer than wrong stops are rare."""
    number = 4000
    pairs = ratings(np.random.default_rng(3), number, 3.0, 1.1)
    decision, used = decided(by_blocks(pairs), [THREE])
    p, at_stop = [], []
    for values, stop in zip(pairs[decision == 1], used[decision == 1].astype(int), strict=True):
        n = LOOKS.index(stop) + 1
        at_stop.append(float(p_above(values[:stop], 3.0, 1.0)))
        p.append(stage_wise(at_stop[-1], LOOKS[:n], BLOCKS.levels(n)))
    assert max(p) <= ALPHA + 1e-9 and max(at_stop) < 0.01  # which p itself, by that look alone, would say of all
    for level in (0.005, 0.01, 0.025):
        share = sum(one <= level for one in p) / number
        assert share <= level + 3 * math.sqrt(level * (1 - level) / number)
    assert len(p) > 0.015 * number


def test_means_after_stopping_are_unbiased_and_their_intervals_hold() -> None:
    rng, true = np.random.default_rng(2), 3.35
    pairs = np.clip(true + rng.normal(scale=0.8, size=(100, 100)), 1, 5)
    true = float(np.clip(true + np.random.default_rng(9).normal(scale=0.8, size=1_000_000), 1, 5).mean())
    _, used = decided(by_blocks(pairs), [THREE])
    plain, estimates = [], []
    for values, stop in zip(pairs, used.astype(int), strict=True):
        plain.append(values[:stop].mean())
        estimates.append(unbiased_of(values[:stop], LOOKS[: (n := LOOKS.index(stop) + 1)], BLOCKS.levels(n), THREE))
    above = np.mean([estimate.value > true for estimate in estimates])
    assert abs(above - 0.5) <= 3 * math.sqrt(0.25 / 100)
    assert np.mean([estimate.low <= true <= estimate.high for estimate in estimates]) >= 0.95 - 3 * math.sqrt(
        0.0475 / 100
    )
    assert abs(np.mean([estimate.value for estimate in estimates]) - true) < np.mean(plain) - true


def test_without_earlier_looks_the_estimate_is_the_mean() -> None:
    values = np.tile([3.0, 4.0, 5.0, 4.0], 25)
    estimate = unbiased_of(values, [100], np.array([ALPHA]), THREE)
    reach = stats.norm.ppf(1 - ALPHA) * values.std(ddof=1) / 10
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((4.0, 4.0 - reach, 4.0 + reach), abs=1e-6)


def test_pairs_that_do_not_vary_say_no_more_than_what_was_not_seen_allows() -> None:
    same = np.full(20, 4.0)
    # With (2/3)^20 no pair of a third at the bottom would have been seen; were they there, the mean would be 3.
    assert float(p_above(same, 3.0, 1.0)) == pytest.approx((2 / 3) ** 20)
    assert unbiased_of(same, [20], BLOCKS.levels(1), THREE).reason == "the pairs' means do not vary"
    assert 1 < lower_end(same, 1.0, 0.025) < 4


@pytest.mark.parametrize(("ones", "limit"), [(18, 0.7), (29, 0.9), (12, 0.2), (30, 0.8)])
def test_shares_have_the_p_value_of_their_divergence_and_of_the_binomial_test(ones: int, limit: float) -> None:
    share = ones / 30
    divergence = stats.entropy([share, 1 - share], [limit, 1 - limit])
    by_t = stats.t.sf(math.sqrt(29 * math.expm1(2 * divergence)), 29)
    exact = stats.binomtest(ones, 30, limit, "greater").pvalue
    expected = max(by_t, exact) if share > limit else 0.5
    assert float(p_above(np.repeat([1.0, 0.0], [ones, 30 - ones]), limit, 0.0)) == pytest.approx(expected, rel=1e-6)


def test_the_divergence_is_that_of_a_numerical_optimum() -> None:
    values = ratings(np.random.default_rng(4), 1, 3.2, 1.1)[0][:40]
    best = optimize.minimize_scalar(lambda bet: -np.log1p(bet * (values - 3)).mean(), bounds=(0, 0.5), method="bounded")
    t = math.sqrt(39 * math.expm1(-2 * best.fun))
    assert float(p_above(values, 3.0, 1.0)) == pytest.approx(stats.t.sf(t, 39), rel=1e-4)
    # Where nothing is skewed it is nearly Student's t.
    even = 3.2 + 0.9 * stats.norm.ppf((np.arange(60) + 0.5) / 60)
    student = stats.ttest_1samp(even, 3, alternative="greater").pvalue
    assert float(p_above(even, 3.0, 1.0)) == pytest.approx(student, rel=0.15)


def test_fewer_pairs_than_a_look_needs_have_no_number() -> None:
    assert math.isnan(p_above(np.full(7, 5.0), 3.0, 1.0))
    assert math.isnan(lower_end(np.full(7, 5.0), 1.0, 0.025))


@pytest.mark.parametrize("level", [0.1, 0.025, 1e-4])
def test_a_lower_end_is_the_threshold_whose_p_value_is_the_level(level: float) -> None:
    random = np.random.default_rng(9)
    for n in range(8, 60, 4):
        values = random.choice([1.0, 1.5, 2.0, 3.0, 4.0, 5.0], n, p=random.dirichlet(np.ones(6)))

        def excess(threshold: float, values: Floats = values) -> float:
            return float(p_above(values, threshold, 1.0)) - level

        expected = optimize.brentq(excess, 1 + 1e-9, values.mean(), xtol=1e-12)
        assert lower_end(values, 1.0, level) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("top", [5e6, 1e15])
def test_a_lower_end_is_found_on_scales_of_large_numbers(top: float) -> None:
    shares = np.random.default_rng(1).random(30)
    assert lower_end(top * shares, 0.0, 0.025) == pytest.approx(top * lower_end(shares, 0.0, 0.025), rel=1e-6)


@pytest.mark.parametrize(("values", "threshold"), [([3.0] * 8, 1.0), ([0.5] * 8, 3.0)])
def test_values_and_thresholds_beyond_the_scale_are_refused(values: list[float], threshold: float) -> None:
    with pytest.raises(ValueError, match="end of the scale"):
        p_above(np.array(values), threshold, 1.0)


def campaign(quality: Floats, fluency: Floats) -> pd.DataFrame:
    """Ratings of pairs in order, one a question."""
    parts = [
        pd.DataFrame(
            {"pair_id": range(len(values)), "order": range(1, len(values) + 1), "question": name, "value": values}
        )
        for name, values in (("quality", quality), ("fluency", fluency))
    ]
    return pd.concat(parts, ignore_index=True)


def test_repeated_intervals_hold_their_means_and_decide_as_the_p_values_do() -> None:
    early = looks(campaign(HIGH[:8], HIGH[:8]), Blocks((8, 100), 3.0, (1, 5), "obrien_fleming")).frame()
    assert early[["level", "low", "high"]].to_numpy().tolist() == [[0, 1, 5]] * 2  # too early to stop
    rng = np.random.default_rng(8)
    for mean in (2.5, 3.0, 3.3, 4.5):
        values = ratings(rng, 1, mean, 1.0)[0]
        seen = looks(campaign(values, values), BLOCKS).frame()
        assert ((seen["low"] <= seen["mean"]) & (seen["mean"] <= seen["high"])).all()
        assert ((seen["low"] >= 3 - 1e-6) == (seen["p_above"] <= seen["level"])).all()
        assert ((seen["high"] <= 3 + 1e-6) == (seen["p_below"] <= seen["level"])).all()
        result = looks(campaign(values, values), BLOCKS)
        reached = result.reached["quality"]
        assert (reached >= 1 - ALPHA - 1e-9, reached <= ALPHA + 1e-9) == tuple(
            result.decision == one for one in ("accepted", "rejected")
        )


HIGH, LOW, NEAR = np.tile([4.0, 5.0], 50), np.tile([1.0, 2.0], 50), np.tile([2.0, 4.0], 50)


@pytest.mark.parametrize(
    ("quality", "fluency", "decision", "n_looks"),
    [
        (HIGH, HIGH, "accepted", 1),
        (HIGH, NEAR, "undecided", 5),
        (HIGH, LOW, "rejected", 1),
        (NEAR, LOW, "rejected", 1),
        (HIGH, np.r_[NEAR[:20], HIGH[20:]], "accepted", 2),
    ],
)
def test_all_questions_must_hold_and_one_can_reject(
    quality: Floats, fluency: Floats, decision: str, n_looks: int
) -> None:
    result = looks(campaign(quality, fluency), BLOCKS)
    assert result.decision == decision
    frame = result.frame()
    assert frame["look"].tolist() == [look for look in range(1, n_looks + 1) for _ in range(2)]
    assert result.pairs == 20 * n_looks
    # A question that held all along did not stop the campaign: its plain mean is the estimate.
    of_quality = result.unbiased["quality"]
    assert of_quality.value == pytest.approx(quality[: result.pairs].mean(), abs=0.02)
    assert of_quality.low < of_quality.value < of_quality.high
    assert set(frame["question"]) == {"quality", "fluency"}


@pytest.mark.parametrize(("rated", "pairs"), [(100, 100), (99, 80), (41, 40), (20, 20), (19, 0)])
def test_a_block_counts_once_all_its_pairs_are_rated_on_every_question(rated: int, pairs: int) -> None:
    ratings = campaign(NEAR, NEAR[:rated])
    result = looks(ratings, BLOCKS)
    assert result.pairs == pairs
    assert result.decision == "undecided"
    assert math.isnan(result.unbiased["quality"].value) == (pairs == 0)
    # The order of the rows plays no part, only that of the pairs.
    shuffled = looks(ratings.sample(frac=1, random_state=1), BLOCKS)
    pd.testing.assert_frame_equal(shuffled.frame().reset_index(drop=True), result.frame().reset_index(drop=True))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ends": [20, 20]}, "blocks must rise from at least 8"),
        ({"ends": [5, 20]}, "blocks must rise from at least 8"),
        ({"ends": []}, "blocks must rise from at least 8"),
        ({"threshold": 5.0}, "threshold 5 is not within the scale"),
        ({"scale": (1, 4)}, "a value lies beyond the scale"),
        ({"order": "turn"}, "turn"),
        ({"order": "question"}, "must name different columns"),
    ],
    ids=str,
)
def test_looks_that_cannot_be_are_refused_in_a_line(changes: dict[str, object], message: str) -> None:
    rule: dict[str, object] = {"ends": LOOKS, "threshold": 3.0, "scale": (1, 5)}
    columns = {name: value for name, value in changes.items() if name not in rule}
    rule |= {name: value for name, value in changes.items() if name in rule}
    with pytest.raises(ValueError, match=message) as error:
        looks(campaign(HIGH, HIGH), Blocks(**rule), **columns)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def test_two_pairs_cannot_have_one_place() -> None:
    with pytest.raises(ValueError, match="each pair must have exactly one place"):
        looks(campaign(HIGH, HIGH).assign(order=1), BLOCKS)


LABELS = Criterion(0.1, (0, 1), "at_most")


@pytest.mark.parametrize("share", [0.05, 0.1, 0.3, 0.5, 0.9] if FULL else [0.05, 0.3, 0.9])
@pytest.mark.parametrize("alike", [0.0, 0.5, 1.0] if FULL else [0.0, 1.0])
def test_shares_at_their_limit_are_hardly_ever_decided(share: float, alike: float) -> None:
    rng = np.random.default_rng(8)
    shares = np.full((2000, 100), share)
    if alike == 1:
        shares = (rng.random(shares.shape) < share).astype(float)
    elif alike:
        shares = rng.beta(share * (1 / alike - 1), (1 - share) * (1 / alike - 1), shares.shape)
    pairs = rng.binomial(3, shares) / 3
    limits, accepted = BLOCKS.levels(5), np.zeros((2, 2000), bool)
    for look, limit in zip(LOOKS, limits, strict=True):
        accepted |= np.array(
            [p_above(pairs[:, :look], share, 0.0) <= limit, p_above(-pairs[:, :look], -share, -1.0) <= limit]
        )
    assert accepted.mean(axis=1).max() <= allowed(2000)


def rare(share: float) -> Floats:
    """Noughts with a one in so many, first near the beginning."""
    values: Floats = (np.arange(100) % round(1 / share) == 1).astype(float)
    return values


@pytest.mark.parametrize(
    ("criterion", "values", "decision"),
    [
        (Criterion(0.3, (0, 1), "at_most"), rare(0.05), "accepted"),
        (Criterion(0.3, (0, 1), "at_most"), 1 - rare(0.05), "rejected"),
        (Criterion(0.7, (0, 1)), 1 - rare(0.05), "accepted"),
        (Criterion(0.7, (0, 1)), rare(0.05), "rejected"),
        (Criterion(0.1, (0, 1), "at_most"), rare(0.1), "undecided"),
    ],
)
def test_a_share_is_decided_on_either_side_of_its_limit(criterion: Criterion, values: Floats, decision: str) -> None:
    both = campaign(HIGH, values).replace({"question": {"fluency": "odd"}})
    blocks = Blocks(LOOKS, 3.0, (1, 5), criteria={"odd": criterion})
    result = looks(both, blocks)
    assert result.decision == decision
    assert result.pairs == 100 or decision != "undecided"
    mirror = looks(both[both["question"] == "odd"], Blocks(LOOKS, criteria={"odd": criterion}))
    assert mirror.decision == decision
    assert mirror.unbiased["odd"].low <= mirror.unbiased["odd"].value <= mirror.unbiased["odd"].high


def test_a_question_without_any_criterion_or_rating_is_no_reason_to_accept() -> None:
    blocks = Blocks(LOOKS, 3.0, (1, 5), criteria={"odd": LABELS})
    assert looks(campaign(HIGH, HIGH), blocks).decision == "undecided"
    with pytest.raises(ValueError, match="no criterion for 'fluency'"):
        looks(campaign(HIGH, HIGH), Blocks(LOOKS, criteria={"quality": THREE}))
    with pytest.raises(ValueError, match="threshold 2 is not within the scale, 0 to 1"):
        Criterion(2.0, (0, 1))


def test_pairs_withdrawn_make_a_block_smaller_and_its_error_is_spent_by_plan() -> None:
    ratings, gone = campaign(NEAR, NEAR), [3, 25, 26]
    short = looks(ratings[~ratings["order"].isin(gone)], BLOCKS)
    assert short.pairs == 0
    result = looks(ratings[~ratings["order"].isin(gone)], BLOCKS, without=gone)
    assert result.paths["quality"].pairs.tolist() == [19, 37, 57, 77, 97]
    # Ratings of pairs that were withdrawn play no part.
    pd.testing.assert_frame_equal(looks(ratings, BLOCKS, without=gone).frame(), result.frame())
    expected = levels(FIFTHS, BLOCKS.spending, information=[19, 37, 57, 77, 97])
    assert result.paths["quality"].levels == pytest.approx(expected)
    assert looks(ratings, BLOCKS, without=range(1, 101)).decision == "undecided"


def test_what_a_look_spent_does_not_come_back() -> None:
    # Undecided after 20 pairs; then the bad half of these is excluded, with which the first look would have accepted.
    before = looks(campaign(NEAR[:20], HIGH[:20]), BLOCKS)
    better = campaign(np.r_[np.full(20, 4.5) + np.tile([0.5, -0.5], 10), NEAR[20:40]], HIGH[:40])
    again = looks(better, BLOCKS, past=before.frame())
    assert looks(better, BLOCKS).pairs == 20
    assert again.paths["quality"].pairs.tolist() == [20, 40]
    assert again.paths["quality"].means[0] == before.paths["quality"].means[0]
    # The second look has what it may spend by itself.
    assert again.paths["quality"].levels.tolist() == [before.paths["quality"].levels[0], BLOCKS.increments()[1]]
    same = looks(campaign(NEAR[:40], HIGH[:40]), BLOCKS, past=before.frame())
    assert same.paths["quality"].levels == pytest.approx(BLOCKS.levels(2))


def test_a_decision_stays_with_its_ratings_and_falls_without() -> None:
    decided = looks(campaign(HIGH[:20], HIGH[:20]), BLOCKS)
    assert decided.decision == "accepted"
    # Ratings after it play no part.
    assert looks(campaign(np.r_[HIGH[:20], LOW[20:]], HIGH), BLOCKS, past=decided.frame()).pairs == 20
    weaker = looks(campaign(NEAR[:20], HIGH[:20]), BLOCKS, past=decided.frame())
    assert (weaker.decision, weaker.pairs) == ("undecided", 20)
    assert weaker.paths["quality"].levels == pytest.approx(decided.paths["quality"].levels)
    later = looks(campaign(np.r_[NEAR[:20], HIGH[20:60]], HIGH[:60]), BLOCKS, past=decided.frame())
    assert (later.decision, later.pairs) == ("accepted", 40)
    nobody = looks(campaign(NEAR[:0], HIGH[:0]), BLOCKS, past=decided.frame())
    assert (nobody.decision, nobody.pairs) == ("undecided", 0)
    fewer = looks(campaign(HIGH[:8], HIGH[:8]), BLOCKS, past=decided.frame())
    assert (fewer.decision, fewer.pairs) == ("undecided", 8)


def test_looks_taken_at_another_question_are_refused() -> None:
    taken = looks(campaign(NEAR[:20], HIGH[:20]), BLOCKS).frame()
    with pytest.raises(ValueError, match="the looks taken do not include fluency"):
        looks(campaign(NEAR, NEAR), BLOCKS, past=taken[taken["question"] == "quality"])
