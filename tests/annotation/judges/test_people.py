"""Judges beside people, and the alternative annotator test: by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from annotation.judges.check import disagreements
from annotation.judges.effects import between_judges, length_slope
from annotation.judges.people import (
    against_people,
    alternative_test,
    calibration,
    exact_p,
    far_ratings,
    with_each_rater,
)
from annotation.judges.records import checked, together
from plumbline.scales import nearest_points

SCALE = (1, 2, 3, 4, 5)


def rated(values: dict[str, list[float]], transformation: str = "paraphrasing") -> pd.DataFrame:
    """Each rater's ratings of quality of the pairs 0, 1, ...; NaN is none."""
    rows = [
        (str(pair), rater, "quality", value, transformation)
        for rater, own in values.items()
        for pair, value in enumerate(own)
        if not math.isnan(value)
    ]
    return pd.DataFrame(rows, columns=["pair_id", "rater_id", "question", "value", "transformation"])


def scored(values: dict[str, list[float]]) -> pd.DataFrame:
    """Each judge's scores of quality of the pairs 0, 1, ..."""
    rows = [(judge, "quality", str(pair), value) for judge, own in values.items() for pair, value in enumerate(own)]
    return pd.DataFrame(rows, columns=["judge", "question", "pair_id", "score"])


def by_pair(values: list[float]) -> pd.Series:
    return pd.Series(values, index=[str(pair) for pair in range(len(values))])


def test_a_judge_beside_people() -> None:
    """People's means 2, 3, 4; the judge is 0.5 above, above and 1.5 above: gap 0.8333, SD 0.5774, t(0.975; 2) 4.303."""
    ratings = rated({"a": [1, 3, 4, 5], "b": [3, 3, 4, 5]})
    found = against_people(ratings, scored({"j": [2.5, 3.5, 5.5, math.nan]}), SCALE)
    row = found[found["transformation"] == "paraphrasing"].iloc[0]
    assert (row["n"], row["failed"]) == (3, 1)
    assert row["gap"] == pytest.approx(2.5 / 3) == row["mean_absolute_error"]
    reach = stats.t.ppf(0.975, 2) * math.sqrt(1 / 3) / math.sqrt(3)
    assert (row["low"], row["high"]) == pytest.approx((2.5 / 3 - reach, 2.5 / 3 + reach))
    assert row["spearman"] == pytest.approx(1)
    assert row["pearson"] == pytest.approx(np.corrcoef([2, 3, 4], [2.5, 3.5, 5.5])[0, 1])
    assert row[["n", "gap"]].tolist() == found[found["transformation"] == "all"].iloc[0][["n", "gap"]].tolist()


def test_what_a_judge_cannot_show_beside_people_is_undefined_and_says_why() -> None:
    alike = against_people(rated({"a": [3, 3, 3]}), scored({"j": [4, 4, 4], "none": [math.nan] * 3}), SCALE)
    row = alike[alike["judge"] == "j"].iloc[0]
    assert math.isnan(row["pearson"]) and math.isnan(row["spearman"]) and row["gap"] == 1
    assert math.isnan(row["low"]) and row["reason"] == "all values are the same, so their spread is unknown"
    none = alike[alike["judge"] == "none"].iloc[0]
    assert (none["n"], none["failed"]) == (0, 3) and math.isnan(none["gap"])
    assert none["reason"] == "the judge has scored none of the rated pairs"


def test_calibration_has_peoples_mean_at_each_score_that_a_judge_gives() -> None:
    """People's means 2, 3, 4, 5; 3.4 is rounded to 3, and an answer without a score counts nowhere."""
    ratings = rated({"a": [1, 3, 4, 5], "b": [3, 3, 4, 5]})
    found = calibration(ratings, scored({"j": [3.4, 2.9, 5, math.nan]}), SCALE)
    assert found.to_numpy().tolist() == [["j", "quality", 3, 2, 2.5], ["j", "quality", 5, 1, 4]]


def test_a_judge_beside_each_rater() -> None:
    found = with_each_rater(rated({"a": [1, 2, 5], "b": [2, 2, math.nan]}), scored({"j": [1, 2, 4]}), SCALE)
    table = found.set_index("rater_id")
    assert table["n"].to_dict() == {"a": 3, "b": 2}
    assert table["mean_absolute_error"].to_dict() == pytest.approx({"a": 1 / 3, "b": 0.5})
    assert table["gap"].to_dict() == pytest.approx({"a": -1 / 3, "b": -0.5})


@pytest.mark.parametrize(("pairs", "better"), [(48, True), (46, False)])
def test_the_benjamini_yekutieli_limits_of_three(pairs: int, better: bool) -> None:
    """d is 1 in two pairs: p of three raters is 0.0256 and 0.0348, times 1 + 1/2 + 1/3 it is 0.0469 and 0.0638."""
    ratings = rated({rater: [3] * pairs for rater in "abc"})
    found = alternative_test(ratings, by_pair([3.0] * (pairs - 2) + [4.0] * 2))
    assert found.raters["better"].tolist() == [better] * 3


def test_the_alternative_annotator_test_by_hand() -> None:
    """40 pairs that all rate 3. The judge too but for one: d is 0 and once 1, mean 1/40, SD 0.1581, error 1/40.

    t = (0.025 - 0.1) / 0.025 = -3, p = P(T_39 < -3) = 0.0023, below 0.0091: better than all three.
    """
    ratings = rated({"a": [3] * 40, "b": [3] * 40, "c": [3] * 40})
    found = alternative_test(ratings, by_pair([3.0] * 39 + [4.0]))
    assert found.raters["p"].tolist() == pytest.approx([stats.t.cdf(-3, 39)] * 3)
    assert (found.omega, found.rho, found.passes) == (1.0, 39 / 40, True)
    # Ten of 40: mean 0.25, SD sqrt(0.25 * 0.75 * 40 / 39); p of 0.98 beats nobody.
    worse = alternative_test(ratings, by_pair([3.0] * 30 + [4.0] * 10))
    t = (0.25 - 0.1) / math.sqrt(0.25 * 0.75 / 39)
    assert worse.raters["p"].tolist() == pytest.approx([stats.t.cdf(t, 39)] * 3)
    assert (worse.omega, worse.rho, worse.passes) == (0.0, 0.75, False)


def test_where_nothing_varies_the_difference_itself_decides() -> None:
    ratings = rated({"a": [3] * 30, "b": [3] * 30})
    same, other = (alternative_test(ratings, by_pair([score] * 30)) for score in (3.0, 5.0))
    assert same.raters["p"].tolist() == [0, 0] and same.passes and same.rho == 1  # d is 0 < 0.1
    assert other.raters["p"].tolist() == [1, 1] and not other.passes and other.rho == 0
    assert set(same.raters["test"]) == {"value"}


def test_the_measure_are_the_other_raters_of_the_pair() -> None:
    """Ratings 1, 3, 5 and a judge of 3: squares for a 10 and 2, for b 4 and 4 (a tie), for c 10 and 2."""
    found = alternative_test(rated({"a": [1], "b": [3], "c": [5]}), by_pair([3.0]))
    assert found.raters["judge_closer"].tolist() == [1, 1, 1]
    assert found.raters["rater_closer"].tolist() == [0, 1, 0]


def test_an_expected_score_never_ties_and_is_rounded_first() -> None:
    ratings, expected = rated({"a": [3] * 30, "b": [3] * 30}), by_pair([3.1] * 30)
    assert alternative_test(ratings, expected).rho == 0
    points = pd.Series(nearest_points(expected.to_numpy(), SCALE), index=expected.index)
    assert alternative_test(ratings, points).rho == 1
    assert nearest_points(np.array([1.49, 1.5, 2.5, 9.0, np.nan]), SCALE).tolist()[:4] == [1, 2, 3, 5]


def test_few_pairs_are_tested_exactly_and_one_rater_not_at_all() -> None:
    """d is 0 in all n pairs, or 1 in one: where mean(d) is 0.1 and d never -1, 0.9^10 = 0.349 have no 1.

    The first is the most that any share of -1 gives for one result of three in a single pair too: 0.9. So a judge that
    ties with everybody on 10 pairs, or on one, is not shown to be as good.
    """
    assert exact_p(0, 0, 1, 0.1) == pytest.approx(0.9)
    assert exact_p(0, 1, 1, 0.1) == pytest.approx(0.45)  # the share of -1 is (1 - 0.1) / 2 at most
    assert exact_p(1, 0, 1, 0.1) == 1
    assert exact_p(0, 0, 10, 0.1) >= 0.9**10
    ratings = rated({"a": [3] * 10, "b": [3] * 10})
    found = alternative_test(ratings, by_pair([3.0] * 9 + [4.0]))
    assert set(found.raters["test"]) == {"exact"} and found.raters["p"][0] == exact_p(1, 0, 10, 0.1)
    assert not alternative_test(ratings, by_pair([3.0] * 10)).passes
    assert alternative_test(ratings, by_pair([3.0] * 10)).rho == 1
    alone = alternative_test(rated({"a": [3] * 40}), by_pair([3.0] * 40))
    assert math.isnan(alone.omega) and not alone.passes and "two raters" in alone.reason


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.2])
@pytest.mark.parametrize("n", [1, 7, 20])
def test_the_exact_test_errs_as_often_as_it_says(n: int, epsilon: float) -> None:
    """Over all results of n pairs by their chances, with shares of -1 that the test's own grid does not hold."""
    results = [(a, b) for a in range(n + 1) for b in range(n + 1 - a)]
    p_values = np.array([exact_p(a, b, n, epsilon) for a, b in results])
    for share in (0.0123, 0.1, 0.2345, 0.39):
        chances = stats.multinomial.pmf(
            [(a, b, n - a - b) for a, b in results], n, [share + epsilon, share, 1 - epsilon - 2 * share]
        )
        for level in (0.0091, 0.05, 0.3):
            assert chances[p_values <= level].sum() <= level + 0.001


def test_ratings_far_from_the_judges_are_listed() -> None:
    """3 from x and 2 from y, 2.5 from both, exactly 2 from both, and 4 from x where y failed."""
    ratings = rated({"a": [2, 1, 3, 1]})
    scores = scored({"x": [5, 3.5, 5, 5], "y": [4, 3.5, 1, math.nan]})
    far = far_ratings(ratings, scores)
    assert far["pair_id"].tolist() == ["1"]
    assert far[["nearest", "farthest", "judges"]].to_numpy().tolist() == [[2.5, 2.5, 2]]


def judgements() -> pd.DataFrame:
    """Judges x and y of three outputs; of the second x has no score."""
    rows = [("x", "0", 3.5), ("x", "1", math.nan), ("x", "2", 2.25), ("y", "0", 3.0), ("y", "1", 4.0), ("y", "2", 5.0)]
    found = pd.DataFrame(rows, columns=["judge", "pair_id", "score"]).assign(question="quality")
    return found.assign(status=np.where(found["score"].isna(), "failed", "ok"))


def test_a_panels_score_is_the_mean_of_all_its_judges_or_none() -> None:
    panel = together(checked(judgements()))["score"].tolist()
    assert panel[::2] == [3.25, 3.625] and math.isnan(panel[1])


def test_judges_beside_each_other() -> None:
    found = between_judges(judgements(), SCALE).iloc[0]
    assert found[["first", "second", "n"]].tolist() == ["x", "y", 2]  # x has no score of the second output
    assert found["difference"] == pytest.approx((3.5 - 3 + 2.25 - 5) / 2)
    assert found["mean_absolute"] == pytest.approx((0.5 + 2.75) / 2)


def test_the_length_slope_has_hc3_errors() -> None:
    import statsmodels.api as sm  # type: ignore[import-untyped]  # a second, which each worker would wait at its start

    draw = np.random.default_rng(4)
    ratios = draw.uniform(0.3, 3, 60)
    gaps = 0.4 * np.log(ratios) + draw.normal(0, ratios / 4)
    found = length_slope(gaps, ratios)
    theirs = sm.OLS(gaps, sm.add_constant(np.log(ratios))).fit(cov_type="HC3", use_t=True)
    assert found.value == pytest.approx(theirs.params[1])
    assert [found.low, found.high] == pytest.approx(theirs.conf_int()[1].tolist())
    assert length_slope(gaps, np.ones(60)).reason == "all outputs have the same length ratio"
    assert length_slope(gaps[:2], ratios[:2]).reason == "a slope needs at least 3 outputs, found 2"


def judged(pair_id: str, judge: str, score: float, mass: float = 1.0) -> dict[str, object]:
    row = {"pair_id": pair_id, "judge": judge, "question": "quality", "score": score}
    return {**row, "status": "ok", "label_mass": mass}


def test_pairs_farthest_apart_come_first_with_reasons_to_doubt() -> None:
    people = {"a": [5, 4], "b": [1, 5], "c": [3, 3], "d": [2]}
    rows = [(pair, f"r{n}", value) for pair, values in people.items() for n, value in enumerate(values)]
    ratings = pd.DataFrame(rows, columns=["pair_id", "rater_id", "value"])
    ratings = ratings.assign(question="quality", transformation="paraphrasing", status="submitted")
    judgements = pd.DataFrame([
        judged("a", "x", 2.0), judged("a", "y", 2.5), judged("b", "x", 3.5), judged("b", "y", 3.5, mass=0.8),
        judged("c", "x", 3.75), judged("c", "y", 3.0), judged("d", "x", 5.0), judged("d", "y", 5.0),
    ])  # fmt: skip
    found = disagreements(ratings, judgements, least=2)
    assert found["pair_id"].tolist() == ["a", "b", "c"]  # one rater has rated d
    assert found["apart"].tolist() == [2.25 - 4.5, 3.5 - 3, 3.375 - 3]
    assert found["spread"].tolist() == [0.5, 0, 0.75] and found["raters"].tolist() == [2, 2, 2]
    # The 5 of a is 3 and 2.5 points from both judges, the 1 of b 2.5 from both.
    assert found["far"].tolist() == [1, 1, 0]
    assert found["flags"].tolist() == ["far", "far, label mass", ""]
