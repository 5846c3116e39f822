"""Campaigns and waves held side by side: the numbers by hand and by scipy, and what cannot be compared."""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd
import pytest
from scipy import stats

from annotation.campaign_records import CampaignRecords
from annotation.comparison import compare_campaigns, compare_parts, comparison_text
from annotation.sampling.sample import draw_sample, extend_sample
from generation.production import generate
from plumbline.errors import DataError, StudyError
from plumbline.study import Study
from tests.annotation.judgements import SCALE, pair, ratings
from tests.annotation.verdicts.test_doubts import careless

Make = Callable[..., Study]


def rated(numbers: list[int], quality: list[int], fluency: list[int] | None = None) -> pd.DataFrame:
    """Two raters who agree, on these pairs of paraphrasing."""
    frame = ratings([pair(number) for number in numbers], quality, fluency or quality)
    return frame.assign(pool="paraphrasing")


def test_the_difference_on_the_same_pairs_is_the_t_interval_of_differences() -> None:
    """Pairs 1 to 4 were rated by both: 3 4 5 2 and 4 4 5 4; the differences 1 0 0 2 have mean 0.75 and SD 0.957."""
    one, other = rated([0, 1, 2, 3, 4], [1, 3, 4, 5, 2]), rated([1, 2, 3, 4, 5], [4, 4, 5, 4, 1])
    quality, fluency = compare_campaigns(one, other, SCALE)
    assert (quality.question, fluency.question) == ("quality", "fluency")
    assert quality.pairs == (4, 4) and quality.means == (3.5, 4.25) and quality.difference == 0.75
    ends = stats.ttest_rel([4, 4, 5, 4], [3, 4, 5, 2]).confidence_interval()
    assert (quality.low, quality.high) == pytest.approx((ends.low, ends.high))
    # Ranks 2 3 4 1 and 2 2 4 2: covariance 3/3 over the product of SDs, sqrt(5/3) and sqrt(3/3).
    assert quality.rho == pytest.approx(1 / math.sqrt(5 / 3))
    assert quality.ac2[:2] == pytest.approx((1, 1)) and quality.ac2[2] < 0.9  # each agrees with itself
    assert quality.reason == ""


def test_without_spread_there_is_no_interval_and_the_reason() -> None:
    (row, _) = compare_campaigns(rated([1, 2], [3, 4]), rated([1, 2], [4, 5]), SCALE)
    assert row.difference == 1 and math.isnan(row.low) and row.reason == "no spread to compute an interval from"
    (row, _) = compare_campaigns(rated([1], [3]), rated([1], [4]), SCALE)
    assert math.isnan(row.high) and math.isnan(row.rho) and row.reason == "one pair is too few"


def test_waves_are_compared_by_welch() -> None:
    one, other = [3, 4, 5, 2, 4], [4, 5, 5, 4]
    (row, _) = compare_parts(rated([0, 1, 2, 3, 4], one), rated([5, 6, 7, 8], other))
    ends = stats.ttest_ind(other, one, equal_var=False).confidence_interval()
    assert row.pairs == (5, 4) and row.difference == pytest.approx(4.5 - 3.6)
    assert (row.low, row.high) == pytest.approx((ends.low, ends.high))
    assert math.isnan(row.rho) and all(map(math.isnan, row.ac2))


def test_what_only_one_has_is_left_out() -> None:
    one = rated([0, 1, 2], [3, 4, 5])
    other = one[one["question"] == "quality"]
    assert [row.question for row in compare_campaigns(one, other, SCALE)] == ["quality"]
    assert compare_campaigns(one, rated([7], [1]), SCALE) == []


def study_of(variant: Make, name: str, pairs: int = 8) -> Study:
    raters = {"raters": {"per_pair": 3}, "acceptance": {"min_pairs": 5}}
    return variant(name=name, transformations=["paraphrasing"], sample={"pairs": pairs}, **raters)


def test_the_commands_table_names_what_it_compares(variant: Make) -> None:
    first, second = study_of(variant, "first"), study_of(variant, "second", 10)
    for study in (first, second):
        generate(study)
        draw_sample(study)
        with pytest.raises(DataError, match="no ratings that count; run `.*collect"):
            comparison_text(study)
        careless(study)
    text = comparison_text(first, second)
    assert "Mean, first" in text and "AC2, both" in text and "second minus first" in text
    row = next(line for line in text.splitlines() if line.startswith("Paraphrasing") and "quality" in line)
    assert row.split()[3] == "8"  # of second's ten pairs those that both have
    with pytest.raises(StudyError, match="its sample has one wave; name another study with --other, or extend"):
        comparison_text(first)
    grown = study_of(variant, "first", 12)
    extend_sample(grown, "more")
    careless(grown)
    assert "Wave 2 compared with wave 1 (more)" in comparison_text(grown) and "8 and 4" in comparison_text(grown)
    assert {one.wave for one in CampaignRecords.open(grown).pairs} == {1, 2}


def test_campaigns_on_other_pairs_or_scales_are_refused(variant: Make) -> None:
    first = study_of(variant, "first")
    other = variant(
        name="other",
        transformations=["expansion"],
        sample={"pairs": 8},
        raters={"per_pair": 3},
        acceptance={"min_pairs": 5},
    )
    for study in (first, other):
        generate(study)
        careless(study)
    with pytest.raises(StudyError, match="none of its rated pairs were rated"):
        comparison_text(first, other)
