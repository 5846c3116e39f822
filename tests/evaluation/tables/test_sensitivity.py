"""Other thresholds and other ratings laid over scores: what counts then, and what is not known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from annotation.questions import QuestionScale
from annotation.records import Verdict
from annotation.statistics.summaries import Design
from annotation.verdicts.verdicts import verdicts
from evaluation.tables import axis_table
from evaluation.tables.sensitivity import (
    Scope,
    threshold_decisions,
    threshold_table,
    thresholds_of,
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
