"""Broken campaigns: calls fail before and after their effect, the process ends anywhere, and yet all must be right.

Each runs random commands while everything is shaky, then the rest in order. The first worker fails the controls and is
rejected. Two batches by one worker each; half of them, one, is a worker's share.

Chance alone breaks mostly calls that only look, since most are such: in 45 campaigns no bonus was hit once. So each
campaign has a few places of its own that break for certain when first reached: the campaigns go round all places.
"""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from annotation.campaign.offering import LEDGER
from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import load_rubric
from annotation.crowd import judging
from annotation.crowd.campaign import CrowdCampaign
from annotation.crowd.collecting import collect
from annotation.crowd.ledger import Ledger
from annotation.crowd.mturk.adapter import MTurk
from annotation.crowd.platform import Platform, UncertainError
from annotation.crowd.prolific.adapter import Prolific
from annotation.crowd.rehearsal import MadeUpCrowd
from annotation.questions.question import Value
from plumbline.errors import PlumblineError
from plumbline.study import Study
from tests.annotation.crowd import campaigns
from tests.annotation.crowd.mturk.mturk_site import Fault, Moment, MTurkSite
from tests.annotation.crowd.prolific.prolific_site import PlaceError, Site
from tests.conftest import make_variant
from tests.scale import scaled

BATCHES, REWARD = 2, 120  # four paraphrases, a positive and a negative control in a batch: 6 x $0.20 = $1.20
#: Where the process can end around what changes something: calls of the platform, and writes of the ledger.
STEPS = ("post", "approve", "reject", "bonus", "keep_out", "close")
WRITES = ("_intend", "_settle", "judge", "keep_answers", "add_batches")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """The study before any campaign; the fee is Prolific's, for MTurk has its own."""
    return campaigns.drawn(
        make_variant(tmp_path_factory.mktemp("crowd")),
        sample={"pairs": 8, "batch": 4, "repeats": 0},
        raters={"per_pair": 1},
        acceptance={"min_pairs": 5, "min_raters": 1},
        crowd={**campaigns.CROWD, "address": "https://argilla.example.org"},
    )


@pytest.fixture
def study(prepared: Study, tmp_path: Path) -> Study:
    return campaigns.copied(prepared, tmp_path)


class Broken:
    """One campaign; each platform says what it took, or holds, with fees (`spent`), and the works' `states`."""

    #: The platform's own operations that change something, how many campaigns go round all places, and what they cost.
    operations: Sequence[str] = ()
    runs: int
    cents: int
    slow = False  #: whether lists may not show yet what an earlier call made
    platform: Callable[[], Platform]
    states: Callable[[], dict[str, str]]  #: by worker: submitted, approved or rejected
    spent: Callable[[], int]

    def __init__(self, study: Study, seed: int) -> None:
        self.study, self.rng, self.limit = study, random.Random(seed), BATCHES * self.cents + 100
        places = [f"{moment} {name}" for name in (*STEPS, *WRITES, *self.operations) for moment in ("before", "after")]
        apart = min(self.runs, len(places) // 2)  # two at least in a campaign, and every place in one of them
        self.waiting = set(places[seed % apart :: apart])  #: those that break for certain and have not broken yet
        self.rate = 0.06
        self.disturbed = False  #: whether one did in the command that runs
        self.workers = 0

    def work(self) -> None:
        """Workers do what is open; a rehearsal's come by themselves."""

    def breaks(self, place: str, rate: float) -> bool:
        """Whether all breaks here, now."""
        if place in self.waiting:
            self.waiting.remove(place)
            self.disturbed = True
            return True
        return self.rng.random() < rate

    def fault(self, operation: str, moment: str, faults: Sequence[str]) -> str:
        """What becomes of a call to the platform."""
        return self.rng.choice(faults) if self.breaks(f"{moment} {operation}", self.rate) else ""

    def rating(self) -> Callable[[str, str], int]:
        """How the next worker rates."""
        self.workers += 1
        return (campaigns.careless if self.workers == 1 else campaigns.honest)(self.study)

    def step(self, what: Callable[[CrowdCampaign], object]) -> bool:
        """One command, whatever becomes of it; whether it got to its end."""
        self.disturbed = False
        try:
            return campaigns.run(
                self.study, self.platform, what, self.limit, lambda place: self.breaks(place, self.rate / 3)
            )
        except PlumblineError as error:
            # Undisturbed, a command ends well, but that lists may not show yet what an earlier one made.
            if not (self.rate or self.disturbed or (self.slow and isinstance(error, UncertainError))):
                raise
            return False

    def judge(self, campaign: CrowdCampaign) -> None:
        """What a person does: approve what is good, reject the one who failed the controls."""
        _, left = judging.approve_all(campaign)
        for case in left:
            if any(sign.rule == "controls" for sign in case.signs):
                judging.reject(campaign, [case.work.submission.submission_id], "failed the controls")

    def go(self) -> None:
        """Random commands while all is shaky, then all in order until it is done; and what must be right at the end."""
        steps = [lambda campaign: campaign.launch(), collect, self.judge, judging.pay_bonuses]
        for _ in range(self.rng.randrange(5, 11)):
            self.step(self.rng.choice(steps))
            if self.rng.random() < 0.6:
                self.work()
            assert self.spent() <= self.limit
        self.rate = 0.0
        while list(self.states().values()).count("approved") != BATCHES or "submitted" in self.states().values():
            self.step(lambda campaign: campaign.launch())
            self.work()
            self.step(collect)
            self.step(self.judge)
        for one in (judging.pay_bonuses, lambda campaign: campaign.close(), collect):
            while not self.step(one):
                pass
        assert not self.waiting, f"{self.waiting} was never reached"
        states = list(self.states().values())
        assert states.count("rejected") == 1 and self.spent() <= self.limit
        platform = self.platform()
        with Ledger(self.study.scratch / LEDGER, self.study.name, platform.name, platform.mode) as ledger:
            assert ledger.spent() == self.spent()
            assert not [one for one in ledger.operations() if one.state == "intended"]
        ratings = CampaignRecords(self.study).all_ratings
        assert len(ratings) == len(states) * 6 * 2  # pairs and controls of a batch, questions
        assert ratings.loc[ratings["excluded"] != "", "rater_id"].nunique() == 1


class OnMTurk(Broken):
    """MTurk's 20%: $1.44 a worker. Workers take 390 s, worth $2.60: a bonus of $1.40, and 20% of it."""

    operations = ("CreateQualificationType", "CreateHITType", "CreateHITWithHITType", "ApproveAssignment",
                  "RejectAssignment", "AssociateQualificationWithWorker", "SendBonus")  # fmt: skip
    runs, bonus, cents = scaled(2, 200), 140, 144 + 140 + 28

    def __init__(self, study: Study, seed: int) -> None:
        super().__init__(study, seed)
        self.site = MTurkSite(lag=self.rng.choice([0, 0, 1, 2]))
        self.site.fault = self._fault
        self.slow = self.site.lag > 0
        self.client = self.site.client()

    def _fault(self, operation: str, moment: Moment) -> Fault:
        return self.fault(operation, moment, ["error", "throttle", "drop"]) or None  # type: ignore[return-value]

    def platform(self) -> MTurk:
        return MTurk(self.study, "live", client=self.client)

    def work(self) -> None:
        for key, hit in list(self.site.hits.items()):
            if len([one for one in self.site.assignments.values() if one.hit is hit]) < hit.places:
                fields = self.site.fields(key, self.rating())
                self.site.work(key, f"W{self.workers}", fields, seconds=390)

    def states(self) -> dict[str, str]:
        return {one.worker: one.status.lower() for one in self.site.assignments.values()}

    def spent(self) -> int:
        return self.site.balance - self.site.available


@pytest.mark.parametrize("seed", range(OnMTurk.runs))
def test_on_mturk_everybody_is_paid_once_and_every_answer_collected_once(study: Study, seed: int) -> None:
    broken = OnMTurk(study, seed)
    with broken.site as site:
        broken.go()
        assert len(site.hits) == BATCHES  # no batch was offered twice, and none was forgotten
        assert Counter(map(tuple, site.paid.values())) == {(REWARD, OnMTurk.bonus): BATCHES, (): 1}
        assert max(Counter(one.worker for one in site.assignments.values()).values()) == 1


class OnProlific(Broken):
    """Prolific's share of 25%: $1.50 a participant. The site's take 750 s, worth $5.00: a bonus of $3.80."""

    operations = ("create_group", "create_study", "transition_study", "transition_submission", "add_to_group",
                  "set_up_bonus", "pay_bonus")  # fmt: skip
    runs, unit, bonus, cents = scaled(2, 100), 150, 380, 150 + 380 + 95

    def __init__(self, study: Study, seed: int, site: Site) -> None:
        super().__init__(study, seed)
        self.site = site
        site.fault = lambda operation, moment: self.fault(operation, moment, ["500", "429", "drop"])
        site.late = self.rng.choice([0, 0, 1, 3])
        self.questions = load_rubric(study).question_names()

    def platform(self) -> Prolific:
        return Prolific(self.study, "live", campaigns.KEY, self.site.rooms, self.site.api())

    def work(self) -> None:
        for key in list(self.site.studies):
            with contextlib.suppress(PlaceError):
                campaigns.rate_on_prolific(self.study, self.site, key, f"{self.workers + 1:024x}", self._rated)

    def _rated(self) -> Callable[[str], Mapping[str, Value]]:
        """How the next worker, who has joined, rates."""
        rating = self.rating()
        return lambda pair_id: {name: rating(pair_id, name) for name in self.questions}

    def states(self) -> dict[str, str]:
        states = {"AWAITING REVIEW": "submitted", "APPROVED": "approved", "REJECTED": "rejected"}
        return {one["participant_id"]: states[one["status"]] for one in self.site.submissions.values()}

    def spent(self) -> int:
        """With fees: places of published studies at what they cost, and bonuses."""
        held = 0
        for key, posted in self.site.studies.items():
            if posted["status"] != "UNPUBLISHED":
                taken = self.site.taken(key)
                held += self.unit * (taken if posted.get("stopped") else max(taken, posted["total_available_places"]))
        return held + sum(cents + -(-cents // 4) for own in self.site.bonuses.values() for cents in own)


@pytest.mark.parametrize("seed", range(OnProlific.runs))
def test_on_prolific_everybody_is_paid_once_and_every_answer_collected_once(
    study: Study, prolific: Site, seed: int
) -> None:
    OnProlific(study, seed, prolific).go()
    assert sum(one["status"] != "UNPUBLISHED" for one in prolific.studies.values()) == BATCHES
    paid = sorted(tuple(own) for own in prolific.paid.values() if own)
    assert paid == [(REWARD, OnProlific.bonus)] * BATCHES


class InRehearsal(Broken):
    """The shipped crowd, by the study's fee: $1.50 a worker, and at most $5 of bonuses."""

    runs, cents = scaled(1, 100), 150 + 500

    def platform(self) -> MadeUpCrowd:
        return MadeUpCrowd(self.study)

    def judge(self, campaign: CrowdCampaign) -> None:
        """The first that can be is rejected, all others approved."""
        judging.finish(campaign)
        works = [work for work in campaign.ledger.work() if work.submission.state == "submitted" and work.answered]
        ids = [work.submission.submission_id for work in works]
        if ids and "reject" not in {review.decision for review in campaign.ledger.judgements()}:
            judging.reject(campaign, [ids.pop(0)], "failed the controls")
        judging.approve(campaign, ids, "the others")

    def states(self) -> dict[str, str]:
        account = MadeUpCrowd(self.study).account
        works = {work["submission_id"]: work["state"] for work in account.notes.get("submissions", [])}
        decided = {key: verdict.decision for key, verdict in account.decisions.items()}
        return {key: state for key, state in (works | decided).items() if state != "returned"}

    def spent(self) -> int:
        account, states = MadeUpCrowd(self.study).account, self.states()
        bonuses = [payment.cents for payment in account.payments.values() if payment.kind == "bonus"]
        spent = sum(cents + -(-cents // 4) for cents in bonuses)
        for offer in account.offers.values():
            works = [work for work in account.notes.get("submissions", []) if work["posted_id"] == offer.posted_id]
            now = [states[work["submission_id"]] for work in works if work["submission_id"] in states]
            taken = max(offer.places, len(now)) if offer.open else len(now)
            spent += (taken - now.count("rejected")) * (offer.reward + -(-offer.reward // 4))
        return spent


@pytest.mark.parametrize("seed", range(InRehearsal.runs))
def test_in_a_rehearsal_everybody_is_paid_once_and_every_answer_collected_once(study: Study, seed: int) -> None:
    InRehearsal(study, seed).go()
    payments = MadeUpCrowd(study).account.payments.values()
    rewards, bonuses = (Counter(one.submission_id for one in payments if one.kind == kind) for kind in
                        ("reward", "bonus"))  # fmt: skip
    assert len(rewards) == BATCHES and set(rewards.values()) == {1} and set(bonuses.values()) <= {1}
