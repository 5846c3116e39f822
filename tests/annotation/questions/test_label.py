"""Agreement on labels against published values and other packages; intervals of shares by simulation."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from irrCAC.raw import CAC
from statsmodels.stats.inter_rater import aggregate_raters
from statsmodels.stats.inter_rater import fleiss_kappa as their_kappa

from annotation.questions.label import MultiLabelQuestion, SingleLabelQuestion
from plumbline.statistics.agreement import ac1, fleiss_kappa, masi, nominal_alpha
from plumbline.statistics.group_sequential import repeated_interval
from tests.plumbline.statistics.test_agreement import GWET, KRIPPENDORFF, Matrix, answers

# Fleiss (1971): 30 patients, six psychiatrists, five diagnoses; published: P-bar 0.5556, P-bar-e 0.2201, kappa 0.430.
# The diagnoses are numbered 1 to 5; ratings as R's package irr has them (`diagnoses`), sorted within a patient.
DIAGNOSES = """444444 222555 233335 555555 222444 113333 333355 113334 114444 555555
               144444 124444 222333 144444 224445 333335 111455 111112 224444 133555
               555555 244444 224555 114444 144445 222224 111155 224444 133333 555555"""
SCALE = (1, 2, 3, 4, 5)
BOTH = SingleLabelQuestion("naturalness", labels=("good", "odd", "bad"))
SEVERAL = MultiLabelQuestion("faults", labels=("a", "b", "c"))


def diagnoses() -> Matrix:
    return [[int(letter) for letter in row] for row in DIAGNOSES.split()]


def test_fleiss_example() -> None:
    found = fleiss_kappa(answers(diagnoses()))
    assert round(found.value, 3) == 0.430
    assert found.value == pytest.approx(their_kappa(aggregate_raters(np.array(diagnoses()))[0]), abs=1e-12)


def test_gwets_and_krippendorffs_examples() -> None:
    assert round(ac1(answers(GWET)).value, 5) == 0.77544
    assert round(nominal_alpha(answers(KRIPPENDORFF), np.random.default_rng(1)).value, 3) == 0.743


@pytest.mark.parametrize("matrix", [GWET, diagnoses()], ids=["gwet", "fleiss"])
def test_values_and_intervals_are_those_of_irrcac(matrix: Matrix) -> None:
    theirs = CAC(pd.DataFrame(matrix, dtype=float), weights="identity", categories=list(SCALE), digits=10)
    for own, other in ((ac1(answers(matrix)), theirs.gwet()), (fleiss_kappa(answers(matrix)), theirs.fleiss())):
        known = other["est"]
        assert own.value == pytest.approx(known["coefficient_value"], abs=1e-9)
        low, high = known["confidence_interval"]
        assert (own.low, own.high) == pytest.approx((low, min(1.0, high)), abs=1e-9)


def frame(rows: list[str]) -> pd.DataFrame:
    """A row a pair, with a rater's answer a word; labels of several are letters."""
    return pd.DataFrame(
        [
            {"pair_id": f"p{i}", "rater_id": f"r{j}", "answer": ", ".join(answer) if len(answer) < 3 else answer}
            for i, row in enumerate(rows)
            for j, answer in enumerate(row.split())
        ]
    )


def test_masis_distance_by_hand() -> None:
    """{a} and {a, b}: J = 1/2, one holds the other: 1 - 2/3 * 1/2 = 2/3. {a, b} and {b, c}: 1 - 1/3 * 1/3 = 8/9."""
    found = masi([frozenset(names) for names in ("a", "ab", "bc", "c")])
    assert found[0].tolist() == pytest.approx([0, 2 / 3, 1, 1])
    assert found[1, 2] == pytest.approx(8 / 9)
    assert found[2, 3] == pytest.approx(1 - 2 / 3 / 2)
    assert (found == found.T).all()


def test_alpha_of_sets_by_hand() -> None:
    """Pairs a|a, b|b, a|ab: of 6 answers a 3, b 2, ab 1, disagreement only in the last.

    Observed: both orders of a and ab, 2 * 2/3, over 6. Expected: over 6 * 5, twice each of the products of counts times
    distances: a and b 3*2*1, a and ab 3*1*2/3, b and ab 2*1*2/3, in all 2 * (6 + 2 + 4/3) = 56/3.
    Alpha = 1 - (4/3 / 6) / (56/3 / 30) = 1 - (2/9) / (28/45) = 1 - 5/14.
    """
    found = SEVERAL.coefficients(frame(["a a", "b b", "a ab"]), 1)
    assert (found[0].name, round(found[0].estimate.value, 9)) == ("alpha (MASI)", round(9 / 14, 9))
    assert {(one.name, one.label) for one in found[1:]} == {
        (name, label) for name in ("AC1", "alpha (nominal)") for label in "abc"
    }
    nobody = next(one.estimate for one in found if one.label == "c")
    assert math.isnan(nobody.value)
    assert nobody.reason == "every rating is the same, so agreement cannot be told from chance"


def test_sets_that_are_equal_or_not_have_the_nominal_alpha() -> None:
    rows = ["a a b", "b b b", "c a c", "a a a", "b c c"]
    sets = SEVERAL.coefficients(frame(rows), 1)[0].estimate
    plain = answers([["abc".index(one) + 1 for one in row.split()] for row in rows])
    assert sets.value == pytest.approx(nominal_alpha(plain, np.random.default_rng(1)).value, abs=1e-12)


def test_shares_of_labels_with_their_interval() -> None:
    """Means of noughts and ones, with the ends of the means of pairs."""
    given = frame(["good good", "good odd", "good bad"] * 4)
    found = {one.label: one.share for one in BOTH.shares(given, "pairs")}
    good = found["good"]
    assert (good.value, good.low, good.high) == pytest.approx(
        (2 / 3, *repeated_interval(np.tile([1.0, 0.5, 0.5], 4), (0, 1), 0.025))
    )
    one = BOTH.shares(frame(["good odd"]), "pairs")[0].share
    assert (one.value, one.reason[:17]) == (0.5, "fewer than 8 pair") and math.isnan(one.low)
    assert BOTH.answers(frame(["bad good"])).point.tolist() == [2, 0]
