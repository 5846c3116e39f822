"""The bill: what a campaign says that it costs is what its platform takes, to the cent, whatever workers do."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pytest

from annotation.campaign.names import worker_pseudonym
from annotation.campaign.offering import begin_offering
from annotation.campaign.records import CampaignRecords
from annotation.commands.planning import PlanOptions, plan_text
from annotation.crowd import judging, summary
from annotation.crowd.campaign import CrowdCampaign
from annotation.crowd.collecting import collect
from annotation.crowd.link import LinkPlatform
from annotation.crowd.mturk.adapter import MTurk
from annotation.crowd.places import BatchPlaces
from annotation.crowd.platform import Offer, Platform
from annotation.crowd.prolific.adapter import Prolific
from annotation.crowd.prolific.workspaces import Progress
from annotation.crowd.summary import CrowdSummary, read_summaries
from annotation.ratings.answers import Answer
from annotation.ratings.decisions import decide, withdraw
from annotation.report.exhibits import asked_exhibit
from annotation.report.material import campaign_material
from annotation.status.status import read_status
from annotation.status.text import status_text
from annotation.verdicts.evidence import Evidence
from plumbline.study import Study
from tests.annotation.campaigns import Make
from tests.annotation.crowd.campaigns import KEY, careless, honest, run
from tests.annotation.crowd.mturk.mturk_site import MTurkSite
from tests.annotation.crowd.prolific.prolific_site import FakeRooms, prolific_site
from tests.annotation.crowd.test_one_count import printed
from tests.commands import here
from tests.shared import generate_once

Rate = Callable[[str, str], int]
ADDRESS = "https://argilla.example.org"


class Market:
    """A platform's account, and its workers."""

    crowd: ClassVar[dict[str, Any]]  #: the study's settings for it
    reserves = True  #: whether `cents` has open places too

    def __init__(self, study: Study, ends: ExitStack) -> None:
        self.study, self.ends = study, ends

    def platform(self) -> Platform:
        """The platform, as a command opens it."""
        raise NotImplementedError

    def work(self, offer: Offer, posted: str, worker: str, rate: Rate, seconds: int) -> str:
        """A worker does a batch; the submission's id."""
        raise NotImplementedError

    def leave(self, offer: Offer, posted: str, worker: str) -> None:
        """A worker begins a batch and gives up."""
        raise NotImplementedError

    def come_back(self, offer: Offer, posted: str, worker: str) -> None:
        """A worker who left does the batch after all."""
        self.work(offer, posted, worker, honest(self.study), 400)

    @property
    def cents(self) -> int:
        """What the platform took, with its fees."""
        raise NotImplementedError

    def step(self, what: Callable[[CrowdCampaign], object]) -> None:
        """One command."""
        assert run(self.study, self.platform, what, 10**6)

    def launch(self, pilot: int = 0) -> None:
        self.step(
            lambda campaign: campaign.launch(
                pilot, lambda: begin_offering(campaign.records, str(campaign.name), campaign.rubric)
            )
        )

    def offers(self) -> list[tuple[Offer, str]]:
        """The batches that are offered, with the platform's ids."""
        offers = list[tuple[Offer, str]]()
        self.step(
            lambda campaign: offers.extend((campaign.offer(key), id_) for key, id_ in campaign.posted_ids().items())
        )
        return offers

    def places(self) -> Iterator[tuple[Offer, str, int]]:
        """Yield the batches with the workers who are still to come."""
        places = dict[str, BatchPlaces]()
        self.step(lambda campaign: places.update(campaign.places()))
        yield from ((offer, id_, places[offer.batch.batch_id].workers_to_come) for offer, id_ in self.offers())

    def collect(self) -> None:
        """Collect what workers did, and pay what nothing speaks against."""
        self.step(collect)
        self.step(judging.approve_all)

    def bill(self) -> CrowdSummary:
        (bill,) = read_summaries(Evidence(self.study))
        assert bill.spent == sum(bill.spent_on.values()) and (bill.spent == self.cents or not self.reserves)
        return bill

    def counts(self) -> Iterator[tuple[int, ...]]:
        """Yield pairs, answers to pairs, answers and cents as each command and page has them."""
        study = self.study
        yield printed(plan_text(study, PlanOptions(campaigns=1, pairs=(study.sample.pairs,), raters=(2,))))[-1]
        yield printed(status_text(read_status(Evidence(study), datetime.now(UTC)), more=True))[-1]
        yield printed(summary.plan_text(Evidence(study), self.platform().campaign))[-1]
        asked_for = campaign_material(Evidence(study)).asked_for
        assert asked_for is not None
        everything = asked_exhibit(asked_for).frame.iloc[-1]
        yield tuple(map(int, everything[["pairs", "answers_to_pairs", "answers", "cents"]]))


def answered(offer: Offer, rate: Rate, at: datetime) -> list[Answer]:
    names = ("quality", "fluency")
    return [
        Answer(
            pair_id=pair.pair_id,
            values={name: rate(pair.pair_id, name) for name in names},
            submitted_at=at.isoformat(),
            seconds=9.0,
        )
        for pair in offer.pairs
    ]


class OnMTurk(Market):
    """MTurk takes a fifth of each reward and bonus, and reserves the money of open places."""

    crowd: ClassVar[dict[str, Any]] = {"platform": "mturk"}

    def __init__(self, study: Study, ends: ExitStack) -> None:
        super().__init__(study, ends)
        self.site = ends.enter_context(MTurkSite())

    def platform(self) -> Platform:
        return MTurk(self.study, "live", client=self.site.client())

    def work(self, offer: Offer, posted: str, worker: str, rate: Rate, seconds: int) -> str:
        return self.site.work(posted, worker, self.site.fields(posted, rate), seconds)

    def leave(self, offer: Offer, posted: str, worker: str) -> None:
        del self.site.assignments[self.site.accept(posted, worker)]

    @property
    def cents(self) -> int:
        return self.site.balance - self.site.available


class OnProlific(Market):
    """Prolific takes its share of each reward and bonus; a place whose worker is rejected, or leaves, costs nothing."""

    crowd: ClassVar[dict[str, Any]] = {"platform": "prolific", "fee": 0.333, "address": ADDRESS}

    def __init__(self, study: Study, ends: ExitStack) -> None:
        super().__init__(study, ends)
        self.site = ends.enter_context(prolific_site())

    def platform(self) -> Platform:
        return Prolific(self.study, "live", KEY, self.site.rooms, self.site.api())

    def _room(self, offer: Offer, worker: str) -> tuple[str, str]:
        return offer.batch.batch_id, worker_pseudonym(KEY, self.study.name, "prolific", worker)

    def work(self, offer: Offer, posted: str, worker: str, rate: Rate, seconds: int) -> str:
        submission = self.site.join(posted, worker)
        self.site.rooms.given[self._room(offer, worker)] = answered(offer, rate, datetime.now(UTC))
        self.site.submit(submission)
        self.site.submissions[submission]["time_taken"] = seconds
        return submission

    def leave(self, offer: Offer, posted: str, worker: str) -> None:
        self.site.leave(self.site.join(posted, worker), "TIMED-OUT")

    def come_back(self, offer: Offer, posted: str, worker: str) -> None:
        left = next(one["id"] for one in self.site.of(posted) if one["status"] == "TIMED-OUT")
        self.site.rooms.given[self._room(offer, worker)] = answered(offer, honest(self.study), datetime.now(UTC))
        self.site.submit(left)

    @property
    def cents(self) -> int:
        paid = [cents for payments in self.site.paid.values() for cents in payments]
        held = [
            study["reward"]
            for key, study in self.site.studies.items()
            if not study.get("stopped")
            for _ in range(
                study["total_available_places"] - sum(one["status"] == "APPROVED" for one in self.site.of(key))
            )
        ]
        return sum(cents - -cents * 333 // 1000 for cents in [*paid, *held])


class Rooms(FakeRooms):
    """Rooms that know when their participants came and went."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: dict[str, dict[str, Progress]] = {}

    def admit(self, batch_id: str, posted_id: str, pseudonyms: Sequence[str], limits: Any = None) -> None:
        """Admit everybody."""

    def progress(self, batch_id: str) -> dict[str, Progress]:
        return self.begun.get(batch_id, {})


class OnLink(Market):
    """A panel whose people come by a link: it takes its share of what the lists of payments say."""

    crowd: ClassVar[dict[str, Any]] = {
        "platform": "link",
        "fee": 0.25,
        "address": ADDRESS,
        "link": {"preset": "generic"},
    }

    reserves = False

    def __init__(self, study: Study, ends: ExitStack) -> None:
        super().__init__(study, ends)
        self.rooms = Rooms()

    def platform(self) -> Platform:
        return LinkPlatform(self.study, "live", KEY, self.rooms)

    def _begin(self, offer: Offer, worker: str, answers: Sequence[Answer], seconds: int) -> str:
        name, end = worker_pseudonym(KEY, self.study.name, "link", worker), datetime.now(UTC)
        end -= timedelta(days=0 if answers else 9)
        number = len(answers)
        progress = Progress(number, number, len(offer.pairs), end, end - timedelta(seconds=seconds))
        self.rooms.begun.setdefault(offer.batch.batch_id, {})[name] = progress
        self.rooms.given[offer.batch.batch_id, name] = answers
        file = self.study.scratch / "people.csv"
        file.write_text(f"participant\n{worker}\n", encoding="utf-8")
        self.step(lambda campaign: campaign.platform.confirm(file))
        return f"{offer.batch.batch_id}-{name.rpartition('-')[2]}"

    def work(self, offer: Offer, posted: str, worker: str, rate: Rate, seconds: int) -> str:
        return self._begin(offer, worker, answered(offer, rate, datetime.now(UTC)), seconds)

    def leave(self, offer: Offer, posted: str, worker: str) -> None:
        self._begin(offer, worker, (), 9)

    @property
    def cents(self) -> int:
        self.platform().write_lists()
        files = (self.study.scratch / "payments").glob("live-*.csv")
        rows = [row for file in files for row in csv.DictReader(file.read_text(encoding="utf-8-sig").splitlines())]
        paid = [round(float(row["dollars"]) * 100) for row in rows]
        return sum(cents - -cents // 4 for cents in paid)


def study_of(market: type[Market], variant: Make, **sample: int) -> Study:
    """A study of two raters a pair, whom a platform brings."""
    parts: dict[str, Any] = {
        "name": "crowd",
        "transformations": ["paraphrasing"],
        "sample": sample,
        "raters": {"per_pair": 2},
        "acceptance": {"min_pairs": 5},
        "crowd": {"countries": {"en": ["US"]}, "share": 1.0, **market.crowd},
    }
    return variant(**parts)


def sampled(market: type[Market], study: Study, ends: ExitStack) -> Market:
    """The study's campaign on the platform, with its sample drawn."""
    crowd = market(study, ends)
    generate_once(crowd.study)
    here("sample", *crowd.study.arguments.split())
    return crowd


@pytest.mark.parametrize("market", [OnMTurk, OnProlific, OnLink])
def test_every_count_is_the_bill_whatever_workers_do(variant: Make, market: type[Market]) -> None:
    """A trial, who leaves, who is rejected or excluded and replaced, a withdrawn pair, a further wave, and bonuses."""
    with ExitStack() as ends:
        crowd = sampled(market, study_of(market, variant, pairs=12, batch=4), ends)
        crowd.launch(pilot=3)
        assert crowd.bill().posted_pilots == 1
        ((offer, posted),) = crowd.offers()
        crowd.leave(offer, posted, "leaver")
        for worker, seconds in (("slow", 400), ("fast", 200)):
            crowd.work(offer, posted, worker, honest(crowd.study), seconds)
        crowd.collect()
        tried = {pair.pair_id for pair in offer.pairs}
        out = next(pair.pair_id for pair in CampaignRecords(crowd.study).pairs if pair.pair_id not in tried)
        withdraw(crowd.study, [out], take_back=False, reason="not to be judged")
        crowd.launch()
        _, (offer, posted), *others = crowd.offers()
        wrong = crowd.work(offer, posted, "wrong", careless(crowd.study), 300)
        crowd.work(offer, posted, "good", honest(crowd.study), 300)
        crowd.step(collect)
        crowd.step(lambda campaign: judging.reject(campaign, [wrong], "the controls are the wrong way round " * 4))
        crowd.collect()
        expected = crowd.bill().in_all
        crowd.launch()
        assert crowd.bill().in_all == expected  # that somebody else does it was counted before
        crowd.work(offer, posted, "instead", honest(crowd.study), 500)
        for offer, posted in others:
            crowd.leave(offer, posted, "gone")
            for worker in ("slow", "sloppy"):
                crowd.work(offer, posted, worker, honest(crowd.study), 100)
        crowd.collect()
        crowd.study = study_of(market, variant, pairs=15, batch=4)
        here("sample", *crowd.study.arguments.split(), "--extend", "more")
        (numbers,) = {*crowd.counts()}
        assert numbers[:2] == (14, 28) and crowd.bill().planned == numbers[-1]
        sloppy = worker_pseudonym(KEY, crowd.study.name, market.crowd["platform"], "sloppy")
        decide(crowd.study, sloppy, exclude=True, reason="pays no attention")
        expected = crowd.bill().in_all
        crowd.launch()
        assert crowd.bill().in_all == expected and crowd.bill().spent_on["extend"] > 0
        for offer, posted, places in crowd.places():
            for number in range(places):
                crowd.work(offer, posted, f"last-{number}", honest(crowd.study), 450)
        crowd.collect()
        expected = crowd.bill().in_all
        crowd.step(judging.pay_bonuses)
        crowd.step(lambda campaign: campaign.close())
        bill = crowd.bill()
        assert bill.spent == bill.in_all == expected == crowd.cents and bill.bonuses > 0
        (numbers,) = {*crowd.counts()}
        assert bill.planned == numbers[-1]


@pytest.mark.parametrize(
    ("market", "crash"),
    [(OnProlific, "after _intend"), (OnProlific, "after approve"), (OnLink, "before approve"),
     (OnLink, "after _settle"), (OnLink, "")],
)  # fmt: skip
def test_who_left_and_comes_back_is_paid_and_counted_once(variant: Make, market: type[Market], crash: str) -> None:
    """Three workers for two places, one of whom was replaced meanwhile; nobody comes for the other batch."""
    with ExitStack() as ends:
        crowd = sampled(market, study_of(market, variant, pairs=8, batch=4, repeats=0), ends)
        crowd.launch()
        (offer, posted), _ = crowd.offers()
        unit = crowd.bill().planned // 4
        crowd.leave(offer, posted, "late")
        crowd.step(collect)
        for worker in ("one", "two"):
            crowd.work(offer, posted, worker, honest(crowd.study), 400)
        crowd.come_back(offer, posted, "late")
        crowd.step(collect)
        if crash:
            approvals = iter(range(3))

            def breaks(place: str) -> bool:
                return place == crash and next(approvals, 0) == 2

            assert not run(crowd.study, crowd.platform, judging.approve_all, 0, breaks)
        for _ in range(2):
            crowd.collect()
        assert crowd.bill().spent_on == {"post": 4 * unit, "approve": unit}
        crowd.step(judging.pay_bonuses)
        crowd.step(lambda campaign: campaign.close())
        bill = crowd.bill()
        assert bill.states["approved"] == 3 and bill.spent_on["release"] == -2 * unit
        assert bill.spent == bill.in_all == crowd.cents
