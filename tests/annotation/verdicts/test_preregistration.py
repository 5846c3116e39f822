"""Which rules hold, since when, and what it takes to change them after the first rating."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from annotation import server
from annotation.campaign.offering import begin_offering
from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import load_rubric
from annotation.csv_answers import collect_csv
from annotation.export import export
from annotation.ratings.decisions import decide
from annotation.records import RuleSet
from annotation.report.page import write_report
from annotation.sampling.sample import draw_sample
from annotation.status.status import read_status
from annotation.status.text import headline
from annotation.verdicts.acceptance import Acceptance, accept
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.preregistration import amendments, changes, first_rating, fix_rules, fixed_text, rules_fixed
from annotation.verdicts.rules import late_lines, marks_of
from annotation.verdicts.tables import verdict_table, verdict_text
from plumbline.errors import DataError, StudyError
from plumbline.study import Study
from plumbline.study.campaign import AcceptanceSpec
from tests.annotation.ratings.test_review import rate
from tests.annotation.verdicts.fixed import fixed_in_2025
from tests.concluded import concluded
from tests.conftest import make_variant
from tests.shared import generate_once


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


pytestmark = pytest.mark.usefixtures("undrawn")

Make = Callable[..., Study]
COLUMNS = {name: name for name in ("pair", "rater", "quality", "fluency")}
NOW = datetime(2026, 11, 23, tzinfo=UTC)


def made(variant: Make, name: str, threshold: float = 3) -> Study:
    rules = {"raters": {"per_pair": 3}, "acceptance": {"min_pairs": 5, "threshold": threshold}}
    study = variant(name=name, transformations=["paraphrasing"], sample={"pairs": 8}, **rules)
    generate_once(study)
    return study


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The exported answers of a study whose transformation was rejected; not to be written to."""
    study = made(make_variant(tmp_path_factory.mktemp("first")), "first", 4.5)
    rate(study)
    fixed_in_2025(study)
    assert {verdict.decision for verdict in accept(study).verdicts} == {"rejected"}
    return export(study) / "answers.csv"


@pytest.fixture
def taken_in(variant: Make, tmp_path: Path, answers: Path) -> Callable[..., Study]:
    return functools.partial(take_in, variant, tmp_path / "home", answers)


def take_in(variant: Make, home: Path, answers: Path, columns: dict[str, str], *, offered: bool) -> Study:
    second = made(variant, "second", 1.5)
    draw_sample(second)
    if offered:
        fix_rules(CampaignRecords(second))
        begin_offering(CampaignRecords(second), "argilla", load_rubric(second))
    copied = shutil.copyfile(answers, home.with_name("answers.csv"))  # its age is that of its answers
    collect_csv(second, server.Home(home), copied, columns)
    return second


def says(done: Acceptance, rules: str, words: str, *, report: bool = False) -> None:
    assert {one.decision for one in done.verdicts} == {"accepted"}
    assert {one.rules_fixed for one in done.verdicts} == {rules} and words in done.doubts[0]
    (line,) = late_lines(done.verdicts)
    assert line in verdict_text(done.verdicts) and set(verdict_table(done.verdicts)["rules_fixed"]) == {rules}
    assert marks_of(done.verdicts) == {"simulated": False, "rules_fixed": rules}
    study = done.evidence.study
    assert words in headline(read_status(Evidence(study), NOW), done.verdicts)[1]
    if report:
        page = write_report(study)[0].read_text(encoding="utf-8")
        assert page.index(line) < page.index("In short") and words in page


@pytest.mark.parametrize("timed", [True, False])
def test_exported_answers_under_a_new_name_and_a_lower_threshold_are_doubtful(
    taken_in: Callable[..., Study], timed: bool
) -> None:
    columns = {**COLUMNS, "time": "time"} if timed else COLUMNS
    second = taken_in(columns, offered=False)
    says(accept(second), "late", "after the first rating", report=timed)


def test_ratings_imported_after_the_rules_into_a_campaign_that_never_offered_them_are_late(
    taken_in: Callable[..., Study],
) -> None:
    """Who fixes rules first and imports then, with times from the future of those rules, is no better."""
    second = taken_in({**COLUMNS, "time": "time"}, offered=False)
    fixed_in_2025(second)
    says(accept(second), "late", "ratings were imported from files into a campaign that never offered the sample")


def test_without_times_nobody_can_know(taken_in: Callable[..., Study]) -> None:
    second = taken_in(COLUMNS, offered=True)
    says(accept(second), "unknown", "from a file without times, and may be older than the rules", report=True)
    records = CampaignRecords(second)
    told = fixed_text(records.rules, records.all_ratings)
    assert told.endswith("UTC; ratings from files without times may be older.")


def test_a_form_with_times_beside_the_same_campaign_is_as_good_as_the_server(taken_in: Callable[..., Study]) -> None:
    study = taken_in({**COLUMNS, "time": "time"}, offered=True)
    fixed_in_2025(study)
    answers = CampaignRecords(study).all_ratings
    spread = answers["submitted_at"] + pd.to_timedelta(range(len(answers)), unit="s")
    fixed = Evidence.read(study).rules
    assert rules_fixed(fixed, answers.assign(submitted_at=spread), offered=True) == ("", "")
    assert rules_fixed(fixed, answers.assign(submitted_at=spread), offered=False)[0] == "late"
    assert rules_fixed(fixed, answers.assign(source="argilla"), offered=False) == ("", "")
    assert rules_fixed(fixed, answers.assign(source="mturk sandbox"), offered=False) == ("", "")


def test_an_amendment_is_late_and_one_taken_back_is_not(brief: Study) -> None:
    rate(brief)
    ratings, rules = CampaignRecords(brief).all_ratings, {"acceptance": brief.acceptance.model_dump(mode="json")}
    lower = {"acceptance": {**rules["acceptance"], "threshold": 2.0}}

    def fixed(*sets: tuple[int, dict[str, object], str]) -> str:
        every = [RuleSet(fixed_at=datetime(year, 6, 1, tzinfo=UTC), rules=one, reason=why) for year, one, why in sets]
        return rules_fixed(every, ratings, offered=True)[0]

    assert fixed((2025, rules, "")) == ""
    assert fixed((2025, rules, ""), (2026, lower, "kinder")) == "late"
    assert fixed((2025, rules, ""), (2026, lower, "kinder"), (2027, rules, "not kinder")) == ""
    assert fixed((2026, rules, "")) == "late" and fixed() == ""
    assert rules_fixed([], ratings.iloc[:0], offered=True) == ("", "")


def test_a_file_cannot_pass_for_a_campaign(variant: Make, tmp_path: Path) -> None:
    study = made(variant, "first")
    draw_sample(study)
    for name in ("argilla", "mturk", "prolific sandbox"):
        path = tmp_path / name
        path.write_text("pair,rater,quality,fluency\n", encoding="utf-8")
        with pytest.raises(DataError, match="is reserved for a campaign's own ratings; rename the file"):
            collect_csv(study, server.Home(tmp_path / "home"), path, COLUMNS)
        path.unlink()


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


def test_a_command_that_cannot_work_fixes_nothing(brief: Study) -> None:
    with pytest.raises(DataError, match=r"pairs\.parquet does not exist yet"):
        accept(brief)
    assert CampaignRecords(brief).rules == []
