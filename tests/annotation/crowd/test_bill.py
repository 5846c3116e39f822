"""The bill: what a campaign says that it costs is what its platform takes, to the cent, whatever workers do.

And one count: what `plan`, `sample`, `crowd plan`, `status`, the report and the bill print is the same for one study.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pandas as pd
import pytest

from annotation.campaign.names import worker_pseudonym
from annotation.campaign.offering import begin_offering
from annotation.campaign.records import CampaignRecords
from annotation.commands.planning import PlanOptions, plan_text
from annotation.crowd import judging, summary
from annotation.crowd.campaign import CrowdCampaign
from annotation.crowd.collecting import collect
from annotation.crowd.ledger import Work
from annotation.crowd.link import LinkPlatform
from annotation.crowd.mturk.adapter import MTurk
from annotation.crowd.places import BatchPlaces
from annotation.crowd.platform import Offer, Platform
from annotation.crowd.prolific.adapter import Prolific
from annotation.crowd.prolific.workspaces import Progress
from annotation.crowd.summary import CrowdSummary, read_summaries
from annotation.crowd.tally import Part, Tally
from annotation.export import export
from annotation.ratings.answers import Answer
from annotation.ratings.decisions import decide, withdraw
from annotation.report.exhibits import asked_exhibit
from annotation.report.material import campaign_material
from annotation.report.methods import methods_facts
from annotation.sampling.queues import Queue
from annotation.status.status import read_status
from annotation.status.text import next_step, status_text
from annotation.verdicts.acceptance import accept
from annotation.verdicts.evidence import Evidence
from generation.production import generate
from plumbline.study import ROOT, Study, load_study
from tests.annotation.campaigns import Make
from tests.annotation.crowd.campaigns import KEY, careless, drawn, honest, launch, run, step
from tests.annotation.crowd.mturk.mturk_site import MTurkSite
from tests.annotation.crowd.prolific.prolific_site import FakeRooms, prolific_site
from tests.commands import here
from tests.shared import generate_once

Rate = Callable[[str, str], int]
ADDRESS, GENERIC = "https://argilla.example.org", {"preset": "generic"}


class Market:
    """A platform's account, and its workers."""

    crowd: ClassVar[dict[str, Any]]  #: the study's settings for it
    reserves = True  #: whether `cents` has open places too

    def __init__(self, study: Study, ends: ExitStack) -> None:
        self.study, self.ends = study, ends

    platform: Callable[[], Platform]  #: as a command opens it
    work: Callable[[Offer, str, str, Rate, int], str]  #: a worker does a batch; the submission's id
    leave: Callable[[Offer, str, str], None]  #: a worker begins a batch and gives up
    cents: int  #: what the platform took, with its fees

    def come_back(self, offer: Offer, posted: str, worker: str) -> None:
        """A worker who left does the batch after all."""
        self.work(offer, posted, worker, honest(self.study), 400)

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
    given = {one.pair_id: {name: rate(one.pair_id, name) for name in ("quality", "fluency")} for one in offer.pairs}
    return [Answer(pair_id=key, values=own, submitted_at=at.isoformat(), seconds=9.0) for key, own in given.items()]


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

    crowd: ClassVar[dict[str, Any]] = {"platform": "link", "fee": 0.25, "address": ADDRESS, "link": GENERIC}
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
    crowd, acceptance = {"countries": {"en": ["US"]}, "share": 1.0, **market.crowd}, {"min_pairs": 5}
    parts = {"name": "crowd", "transformations": ["paraphrasing"], "raters": {"per_pair": 2}, "acceptance": acceptance}
    return variant(sample=sample, crowd=crowd, **parts)


def sampled(market: type[Market], study: Study, ends: ExitStack) -> Market:
    """The study's campaign on the platform, with its sample drawn."""
    crowd = market(study, ends)
    generate_once(crowd.study)
    here("sample", *crowd.study.arguments.split())
    return crowd


@pytest.mark.usefixtures("without_next")
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


@pytest.mark.usefixtures("without_next")
@pytest.mark.parametrize(
    ("market", "crash"),
    [(OnProlific, "after _intend"), (OnProlific, "after approve"), (OnLink, "before approve"),
     (OnLink, "after approve"), (OnLink, "after _settle"), (OnLink, "")],
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


WORDS = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "kelp", "larch", "maple"]


class Numbers(NamedTuple):
    """A count as it is printed."""

    pairs: int
    to_pairs: int
    answers: int
    cents: int


def printed(text: str) -> list[Numbers]:
    """All counts in a text, in their order."""
    number = r"([\d,]+)"
    line = rf"{number} \w+ by [^;:]*raters? each: {number} answers?(?:; with [^;]*? {number} answers?)?[^$]*?; "
    line += rf"[\d.,]+ hours of work, (?:[^;:\n]*of fees: )?\${number}\.(\d\d)"
    found = []
    for pairs, to_pairs, answers, dollars, cents in re.findall(line, text):
        plain = [int(part.replace(",", "")) for part in (pairs, to_pairs, answers or to_pairs, f"{dollars}{cents}")]
        found.append(Numbers(*plain))
    return found


def texts(folder: Path, *languages: str) -> list[dict[str, Any]]:
    """A data set for each language, of 40 pairs of sentences that have few words in common."""
    datasets = []
    for code in languages:
        rows = [
            [" ".join(f"{WORDS[(i * k + k) % 12]}{code}{i}{side}" for k in range(1, 6)) for side in "ab"]
            for i in range(40)
        ]
        frame = pd.DataFrame(rows, columns=["sentence1", "sentence2"]).assign(score=1.0)
        frame.to_csv(folder / f"{code}.csv", index=False)
        datasets.append({"name": f"of_{code}", "task": "sts", "path": str(folder / f"{code}.csv"), "language": code})
    return datasets


def by_function(name: str, **changes: object) -> dict[str, Any]:
    """A transformation that needs no model."""
    function = f"generation.examples:{name.partition('-')[0]}"
    raters = {"asked": {"en": "The program changed the text."}}
    return {"name": name, "axis": "noise", "function": function, "raters": raters, **changes}


CROWD: dict[str, Any] = {"countries": {"en": ["US"], "de": ["DE"]}, "share": 1.0, "fee": 0.25}
ALONE: dict[str, Any] = {"transformations": ["paraphrasing"], "sample": {"pairs": 24, "batch": 10}}
BLOCKS = {"raters": {"blocks": [8, 16], "per_pair": 2}, "acceptance": {"rule": "lower_bound", "min_pairs": 8}}
BY_CASE = {"transformations": [by_function("casing"), by_function("word_order")]}
SYSTEMS = [by_function(name, queue="systems") for name in ("casing", "word_order")]

#: Nine studies: changes of the sample study, the languages of their own texts, and what `crowd plan` is asked for.
STUDIES: dict[str, tuple[dict[str, Any], tuple[str, ...], str]] = {
    "one": (ALONE | {"raters": {"per_pair": 2}}, (), ""),
    "languages": (BY_CASE | {"sample": {"pairs": 31, "batch": 8}}, ("en", "de"), ""),
    "pools": ({"transformations": ["translation", "cross_translation"], "sample": {"pairs": 20, "batch": 7}}, (), ""),
    "checks": (ALONE | {"sample": {"pairs": 20, "batch": 9, "controls": 2, "repeats": 3}}, (), ""),
    "blocks": (ALONE | BLOCKS, (), ""),
    "systems": ({"transformations": SYSTEMS, "sample": {"pairs": 15, "batch": 6}}, ("en", "de"), ""),
    "longer": ({"transformations": ["expansion"], "sample": {"pairs": 12}, "crowd": CROWD}, (), "rehearsal"),
    "crowd": (ALONE | {"crowd": CROWD}, (), "rehearsal"),
    "mturk": (
        BY_CASE | {"sample": {"pairs": 20, "batch": 6}, "crowd": CROWD | {"platform": "mturk"}},
        ("en",),
        "mturk",
    ),
}


def studies(variant: Make, folder: Path) -> Iterator[tuple[str, Study, str]]:
    """Each study, and the platform of its crowd."""
    for name, (changes, languages, platform) in STUDIES.items():
        parts = {"datasets": texts(folder, *languages)} if languages else {}
        yield name, variant(name=name, **({"acceptance": {"min_pairs": 4}} | parts | changes)), platform
    yield "texts", load_study(ROOT / "studies" / "texts.yaml", folder / "exports"), ""


def status_of(study: Study) -> str:
    return status_text(read_status(Evidence(study), datetime.now(UTC)), more=True)


@pytest.mark.usefixtures("without_next")
def test_every_command_prints_the_same_numbers_for_a_study(variant: Make, tmp_path: Path) -> None:
    """Before anything is drawn, when it is, by batches, in the status and in the report; of ten studies."""
    counts = {}
    for name, study, platform in studies(variant, tmp_path):
        options, study_options = PlanOptions(campaigns=1, pairs=(30,), raters=(2,)), study.arguments.split()
        counts[name] = printed(plan_text(study, options))
        if study.judging.transforms:
            generate(study, allow_code=True)
        sampled = here("sample", *study_options)
        counts[name] += [*printed(sampled.stdout), *printed(status_of(study))]
        if platform:
            counts[name] += printed(here("crowd", "plan", *study_options, "--platform", platform).stdout)
        shown = [pair.pair_id for pair in CampaignRecords(study).shown]
        assert counts[name][0].answers <= len(shown) * study.raters.per_pair
    assert {name for name, found in counts.items() if len(set(found)) != 1} == set(), counts
    assert sorted(map(len, counts.values())) == [3] * 7 + [4] * 3


def test_hours_and_bonuses_do_not_depend_on_the_order_of_batches(variant: Make) -> None:
    """Batches of 8, 8, 9 and 8 pairs at 30 s; 7 pairs that take 10% longer, 231 s, are owed 14 cents more."""
    study = variant(name="hours", crowd=CROWD | {"fee": 0.0})
    sizes = [Part(Queue("a", "en", "en"), n, 0, 0, 2, n, n / 120, 20 * n, 0) for n in (8, 8, 9, 8, 7)]
    orders = {Tally(parts, study).cost_text.partition(",")[0] for parts in itertools.permutations(sizes[:4])}
    assert orders == {"0.6 hours of work"}
    assert Tally((sizes[4],), study).bonuses(0.1) == 28


@pytest.mark.parametrize("how", ["excluded", "rejected"])
def test_answers_that_are_asked_for_again_are_counted_alike_everywhere(
    variant: Make, site: MTurkSite, how: str
) -> None:
    """Two workers for each of 12 pairs; what one of them did is to be done again: 12 of 24 answers, in every place."""
    study = drawn(variant, crowd=CROWD)
    launch(study, site)
    wrong = [site.work(hit, "wrong", site.fields(hit, careless(study))) for hit in site.hits]
    for hit in site.hits:
        site.work(hit, "good", site.fields(hit, honest(study)))
    step(study, site, collect)
    if how == "rejected":
        step(study, site, lambda campaign: judging.reject(campaign, wrong, "controls failed"))
    else:
        works: list[Work] = []
        step(study, site, lambda campaign: works.extend(campaign.ledger.work()))
        rater = next(work.pseudonym for work in works if work.submission.submission_id in wrong)
        decide(study, rater, exclude=True, reason="controls failed")
    at_once = read_status(Evidence(study), datetime.now(UTC))  # nobody is asked again yet
    assert at_once.progress["open"].sum() == 12 and "; 12 of 24 answers are open" in status_text(at_once)
    assert not at_once.progress["verdict"].str.startswith("ready").any()
    assert "crowd launch" in str(next_step(replace(at_once, to_pay=("", ""), decided=True)))
    launch(study, site)
    status = read_status(Evidence(study), datetime.now(UTC))
    assert (status.progress["open"].sum(), status.progress["wanted"].sum()) == (12, 24)
    assert "; 12 of 24 answers are open" in status_text(status)
    assert next_step(status).command.startswith("plumbline crowd approve --all ")  # workers wait for their pay
    assert "12 answers" in str(next_step(replace(status, to_pay=("", ""))))
    accept(study)
    after = read_status(Evidence(study), datetime.now(UTC))
    assert "12 of the 24 answers that the sample needs are still open" in after.doubts
    (planned,) = printed(plan_text(study, PlanOptions(campaigns=1)))
    material = campaign_material(Evidence(study))
    assert material.asked_for is not None
    everything = asked_exhibit(material.asked_for).frame.iloc[-1]
    assert everything[["pairs", "answers_to_pairs", "answers"]].to_list() == list(planned)[:3]
    # Three batches have 6 of the 8 controls: the others were drawn for a pilot that there is not.
    assert everything["controls"] == 6 and methods_facts(material)["controls"][0].startswith("3 positive controls")
    assert "8 controls and repeats, of which raters are asked about 6;" in (export(study) / "codebook.md").read_text()
    (bill,) = read_summaries(Evidence(study))
    assert bill.spent == sum(bill.spent_on.values()) and bill.planned == everything["cents"] == bill.spent_on["post"]
