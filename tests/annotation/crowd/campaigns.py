"""Small crowd campaigns, and crashes at any moment of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from annotation.campaign.names import worker_pseudonym
from annotation.campaign.offering import LEDGER, Mode, begin_offering
from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import load_rubric
from annotation.crowd import judging
from annotation.crowd.campaign import CrowdCampaign, Launch
from annotation.crowd.collecting import collect
from annotation.crowd.ledger import Ledger
from annotation.crowd.mturk.adapter import MTurk
from annotation.crowd.platform import Platform
from annotation.crowd.prolific.adapter import Prolific
from annotation.crowd.prolific.workspaces import ArgillaRooms
from annotation.questions.question import Value
from annotation.ratings.answers import Answer
from annotation.sampling.sample import draw_sample
from plumbline.study import Study
from plumbline.study.crowd import PlatformName
from tests.annotation.campaigns import Make
from tests.annotation.crowd.mturk.mturk_site import MTurkSite
from tests.annotation.crowd.prolific.prolific_site import Site
from tests.shared import generate_once

KEY = b"a key of the tests"
CROWD: dict[str, Any] = {"countries": {"en": ["US"]}, "share": 0.5, "fee": 0.25}


def drawn(variant: Make, **changes: object) -> Study:
    """A drawn study of twelve paraphrases in batches of four: three batches and what is left for a pilot."""
    parts: dict[str, object] = {
        "name": "crowd",
        "transformations": ["paraphrasing"],
        "sample": {"pairs": 12, "batch": 4, "repeats": 0},
        "raters": {"per_pair": 2},
        "acceptance": {"min_pairs": 5},
        "crowd": CROWD,
    }
    study = variant(**(parts | changes))
    generate_once(study)
    draw_sample(study)
    return study


def honest(study: Study) -> Callable[[str, str], int]:
    """Rates 4, and controls as one should."""
    rubric = load_rubric(study)
    right = {
        pair.pair_id: rubric.expected(pair.pool, pair.control)
        for pair in CampaignRecords(study).controls
        if pair.control
    }
    return lambda pair_id, question: right.get(pair_id, {}).get(question, 4)


def careless(study: Study) -> Callable[[str, str], int]:
    """Rates 4, and controls the wrong way round."""
    good = honest(study)
    controls = {pair.pair_id for pair in CampaignRecords(study).controls}
    return lambda pair_id, question: 6 - good(pair_id, question) if pair_id in controls else 4


def copied(study: Study, folder: Path) -> Study:
    """The same study with records of its own, as they are before a campaign."""
    copy = study.model_copy()
    copy._exports = folder
    shutil.copytree(study.folder, copy.folder, dirs_exist_ok=True)
    return copy


def work(study: Study, site: MTurkSite, hit: str, worker: str, seconds: float = 600) -> str:
    """A worker does a HIT well; the submission's id."""
    return site.work(hit, worker, site.fields(hit, honest(study)), seconds)


def rated(study: Study, site: MTurkSite, **seconds: float) -> list[str]:
    """Workers do the only batch that is out well, each in so many seconds, and it is collected; their submissions."""
    (hit,) = site.hits
    submissions = [work(study, site, hit, worker, taken) for worker, taken in seconds.items()]
    step(study, site, collect)
    return submissions


def paid(study: Study, site: MTurkSite, **seconds: float) -> None:
    """As `rated`, and all that nothing speaks against is approved."""
    rated(study, site, **seconds)
    step(study, site, judging.approve_all)


def launch(study: Study, site: MTurkSite | Site, mode: Mode = "live", limit: int = 10**6, pilot: int = 0) -> Launch:
    done: list[Launch] = []

    def offer(campaign: CrowdCampaign) -> None:
        done.append(
            campaign.launch(pilot, lambda: begin_offering(campaign.records, str(campaign.name), campaign.rubric))
        )

    step(study, site, offer, mode, limit)
    return done[0]


def worked(variant: Make, site: MTurkSite, *workers: str) -> tuple[Study, list[str]]:
    """A launched batch that workers do well; the study and their submissions, which are collected."""
    study = drawn(variant)
    launch(study, site)
    return study, rated(study, site, **dict.fromkeys(workers, 600.0))


class Crash(BaseException):
    """The process ends here."""


#: Whether the process ends at a place: "before post", "after bonus", and so on.
Breaks = Callable[[str], bool]


class Crashing:
    """Ends the process before or after some calls of what it stands before, as `breaks` says."""

    def __init__(self, whom: object, breaks: Breaks) -> None:
        self._whom, self._breaks = whom, breaks

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._whom, name)
        if not callable(found):
            return found

        def call(*args: Any, **options: Any) -> Any:
            if self._breaks(f"before {name}"):
                raise Crash(f"before {name}")
            answer = found(*args, **options)
            if self._breaks(f"after {name}"):
                raise Crash(f"after {name}")
            return answer

        return call


class CrashingLedger(Ledger):
    """A ledger whose process may end before and after each write."""

    breaks: Breaks = staticmethod(lambda place: False)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        # Processes end here, not the machine: what a write is to survive is tried with a real kill in test_ledger.
        self._database.execute("PRAGMA synchronous = OFF")

    def _write(self, name: str, *args: Any) -> Any:
        if self.breaks(f"before {name}"):
            raise Crash(f"before {name}")
        answer = getattr(super(), name)(*args)
        if self.breaks(f"after {name}"):
            raise Crash(f"after {name}")
        return answer

    def _intend(self, *args: Any) -> Any:
        return self._write("_intend", *args)

    def _settle(self, *args: Any) -> None:
        self._write("_settle", *args)

    def judge(self, *args: Any) -> None:
        self._write("judge", *args)

    def keep_answers(self, *args: Any) -> None:
        self._write("keep_answers", *args)

    def add_batches(self, *args: Any) -> None:
        self._write("add_batches", *args)


def run(
    study: Study,
    make: Callable[[], Platform],
    step: Callable[[CrowdCampaign], object],
    limit: int,
    breaks: Breaks = lambda place: False,
) -> bool:
    """One command in a process of its own, as it were; whether it got to its end."""
    platform: Any = make()
    name: PlatformName = platform.name
    mode: Mode = platform.mode
    ledger = CrashingLedger(study.scratch / LEDGER, study.name, name, mode)
    ledger.breaks = breaks
    try:
        with ledger:
            step(CrowdCampaign(study, Crashing(platform, breaks), ledger, KEY, limit))  # type: ignore[arg-type]
    except Crash:
        return False
    finally:
        close = getattr(platform, "close_connections", None)  # what the end of a process does
        if close is not None:
            close()
    return True


def rate_on_prolific(
    study: Study,
    site: Site,
    key: str,
    pid: str,
    rates: Callable[[], Callable[[str], Mapping[str, Value]]],
    mode: Mode = "live",
) -> tuple[str, tuple[str, str]]:
    """Join a study as a participant, rate each pair of its batch, submit; the submission, and where its answers are.

    Raises PlaceError where nobody may join.
    """
    submission, rating = site.join(key, pid), rates()
    batch_id = site.studies[key]["external_study_url"].rsplit("/", 1)[1].split("?")[0]
    with Ledger(study.scratch / LEDGER, study.name, "prolific", mode) as ledger:
        (batch,) = [offered.batch for offered in ledger.offered() if offered.batch.batch_id == batch_id]
    who, at = worker_pseudonym(KEY, study.name, "prolific", pid), datetime.now(UTC).isoformat()
    site.rooms.given[batch_id, who] = [
        Answer(pair_id=pair_id, values=rating(pair_id), submitted_at=at, seconds=125.0) for pair_id in batch.pair_ids
    ]
    site.submit(submission)
    return submission, (batch_id, who)


def step(
    study: Study,
    site: MTurkSite | Site,
    what: Callable[[CrowdCampaign], object],
    mode: Mode = "live",
    limit: int = 10**6,
    rooms: ArgillaRooms | None = None,
) -> None:
    """One command, from its beginning to its end; `rooms` are Prolific's, the site's own where None."""

    def platform() -> Platform:
        if isinstance(site, MTurkSite):
            return MTurk(study, mode, client=site.client())
        return Prolific(study, mode, KEY, rooms or site.rooms, site.api())

    assert run(study, platform, what, limit)
