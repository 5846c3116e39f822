"""The shipped crowd's workers on the sites of the protocols: they give up, rate and are paid as in a rehearsal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import pytest

from annotation.argilla.simulate import answering
from annotation.campaign_records import CampaignRecords
from annotation.crowd import judging
from annotation.crowd.collecting import collect
from annotation.crowd.ledger import Ledger
from annotation.crowd.rehearsal import MadeUpWorker, worker_of
from annotation.names import worker_pseudonym
from annotation.offering import LEDGER
from annotation.questions import Value
from annotation.rubric import load_rubric
from plumbline.study import Study
from tests.annotation.campaigns import Make
from tests.annotation.crowd.campaigns import CROWD, KEY, drawn, rate_on_prolific, step
from tests.annotation.crowd.mturk.mturk_site import MTurkSite
from tests.annotation.crowd.prolific.prolific_site import Site, prolific_site

Felt = Callable[[MadeUpWorker, str], Mapping[str, Value]]
GAVE_UP = 0.15  # workers who would give up as often as this do


@pytest.fixture(params=[MTurkSite, prolific_site], ids=["mturk", "prolific"])
def site(request: pytest.FixtureRequest) -> Iterator[MTurkSite | Site]:
    with request.param() as opened:
        yield opened


def on_mturk(site: MTurkSite, worker: MadeUpWorker, pid: str, felt: Felt) -> int:
    """Take the first HIT with a place free, and submit it; returned work is none to MTurk's requesters."""
    for key, hit in site.hits.items():
        if sum(work.hit is hit for work in site.assignments.values()) < hit.places and worker.gives_up < GAVE_UP:
            fields = site.fields(key, lambda pair_id, question: int(str(felt(worker, pair_id)[question])))
            site.work(key, pid, fields, seconds=390 * worker.speed)
            return 1
    return 0


def on_prolific(site: Site, study: Study, worker: MadeUpWorker, pid: str, felt: Felt) -> int:
    """Join the first study with a place free, and submit it or give it back."""
    for key, posted in site.studies.items():
        if posted["status"] == "ACTIVE" and site.taken(key) < posted["total_available_places"]:
            if worker.gives_up >= GAVE_UP:
                site.leave(site.join(key, pid), "RETURNED")
                return 0
            rate_on_prolific(study, site, key, pid, lambda: partial(felt, worker))
            return 1
    return 0


def test_the_rehearsals_workers_answer_alike_through_each_protocol(variant: Make, site: MTurkSite | Site) -> None:
    platform = "mturk" if isinstance(site, MTurkSite) else "prolific"
    address = {"address": "https://argilla.example.org", "fee": 0.25} if platform == "prolific" else {}
    study = drawn(variant, name=f"made-up-{platform}", crowd={**CROWD, "share": 1.0, **address})
    simulated = answering(study, load_rubric(study), CampaignRecords.open(study).shown, draws=True)
    workers = [worker_of(study.raters.simulation_seed, number) for number in range(60)]
    people = {
        worker: (f"A{number:013d}" if platform == "mturk" else f"{number + 1:024x}")
        for number, worker in enumerate(workers)
    }

    def felt(worker: MadeUpWorker, pair_id: str) -> Mapping[str, Value]:
        return simulated(worker.rater, pair_id)

    works, coming = 0, iter(people.items())
    for _ in range(12):
        step(study, site, lambda campaign: campaign.launch())
        for worker, pid in (next(coming) for _ in range(4)):
            works += (
                on_mturk(site, worker, pid, felt)
                if isinstance(site, MTurkSite)
                else on_prolific(site, study, worker, pid, felt)
            )
        step(study, site, collect)
        step(study, site, judging.approve_all)
    ratings = CampaignRecords.open(study).all_ratings
    names = {worker_pseudonym(KEY, study.name, platform, pid): worker for worker, pid in people.items()}
    assert works == 6 and ratings.groupby("pair_id")["rater_id"].nunique().eq(2).all()  # 3 batches by 2 workers each
    assert any(worker.gives_up >= GAVE_UP for worker in workers[: works * 2]) and not ratings["simulated"].any()
    for row in ratings.itertuples():
        assert row.value == felt(names[row.rater_id], row.pair_id)[row.question]
    with Ledger(study.scratch / LEDGER, study.name, platform, "live") as ledger:
        states = {work.submission.state for work in ledger.work()}
    assert states <= {"approved", "submitted", "returned"} and "approved" in states
