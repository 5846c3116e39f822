"""Other thresholds and other ratings laid over scores: what counts then, and what is not known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from annotation.questions import QuestionScale
from annotation.records import Verdict
from annotation.statistics.summaries import Design
from annotation.verdicts.counted import basis
from annotation.verdicts.verdicts import verdicts
from evaluation.tables import axis_table
from evaluation.tables.sensitivity import (
    Scope,
    acceptance_table,
    resampled_acceptance,
    threshold_decisions,
    threshold_table,
    thresholds_of,
    uncertainty_table,
)
from plumbline.records import Pair
from plumbline.study.campaign import AcceptanceSpec
from tests.annotation.judgements import QUESTIONS, SCALE, pair, ratings
from tests.evaluation.made_scores import score_row

STEPS = thresholds_of((1, 2, 3, 4, 5))  # HTEB's scale
NAMES = ("paraphrasing", "style_change", "expansion", "translation")
STEADY = {name: [5, 5, 4, 4] for name in NAMES}
SCOPES = {name: Scope(name, "en", "") for name in NAMES}


def rule(**changes: object) -> AcceptanceSpec:
    return AcceptanceSpec.model_validate({"min_pairs": 2, **changes})


class Campaign:
    """Pairs of each transformation, quality as given, fluency 5 (or 5 and 4 in turn); raters who agree."""

    def __init__(
        self,
        quality: dict[str, list[int]],
        *,
        raters: int = 2,
        others: dict[str, QuestionScale] | None = None,
        **changes: object,
    ) -> None:
        self.pairs: list[Pair] = []
        frames = []
        for name, values in quality.items():
            own = [pair(number, name) for number in range(len(values))]
            self.pairs += own
            fluency = [5, 4] * len(values) if "rule" in changes else [5] * len(values)  # intervals need spread
            frames.append(ratings(own, values, fluency, raters))
        self.ratings = pd.concat(frames, ignore_index=True)
        self.design = Design(QUESTIONS, SCALE, raters, rule(**changes), others=others or {})
        self.verdicts: list[Verdict] = verdicts(self.pairs, self.ratings, self.design, 1)

    def accepted(self, n_resamples: int = 1000, seed: int = 0) -> pd.DataFrame:
        frame = pd.DataFrame([one.model_dump() for one in self.pairs])
        rests_on = basis(frame, self.ratings, self.design).ratings
        return resampled_acceptance(frame, rests_on, self.verdicts, self.design, seed=seed, n_resamples=n_resamples)


def scores_of(left_out: tuple[str, ...] = (), status: str = "left_out", why: str = "rejected: low") -> pd.DataFrame:
    """Original .80; paraphrasing .70, style change .60, expansion .50, translation .40, on two data sets."""
    values = {"original": 0.8, "paraphrasing": 0.7, "style_change": 0.6, "expansion": 0.5, "translation": 0.4}
    rows = []
    for dataset in ("d1", "d2"):
        for name, score in values.items():
            changes = {"status": status, "reason": why} if name in left_out else {}
            unknown = changes.get("status") == "left_out"
            rows.append(score_row("m", dataset, name, float("nan") if unknown else score, **changes))
    return pd.DataFrame(rows)


def at(table: pd.DataFrame, threshold: float) -> pd.Series:
    return table[table["threshold"] == threshold].iloc[0]


def test_thresholds_go_over_the_rubrics_scale_in_quarters() -> None:
    assert thresholds_of((0, 1, 2, 3, 4, 5)) == (0, 0.25, 0.5, 0.75, *STEPS)  # PTEB's
    assert STEPS == (1, 1.25, 1.5, 1.75, 2, 2.25, 2.5, 2.75, 3, 3.25, 3.5, 3.75, 4, 4.25, 4.5, 4.75, 5)


def test_decisions_are_those_that_the_rule_takes_at_each_threshold() -> None:
    campaign = Campaign({"paraphrasing": [2, 3, 3, 4], "style_change": [5, 5, 5, 5]})  # means 3.0 and 5.0
    table = threshold_decisions(campaign.verdicts, campaign.design.rule, STEPS)
    for threshold in STEPS:
        design = Design(QUESTIONS, SCALE, 2, rule(threshold=threshold))
        again = verdicts(campaign.pairs, campaign.ratings, design, 1)
        part = table[table["threshold"] == threshold]
        assert list(part["decision"]) == [verdict.decision for verdict in again]
    assert set(table[table["decision"] == "accepted"].groupby("transformation")["threshold"].max()) == {3.0, 5.0}


def test_by_the_lower_bound_there_is_a_threshold_at_which_nothing_is_decided() -> None:
    campaign = Campaign({"paraphrasing": [2, 4, 3, 4]}, rule="lower_bound")  # 3.25, interval 1.73 to 4.77
    found = threshold_decisions(campaign.verdicts, campaign.design.rule, STEPS).set_index("threshold")["decision"]
    assert [found[1.5], found[1.75], found[4.75], found[5.0]] == ["accepted", "undecided", "undecided", "rejected"]


def test_totals_at_other_thresholds() -> None:
    quality = {**STEADY, "paraphrasing": [2, 3, 3, 4]}  # 3.0; the others 4.5
    campaign = Campaign(quality)
    table = threshold_table(scores_of(), campaign.verdicts, campaign.design.rule, STEPS)
    # Up to 3: (mean of .7 and .6, .5, .4) is (.65 + .5 + .4) / 3; then without paraphrasing (.6 + .5 + .4) / 3.
    assert at(table, 3)["hteb_total"] == pytest.approx(1.55 / 3)
    assert at(table, 3.25)["hteb_total"] == pytest.approx(0.5)
    assert at(table, 3.25)["hteb_total_difference"] == pytest.approx(-30)
    assert at(table, 3.25)["accepted"] == "style_change, expansion, translation" and at(table, 3.25)["n_scopes"] == 3
    above = at(table, 4.75)
    assert np.isnan(above["hteb_total"]) and "length: no part of it is accepted" in above["reason"]


def test_at_the_studys_own_threshold_totals_are_those_of_tables_14_and_15() -> None:
    campaign = Campaign({**STEADY, "style_change": [1, 1, 2, 2]})
    scores = scores_of(("style_change",))
    row = at(threshold_table(scores, campaign.verdicts, campaign.design.rule, STEPS), 3)
    own = axis_table(scores).iloc[0]
    for name in ("original", "lexical_stylistic", "length", "language", "hteb_total", "hteb_total_difference"):
        assert row[name] == pytest.approx(own[name], abs=1e-12)


def test_what_would_be_accepted_but_was_not_scored_is_unknown_and_says_how_to_have_it() -> None:
    campaign = Campaign({**STEADY, "style_change": [2, 2, 3, 3]})  # 2.5: rejected at 3, accepted at 2.5
    table = threshold_table(scores_of(("style_change",)), campaign.verdicts, campaign.design.rule, STEPS)
    assert at(table, 2.75)["reason"] == "" and at(table, 2.75)["lexical_stylistic"] == pytest.approx(0.7)
    below = at(table, 2.5)
    assert np.isnan(below["lexical_stylistic"]) and np.isnan(below["hteb_total"]) and below["length"] == 0.5
    assert "style_change would be accepted" in below["reason"] and "--include-rejected" in below["reason"]
    # With its scores it counts from 2.5 downwards, and only there.
    table = threshold_table(
        scores_of(("style_change",), "included_rejected"), campaign.verdicts, campaign.design.rule, STEPS
    )
    assert at(table, 2.5)["lexical_stylistic"] == pytest.approx(0.65)
    assert at(table, 2.75)["lexical_stylistic"] == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ("left_out", "no output for 3 of 12 texts: run `plumbline generate` again"),
        ("included_rejected", "nobody rated outputs in Turkish (rated: English): set a larger sample.pairs"),
    ],
)
def test_no_threshold_lets_in_what_something_else_keeps_out(status: str, why: str) -> None:
    campaign = Campaign(STEADY)
    table = threshold_table(scores_of(("style_change",), status, why), campaign.verdicts, campaign.design.rule, STEPS)
    assert at(table, 1)["lexical_stylistic"] == pytest.approx(0.7) and at(table, 1)["reason"] == ""


def test_a_data_set_in_two_languages_needs_both() -> None:
    german = [pair(number, "expansion", "de", "de") for number in range(4)]
    campaign = Campaign(STEADY)
    frame = pd.concat([campaign.ratings, ratings(german, [2, 2, 2, 2], [5] * 4)], ignore_index=True)
    found = verdicts([*campaign.pairs, *german], frame, campaign.design, 1)
    scores = scores_of()
    scores.loc[(scores["dataset"] == "d2"), "language"] = "de, en"
    table = threshold_table(scores[scores["axis"].isin(["original", "length"])], found, campaign.design.rule, STEPS)
    assert at(table, 2)["length"] == 0.5 and at(table, 2)["n_scopes"] == 5
    scores.loc[(scores["dataset"] == "d2") & (scores["axis"] == "length"), "score"] = 0.1
    table = threshold_table(scores, found, campaign.design.rule, STEPS)
    # At 2 German is accepted too: (.5 + .1) / 2. At 2.25 the data set that holds German is out.
    assert (at(table, 2)["length"], at(table, 2.25)["length"]) == (pytest.approx(0.3), 0.5)


def test_sure_verdicts_are_accepted_in_every_resample_and_bring_no_uncertainty() -> None:
    campaign = Campaign({**STEADY, "style_change": [1, 1, 2, 2]})
    accepted = campaign.accepted()
    shares = acceptance_table(campaign.verdicts, accepted).set_index("transformation")["share"]
    assert dict(shares) == {"paraphrasing": 1, "style_change": 0, "expansion": 1, "translation": 1}
    table = uncertainty_table(scores_of(("style_change",)), campaign.verdicts, accepted).set_index("name")
    total = table.loc["hteb_total"]
    assert total["low"] == total["value"] == total["high"] == pytest.approx((0.7 + 0.5 + 0.4) / 3)
    assert total["reason"] == "" and total["n_defined"] == 1000


def test_the_share_of_resamples_is_the_chance_that_the_drawn_pairs_reach_the_threshold() -> None:
    # Pair means 1 and 5 in equal parts: the mean of 4 drawn reaches 3 if two or more are fives: 11 of 16.
    campaign = Campaign({"paraphrasing": [1, 1, 5, 5]})
    share = campaign.accepted(20_000)[SCOPES["paraphrasing"]].mean()
    assert share == pytest.approx(11 / 16, abs=4 * np.sqrt(11 / 16 * 5 / 16 / 20_000))


def test_the_interval_of_the_total_widens_when_a_verdict_is_shaky() -> None:
    scores = scores_of(("paraphrasing",), "included_rejected")
    widths = []
    for quality in ([4, 4, 4, 4], [1, 1, 5, 5]):
        campaign = Campaign({**STEADY, "paraphrasing": quality})
        table = uncertainty_table(scores, campaign.verdicts, campaign.accepted()).set_index("name")
        widths.append(table.loc["hteb_total", "high"] - table.loc["hteb_total", "low"])
        assert table.loc["length", "low"] == table.loc["length", "high"] == 0.5
    # With paraphrasing the axis is .65, without it .60: a third of the difference is the total's.
    assert widths == pytest.approx([0, 0.05 / 3])


def test_resamples_that_accept_what_has_no_scores_leave_no_interval() -> None:
    campaign = Campaign({**STEADY, "paraphrasing": [1, 1, 4, 5]})  # 2.75: rejected, but not for sure
    accepted = campaign.accepted()
    table = uncertainty_table(scores_of(("paraphrasing",)), campaign.verdicts, accepted).set_index("name")
    total = table.loc["hteb_total"]
    assert total["value"] == pytest.approx(0.5) and np.isnan(total["low"]) and np.isnan(total["high"])
    share = accepted[SCOPES["paraphrasing"]].mean()
    assert f"no interval: in {share:.1%} of resamples" in total["reason"] and "--include-rejected" in total["reason"]
    assert table.loc["length", "reason"] == "" and table.loc["length", "low"] == 0.5


def test_a_value_that_no_resample_lacks_says_itself_why_it_is_undefined() -> None:
    campaign = Campaign({**STEADY, "expansion": [1, 1, 2, 2]})  # rejected, and in these resamples accepted
    accepted = campaign.accepted()
    accepted[SCOPES["expansion"]] = True
    scores = scores_of(("expansion",), "included_rejected")
    total = uncertainty_table(scores, campaign.verdicts, accepted).set_index("name").loc["hteb_total"]
    assert np.isnan(total["value"]) and total["n_defined"] == 1000
    assert total["reason"] == "length: no part of it is accepted"


def one_severe_rater(interval: str) -> Campaign:
    """Three raters over the same pairs; one gives 1, the others 4 and 5: mean 3.33 whatever pairs are drawn."""
    campaign = Campaign({"paraphrasing": [4, 4, 4, 4]}, raters=3, interval=interval)
    quality = campaign.ratings["question"] == "quality"
    points = campaign.ratings["rater_id"].map({"rater-0": 1, "rater-1": 4, "rater-2": 5})
    campaign.ratings["value"] = campaign.ratings["value"].where(~quality, points)
    campaign.verdicts = verdicts(campaign.pairs, campaign.ratings, campaign.design, 1)
    return campaign


def test_raters_are_drawn_too_where_the_study_takes_them_for_a_sample() -> None:
    assert one_severe_rater("pairs").accepted()[SCOPES["paraphrasing"]].all()
    share = one_severe_rater("pairs_and_raters").accepted(5000)[SCOPES["paraphrasing"]].mean()
    # Of 27 draws of three raters those under 9 points in all fail: 111 (1 way), 114 (3 ways), 115 (3 ways).
    assert share == pytest.approx(20 / 27, abs=4 * np.sqrt(20 / 27 * 7 / 27 / 5000))


def test_a_resampled_verdict_is_the_same_whatever_others_stand_beside_it() -> None:
    campaign = Campaign({"paraphrasing": [1, 1, 4, 5], "expansion": [1, 2, 5, 5]})
    both = campaign.accepted()[SCOPES["expansion"]]
    campaign.verdicts = [one for one in campaign.verdicts if one.transformation == "expansion"]
    alone = campaign.accepted()[SCOPES["expansion"]]
    assert 0 < alone.mean() < 1
    pd.testing.assert_series_equal(alone, both)


@pytest.mark.parametrize(
    "changes",
    [
        {"rule": "lower_bound"},
        {"rule": "lower_bound", "interval": "pairs_and_raters"},
    ],
)
def test_every_rule_is_resampled_by_its_own_interval(changes: dict[str, str]) -> None:
    rng = np.random.default_rng(0)
    sizes = {"paraphrasing": rng.integers(3, 6, 80).tolist(), "expansion": rng.integers(1, 6, 80).tolist()}
    campaign = Campaign(sizes, raters=4, **changes)
    frame = campaign.ratings
    noise = pd.Series(rng.integers(-1, 2, len(frame)), index=frame.index)
    frame["value"] = (frame["value"] + noise).clip(1, 5)
    campaign.verdicts = verdicts(campaign.pairs, frame, campaign.design, 1)
    accepted = campaign.accepted(200)
    # Quality 4 is far above 3 and 3 is not: by its lower end the second is hardly ever accepted.
    assert accepted[SCOPES["paraphrasing"]].mean() > 0.9
    assert accepted[SCOPES["expansion"]].mean() < 0.2


def test_too_few_pairs_are_accepted_in_no_resample_and_equal_seeds_give_equal_shares() -> None:
    assert not Campaign(STEADY, min_pairs=5).accepted().any(axis=None)
    campaign = Campaign({"paraphrasing": [1, 1, 5, 5], "expansion": [1, 2, 4, 5]})
    assert campaign.accepted(seed=3).equals(campaign.accepted(seed=3))
    assert not campaign.accepted(seed=3).equals(campaign.accepted(seed=4))


def test_pooled_translations_are_accepted_together() -> None:
    campaign = Campaign({"translation": [1, 5], "cross_translation": [1, 5]})
    accepted = campaign.accepted()
    one, other = (accepted[Scope(name, "en", "")] for name in ("translation", "cross_translation"))
    assert one.equals(other) and 0 < one.mean() < 1


def test_resamples_judge_a_question_on_its_own_scale() -> None:
    """Fluency is 5 and 4 in turn: on 0 to 10 what was not seen may be farther below than on 1 to 5."""
    shares = []
    for scale in (SCALE, tuple(range(11))):
        fluency = {"fluency": QuestionScale("fluency", scale=scale)}
        found = Campaign({"expansion": [5] * 40}, others=fluency, rule="lower_bound", threshold=4.2)
        shares.append(found.accepted()[SCOPES["expansion"]].mean())
    narrow, wide = shares
    assert wide < 0.45
    assert narrow > 0.55
