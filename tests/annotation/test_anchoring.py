"""The experiment with judges' scores in sight: halves by chance, the effect with its interval, and what it may not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from annotation.anchoring import DISTANCE, RATING, anchoring, anchoring_lines, two_arms
from annotation.campaign_records import CampaignRecords
from annotation.records import ShownScore
from annotation.sampling.sample import draw_sample, refuse_other_half
from generation.production import generate
from plumbline.errors import StudyError
from plumbline.records import SUGGESTED
from plumbline.study import Study
from tests.scale import FULL, scaled

Make = Callable[..., Study]


def test_one_stratum_is_welchs_test() -> None:
    draw = np.random.default_rng(3)
    one, other = draw.normal(4, 1, 12), draw.normal(3.5, 0.5, 9)
    values = np.concatenate([one, other])
    found = two_arms(values, np.arange(21) < 12, np.zeros(21, np.int64))
    expected = stats.ttest_ind(one, other, equal_var=False).confidence_interval(0.95)
    assert found.difference.value == pytest.approx(one.mean() - other.mean())
    assert [found.difference.low, found.difference.high] == pytest.approx([expected.low, expected.high])


def test_strata_weigh_as_many_values_as_they_have_and_a_lonely_one_is_left_out() -> None:
    """Of 8: 4, 4 and 5, 5, so -1; of 4: 2, 4 and 1, 3, so +1; (8 x -1 + 4 x 1) / 12 = -1/3. One value is alone."""
    values = np.array([3, 5, 4, 4, 4, 6, 5, 5, 2, 4, 1, 3, 9], float)
    first = np.array([1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 1], bool)
    found = two_arms(values, first, np.array([0] * 8 + [1] * 4 + [2]))
    assert found.difference.value == pytest.approx(-1 / 3)
    assert [found.first, found.second] == pytest.approx([(8 * 4 + 4 * 3) / 12, (8 * 5 + 4 * 2) / 12])
    assert (found.n_first, found.n_second, found.left_out) == (6, 6, 1)
    # s^2 / n of 3, 5, 4, 4 is (2/3) / 4 = 1/6, of 4, 6, 5, 5 too; of 2, 4 and of 1, 3 it is 2 / 2 = 1.
    variance = (8 / 12) ** 2 * (1 / 6 + 1 / 6) + (4 / 12) ** 2 * (1 + 1)
    freedom = variance**2 / ((8 / 12) ** 4 * 2 * (1 / 6) ** 2 / 3 + (4 / 12) ** 4 * 2 * 1 / 1)
    reach = stats.t.ppf(0.975, freedom) * variance**0.5
    assert found.difference.high - found.difference.value == pytest.approx(reach)


def test_what_has_no_spread_or_no_pairs_has_no_interval_and_says_why() -> None:
    same = two_arms(np.full(8, 4.0), np.arange(8) < 4, np.zeros(8, np.int64)).difference
    assert same.value == 0 and np.isnan(same.low) and same.reason == "no variance within the groups"
    none = two_arms(np.array([1.0, 2.0]), np.array([True, False]), np.zeros(2, np.int64)).difference
    assert np.isnan(none.value) and none.reason == "no stratum has 2 pairs of each group"


def campaign(
    draw: np.random.Generator, pairs: int, pull: float
) -> tuple[pd.DataFrame, list[ShownScore], dict[str, str]]:
    """Three raters a pair; with the judge's 5 in sight they go `pull` of their way to it."""
    quality = draw.normal(3.0, 0.6, pairs)
    names = [f"p{i}" for i in range(pairs)]
    shown = draw.permutation(np.arange(pairs) % 2 == 0)
    felt = np.repeat(quality, 3) + draw.normal(0, 0.5, 3 * pairs)
    felt = np.where(np.repeat(shown, 3), felt + pull * (5 - felt), felt)
    ratings = pd.DataFrame({"pair_id": np.repeat(names, 3), "question": "quality", "value": np.clip(felt, 1, 5)})
    scores = [
        ShownScore(pair_id=name, shown=bool(one), question="quality", value=5, agent="oracle", label_mass=1)
        for name, one in zip(names, shown, strict=True)
    ]
    return ratings, scores, {name: f"t{i % 2}" for i, name in enumerate(names)}


def test_raters_who_go_a_third_of_the_way_are_found() -> None:
    """From 3 to the judge's 5 is 2 points, of which 0.3 is 0.6."""
    table = anchoring(*campaign(np.random.default_rng(1), 400, 0.3))
    found = {str(row["measure"]): row for row in table.to_dict("records")}
    rated, apart = found[RATING], found[DISTANCE]
    assert 0.4 < rated["low"] < 0.6 < rated["high"]
    assert apart["difference"] == pytest.approx(-rated["difference"])  # nobody is above 5
    assert rated["shown"] - rated["hidden"] == pytest.approx(rated["difference"])
    assert (rated["n_shown"], rated["n_hidden"]) == (200, 200)
    lines = anchoring_lines(table)
    assert lines[0].startswith("quality, mean rating: 3.") and "with scores shown" in lines[0]


def test_intervals_hold_no_difference_in_95_of_100_campaigns() -> None:
    """40 pairs in two unequal strata half a point apart, halved by chance within each; skewed as ratings are."""
    draw, campaigns = np.random.default_rng(2), scaled(1000, 20_000)
    strata = np.repeat([0, 1], [26, 14])
    held = 0
    for _ in range(campaigns):
        values = np.clip(draw.normal(4.2, 0.8, 40) - 0.5 * strata, 1, 5)
        first = np.concatenate([draw.permutation(np.arange(number) % 2 == 0) for number in (26, 14)])
        found = two_arms(values, first, strata).difference
        held += found.low <= 0 <= found.high
    assert abs(held / campaigns - 0.95) < (0.006 if FULL else 0.025)


def test_a_pair_without_a_score_is_in_neither_row_and_no_rating_is_no_row() -> None:
    ratings, scores, strata = campaign(np.random.default_rng(1), 20, 0.0)
    assert anchoring(ratings, scores[1:], strata)[["n_shown", "n_hidden"]].sum(axis=1).tolist() == [19, 19]
    assert anchoring(ratings[:0], scores, strata).empty
    assert anchoring_lines(anchoring(ratings[:0], scores, strata)) == [
        "No pair with a judge's score has been rated yet."
    ]


RECORDED = {"name": "oracle", "engine": {"kind": "recorded", "model": "seer", "path": "said.jsonl"}}


def test_a_random_half_of_each_transformation_is_drawn_to_show_scores_and_never_counts(variant: Make) -> None:
    parts = {"transformations": ["paraphrasing", "translation"], "judges": [RECORDED], "acceptance": {"min_pairs": 4}}
    sample = {"pairs": 9, "controls": 1, "repeats": 1}
    whole = variant(**parts, sample=sample)
    generate(whole)
    before = {pair.pair_id for pair in draw_sample(whole)}
    study = variant(**parts, sample=sample, raters={"per_pair": 3, "suggestions": "half"})
    counted = draw_sample(study)
    half = [pair for pair in CampaignRecords.open(study).controls if pair.control == SUGGESTED]
    assert {pair.pair_id for pair in (*counted, *half)} == before
    assert not {pair.pair_id for pair in counted} & {pair.pair_id for pair in half}
    strata = Counter((pair.transformation, pair.language) for pair in (*counted, *half))
    assert Counter((pair.transformation, pair.language) for pair in half) == Counter(
        {one: number // 2 for one, number in strata.items()}
    )
    assert draw_sample(study) == counted == CampaignRecords.open(study).pairs  # drawn again it is the same half
    other = variant(**parts, sample={**sample, "seed": 7}, raters={"per_pair": 3, "suggestions": "half"})
    shared = {pair.pair_id for pair in draw_sample(other)} & before
    assert shared and shared != {pair.pair_id for pair in counted} & shared
    with pytest.raises(StudyError, match="is 'none', but the sample was drawn with a half that shows judges' scores"):
        refuse_other_half(whole, [*counted, *half])
    with pytest.raises(StudyError, match="is 'half', but the sample was drawn without judges' scores"):
        refuse_other_half(study, counted)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"judges": []}, "shows judges' scores, but the study has no judges"),
        ({"acceptance": {"min_pairs": 13}}, "is more than sample.pairs 24 .of which 12 count"),
    ],
)
def test_experiments_that_cannot_be_are_refused(variant: Make, changes: dict[str, object], reason: str) -> None:
    parts = {"judges": [RECORDED], "raters": {"per_pair": 3, "suggestions": "half"}, "acceptance": {"min_pairs": 12}}
    with pytest.raises(StudyError, match=reason):
        variant(**(parts | changes))
