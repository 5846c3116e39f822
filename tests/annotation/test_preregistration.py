"""Which rules hold, since when, and what it takes to change them after the first rating."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from annotation.preregistration import amendments, changes, first_rating, fix_rules, fixed_text, read_rules, rules_of
from annotation.ratings import read_ratings
from annotation.verdicts import accept, read_verdicts
from generation.exceptions import StudyError
from generation.store import write_json
from generation.study import AcceptanceSpec, Study
from tests.annotation.test_review import rate


def with_threshold(study: Study, threshold: float) -> Study:
    return study.model_copy(update={"acceptance": AcceptanceSpec(threshold=threshold, min_pairs=1)})


def test_rules_may_change_before_the_first_rating_and_not_after(generated: Study) -> None:
    study = with_threshold(generated, 3.0)
    fix_rules(study)
    other = with_threshold(generated, 3.5)
    assert fix_rules(other) == fix_rules(other) == read_rules(other)[-1]  # twice is once
    assert [one.rules["acceptance"]["threshold"] for one in read_rules(other)] == [3.0, 3.5]

    rate(generated)
    _fixed_long_ago(other)
    assert accept(other) and fixed_text(read_rules(other), first_rating(read_ratings(other))).endswith(
        "before the first rating (2026-01-02, 00:00 UTC)."
    )
    lower = with_threshold(generated, 2.5)
    with pytest.raises(StudyError, match=r"first rating \(2026-01-02 00:00 UTC\): acceptance.threshold 3.5, now 2.5;"):
        accept(lower)
    assert read_verdicts(other)[0].threshold == 3.5
    accept(lower, "the pilot showed\nthat 3 is too strict")
    assert read_verdicts(lower)[0].threshold == 2.5
    ((amended, what),) = amendments(read_rules(lower), first_rating(read_ratings(lower)))
    assert amended.reason == "the pilot showed that 3 is too strict"
    assert what == ["acceptance.threshold 3.5, now 2.5"]
    accept(lower)  # the reason is asked for once
    with pytest.raises(StudyError, match="leave --amend out"):
        accept(lower, "again")


def test_a_change_while_ratings_waited_on_the_server_needs_its_reason_too(generated: Study) -> None:
    """The rules were changed and published again when nobody had collected the ratings yet."""
    study = with_threshold(generated, 2.5)
    fix_rules(with_threshold(generated, 3.0))
    _fixed_long_ago(study)
    fix_rules(study)  # in 2026, after the ratings of January
    rate(generated)
    with pytest.raises(StudyError, match=r"acceptance.threshold 3.0, now 2.5"):
        accept(study)
    accept(study, "said so beforehand")
    ((_, what),) = amendments(read_rules(study), first_rating(read_ratings(study)))
    assert what == ["acceptance.threshold 3.0, now 2.5"]
    accept(study)


def test_rules_that_were_fixed_too_late_are_called_so(generated: Study) -> None:
    rate(generated)
    accept(with_threshold(generated, 3.0))  # ratings that came from a file: nothing was published
    text = fixed_text(read_rules(generated), first_rating(read_ratings(generated)))
    assert "AFTER the first rating (2026-01-02, 00:00 UTC)" in text
    assert amendments(read_rules(generated), None) == []


def test_changes_name_what_stands_in_the_study_file(generated: Study) -> None:
    before = rules_of(with_threshold(generated, 3.0))
    assert changes(before, before) == []
    assert changes(before, {**before, "raters": {"per_pair": 6}}) == ["raters.per_pair 4, now 6"]


def _fixed_long_ago(study: Study) -> None:
    """As though all rules so far had been fixed in 2025, before the ratings of 2026 that the test writes."""
    old = [
        one.model_copy(update={"fixed_at": datetime(2025, 1, 1, tzinfo=UTC) + timedelta(days=day)})
        for day, one in enumerate(read_rules(study))
    ]
    write_json(study.folder / "rules.json", old)
