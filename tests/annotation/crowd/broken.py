"""Broken campaigns: calls fail before and after their effect, the process ends anywhere, and yet all must be right.

Each runs random commands while everything is shaky, then the rest in order. The first worker fails the controls and is
rejected. Two batches by one worker each; half of them, one, is a worker's share.

Chance alone breaks mostly calls that only look, since most are such: in 45 campaigns no bonus was hit once. So each
campaign has a few places of its own that break for certain when first reached: the campaigns go round all places.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path

from annotation.campaign.offering import LEDGER
from annotation.campaign.records import CampaignRecords
from annotation.crowd import judging
from annotation.crowd.campaign import CrowdCampaign
from annotation.crowd.collecting import collect
from annotation.crowd.ledger import Ledger
from annotation.crowd.platform import Platform, UncertainError
from plumbline.errors import PlumblineError
from plumbline.study import Study
from tests.annotation.crowd import campaigns
from tests.conftest import make_variant

BATCHES, REWARD = 2, 120  # four paraphrases, a positive and a negative control in a batch: 6 x $0.20 = $1.20
#: Where the process can end around what changes something: calls of the platform, and writes of the ledger.
STEPS = ("post", "approve", "reject", "bonus", "keep_out", "close")
WRITES = ("_intend", "_settle", "judge", "keep_answers", "add_batches")


def places(operations: Sequence[str]) -> list[str]:
    """Before and after all that changes something: steps, the ledger's writes, and the platform's own operations."""
    return [f"{moment} {name}" for name in (*STEPS, *WRITES, *operations) for moment in ("before", "after")]


def prepared(folder: Path, **crowd: object) -> Study:
    """The study before any campaign."""
    return campaigns.drawn(
        make_variant(folder),
        sample={"pairs": 8, "batch": 4, "repeats": 0},
        raters={"per_pair": 1},
        acceptance={"min_pairs": 5, "min_raters": 1},
        crowd={**campaigns.CROWD, **crowd},
    )


class Broken(ABC):
    """One campaign."""

    slow = False  #: whether lists may not show yet what an earlier call made

    def __init__(self, study: Study, seed: int, limit: int, places: Sequence[str]) -> None:
        """These `places` break when they are first reached, all others by chance."""
        self.study, self.rng, self.limit = study, random.Random(seed), limit
        self.places = tuple(places)
        self.rate = 0.06
        self.waiting = set(self.places)  #: those that have not broken yet
        self.disturbed = False  #: whether one did in the command that runs
        self.workers = 0
        self.honest, self.careless = campaigns.honest(study), campaigns.careless(study)

    @abstractmethod
    def platform(self) -> Platform:
        """The platform, as a new process finds it."""

    @abstractmethod
    def work(self) -> None:
        """Workers do what is open."""

    @abstractmethod
    def states(self) -> dict[str, str]:
        """The state of each submission, by worker: submitted, approved or rejected."""

    @abstractmethod
    def spent(self) -> int:
        """Cents that the platform took, or holds, with fees."""

    def breaks(self, place: str, rate: float) -> bool:
        """Whether all breaks here, now."""
        if place in self.waiting:
            self.waiting.remove(place)
            self.disturbed = True
            return True
        return self.rng.random() < rate

    def fault(self, operation: str, moment: str) -> bool:
        """Whether a call to the platform shall fail."""
        return self.breaks(f"{moment} {operation}", self.rate)

    def rating(self) -> Callable[[str, str], int]:
        """How the next worker rates."""
        self.workers += 1
        return self.careless if self.workers == 1 else self.honest

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
        """Random commands while all is shaky, then all in order until it is done."""
        steps = [lambda campaign: campaign.launch(), collect, self.judge, judging.pay_bonuses]
        for _ in range(self.rng.randrange(5, 11)):
            self.step(self.rng.choice(steps))
            if self.rng.random() < 0.6:
                self.work()
            assert self.spent() <= self.limit
        self.rate = 0.0
        while not (
            list(self.states().values()).count("approved") == BATCHES and "submitted" not in self.states().values()
        ):
            self.step(lambda campaign: campaign.launch())
            self.work()
            self.step(collect)
            self.step(self.judge)
        for one in (judging.pay_bonuses, lambda campaign: campaign.close(), collect):
            while not self.step(one):
                pass

    def check(self) -> None:
        """What must be right at the end, on every platform."""
        assert not self.waiting, f"{self.waiting} was never reached"
        states = self.states()
        assert list(states.values()).count("rejected") == 1
        assert self.spent() <= self.limit
        platform = self.platform()
        with Ledger(self.study.scratch / LEDGER, self.study.name, platform.name, platform.mode) as ledger:
            assert ledger.spent() == self.spent()
            assert not [one for one in ledger.operations() if one.state == "intended"]
        ratings = CampaignRecords(self.study).all_ratings
        assert len(ratings) == len(states) * 6 * 2  # pairs and controls of a batch, questions
        assert ratings.loc[ratings["excluded"] != "", "rater_id"].nunique() == 1


def own(places: Sequence[str], seed: int, number: int) -> Sequence[str]:
    """Those that break for certain in one of so many campaigns: two at least, and every place in one of them."""
    apart = min(number, len(places) // 2)
    return places[seed % apart :: apart]
