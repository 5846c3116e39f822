"""Broken campaigns on Prolific."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from annotation.campaign.rubric import load_rubric
from annotation.crowd.prolific.adapter import Prolific
from annotation.questions.question import Value
from plumbline.study import Study
from tests.annotation.crowd import campaigns
from tests.annotation.crowd.broken import BATCHES, REWARD, Broken, own, places, prepared
from tests.annotation.crowd.prolific.prolific_site import PlaceError, Site, prolific_site
from tests.scale import scaled

# Prolific's share of 25% in this study: $1.50 a participant. The site's take 750 s, worth $5.00: a bonus of $3.80.
UNIT, BONUS, BONUS_FEE = 150, 380, 95
LIMIT = BATCHES * (UNIT + BONUS + BONUS_FEE) + 100
RUNS = scaled(2, 100)
PLACES = places(
    ("create_group", "create_study", "transition_study", "transition_submission", "add_to_group", "set_up_bonus",
     "pay_bonus")
)  # fmt: skip
STATES = {"AWAITING REVIEW": "submitted", "APPROVED": "approved", "REJECTED": "rejected"}


class BrokenProlific(Broken):
    def __init__(self, study: Study, seed: int, site: Site) -> None:
        super().__init__(study, seed, LIMIT, own(PLACES, seed, RUNS))
        self.site = site
        site.fault = self._fault
        site.late = self.rng.choice([0, 0, 1, 3])
        self.questions = load_rubric(study).question_names()

    def _fault(self, operation: str, moment: str) -> str:
        return self.rng.choice(["500", "429", "drop"]) if self.fault(operation, moment) else ""

    def platform(self) -> Prolific:
        site = self.site
        return Prolific(self.study, "live", campaigns.KEY, site.rooms, site.api())

    def work(self) -> None:
        for key in list(self.site.studies):
            pid = f"{self.workers + 1:024x}"
            with contextlib.suppress(PlaceError):
                campaigns.rate_on_prolific(self.study, self.site, key, pid, self._rated)

    def _rated(self) -> Callable[[str], Mapping[str, Value]]:
        """How the next worker, who has joined, rates."""
        rating = self.rating()
        return lambda pair_id: {name: rating(pair_id, name) for name in self.questions}

    def states(self) -> dict[str, str]:
        return {one["participant_id"]: STATES[one["status"]] for one in self.site.submissions.values()}

    def spent(self) -> int:
        """With fees: places of published studies at what they cost, and bonuses."""
        held = 0
        for key, posted in self.site.studies.items():
            if posted["status"] != "UNPUBLISHED":
                taken = self.site.taken(key)
                held += UNIT * (taken if posted.get("stopped") else max(taken, posted["total_available_places"]))
        return held + sum(cents + -(-cents // 4) for own in self.site.bonuses.values() for cents in own)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return prepared(tmp_path_factory.mktemp("crowd"), address="https://argilla.example.org")


@pytest.mark.parametrize("seed", range(RUNS))
def test_everybody_is_paid_once_and_every_answer_collected_once(study: Study, tmp_path: Path, seed: int) -> None:
    with prolific_site() as site:
        broken = BrokenProlific(campaigns.copied(study, tmp_path), seed, site)
        broken.go()
        published = [one for one in site.studies.values() if one["status"] != "UNPUBLISHED"]
        assert len(published) == BATCHES
        assert sorted(tuple(own) for own in site.paid.values() if own) == [(REWARD, BONUS)] * BATCHES
        broken.check()
