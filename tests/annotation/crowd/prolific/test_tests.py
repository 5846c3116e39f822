"""A batch in Prolific's own test mode: published once whatever breaks, gone through, approved, and counted nowhere."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from annotation.campaign.offering import LEDGER, offered
from annotation.campaign.records import CampaignRecords
from annotation.crowd import judging
from annotation.crowd.campaign import CrowdCampaign
from annotation.crowd.collecting import collect
from annotation.crowd.ledger import Ledger
from annotation.crowd.summary import read_summaries, summary_text
from annotation.questions.question import Value
from annotation.sampling.sample import draw_sample
from annotation.status.status import read_status
from annotation.verdicts.evidence import Evidence
from plumbline.errors import DataError, PlumblineError
from plumbline.study import Study
from tests.annotation.campaigns import Make
from tests.annotation.crowd import campaigns
from tests.annotation.crowd.campaigns import CROWD, Crash, drawn, honest, launch
from tests.annotation.crowd.prolific.prolific_site import PlaceError, Site, prolific_site

EMAIL = "lab+tester@example.org"
CALLS = ("create_group", "create_study", "test_study", "create_tester", "transition_submission")


@pytest.fixture
def site() -> Iterator[Site]:
    with prolific_site() as running:
        yield running


def rates(study: Study) -> Callable[[], Callable[[str], Mapping[str, Value]]]:
    good = honest(study)
    return lambda: lambda pair_id: {name: good(pair_id, name) for name in ("quality", "fluency")}


def step(study: Study, site: Site, what: Callable[[CrowdCampaign], object]) -> None:
    campaigns.step(study, site, what, "test", limit=0)


def offer(campaign: CrowdCampaign) -> None:
    campaign.do("tester", EMAIL)
    campaign.launch(0, lambda: None)


def go(study: Study, site: Site) -> str:
    """A test from its launch to the approval; the participant's submission."""
    step(study, site, offer)
    (key,) = [key for key, posted in site.studies.items() if posted.get("test")]
    with pytest.raises(PlaceError):
        site.join(key, "9" * 24)  # nobody else sees it
    tester = site.testers[EMAIL]
    submission, _ = campaigns.rate_on_prolific(study, site, key, tester, rates(study), "test")
    step(study, site, collect)
    step(study, site, judging.approve_all)
    return submission


def test_a_test_is_gone_through_and_counts_nowhere(variant: Make, site: Site) -> None:
    study = drawn(variant, crowd=CROWD | {"address": "https://argilla.example.org"})
    submission, balance = go(study, site), 10_000_00
    assert site.submissions[submission]["status"] == "APPROVED"
    assert site.balance == balance and not any(site.paid.values())
    step(study, site, judging.pay_bonuses)
    assert not any(site.paid.values())
    records = CampaignRecords(study)
    assert not len(records.all_ratings) and not offered(records) and not records.decided
    (told,) = read_summaries(Evidence(study))
    assert (told.mode, told.spent, told.planned, told.rewards, told.bonuses) == ("test", 0, 0, 0, 0)
    assert "[test prolific] money: none, as this is a test; its answers count nowhere" in summary_text(told)
    status = read_status(Evidence(study), datetime.now(UTC))
    assert status.stages["published"].state == status.stages["collected"].state == "not yet"
    with Ledger(study.scratch / LEDGER, study.name, "prolific", "test") as ledger:
        (work,) = ledger.work()
        assert work.pseudonym.startswith("test-worker-") and work.answered and not work.trouble
        assert "no" not in judging.sheet_text(records, ledger, submission).split("\n")[0]
    assert launch(study, site).posted == 1  # a share of .5 of three batches: what a study without a test offers first
    with Ledger(study.scratch / LEDGER, study.name, "prolific", "live") as ledger:
        assert len(ledger.offered()) == 3 and not ledger.work() and ledger.spent() > 0


def test_after_a_test_another_sample_may_be_drawn_and_the_way_out_is_said(variant: Make, site: Site) -> None:
    study = drawn(variant, crowd=CROWD | {"address": "https://argilla.example.org"})
    step(study, site, offer)
    other = study.model_copy(update={"sample": study.sample.model_copy(update={"seed": 5})})
    draw_sample(other)
    with pytest.raises(DataError, match="end it with `plumbline crowd close --forget --platform prolific --test"):
        step(other, site, offer)
    assert launch(other, site).posted == 1


def test_a_test_that_prolific_has_not_enabled_is_refused_in_words(variant: Make, site: Site) -> None:
    study = drawn(variant, crowd=CROWD | {"address": "https://argilla.example.org"})
    step(study, site, _refused)
    assert not [posted for posted in site.studies.values() if posted["status"] != "UNPUBLISHED"]


def _refused(campaign: CrowdCampaign) -> None:
    with pytest.raises(PlumblineError, match="a test needs a test participant"):
        campaign.launch(0, lambda: None)


@pytest.mark.parametrize("seed", range(4))
def test_a_test_is_published_once_whatever_breaks(variant: Make, tmp_path: Path, seed: int) -> None:
    """Calls of every kind break off before and after their effect, also where a test lacks its draft's own name."""
    chance, left = random.Random(seed), {(call, moment) for call in CALLS for moment in ("before", "after")}
    study = drawn(variant, crowd=CROWD | {"address": "https://argilla.example.org"})

    def fault(operation: str, moment: str) -> str:
        if (operation, moment) not in left or chance.random() < 0.3:
            return ""
        left.discard((operation, moment))
        return chance.choice(["500", "429", "drop"])

    with prolific_site() as site:
        site.fault, site.test_internal_name = fault, bool(seed % 2)

        def again(what: Callable[[CrowdCampaign], object]) -> None:
            for _ in range(12):
                try:
                    step(study, site, what)
                except (PlumblineError, Crash):
                    continue
                return
            raise AssertionError("it never ended")

        again(offer_any)
        (key,) = [key for key, posted in site.studies.items() if posted.get("test")]
        campaigns.rate_on_prolific(study, site, key, site.testers[EMAIL], rates(study), "test")
        again(collect)
        again(judging.approve_all)
        site.fault = lambda operation, moment: ""
        step(study, site, judging.approve_all)
        assert [one["status"] for one in site.submissions.values()] == ["APPROVED"] and not any(site.paid.values())


def offer_any(campaign: CrowdCampaign) -> None:
    """As `offer`; a tester whose first call took effect is refused at the second."""
    try:
        campaign.do("tester", EMAIL)
    except PlumblineError as error:
        if "already registered" not in str(error):
            raise
    campaign.launch(0, lambda: None)
