"""A round of a campaign in Argilla: collect answers and offer the pairs that are due, by hand or while serving.

`publish` and `collect` are the same steps, done by hand. The next round finishes whatever was cut off between two of
them: the answers on record decide what is open, and a pair that is there is not sent again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd

from annotation import server
from annotation.argilla import accounts
from annotation.argilla.accounts import names_at
from annotation.argilla.client import Argilla, DatasetListing, attach
from annotation.argilla.collect import collect
from annotation.argilla.publish import Publication, publish
from annotation.argilla.training import publish_training
from annotation.campaign.names import account_pseudonym, remember_names
from annotation.campaign.records import CampaignRecords, collected_files, shown_files
from annotation.sampling.queues import SCOPES, queues_of
from annotation.server.home import changing
from annotation.verdicts.counted import Place
from annotation.verdicts.looks import BlockProgress
from annotation.verdicts.preregistration import rubric_to_ask
from annotation.verdicts.tables import of_group
from plumbline.errors import PlumblineError
from plumbline.manifest import stage
from plumbline.reading import read_json
from plumbline.store import write_json
from plumbline.study import Study, load_study

LOOK_SECONDS, WHOLE_SECONDS = 5.0, 60.0  # between two checks, and between two collections of all changes
ACTIVE = timedelta(minutes=15)  # raters who answered within this time are at work
IDLE_SHARE = 0.2  # share of these: when so many have nothing left, a block is opened early


def take_in(study: Study, home: server.Home, argilla: Argilla, *, replace: bool = False) -> pd.DataFrame:
    """Collect raters' answers; return the sample's ratings. Raises as `collect`."""
    with stage(study, "collect", shown_files(study.folder), collected_files(study.folder)):
        ratings = collect(study, argilla, replace=replace)
        remember_names(home, study.name, names_at(study.name, argilla))
        return ratings


def put_out(
    study: Study, home: server.Home, argilla: Argilla, ahead: Mapping[Place, int] | None = None
) -> tuple[Publication, dict[str, int]]:
    """Offer the pairs that are due by the answers on record, and training pairs. Raises as `publish`.

    `ahead` is as for `publish`. Returns what it did, and new known pairs by dataset. A study with blocks is noted in
    the home, so that `serve` goes on with it.
    """
    rubric = rubric_to_ask(CampaignRecords(study))[0]
    settings: dict[str, int] = {}
    with stage(study, "publish", shown_files(study.folder), settings=settings):
        reads = accounts.languages_at(argilla, home)
        done = publish(study, argilla, reads, ahead)
        training = publish_training(study, argilla, rubric)
        settings |= {"annotators": done.admission.people, "unopened": len(done.unopened)}
    if study.raters.blocks and argilla.connection is not None:
        exports = study.folder.parent
        exports = exports.absolute() if isinstance(exports, Path) else exports
        entry = {"study": str(study.file), "exports": str(exports)}
        with changing(home):
            if entry not in (noted := noted_studies(home)):
                write_json(home.blocks_file, [*noted, entry])
    return done, training


def noted_studies(home: server.Home) -> list[dict[str, str]]:
    """The studies whose blocks the home's server opens. Raises DataError for a damaged file."""
    if not home.blocks_file.exists():
        return []
    noted: list[dict[str, str]] = read_json(home.blocks_file)
    return noted


@dataclass
class BlockOpener:
    """Opens the next blocks of a home's studies while its server runs; call `look` often."""

    home: server.Home
    connection: server.Connection
    say: Callable[[str], None] = print
    seconds: float = LOOK_SECONDS
    _next: float = field(default=0.0, init=False)  # by time.monotonic
    _studies: dict[tuple[str, str], _ServedStudy] = field(default_factory=dict, init=False)  # by file and exports
    _troubles: dict[tuple[str, str], str] = field(default_factory=dict, init=False)

    def look(self) -> None:
        """Open the blocks that are due, at most every few seconds; print troubles once, and raise none."""
        if time.monotonic() < self._next:
            return
        try:
            entries = noted_studies(self.home)
            if entries:
                with attach(self.connection) as argilla:
                    for entry in entries:
                        self._advance(entry, argilla)
        except (PlumblineError, OSError, ValueError, KeyError, TypeError) as error:
            self._tell(("", ""), error)
        self._next = time.monotonic() + self.seconds

    def _advance(self, entry: Mapping[str, str], argilla: Argilla) -> None:
        key = entry["study"], entry["exports"]
        try:
            study = load_study(*key)
            opened = self._studies.setdefault(key, _ServedStudy())
            for line in opened.round(study, self.home, argilla) if study.raters.blocks else ():
                self.say(f"{study.name}: {line}")
            self._troubles.pop(key, None)
        except (PlumblineError, OSError) as error:
            self._tell(key, error)

    def _tell(self, key: tuple[str, str], error: Exception) -> None:
        line = " ".join(str(error).split())
        if self._troubles.get(key) != line:
            self._troubles[key] = line
            self.say(f"Blocks cannot be opened now; the server will try again: {line}")


def early_block(open_blocks: Mapping[Place, tuple[int, int]], waiting: int, at_work: int) -> Place | None:
    """Return the group to open a block for before its open one is complete; None while few raters lack work.

    `open_blocks` are what may get one: how many blocks are open there, and the answers that the first of them lacks.
    `waiting` of the raters who are `at_work` have nothing left.
    """
    if not open_blocks or waiting < max(1.0, IDLE_SHARE * at_work):
        return None
    return min(open_blocks, key=lambda key: open_blocks[key])


@dataclass
class _ServedStudy:
    """A study's campaign while it is served, with its last observed state."""

    blocks: Mapping[Place, BlockProgress] = field(default_factory=dict)
    ahead: dict[Place, int] = field(default_factory=dict)  # blocks that are open, where one was opened early
    datasets: dict[str, set[Place]] = field(default_factory=dict)  # by name: what is judged apart there
    checks: Counter[str] = field(default_factory=Counter)  # controls and repeats, by dataset
    states: dict[str, str] = field(default_factory=dict)  # of its datasets, when answers were taken in last
    answered: dict[str, datetime] = field(default_factory=dict)  # when each rater answered last
    collected: float = 0.0  # when answers were taken in last, by time.monotonic

    def round(self, study: Study, home: server.Home, argilla: Argilla) -> list[str]:
        """Collect answers and open blocks where due; return lines on the changes."""
        listed = {name: dataset for (_, name), dataset in argilla.datasets().items()}
        if self._due(argilla, listed):
            self.states = {name: listed[name].last_activity_at for name in self.datasets if name in listed}
            self.collected = time.monotonic()
            ratings = take_in(study, home, argilla)
            last = ratings[ratings["status"] == "submitted"].groupby("rater_id")["submitted_at"].max()
            self.answered = dict(zip(last.index.astype(str), last.dt.to_pydatetime(), strict=True))
        elif (early := self._early(study, argilla, listed)) is not None:
            self.ahead[early] = self._opened(early) + 1
        else:
            return []
        earlier = {key: (group.decision, group.opened) for key, group in self.blocks.items()}
        done, _ = put_out(study, home, argilla, self.ahead)
        self.blocks = done.blocks
        self._know(study, done.unopened)
        return [
            f"{of_group(key)}: {'; '.join([group.decision, *group.lines()])}"
            for key, group in done.blocks.items()
            if (group.decision, group.opened) != earlier.get(key)
        ]

    def _know(self, study: Study, unopened: Collection[str]) -> None:
        """Note the study's datasets, the groups that their pairs count for, and their numbers of checks."""
        names = SCOPES[study.acceptance.scope]
        for queue, pairs in queues_of(CampaignRecords(study).shown).items():
            keys = {tuple(str(getattr(pair, name)) for name in names) for pair in pairs if not pair.control}
            self.datasets[queue.dataset(study.name)] = keys
            checks = [pair for pair in pairs if pair.control and pair.pair_id not in unopened]
            self.checks[queue.dataset(study.name)] = len(checks)

    def _due(self, argilla: Argilla, listed: Mapping[str, DatasetListing]) -> bool:
        """Return whether a block may be complete: in a dataset that changed no more records wait than are checks."""
        here = [name for name in self.datasets if name in listed]
        changed = [name for name in here if listed[name].last_activity_at != self.states.get(name)]
        if not self.datasets or (changed and time.monotonic() - self.collected > WHOLE_SECONDS):
            return True
        waiting = {name: argilla.request("GET", f"/datasets/{listed[name].id}/progress") for name in changed}
        return any(progress.get("pending", 0) <= self.checks[name] for name, progress in waiting.items())

    def _early(self, study: Study, argilla: Argilla, listed: Mapping[str, DatasetListing]) -> Place | None:
        """Return the group that gets its next block early because raters' queues are empty, whatever they answered."""
        since = datetime.now(UTC) - ACTIVE
        at_work = {rater for rater, at in self.answered.items() if at > since}
        undecided = [key for key, group in self.blocks.items() if group.going_on]
        undecided = [key for key in undecided if self._opened(key) < len(self.blocks[key].ends)]
        if not undecided or not at_work:
            return None
        users = {account_pseudonym(study.name, user.id, simulated=user.simulated): user for user in argilla.users()}
        members = {name: argilla.members(listed[name].workspace_id) for name in self.datasets if name in listed}
        waiting, places = 0, set[Place]()
        for rater in at_work & users.keys():
            readable = [name for name in members if users[rater].id in members[name]]
            key = users[rater].api_key  # the rater's own queue: without the records that others have in hand
            queues = (argilla.request("GET", f"/datasets/{listed[name].id}/progress", api_key=key) for name in readable)
            if not any(queue.get("pending", 0) for queue in queues):
                waiting += 1
                places |= {of_dataset for name in readable for of_dataset in self.datasets[name]}
        open_blocks = {
            key: (self._opened(key) - self.blocks[key].complete, self.blocks[key].missing)
            for key in undecided
            if key in places
        }
        return early_block(open_blocks, waiting, len(at_work))

    def _opened(self, key: Place) -> int:
        """Return how many blocks are open."""
        return max(self.blocks[key].opened, self.ahead.get(key, 0))
