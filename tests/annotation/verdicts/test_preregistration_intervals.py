"""Rules that an earlier version fixed keep that version's intervals, so that its verdicts hold."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from annotation.records import RuleSet
from annotation.rubric import load_rubric
from annotation.statistics.summaries import Design
from annotation.verdicts.evidence import design_under
from annotation.verdicts.preregistration import rules_of
from plumbline.study import load_study
from tests.conftest import DEMO


@pytest.mark.parametrize("earlier", [True, False])
def test_only_rules_of_this_version_have_bounded_intervals(earlier: bool) -> None:
    study = load_study(DEMO)
    rubric = load_rubric(study)
    rules = rules_of(study, rubric)
    if earlier:
        rules["quality"] = {
            name: rules["quality"][name] for name in rules["quality"] if name not in ("attentive", "failing")
        }
    fixed = [RuleSet(fixed_at=datetime(2026, 1, 1, tzinfo=UTC), rules=rules)]
    assert design_under(fixed, None, Design.of(study, rubric)).bounded is not earlier
    assert design_under((), None, Design.of(study, rubric)).bounded
