"""Rooms: each batch is a dataset of our own Argilla, in a workspace of its own, with the participants' answers.

Participants come from Prolific through the started server's pages (`plumbline_argilla.crowd`), which read the rooms
from a file in the server's home. Rooms are separate from the datasets of the study's queues: `collect` never reads
them, so no answer counts twice.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from annotation import server
from annotation.argilla.client import Argilla, connect
from annotation.argilla.dataset import Orders, Words, answer_of, time_of
from annotation.argilla.publish import fill
from annotation.campaign.names import WORKER
from annotation.campaign.offering import CampaignName, Mode
from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import Rubric
from annotation.crowd.page import consent_of, examples_html, prolific_words
from annotation.crowd.platform import Offer, Opening, crowd_of
from annotation.human.order import drawing_of, pages_shown
from annotation.page.task import direction, task_of
from annotation.page.training import read_items
from annotation.ratings.answers import Answer, is_time, seconds_of
from annotation.sampling.queues import Queue
from annotation.server.home import PRIVATE_FOLDER, changing, write_private
from annotation.verdicts.preregistration import asked_rubric
from plumbline.errors import DataError, ServiceError, StudyError
from plumbline.identity import identity
from plumbline.reading import read_json
from plumbline.study import Study
from plumbline.study.crowd import CrowdSpec, PlatformName

VERSION = 1
#: Argilla stops showing a pair with this many answers. It is never reached, because a participant who replaces one
#: that gave up, ran out of time or was rejected must also see every pair.
ENOUGH = 1000
DONE = "When you have rated all pairs: get your completion code"
ADMITTED = "admitted.json"  #: beside the file of rooms


@dataclass(frozen=True)
class Room:
    """The page where a batch is rated."""

    room_id: str  #: a hash of study, platform and batch, and the mode
    address: str  #: the page where participants enter
    code: str  #: the completion code when everything is answered
    return_code: str  #: the code for a participant who cannot take part


@dataclass(frozen=True)
class Progress:
    """A participant's progress."""

    answered: int  #: pairs submitted or discarded
    rated: int  #: pairs submitted
    pairs: int  #: pairs of the batch
    last: datetime | None  #: when the last answer changed, UTC
    consented: datetime | None  #: when they consented, UTC

    @property
    def done(self) -> bool:
        """True if the participant has earned the completion code."""
        return self.pairs > 0 and self.answered >= self.pairs and self.rated >= self.pairs / 2


def room_of(study: Study, platform: PlatformName, mode: Mode, key: bytes, batch_id: str) -> Room:
    """Return a batch's room, the same at each call, and another one for another study on the same pairs.

    The codes are made with the home's key, so that nobody can guess a code without answering. Raises StudyError for a
    study without an address where participants enter.
    """
    study_name, address = study.name, crowd_with_address(study).address
    room_id = f"{identity('room-v1', study_name, platform, batch_id)[:16]}-{mode}"

    def code(kind: str) -> str:
        digest = hmac.new(key, "\0".join(("code-v1", study_name, room_id, kind)).encode(), hashlib.sha256).digest()
        return base64.b32encode(digest)[:8].decode("ascii")

    return Room(room_id, f"{address}/crowd/enter/{room_id}", code("done"), code("return"))


def crowd_with_address(study: Study, mode: Mode = "sandbox") -> CrowdSpec:
    """Return the study's crowd settings. Raises StudyError without an address, or in live mode without https."""
    if study.crowd is None or not study.crowd.address:
        raise StudyError(
            f"{study.file}: crowd.address is missing: give the https address under which participants reach the"
            " started server (docs/howto/prolific.md)"
        )
    if mode == "live" and not study.crowd.address.startswith("https://"):
        raise StudyError(f"{study.file}: crowd.address must be https, or others could read participants' answers")
    return study.crowd


def refuse_unshowable(study: Study, rubric: Rubric, queue: Queue) -> None:
    """Raise StudyError for a rubric that the rating page cannot show."""
    if fault := Words.of(rubric, queue, task={}).too_much():
        raise StudyError(f"{study.file}: the page cannot show rubric {rubric.name!r}: {fault}")


class ArgillaRooms:
    """Rooms on the home's own server."""

    @classmethod
    def of(cls, opening: Opening, platform: PlatformName) -> Self:
        """Connect to the home's server until the command ends."""
        argilla = opening.ends.enter_context(connect(opening.home))
        return cls(opening.study, opening.mode, opening.key, argilla, platform)

    def __init__(
        self, study: Study, mode: Mode, key: bytes, argilla: Argilla, platform: PlatformName = "prolific"
    ) -> None:
        """Raises StudyError for an Argilla elsewhere, which has no page where participants can enter."""
        if argilla.connection is None or argilla.connection.home is None:
            raise StudyError(
                f"crowd participants cannot enter the Argilla at {argilla.url}; start the server of this home"
                " (plumbline serve) and unset ARGILLA_API_URL"
            )
        self._study, self._mode, self._key, self._crowd = study, mode, key, crowd_with_address(study)
        self._argilla, self._home, self._platform = argilla, argilla.connection.home, platform

    @cached_property
    def _rubric(self) -> Rubric:
        """The rubric as it was fixed for the participants."""
        return asked_rubric(CampaignRecords(self._study))

    @cached_property
    def _offered(self) -> str:
        """When the sample was first offered, which tells studies of one name apart."""
        offerings = CampaignRecords(self._study).offerings
        return offerings[0].at.isoformat() if offerings else ""

    def open(self, offer: Offer) -> Room:
        """Create the workspace and dataset if missing, send missing pairs, and tell the server.

        Raises StudyError for a room of another study with this name and these pairs, and if the server runs under
        another path than the study's address has: its pages would not work.
        """
        wanted, has = (urlsplit(url).path for url in (self._crowd.address, self._argilla.url))
        if wanted != has:
            raise StudyError(
                f"{self._study.file}: crowd.address has {f'the path {wanted}' if wanted else 'no path'}, and the server"
                f" runs under {has or 'none'}: stop it, and start it with `plumbline serve --study {self._study.file}`"
            )
        room = self._room(offer.batch.batch_id)
        entry = read_rooms(self._home).get(room.room_id)
        if entry is not None and entry["offered"] != self._offered:
            raise StudyError(
                f"{self._study.file}: the server has a room of another study named {self._study.name!r}, or of this one"
                " before its records were deleted, with the same pairs; give this one another `name`, and run its"
                " commands again from the first"
            )
        name = self._name(room)
        if name not in self._argilla.workspaces():
            self._argilla.request("POST", "/workspaces", json={"name": name})
        rubric, queue, drawing = self._rubric, offer.batch.queue, drawing_of(self._study, offer.pairs)
        language = rubric.language_for(queue.language, queue.output_language)
        page_words = prolific_words(language, of_pairs=not rubric.fields.shown)
        done = f"**[{page_words.get('done_link', DONE)}]({room.address})**"
        words = Words.of(rubric, queue, done, task_of(self._study, rubric, queue, name, drawing=drawing))
        dataset_id, _ = fill(self._argilla, (name, name), words, ENOUGH, offer.pairs, drawing)
        self._tell_server(offer, room, self._argilla.workspaces()[name], dataset_id)
        return room

    def restore(self, offer: Offer) -> None:
        """Open an offered batch's room again if rooms.json lacks it."""
        if self._room(offer.batch.batch_id).room_id not in read_rooms(self._home):
            self.open(offer)

    def answers(self, offer: Offer, pseudonym: str) -> Sequence[Answer]:
        """Return a participant's submitted and discarded answers, in the order of answering.

        Raises DataError for answers to pairs that the batch does not show.
        """
        room = self._room(offer.batch.batch_id)
        name = self._name(room)
        if (read := self._responses(room)) is None:
            raise ServiceError(
                f"Argilla at {self._argilla.url} has no dataset {name!r}; if it was deleted, restore a backup of the"
                " server"
            )
        dataset_id, _, responses = read
        orders, questions = Orders.of(self._argilla, dataset_id), self._rubric.asked(offer.batch.pool)
        pair_ids, answers = {pair.pair_id for pair in offer.pairs}, list[Answer]()
        for pair_id, response in responses.get(pseudonym, ()):
            if pair_id not in pair_ids:
                raise DataError(
                    f"{name}: has an answer to a pair outside its batch; check whether the dataset belongs to another"
                    " study"
                )
            answer = answer_of(response, pair_id, questions, orders)
            if not is_time(answer.submitted_at):
                raise DataError(f"{name}: the time {answer.submitted_at[:60]!r} of an answer cannot be read")
            answers.append(answer)
        times = seconds_of(answers, pages_shown(self._study, offer.pairs))
        timed = [replace(answer, seconds=seconds) for answer, seconds in zip(answers, times, strict=True)]
        return sorted(timed, key=lambda answer: datetime.fromisoformat(answer.submitted_at))

    def progress(self, batch_id: str) -> Mapping[str, Progress]:
        """Return each participant's progress on a batch, by pseudonym.

        It comes from Argilla and from the server's book of consents.
        """
        room = self._room(batch_id)
        if (read := self._responses(room)) is None:
            return {}
        consents, (_, number, responses) = read_consents(self._home, room.room_id), read
        return {
            worker: Progress(
                len(answers), sum(response["status"] == "submitted" for _, response in answers), number,
                max((datetime.fromisoformat(at) for _, response in answers if is_time(at := time_of(response))),
                    default=None),
                consents.get(worker),
            )
            for worker, answers in responses.items()
            if worker.startswith(WORKER)
        }  # fmt: skip

    def _responses(self, room: Room) -> tuple[str, int, dict[str, list[tuple[str, Mapping[str, Any]]]]] | None:
        """Return a room's dataset, number of pairs, responses (also discarded) by pseudonym; None without a dataset."""
        name = self._name(room)
        dataset = self._argilla.datasets().get((name, name))
        if dataset is None:
            return None
        # Accounts as the server's pages make them: one for each room.
        members = self._argilla.members(dataset.workspace_id)
        names = {user_id: user.username.removesuffix(f"-{room.room_id}") for user_id, user in members.items()}
        records = list(self._argilla.records(dataset.id))  # before the orders: everybody who has answered has one
        responses: dict[str, list[tuple[str, Mapping[str, Any]]]] = {pseudonym: [] for pseudonym in names.values()}
        for record in records:
            for response in record.get("responses") or []:
                if response["user_id"] in names and response["status"] in ("submitted", "discarded"):
                    responses[names[response["user_id"]]].append((record["external_id"], response))
        return dataset.id, len(records), responses

    def admit(
        self, batch_id: str, posted_id: str, pseudonyms: Sequence[str], limits: Mapping[str, Any] | None = None
    ) -> None:
        """Note which study of the platform a room's participants come from, and who has a submission there.

        `limits` are for platforms that cannot exclude workers: `places` in all, and the workers who are `out`.
        """
        file, room_id = rooms_file(self._home).with_name(ADMITTED), self._room(batch_id).room_id
        with _changing(self._home):
            rooms = read_admitted(file)
            workers = sorted({*rooms.get(room_id, {}).get("workers", ()), *pseudonyms})
            _write_room(file, rooms, room_id, {"study": posted_id, "workers": workers, **(limits or {})})

    def _room(self, batch_id: str) -> Room:
        return room_of(self._study, self._platform, self._mode, self._key, batch_id)

    def _name(self, room: Room) -> str:
        # A queue's workspace ends with languages in capitals, so it cannot have this name.
        return f"{self._study.name}-crowd-{room.room_id}"

    def _tell_server(self, offer: Offer, room: Room, workspace_id: str, dataset_id: str) -> None:
        crowd, rubric = self._crowd, self._rubric
        entry: dict[str, Any] = {
            "study": self._study.name,
            "offered": self._offered,
            "platform": self._platform,
            "address": crowd.address,
            "key": self._key.hex(),
            "workspace_id": workspace_id,
            "dataset_id": dataset_id,
            "most": ENOUGH // 2,
            "code": room.code,
            "return_code": room.return_code,
            **shown_first(self._study, rubric, offer.batch.queue, len(offer.pairs)),
        }
        if self._platform == "link" and (link := crowd.link) is not None:
            complete = link.complete.get(offer.batch.batch_id, link.complete.get("", ""))
            entry |= {"parameters": link.names, "complete": complete, "title": link.title}
            entry |= {"signed": link.preset == "mailing_list"}
        if examples := examples_html(read_items(self._study, rubric), rubric, offer.batch.queue):
            entry["examples"] = examples
        with _changing(self._home):
            _write_room(rooms_file(self._home), read_rooms(self._home), room.room_id, entry)


@contextlib.contextmanager
def _changing(home: server.Home) -> Iterator[None]:
    """Make the folder of rooms if it is missing, and lock its files."""
    rooms_file(home).parent.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    with changing(home):
        yield


def _write_room(file: Path, rooms: Mapping[str, Any], room_id: str, entry: Mapping[str, Any]) -> None:
    """Write a room's entry into a file of `rooms`, unless the file has it."""
    if rooms.get(room_id) != entry:
        content = {"version": VERSION, "rooms": {**rooms, room_id: entry}}
        write_private(file, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def shown_first(study: Study, rubric: Rubric, queue: Queue, pairs: int) -> dict[str, Any]:
    """Return the texts that participants see before a batch of `pairs` pairs, in their language."""
    language = rubric.language_for(queue.language, queue.output_language)
    return {
        "records": pairs,
        "language": language,
        "guidelines": rubric.guidelines_for(queue.pool, language),
        "direction": direction(language),
        "words": prolific_words(language, of_pairs=not rubric.fields.shown),
        "consent": consent_of(crowd_of(study), language),
        "contact": study.raters.contact,
    }


def rooms_file(home: server.Home) -> Path:
    """Return the file of rooms that the server reads.

    It holds the key of pseudonyms, so only its user can read it.
    """
    return home.path / "crowd" / "rooms.json"


def read_rooms(home: server.Home) -> dict[str, dict[str, Any]]:
    """Return the server's rooms by id; none without the file. Raises DataError for a damaged file."""
    file = rooms_file(home)
    try:
        content = read_json(file)
        rooms: dict[str, dict[str, Any]] = content["rooms"]
        if content["version"] != VERSION or not isinstance(rooms, dict):
            raise ValueError(f"version {content['version']}")
    except FileNotFoundError:
        return {}
    except (DataError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{file}: damaged ({error}); move it away and run `plumbline crowd launch` for each study with open"
            " batches, which opens their rooms again"
        ) from None
    return rooms


def read_consents(home: server.Home, room_id: str) -> dict[str, datetime]:
    """Return the time of each participant's consent in a room, by pseudonym; {} before the server has a book."""
    rows = _in_book(home, "SELECT worker, consented_at FROM entries WHERE room = ?", room_id)
    return {worker: datetime.fromisoformat(at) for worker, at in rows}


def read_refused(home: server.Home, study_name: str) -> dict[tuple[CampaignName, str], datetime]:
    """Return when other browsers last came with a participant's id, by campaign and pseudonym."""
    refused = dict[tuple[CampaignName, str], datetime]()
    query = "SELECT worker, refused_at FROM entries WHERE room = ? AND refused_at IS NOT NULL"
    for room_id, campaign in _rooms_of(home, study_name).items():
        for worker, at in _in_book(home, query, room_id):
            key, moment = (campaign, worker), datetime.fromisoformat(at)
            refused[key] = max(moment, refused.get(key, moment))
    return refused


def release(home: server.Home, study_name: str, campaign: CampaignName, worker: str) -> int:
    """Let the next browser that comes with a participant's id go on where one was refused; return in how many rooms."""
    change = (
        "UPDATE entries SET browser = NULL, refused_at = NULL"
        " WHERE room = ? AND worker = ? AND refused_at IS NOT NULL RETURNING room"
    )
    rooms = [room_id for room_id, of in _rooms_of(home, study_name).items() if of == campaign]
    return sum(len(_in_book(home, change, room_id, worker)) for room_id in rooms)


def _rooms_of(home: server.Home, study_name: str) -> dict[str, CampaignName]:
    """Return the campaigns of a study's rooms, by the rooms' ids."""
    modes: Mapping[str, Mode] = {"live": "live", "test": "test"}
    return {
        room_id: CampaignName(room["platform"], modes.get(room_id.rpartition("-")[2], "sandbox"))
        for room_id, room in read_rooms(home).items()
        if room["study"] == study_name
    }


def _in_book(home: server.Home, statement: str, *values: str) -> list[tuple[str, ...]]:
    """Return the rows of a statement on the server's book of participants; none before there is one."""
    file = home.path / "crowd" / "entries.db"
    if not file.exists():
        return []
    with contextlib.closing(sqlite3.connect(file, isolation_level=None, timeout=10)) as book:
        return book.execute(statement, values).fetchall()


def read_admitted(file: Path) -> dict[str, dict[str, Any]]:
    """Return Prolific's participants by room; {} for a missing or damaged file, which the next call writes again."""
    try:
        rooms = json.loads(file.read_text(encoding="utf-8"))["rooms"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return rooms if isinstance(rooms, dict) else {}
