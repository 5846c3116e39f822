"""Which rules hold, since when, and what it takes to change them after the first rating."""

from __future__ import annotations

from typing import Any

import pytest

from annotation.campaign.records import CampaignRecords
from annotation.ratings.decisions import decide
from annotation.verdicts.acceptance import accept
from annotation.verdicts.preregistration import amendments, changes, first_rating, fix_rules, fixed_text
from plumbline.errors import DataError, StudyError
from plumbline.study import Study
from plumbline.study.campaign import AcceptanceSpec
from tests.annotation.ratings.test_review import rate
from tests.annotation.verdicts.fixed import fixed_in_2025
from tests.concluded import concluded


def with_threshold(study: Study, threshold: float) -> Study:
    return study.model_copy(update={"acceptance": AcceptanceSpec(threshold=threshold, min_pairs=1)})


def test_rules_may_change_before_the_first_rating_and_not_after(brief: Study) -> None:
    study = with_threshold(brief, 3.0)
    fix_rules(CampaignRecords(study))
    other = with_threshold(brief, 3.5)
    fix_rules(CampaignRecords(other))
    fix_rules(CampaignRecords(other))  # twice is once
    assert [one.rules["acceptance"]["threshold"] for one in CampaignRecords(other).rules] == [3.0, 3.5]

    fixed_in_2025(other)
    rate(brief)
    text = fixed_text(accept(other).evidence.rules, CampaignRecords(other).ratings)
    assert text.endswith("before the first rating (2026-01-02, 00:00 UTC).")
    lower = with_threshold(brief, 2.5)
    with pytest.raises(StudyError, match=r"first rating \(2026-01-02 00:00 UTC\): acceptance.threshold 3.5, now 2.5;"):
        accept(lower)
    assert concluded(other).verdicts[0].result.threshold == 3.5
    accept(lower, "the pilot showed\nthat 3 is too strict")
    assert concluded(lower).verdicts[0].result.threshold == 2.5
    ((amended, what),) = amendments(CampaignRecords(lower).rules, first_rating(CampaignRecords(lower).ratings))
    assert amended.reason == "the pilot showed that 3 is too strict"
    assert what == ["acceptance.threshold 3.5, now 2.5"]
    accept(lower)  # the reason is asked for once
    with pytest.raises(StudyError, match="--amend: leave it out"):
        accept(lower, "again")
    with pytest.raises(StudyError, match="--amend: say why the rules changed"):
        accept(with_threshold(brief, 2.0), " ")
    more = lower.model_copy(update={"raters": lower.raters.model_copy(update={"per_pair": 3})})
    with pytest.raises(StudyError, match=r"raters.per_pair 4, now 3; undo this, or give the new study another name"):
        accept(more, "there are no more raters")


def test_each_changed_rule_is_told_in_words_and_a_changed_order_is_a_change() -> None:
    quality = {"question": "quality", "at_least": 3}
    polite, most = {"question": "tone", "label": "polite", "at_least": 0.9}, {"question": "quality", "at_most": 4}

    def rules(*some: dict[str, Any]) -> dict[str, Any]:
        return {"acceptance": AcceptanceSpec(rules=some, min_pairs=1).model_dump(mode="json")}

    lower = {**quality, "at_least": 2.5, "pools": ["negation"]}
    assert changes(rules(quality, polite), rules({**quality, "at_least": 2.5}, most)) == [
        "acceptance.rules: mean quality at least 3, now mean quality at least 2.5",
        "acceptance.rules: share of polite in tone at least 0.9 is gone",
        "acceptance.rules: mean quality at most 4 is new",
    ]
    assert len(changes(rules(quality), rules(lower))) == 2
    assert len(changes(rules(quality, polite), rules(polite, quality))) == 1
    assert changes(rules(quality), rules(quality)) == []


def test_a_change_while_ratings_waited_on_the_server_needs_its_reason_too(brief: Study) -> None:
    """The rules were changed and published again when nobody had collected the ratings yet."""
    study = with_threshold(brief, 2.5)
    fixed_in_2025(with_threshold(brief, 3.0))
    fix_rules(CampaignRecords(study))  # in 2026, after the ratings of January
    rate(brief)
    with pytest.raises(StudyError, match=r"acceptance.threshold 3.0, now 2.5"):
        accept(study)
    accept(study, "said so beforehand")
    ((_, what),) = amendments(CampaignRecords(study).rules, first_rating(CampaignRecords(study).ratings))
    assert what == ["acceptance.threshold 3.0, now 2.5"]
    accept(study)


def test_a_command_that_cannot_work_fixes_nothing(brief: Study) -> None:
    with pytest.raises(DataError, match=r"pairs\.parquet does not exist yet"):
        accept(brief)
    assert CampaignRecords(brief).rules == []


def test_a_damaged_proof_is_not_to_be_deleted(brief: Study) -> None:
    fix_rules(CampaignRecords(brief))
    (brief.folder / "rules.json").write_text("[{]", encoding="utf-8")
    with pytest.raises(DataError, match="restore it from a copy"):
        assert CampaignRecords(brief).rules


def test_each_look_at_other_ratings_or_by_other_rules_is_remembered(brief: Study) -> None:
    rate(brief)
    study = with_threshold(brief, 3.0)
    groups = accept(study).groups  # of ratings from a file: nothing was published
    records = CampaignRecords(study)
    assert "AFTER the first rating (2026-01-02, 00:00 UTC)" in fixed_text(records.rules, records.ratings)
    assert amendments(records.rules, None) == []
    accept(study)  # the same again is no new look
    (look,) = CampaignRecords(study).looks
    assert look.n_ratings == groups[-1].questions[0].n_ratings * 2
    assert sum(look.decisions.values()) == len(concluded(study).verdicts)
    decide(study, "a", exclude=True, reason="fails controls")
    accept(study)
    assert [one.n_ratings for one in CampaignRecords(study).looks] == [look.n_ratings, look.n_ratings * 2 // 3]
