"""Broken campaigns on MTurk, through real boto3."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from annotation.crowd.mturk.adapter import MTurk
from plumbline.study import Study
from tests.annotation.crowd import campaigns
from tests.annotation.crowd.broken import BATCHES, REWARD, Broken, own, places, prepared
from tests.annotation.crowd.mturk.mturk_site import Fault, Moment, MTurkSite
from tests.scale import scaled

# MTurk's 20%: $1.44 a worker. Workers take 390 s, worth $2.60: a bonus of $1.40, and 20% of it.
UNIT, BONUS, BONUS_FEE = 144, 140, 28
LIMIT = BATCHES * (UNIT + BONUS + BONUS_FEE) + 100  # one worker each, and a dollar
RUNS = scaled(2, 200)
PLACES = places(
    ("CreateQualificationType", "CreateHITType", "CreateHITWithHITType", "ApproveAssignment", "RejectAssignment",
     "AssociateQualificationWithWorker", "SendBonus")
)  # fmt: skip


class BrokenMTurk(Broken):
    def __init__(self, study: Study, seed: int) -> None:
        super().__init__(study, seed, LIMIT, own(PLACES, seed, RUNS))
        self.site = MTurkSite(lag=self.rng.choice([0, 0, 1, 2]))
        self.site.fault = self._fault
        self.slow = self.site.lag > 0
        self.client = self.site.client()

    def _fault(self, operation: str, moment: Moment) -> Fault:
        faults: list[Fault] = ["error", "throttle", "drop"]
        return self.rng.choice(faults) if self.fault(operation, moment) else None

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


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return prepared(tmp_path_factory.mktemp("crowd"))


@pytest.mark.parametrize("seed", range(RUNS))
def test_everybody_is_paid_once_and_every_answer_collected_once(study: Study, tmp_path: Path, seed: int) -> None:
    broken = BrokenMTurk(campaigns.copied(study, tmp_path), seed)
    with broken.site as site:
        broken.go()
        assert len(site.hits) == BATCHES  # no batch was offered twice, and none was forgotten
        assert Counter(map(tuple, site.paid.values())) == {(REWARD, BONUS): BATCHES, (): 1}
        assert max(Counter(one.worker for one in site.assignments.values()).values()) == 1
        broken.check()
