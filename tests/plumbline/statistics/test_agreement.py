"""Agreement against published values, against independent computations and scikit-learn, and at the edges."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Sequence

import krippendorff
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from irrCAC.raw import CAC
from sklearn.metrics import cohen_kappa_score

from plumbline.statistics.agreement import Answers, gwet_ac2, krippendorff_alpha, mean_kappa, raw_agreement
from plumbline.statistics.estimates import Estimate

SCALE = (1, 2, 3, 4, 5)
NA = None
Matrix = Sequence[Sequence[int | None]]

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
# Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, example C: four observers, twelve units.
# Published: nominal 0.743, ordinal 0.815, interval 0.849. Gwet's example has the same ratings, the last one by another
# observer.
KRIPPENDORFF = [*GWET[:-1], (NA, 3, NA, NA)]

matrices = st.lists(
    st.tuples(*[st.one_of(st.none(), st.sampled_from(SCALE))] * 3).filter(lambda row: any(v is not None for v in row)),
    min_size=2,
    max_size=12,
).filter(lambda rows: sum(sum(v is not None for v in row) >= 2 for row in rows) >= 2)


def answers(matrix: Matrix) -> Answers:
    """A pairs x raters matrix as answers."""
    table = np.array(matrix, np.float64)
    return Answers.of_table(table if table.ndim == 2 else np.empty((len(matrix), 0)), SCALE)


def test_of_a_table_missing_ratings_and_unrated_pairs_are_left_out() -> None:
    found = Answers.of_table(np.array([[1, NA], [NA, NA], [3, 4]], np.float64), SCALE)
    assert list(zip(found.pair, found.rater, found.value, strict=True)) == [(0, 0, 1), (1, 0, 3), (1, 1, 4)]


def alpha(own: Answers) -> Estimate:
    return krippendorff_alpha(own, np.random.default_rng(1))


def raw(own: Answers) -> Estimate:
    return raw_agreement(own, np.random.default_rng(1))


ALL: dict[str, Callable[[Answers], Estimate]] = {"ac2": gwet_ac2, "alpha": alpha, "kappa": mean_kappa, "raw": raw}


def rated(matrix: Matrix) -> list[list[int]]:
    """The ratings of each pair that has two or more."""
    rows = [[value for value in row if value is not None] for row in matrix]
    return [row for row in rows if len(row) >= 2]


def independent_alpha(matrix: Matrix) -> float:
    """Ordinal alpha in words: 1 - mean distance within pairs over mean distance of any two ratings.

    Each pair's two-and-twos weigh 1 / (its ratings - 1); the distance of two points is the number of ratings
    from the one to the other, those on the two points counted half, squared.
    """
    rows = rated(matrix)
    every = [value for row in rows for value in row]
    below = {p: sum(value < p for value in every) + sum(value == p for value in every) / 2 for p in SCALE}

    def distance(one: int, other: int) -> float:
        return (below[one] - below[other]) ** 2

    observed = sum(distance(a, b) / (len(row) - 1) for row in rows for a, b in itertools.permutations(row, 2))
    expected = sum(distance(a, b) for a, b in itertools.permutations(every, 2)) / (len(every) - 1)
    return 1 - observed / expected


def test_ac2_gives_gwets_published_value() -> None:
    assert gwet_ac2(answers(GWET)).value == pytest.approx(0.89894, abs=5e-6)


def irrcac(matrix: Matrix) -> tuple[float, float, float]:
    """Coefficient and interval by irrCAC, given the full scale: without it, missing ratings count on pandas 3."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it divides by zero where chance agreement is complete
        found = CAC(pd.DataFrame(matrix, dtype=float), weights="ordinal", categories=list(SCALE)).gwet()["est"]
    return (found["coefficient_value"], *found["confidence_interval"])


@settings(max_examples=100)
@given(matrices)
def test_ac2_and_its_interval_are_irrcacs(matrix: Matrix) -> None:
    """To the five decimals that it gives, ratings missing or not."""
    found = gwet_ac2(answers(matrix))
    rows = [row for row in matrix if any(value is not None for value in row)]
    if math.isnan(found.value):
        return  # what is undefined here, and why: the tests below
    value, low, high = irrcac(rows)
    assert found.value == pytest.approx(value, abs=6e-6)
    if not found.reason:
        assert (found.low, found.high) == (pytest.approx(low, abs=6e-6), pytest.approx(high, abs=6e-6))


def test_alpha_gives_krippendorffs_published_values() -> None:
    assert alpha(answers(KRIPPENDORFF)).value == pytest.approx(0.815, abs=5e-4)
    observers = np.array(KRIPPENDORFF, dtype=float).T
    for level, published in (("nominal", 0.743), ("interval", 0.849)):
        assert krippendorff.alpha(observers, level_of_measurement=level) == pytest.approx(published, abs=5e-4)


@settings(max_examples=50)
@given(matrices)
def test_alpha_agrees_with_its_formula(matrix: Matrix) -> None:
    found = alpha(answers(matrix))
    if math.isnan(found.value):
        assert found.reason.endswith("is the same, so agreement cannot be told from chance")
    else:
        assert found.value == pytest.approx(independent_alpha(matrix), abs=1e-9)


@settings(max_examples=50)
@given(matrices)
def test_no_coefficient_is_ever_surer_than_it_can_be(matrix: Matrix) -> None:
    """A 1 has no interval, since nothing disagreed; what has no interval says why; what has one lies in it."""
    for name, coefficient in ALL.items():
        found = coefficient(answers(matrix))
        assert bool(found.reason) == (math.isnan(found.low) or math.isnan(found.high))
        assert math.isnan(found.low) == math.isnan(found.high)
        if found.value == 1 or math.isnan(found.value):
            assert found.reason
        if not found.reason:
            assert found.high <= 1
            assert name in ("alpha", "raw") or found.low <= found.value <= found.high  # a BCa interval may lie beside


@settings(max_examples=50)
@given(matrices)
def test_raw_agreement_is_a_share_of_twos(matrix: Matrix) -> None:
    twos = [a == b for row in rated(matrix) for a, b in itertools.combinations(row, 2)]
    assert raw(answers(matrix)).value == pytest.approx(sum(twos) / len(twos))


def test_kappa_weighs_raters_by_the_pairs_that_they_share_and_jackknifes_pairs() -> None:
    """Three raters with gaps against scikit-learn, rater by rater and pair by pair left out."""
    draw = np.random.default_rng(3)
    truth = draw.integers(1, 6, (40, 1))
    matrix = np.clip(truth + draw.integers(-1, 2, (40, 3)), 1, 5).astype(float)
    matrix[:15, 0] = matrix[30:, 2] = np.nan  # shared: 0 with 1 25 pairs, 0 with 2 15, 1 with 2 30

    def by_scikit_learn(rows: np.ndarray) -> float:
        parts = []
        for one, other in itertools.combinations(range(3), 2):
            both = rows[~np.isnan(rows[:, [one, other]]).any(axis=1)]
            labels = {"labels": list(SCALE), "weights": "quadratic"}
            parts.append((len(both), cohen_kappa_score(both[:, one].astype(int), both[:, other].astype(int), **labels)))
        return sum(n * kappa for n, kappa in parts) / sum(n for n, _ in parts)

    found = mean_kappa(answers([[None if math.isnan(v) else int(v) for v in row] for row in matrix]))
    assert found.value == pytest.approx(by_scikit_learn(matrix), abs=1e-12)
    left_out = np.array([by_scikit_learn(np.delete(matrix, i, axis=0)) for i in range(40)])
    error = math.sqrt(39 / 40 * ((left_out - left_out.mean()) ** 2).sum())
    assert found.low == pytest.approx(found.value - 2.0226909 * error, abs=1e-6)  # t(0.975; 39)


def test_two_raters_who_share_few_pairs_have_no_kappa() -> None:
    found = mean_kappa(answers([(1, 2), (3, 3), (5, 4), (2, 2)]))
    assert math.isnan(found.value)
    assert found.reason == "no two raters share 5 pairs"


def test_ac2_uses_points_that_nobody_chose() -> None:
    """Ratings of 4 and 5 alone: leaving 1 to 3 out of the scale would change weights and chance agreement."""
    matrix = [(5, 5), (5, 4), (4, 4), (5, 5)]
    # w(4,5) = 1 - C(2,2)/C(5,2) = 0.9; agreement (1 + 0.9 + 1 + 1)/4 = 0.975
    # pi = (0.375, 0.625): sum pi(1-pi) = 0.46875; T_w = 5*1 + 2*(4*0.9 + 3*0.7 + 2*0.4 + 1*0.0) = 18
    # chance = 18/20 * 0.46875 = 0.421875; AC2 = (0.975 - 0.421875)/(1 - 0.421875) = 0.95676
    assert gwet_ac2(answers(matrix)).value == pytest.approx(0.95676, abs=5e-6)


@pytest.mark.parametrize(
    ("matrix", "reason"),
    [
        ([], "no pair has two ratings, so nothing can agree"),
        ([(5,), (4,), (3,)], "no pair has two ratings, so nothing can agree"),
        ([(5, 4)], "only one pair has two or more ratings, so agreement cannot be told from chance"),
        ([(5, 5), (4, NA)], "only one pair has two or more ratings, so agreement cannot be told from chance"),
        ([(4, 4, 4)] * 9, "every rating is the same, so agreement cannot be told from chance"),
        (
            [(4, 4)] * 9 + [(2, NA)],
            "every rating of pairs with two or more is the same, so agreement cannot be told from chance",
        ),
    ],
)
def test_what_cannot_be_told_is_nan_with_a_reason(matrix: Matrix, reason: str) -> None:
    for coefficient in (gwet_ac2, alpha, mean_kappa):
        found = coefficient(answers(matrix))
        assert math.isnan(found.value)
        assert found.reason == reason


def test_perfect_agreement_with_variation_is_one_and_claims_no_certainty() -> None:
    for name, coefficient in ALL.items():
        found = coefficient(answers([(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (1, 1)]))
        assert (name, found.value) == (name, pytest.approx(1.0))
        assert math.isnan(found.low)
        assert found.reason == "no two ratings of a pair differ, so the spread is unknown"


def test_without_an_interval_the_reason_is_the_right_one() -> None:
    """A rater who gives one point throughout disagrees with the others; that nothing differs would be wrong."""
    constant = "of each two raters one gives every pair the same point, so that kappa is 0 whatever the other says"
    for matrix in ([(1, 5), (2, 5), (3, 5), (4, 5), (5, 5), (2, 5)], [(5, 5)] * 19 + [(4, 5)]):
        found = mean_kappa(answers(matrix))
        assert (found.value, math.isnan(found.low), found.reason) == (0, True, constant)
    one_of_three = mean_kappa(answers([(1, 2, 5), (2, 2, 5), (3, 3, 5), (4, 4, 5), (5, 4, 5), (1, 1, 5)]))
    assert one_of_three.low < one_of_three.value < one_of_three.high and not one_of_three.reason


def test_pairs_with_the_same_ratings_throughout_give_ac2_no_interval_of_no_width() -> None:
    found = gwet_ac2(answers([(4, 5)] * 6))
    # agreement 0.9 at each pair; pi = (0.5, 0.5): chance 18/20 * 0.5 = 0.45; AC2 = 0.45/0.55
    assert found.value == pytest.approx(0.45 / 0.55)
    assert math.isnan(found.low) and math.isnan(found.high)
    assert found.reason == "every pair has the same ratings, so the spread is unknown"
    assert math.isnan(mean_kappa(answers([(4, 5)] * 6)).low)


def test_raters_may_come_in_any_order_and_by_any_name() -> None:
    own = answers(GWET)
    turned = Answers(own.pair, own.rater.max() - own.rater, own.point, own.scale)
    for coefficient in ALL.values():
        assert coefficient(own) == coefficient(turned)
