"""Any platform that sends people by a link: they rate in a room of our own server and are paid from lists.

The platform's CSV lists the participants (`plumbline collect --participants`), whose pseudonyms are looked up in the
rooms; for a mailing list, we create the list, and each person has a signed link. So made-up ids never count, as on
Prolific (`annotation.crowd.prolific.workspaces` has the rooms). Approved work and bonuses go on lists of payments,
which the coordinator uploads or pays by hand.
"""

from __future__ import annotations

import csv
import hashlib
import hmac
import io
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Self
from urllib.parse import urlencode

import pandas as pd

from annotation.campaign.names import worker_pseudonym
from annotation.campaign.offering import Mode
from annotation.campaign.records import CampaignRecords
from annotation.crowd.account import AccountOffer, AccountPlatform
from annotation.crowd.pay import amount
from annotation.crowd.platform import Check, Offer, Opening, RefusedError, State, Submission
from annotation.crowd.prolific import workspaces
from annotation.ratings.answers import Answer
from plumbline.errors import DataError, StudyError
from plumbline.exhibits.table import write_csv
from plumbline.reading import read_text
from plumbline.study import Study
from plumbline.study.crowd import CrowdSpec, LinkSpec, PlatformName

PERSON = re.compile("[0-9A-Za-z][0-9A-Za-z_.~-]{0,127}")  # an id, as the server's page takes it
HELD = timedelta(hours=6)  # after the time limit, until an inactive participant loses the place
LISTS = "payments"  #: the folder of lists, beside the ledger


def link_of(crowd: CrowdSpec) -> LinkSpec:
    """Return the study's link settings. Raises StudyError if there are none."""
    if crowd.link is None:
        raise StudyError("crowd.link is missing: name a preset, such as `link: {preset: sona}` (docs/howto/links.md)")
    return crowd.link


def signature(key: bytes, room_id: str, person: str) -> str:
    """Sign a person's link to a room; nobody can forge it without the home's key."""
    # The server's page (plumbline_argilla.crowd) makes the same.
    return hmac.new(key, "\0".join(("link-v1", room_id, person)).encode(), hashlib.sha256).hexdigest()[:32]


def read_participants(path: Path, column: str) -> list[str]:
    """Return the ids in a platform's CSV, from the column of this name or `participant`, in any case.

    Raises DataError for a file without such a column (without a header it would lose its first person), and with file
    and line for a value that is not an id.
    """
    try:
        rows = csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True)
        names = list(rows.fieldnames or ())
        if not names:
            raise DataError(f"{path}: is empty; a CSV with a header and a participant's id in each row is expected")
        wanted = (column.casefold(), "participant")
        named = next((name for key in wanted for name in names if name.strip().casefold() == key), None)
        if named is None:
            raise DataError(f"{path}: has no column {column!r} or 'participant'; rename the column of ids")
        ids = [(rows.line_num, (row[named] or "").strip()) for row in rows]
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read as a CSV ({error})") from None
    for line, person in ids:
        if person and not PERSON.fullmatch(person):
            raise DataError(f"{path}, line {line}: {person[:40]!a} in column {named!r} is not a participant's id")
    return [person for _, person in ids if person]


class LinkPlatform(AccountPlatform):
    """A platform that sends people by a link, in one mode (`platform.Platform`)."""

    name: PlatformName = "link"
    guide = "docs/howto/links.md"

    @classmethod
    def open(cls, opening: Opening) -> Self:
        rooms = workspaces.ArgillaRooms.of(opening, cls.name)
        return cls(opening.study, opening.mode, opening.key, rooms, opening.invited)

    @classmethod
    def settings(cls, records: CampaignRecords) -> Iterator[Check]:
        yield from super().settings(records)
        yield partial(link_of, records.study.crowd or CrowdSpec())

    @classmethod
    def settings_to_launch(cls, records: CampaignRecords, mode: Mode) -> Iterator[Check]:
        yield partial(workspaces.crowd_with_address, records.study, mode)

    def __init__(self, study: Study, mode: Mode, key: bytes, rooms: workspaces.ArgillaRooms, invited: int = 0) -> None:
        """`key` makes pseudonyms; `invited` people get a link each if the platform is a mailing list.

        Raises StudyError if the study has no address or no link settings.
        """
        super().__init__(study, mode, f"link-{mode}.json")
        self._crowd, self._key, self._rooms = workspaces.crowd_with_address(study, mode), key, rooms
        self._link = link_of(self._crowd)
        self._invited, self.title = invited, self._link.title

    @property
    def _people(self) -> list[str]:
        """The participants known to the platform, ordered by id."""
        return sorted(self.account.notes.get("participants", []))

    def confirm(self, path: Path) -> None:
        self._confirm(read_participants(path, self._link.names[0]))

    def _confirm(self, people: Collection[str]) -> None:
        self.account.notes["participants"] = sorted({*self._people, *people})
        self.account.write()

    def prepare(self) -> None:
        """Note how many people have links: whoever has one to a batch has one to each."""
        self.account.notes["invited"] = max(self._invited, self.account.notes.get("invited", 0))
        self.account.write()

    def check(self, offer: Offer) -> None:
        workspaces.refuse_unshowable(self._study, self._rubric, offer.batch.queue)

    def send_offer(self, offer: Offer, token: str) -> str:
        """Open the batch's room; for a mailing list, also write everybody's link."""
        self._rooms.open(offer)
        posted_id = super().send_offer(offer, token)
        self._limit(self.offer_of(posted_id), ())
        self._invite(posted_id)
        return posted_id

    def restore(self, offer: Offer) -> None:
        """Open the batch's room again if the server has lost it; for a mailing list, also write everybody's link."""
        self._rooms.restore(offer)
        self._invite(offer.batch.batch_id)

    def preview(self, posted_id: str) -> str:
        """Return the link to give to the platform; in live mode the platform adds the parameters."""
        made_up = {name: "EXAMPLE" for name in self._link.names if name}
        return self._room(posted_id).address + ("" if self.mode == "live" else f"?{urlencode(made_up)}")

    def launch_lines(self, posted_ids: Mapping[str, str]) -> Iterator[str]:
        for batch_id, posted_id in posted_ids.items() if self.mode == "live" else ():
            yield f"batch {batch_id}: {self.preview(posted_id)}"
        yield from super().launch_lines(posted_ids)

    def _room(self, batch_id: str) -> workspaces.Room:
        return workspaces.room_of(self._study, self.name, self.mode, self._key, batch_id)

    def _invite(self, batch_id: str) -> None:
        """Make the ids of a mailing list, if it is one, the same for all batches, and write their links."""
        if self._link.preset != "mailing_list":
            return
        invited = range(self.account.notes["invited"])
        parts = (f"invited-v1\0{self._study.name}\0{number}".encode() for number in invited)
        people = [hmac.new(self._key, part, hashlib.sha256).hexdigest()[:12] for part in parts]
        participant, session = self._link.names
        room, rows = self._room(batch_id), []
        for number, person in enumerate(people, 1):
            signed = {participant: person, session: signature(self._key, room.room_id, person)}
            rows.append([str(number), f"{room.address}?{urlencode(signed)}"])
        path = self._study.scratch / LISTS / f"links-{self.mode}-{batch_id}.csv"
        write_csv(pd.DataFrame(rows, columns=["number", "link"]), path)
        self._confirm(people)

    # Who works

    def submissions(self, posted_id: str) -> Iterator[Submission]:
        """Yield the work of known participants on a batch."""
        progress = self._rooms.progress(self.offer_of(posted_id).batch_id)
        for person in self._people:
            worker = worker_pseudonym(self._key, self._study.name, self.name, person)
            if worker in progress:
                yield self._submission(posted_id, person, worker, progress[worker])

    def _submission(self, posted_id: str, person: str, worker: str, progress: workspaces.Progress) -> Submission:
        submission_id = f"{posted_id}-{worker.rpartition('-')[2]}"
        since = progress.last or progress.consented
        over = since is not None and datetime.now(UTC) - since > HELD + timedelta(hours=self._crowd.hours)
        state: State = "submitted" if progress.done else "returned" if over else "working"
        seconds = math.nan
        if progress.done and progress.last and progress.consented:
            seconds = max(0.0, (progress.last - progress.consented).total_seconds())
        at = progress.last if progress.done else None
        return self.submission_of(Submission(submission_id, posted_id, person, state, seconds, at))

    def submission(self, submission_id: str) -> Submission:
        posted_id = submission_id.rpartition("-")[0]
        works = self.submissions(posted_id) if posted_id in self.account.offers else iter(())
        work = next((work for work in works if work.submission_id == submission_id), None)
        if work is None:
            raise RefusedError(f"{self.account.path}: has no submission {submission_id}")
        return work

    def answers(self, submission: Submission, offer: Offer) -> Sequence[Answer]:
        return self._rooms.answers(offer, worker_pseudonym(self._key, self._study.name, self.name, submission.worker))

    # Who may come

    def admit(self, batch_id: str, posted_id: str, pseudonyms: Sequence[str]) -> None:
        """Write the room's participants and places to its file; participants who gave up take no place."""
        self._limit(self.offer_of(posted_id), pseudonyms)

    def _limit(self, offer: AccountOffer, pseudonyms: Sequence[str]) -> None:
        gave_up = sum(work.state == "returned" for work in self.submissions(offer.posted_id))
        out = sorted(worker_pseudonym(self._key, self._study.name, self.name, person) for person in self.account.out)
        limits = {"places": offer.places + gave_up if offer.open else 0, "out": out}
        # A sandbox's pseudonyms begin with `simulated-`; account names do not.
        workers = [name.removeprefix("simulated-") for name in pseudonyms]
        self._rooms.admit(offer.batch_id, "", workers, limits)

    def change(self, offer: AccountOffer, update: dict[str, object]) -> bool:
        """Change an offer, and update its room."""
        changed = super().change(offer, update)
        self._limit(self.offer_of(offer.posted_id), ())
        return changed

    def keep_out(self, worker: str) -> None:
        super().keep_out(worker)
        for offer in self.account.offers.values():
            self._limit(offer, ())

    # Lists of payments

    def write_lists(self) -> list[Path]:
        """Write unlisted payments to a new list, and every list whose file is missing.

        The account first records the list of each payment, so that a rewritten list is the same, and no payment is on
        two lists.
        """
        account = self.account
        number = max((payment.list for payment in account.payments.values()), default=0)
        if any(not payment.list for payment in account.payments.values()):
            number += 1
            account.payments = {
                token: payment if payment.list else payment.model_copy(update={"list": number})
                for token, payment in account.payments.items()
            }
            account.write()
        written = []
        for which in range(1, number + 1):
            path = self._study.scratch / LISTS / f"{self.mode}-{which:03d}.csv"
            if not path.exists():
                rows = [
                    [paid.worker, amount(paid.cents), paid.kind, paid.submission_id, paid.reason]
                    for paid in account.payments.values()
                    if paid.list == which
                ]
                columns = ["participant", "dollars", "kind", "submission", "reason"]
                write_csv(pd.DataFrame(rows, columns=columns, dtype=str), path)
                written.append(path)
        return written
