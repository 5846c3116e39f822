"""Rules that were fixed before the ratings that tests write."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from annotation.campaign.records import CampaignRecords
from annotation.verdicts.preregistration import fix_rules
from plumbline.manifest import Manifest
from plumbline.study import Study


def fixed_in_2025(study: Study) -> None:
    """Fix the study's rules as though it had been done in 2025, before the ratings of 2026."""
    fix_rules(CampaignRecords(study))
    first = datetime(2025, 1, 1, tzinfo=UTC)
    rules = enumerate(CampaignRecords(study).rules)
    old = [one.model_copy(update={"fixed_at": first + timedelta(days=day)}) for day, one in rules]
    Manifest.of(study).write_models("rules.json", old)
