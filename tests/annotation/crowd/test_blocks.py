"""Crowd workers by blocks: a batch is of the open block, the next comes after the look, and no cent is paid twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from annotation.campaign.offering import LEDGER, CampaignName
from annotation.campaign.records import CampaignRecords
from annotation.crowd import judging
from annotation.crowd.campaign import CrowdCampaign
from annotation.crowd.collecting import collect
from annotation.crowd.ledger import Ledger
from annotation.crowd.mturk.adapter import MTurk
from annotation.crowd.platform import Platform
from annotation.crowd.summary import plan_text
from annotation.sampling.queues import block_numbers
from annotation.verdicts.acceptance import accept
from annotation.verdicts.evidence import Evidence
from plumbline.study import Study
from tests.annotation.campaigns import Make
from tests.annotation.crowd.campaigns import CROWD, drawn, honest, rate_on_prolific, run, step
from tests.annotation.crowd.mturk.mturk_site import MTurkSite
from tests.annotation.crowd.prolific.prolific_site import prolific_site
from tests.annotation.sampling.test_queues import RULE


@pytest.fixture
def study(variant: Make) -> Study:
    """Three blocks of eight paraphrases, a batch each."""
    return drawn(
        variant,
        sample={"pairs": 24, "batch": 8, "repeats": 0},
        raters={"per_pair": 2, "blocks": [8, 16, 24]},
        acceptance=RULE,
        crowd=CROWD | {"share": 1.0, "address": "https://argilla.example.org"},
    )


def launch(campaign: CrowdCampaign) -> None:
    campaign.launch()


def rate(study: Study, site: MTurkSite) -> None:
    """Two workers rate all that is open; their answers are collected and paid."""
    for number, hit in enumerate(list(site.hits)):
        for worker in ("A", "B"):
            if sum(given.hit is site.hits[hit] for given in site.assignments.values()) < 2:
                site.work(hit, f"{worker}{number}", site.fields(hit, honest(study)), 600)
    step(study, site, collect)
    step(study, site, judging.approve_all)


def offered_blocks(study: Study) -> list[set[int]]:
    """The blocks of each batch's pairs; controls that are left of an earlier block are in a later one's batch."""
    numbers = block_numbers(study, CampaignRecords(study).pairs)
    with Ledger(study.scratch / LEDGER, study.name, "mturk", "live") as ledger:
        return [{numbers[pair_id] for pair_id in {*offer.batch.pair_ids} & {*numbers}} for offer in ledger.offered()]


def test_the_next_batch_is_the_next_block_until_a_look_decides(study: Study, site: MTurkSite) -> None:
    step(study, site, launch)
    step(study, site, launch)  # nothing was rated: nothing more is offered
    assert offered_blocks(study) == [{0}]
    assert "no pairs are left to be offered" in plan_text(Evidence(study), CampaignName("mturk", "live"))
    assert "which offers the next block only for what is undecided" in plan_text(
        Evidence(study), CampaignName("mturk", "live")
    )
    for expected in ([{0}, {1}], [{0}, {1}]):  # the second look decides
        rate(study, site)
        step(study, site, launch)
        assert offered_blocks(study) == expected
    (verdict,) = accept(study).verdicts
    assert (verdict.decision, verdict.n_pairs) == ("accepted", 16)
    with Ledger(study.scratch / LEDGER, study.name, "mturk", "live") as ledger:
        assert ledger.spent() == site.balance - site.available


def test_a_prolific_study_is_the_next_block_until_a_look_decides(study: Study) -> None:
    rating = honest(study)

    def rates() -> Callable[[str], dict[str, int]]:
        return lambda pair_id: {name: rating(pair_id, name) for name in ("quality", "fluency")}

    with prolific_site() as prolific:
        for number, batches in enumerate([1, 2, 2]):
            step(study, prolific, launch)
            step(study, prolific, launch)  # nothing new was rated: nothing more is offered
            assert len(prolific.studies) == batches
            for key in list(prolific.studies)[number:]:
                for person in range(2):
                    rate_on_prolific(study, prolific, key, f"{2 * number + person + 1:024x}", rates)
            step(study, prolific, collect)
            step(study, prolific, judging.approve_all)
    (verdict,) = accept(study).verdicts
    assert (verdict.decision, verdict.n_pairs) == ("accepted", 16)
    assert len(prolific.paid) == 4 and all(len(cents) == 1 for cents in prolific.paid.values())


def test_killed_before_the_next_block_it_is_offered_and_paid_once(study: Study, site: MTurkSite) -> None:
    """And killed again further on, each time that it is given again."""
    step(study, site, launch)
    rate(study, site)
    once = site.balance - site.available

    def platform() -> Platform:
        return MTurk(study, "live", client=site.client())

    for place in ("before add_batches", "after add_batches", "before post", "after post"):
        assert not run(study, platform, launch, 10**6, lambda at, place=place: at == place)  # type: ignore[misc]
    step(study, site, launch)
    step(study, site, launch)
    assert len(site.hits) == 2 and offered_blocks(study) == [{0}, {1}]
    rate(study, site)
    step(study, site, launch)
    assert len(site.hits) == 2 and site.balance - site.available == 2 * once


def test_no_block_is_offered_beyond_the_limit(study: Study, site: MTurkSite) -> None:
    step(study, site, launch)
    rate(study, site)
    spent, stopped = site.balance - site.available, list[str]()
    step(study, site, lambda campaign: stopped.append(campaign.launch().stopped), limit=spent)
    assert "the limit is" in stopped[0] and len(site.hits) == 1
