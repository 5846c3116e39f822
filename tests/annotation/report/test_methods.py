"""The methods section says what is true of a study: for each rule, for one and for many, with and without each part."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pytest

from annotation.campaign_records import CampaignRecords
from annotation.records import Decision, Look, Origin, Review, RuleSet, Supply, Verdict
from annotation.report.exhibits import rules_exhibit
from annotation.report.material import CampaignMaterial
from annotation.report.methods import methods
from annotation.rubric import load_rubric
from annotation.verdicts.preregistration import rules_now
from generation.jobs import generator_hash
from plumbline.records import Pair
from plumbline.study import Study
from plumbline.study.campaign import AcceptanceSpec
from plumbline.study.engines import ServerSpec
from tests.annotation.judgements import START, pair, ratings

MEAN = "accepted if its mean rating reaches 3 on every question, and rejected otherwise"
LOWER = (
    "accepted if the lower end of the 95% interval of its mean rating reaches 3 on every question, rejected if"
    " the upper end is below 3 on any, and undecided otherwise"
)
RULE = {"question": "quality", "at_least": 3}
NOT_DECIDING = "They are shown but decide nothing."


def material(study: Study, pairs: Sequence[Pair], rated: pd.DataFrame, **parts: Any) -> CampaignMaterial:
    """What was read of a study whose ratings all count, unless `parts` says otherwise."""
    given: dict[str, Any] = {
        "study": study,
        "rubric": load_rubric(study),
        "pairs": pairs,
        "controls": [],
        "supply": [],
        "ratings": rated,
        "counting": rated,
        "control_ratings": rated.iloc[:0],
        "verdicts": [],
        "groups": [],
        "signs": [],
        "decisions": [],
        "rules": [],
        "looks": [],
        "waves": [],
        "crowd": [],
        "manifest": {},
        "read_at": START,
    }
    return CampaignMaterial(**(given | parts))


def small(study: Study, **parts: Any) -> CampaignMaterial:
    pairs = [pair(0), pair(1), pair(0, "expansion")]
    return material(study, pairs, ratings(pairs, [3, 4, 5], [4, 4, 4]), **parts)


def text(found: CampaignMaterial) -> str:
    return " ".join(methods(found))


@pytest.mark.parametrize(
    ("rule", "says", "never"),
    [
        ({}, [MEAN, "separately for each language of the originals: it", "over pairs", NOT_DECIDING], [LOWER, "AC2"]),
        (
            {"rule": "lower_bound"},
            [LOWER, "intervals over pairs by the empirical likelihood", "allows one look"],
            [MEAN, NOT_DECIDING],
        ),
        (
            {"rule": "lower_bound", "interval": "pairs_and_raters", "scope": "transformation"},
            [LOWER, "with both pairs and raters as samples", "on the ratings of all languages together"],
            ["raters taken as fixed"],
        ),
        (
            {"rules": [RULE, {**RULE, "question": "fluency"}], "scope": "task"},
            ["all of these hold: mean of quality at least 3; mean of fluency at least 3; rejected otherwise",
             "language of the originals and each task", NOT_DECIDING],
            ["undecided otherwise"],
        ),
        (
            {"rules": [RULE], "rule": "lower_bound"},
            ["all of these hold: lower end of the 95% interval of the mean of quality at least 3; rejected if even the"
             " more favourable end of an interval misses its limit, and undecided otherwise"],
            ["rejected otherwise", NOT_DECIDING],
        ),
        (
            {"min_pairs": 1, "min_raters": 1, "min_ac2": 0.4},
            ["fewer than 1 pair rated by at least 1 rater or an AC2 below 0.4 on any question"],
            ["1 pairs", "1 raters"],
        ),
    ],
)  # fmt: skip
def test_each_rule_is_told_as_it_is(demo: Study, rule: dict[str, Any], says: list[str], never: list[str]) -> None:
    told = text(small(demo.model_copy(update={"acceptance": AcceptanceSpec(**rule)})))
    assert [one for one in says if one not in told] == []
    assert [one for one in never if one in told] == []


def test_a_rule_for_all_pools_says_which_have_another(demo: Study) -> None:
    rules = [{"question": "quality", "at_least": 3}, {"question": "quality", "at_most": 2, "pools": ["expansion"]}]
    study = demo.model_copy(update={"acceptance": AcceptanceSpec.model_validate({"rules": rules})})
    told = (
        "mean of quality at least 3 (except for Expansion); mean of quality at most 2 (Expansion); rejected otherwise"
    )
    assert f"accepted if all of these hold: {told}" in text(small(study))


@pytest.mark.parametrize(
    ("sources", "says"),
    [
        (("prolific",), "collected from Prolific and"),
        (("mturk", "argilla"), "collected from Argilla and Amazon Mechanical Turk and"),
        (("REHEARSAL sandbox", "ours.csv"), "collected from REHEARSAL, a made-up crowd and a CSV file and"),
    ],
)
def test_a_crowd_s_platform_is_no_file(demo: Study, sources: tuple[str, ...], says: str) -> None:
    pairs = [pair(0), pair(1)]
    rated = ratings(pairs, [3, 4], [4, 4])
    rated = rated.assign(source=[sources[number % len(sources)] for number in range(len(rated))])
    assert says in text(material(demo, pairs, rated))


def test_several_languages_sources_and_kinds_of_raters_are_told(demo: Study) -> None:
    pairs = [pair(0), pair(1), pair(0, "translation", "de", "fr"), pair(0, "cross_translation", "de", "es")]
    rated = ratings(pairs, [3, 4, 5, 5], [4, 4, 4, 4], raters=3)
    rated["simulated"] = rated["rater_id"] == "rater-0"
    rated.loc[rated["rater_id"] == "rater-1", "source"] = "form.csv"
    supply = [Supply(transformation="t", language="de", ok=90, failed=10, unanswered=0)]
    told = text(material(demo, pairs, rated, supply=supply, decisions=[_excluded("rater-9")]))
    assert "4 pairs of an original and its transformed text" in told
    assert "1 to 2 for each of 3 transformations (paraphrasing, translation and cross-translation)" in told
    assert "The originals are in English and German, the transformed texts in English, French and Spanish." in told
    assert "Of 100 outputs, 10 (10.0%) failed and could not be drawn." in told
    assert "24 ratings count" in told  # 4 pairs, 3 raters, 2 questions
    assert "given by 2 people and 1 simulated rater, collected from Argilla and a CSV file" in told
    assert "the first 4 raters to submit count; 0 of 4 pairs have ratings from that many raters." in told
    assert "Translation and cross-translation are judged on their pooled ratings." in told
    assert "1 rater was excluded, with 0 ratings of the sample." in told


def test_how_many_answers_to_controls_were_off_is_told(demo: Study) -> None:
    """Answers that are off by 0, 1 and 2 points; one point is allowed."""
    controls = [pair(number).model_copy(update={"control": "negative"}) for number in (7, 8, 9)]
    right = load_rubric(demo).expected(controls[0].pool, "negative")["quality"]
    given = ratings(controls, [right, right + 1, right + 2], [5, 5, 5], raters=1)
    found = small(demo, controls=controls, control_ratings=given[given["question"] == "quality"])
    assert "1 of the 3 ratings of controls was off by more than 1 point." in text(found)


def test_several_looks_are_told(demo: Study) -> None:
    looks = [
        Look(at=datetime(2026, 2, day, tzinfo=UTC), n_ratings=n, rests_on={"ratings.parquet": str(n)}, decisions={})
        for day, n in ((1, 34), (3, 1200))
    ]
    assert "Verdicts were reached" not in text(small(demo, looks=looks[:1]))
    told = text(small(demo, looks=looks))
    assert (
        "reached 2 times, on different ratings or by different rules: first on 34 ratings (2026-02-01), last on" in told
    )
    assert "last on 1,200 (2026-02-03)." in told
    assert "do not apply to several" in told
    again = looks[0].model_copy(update={"at": datetime(2026, 2, 2, tzinfo=UTC), "decisions": {"accepted": 1}})
    told = text(small(demo, looks=[looks[0], again]))
    assert "2 times, on the same ratings by the same rules." in told
    assert "do not apply to several" not in told


def test_when_rules_were_fixed_is_told_and_how_often_they_changed(demo: Study) -> None:
    fixed = RuleSet(fixed_at=datetime(2025, 12, 1, tzinfo=UTC), rules=rules_now(CampaignRecords.open(demo)))
    later = [
        fixed.model_copy(update={"fixed_at": datetime(2026, 2, day, tzinfo=UTC), "reason": "why"}) for day in (1, 2)
    ]
    assert "rules were fixed" not in text(small(demo))
    told = text(small(demo, rules=[fixed]))
    assert "fixed on 2025-12-01 at 00:00 UTC, before the first rating" in told and "amended" not in told
    assert "The rules were amended 2 times after the first rating." in text(small(demo, rules=[fixed, *later]))


def test_the_generator_is_told_as_it_was(demo: Study) -> None:
    spec = ServerSpec(model="m", revision="r1", base_url="http://127.0.0.1:1/v1")
    study = demo.model_copy(update={"generator": spec})
    verdict = Verdict.model_construct(
        transformation="expansion", decision="accepted", review=Review(),
        origin=Origin(model="m", generator_hash=generator_hash(spec), prompt_hash="0123456789abcdef"),
    )  # fmt: skip
    told = text(small(study, verdicts=[verdict]))
    assert "The generator was m, revision r1 (temperature 0, top_p 1, up to 1,024 tokens)." in told
    assert "The hashes of the prompts begin with: expansion 01234567." in told
    other = study.model_copy(update={"generator": spec.model_copy(update={"revision": "r2"})})
    assert "The generator was m. " in text(small(other, verdicts=[verdict]))  # which revision, the records do not say


def test_tasks_of_people_come_from_data_sets_and_rules_are_told_in_words(demo: Study) -> None:
    rule = {"question": "quality", "at_least": 3}
    study = demo.model_copy(update={"acceptance": AcceptanceSpec.model_validate({"rules": [rule]})})
    verdict = Verdict.model_construct(
        transformation="intents", decision="accepted", review=Review(), origin=Origin(
            model="intents.csv", generator_kind="human", generator_hash="0123456789", prompt_hash=""
        ),
    )  # fmt: skip
    made = small(
        study, verdicts=[verdict], rules=[RuleSet(fixed_at=START, rules=rules_now(CampaignRecords.open(study)))]
    )
    assert "The items of Intents are from the data set intents.csv (revision, or hash of its file: 01234567)." in text(
        made
    )
    rules = rules_exhibit(made).frame.set_index("rule")["value"]
    assert rules["acceptance.rules"] == "mean quality at least 3"


def _excluded(rater: str) -> Decision:
    return Decision(rater_id=rater, exclude=True, reason="why", decided_at=START, signs=())
