"""The ledger: a crowd campaign's intended operations and their outcomes (`crowd.sqlite` in the study's folder).

Each intention is on disk before its call, and its outcome after it. An operation that is still intended after a crash,
or after a call with an unknown effect, is settled by asking the platform. The mode is part of every key, so a rehearsal
in a sandbox and a live campaign share nothing.

It is the only file with the platforms' own ids of workers.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from annotation.campaign.offering import LEDGER, REHEARSED, CampaignName, Mode, ledgers
from annotation.campaign.records import CampaignRecords
from annotation.crowd.batches import Batch
from annotation.crowd.operations import OPERATIONS, Kind, Operation
from annotation.crowd.platform import NoMoneyError, RefusedError, Submission
from plumbline.errors import DataError, StudyError
from plumbline.records import REHEARSAL
from plumbline.store import make_folder
from plumbline.study.crowd import PLATFORMS, PlatformName
from plumbline.words import count


@dataclass(frozen=True)
class Work:
    """A submission in the ledger."""

    submission: Submission
    batch_id: str
    pseudonym: str
    answered: bool  #: whether its answers have been read
    trouble: str  #: why the answers cannot be read; empty if they can

    @property
    def collected(self) -> bool:
        """Whether its answers have been read and are whole."""
        return self.answered and not self.trouble


@dataclass(frozen=True)
class SubmissionReview:
    """A person's decision about a submission, with the signs at that time."""

    submission_id: str
    decision: Literal["approve", "reject"]
    reason: str
    signs: tuple[str, ...]
    decided_at: datetime


VERSION = 1
#: Which operations count as spent: a crash may have come after the call of an intended one.
_SPENT = "(state = 'done' OR (state = 'intended' AND cents > 0))"

_SCHEMA = """
CREATE TABLE campaign (study TEXT NOT NULL);
CREATE TABLE batches (
    platform TEXT NOT NULL, mode TEXT NOT NULL, number INTEGER NOT NULL, batch_id TEXT NOT NULL,
    places INTEGER NOT NULL, reward INTEGER NOT NULL, content TEXT NOT NULL, PRIMARY KEY (platform, mode, batch_id));
CREATE TABLE operations (
    platform TEXT NOT NULL, mode TEXT NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL,
    cents INTEGER NOT NULL, details TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ('intended', 'done', 'refused')),
    outcome TEXT NOT NULL, intended_at TEXT NOT NULL, settled_at TEXT,
    PRIMARY KEY (platform, mode, kind, subject));
CREATE TABLE submissions (
    platform TEXT NOT NULL, mode TEXT NOT NULL, submission_id TEXT NOT NULL, batch_id TEXT NOT NULL,
    worker TEXT NOT NULL, pseudonym TEXT NOT NULL, state TEXT NOT NULL, seconds REAL, submitted_at TEXT,
    bonuses TEXT NOT NULL, answers TEXT, trouble TEXT NOT NULL DEFAULT '', PRIMARY KEY (platform, mode, submission_id));
CREATE TABLE decisions (
    platform TEXT NOT NULL, mode TEXT NOT NULL, submission_id TEXT NOT NULL, decision TEXT NOT NULL,
    reason TEXT NOT NULL, signs TEXT NOT NULL, decided_at TEXT NOT NULL);
"""


@dataclass(frozen=True)
class BatchOffer:
    """A batch in the ledger, with the terms of its first offer."""

    batch: Batch
    places: int
    reward: int  #: cents


class Ledger:
    """One study's ledger for one platform and mode; use it as a context."""

    def __init__(self, path: Path, study_name: str, platform: PlatformName, mode: Mode) -> None:
        """Open or create the ledger. Raises DataError for another version's or study's file, and for a damaged one."""
        self.path, self.campaign = path, CampaignName(platform, mode)
        make_folder(path.parent)
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))  # it holds workers' ids
        self._parsed: dict[str, Batch] = {}  # keyed by the file's content, so it is never out of date
        try:
            self._database = sqlite3.connect(path, isolation_level=None)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = FULL")  # an intention is on disk before its call
            version = self._database.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                self._create(study_name)
            elif version != VERSION:
                raise DataError(f"{path}: the ledger has version {version}, but this program reads version {VERSION};"
                                " use the program that wrote it")  # fmt: skip
            (owner,) = self._database.execute("SELECT study FROM campaign").fetchone()
        except sqlite3.DatabaseError as error:
            raise DataError(f"{path}: cannot be read as a ledger ({error}); restore it from a backup: without it"
                            " nobody knows what was paid") from None  # fmt: skip
        if owner != study_name:
            raise DataError(
                f"{path}: the ledger belongs to study {owner!r}, not to {study_name!r}; each study has its own folder"
            )

    def _create(self, study_name: str) -> None:
        with self._transaction():
            for statement in filter(str.strip, _SCHEMA.split(";")):
                self._database.execute(statement)
            self._database.execute("INSERT INTO campaign VALUES (?)", (study_name,))
            self._database.execute(f"PRAGMA user_version = {VERSION}")

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    # Batches

    def offered(self) -> list[BatchOffer]:
        """The batches of the campaign, in order."""
        return self._offers("platform = ? AND mode = ?", self.campaign)

    def find_offered(self, batch_id: str) -> BatchOffer | None:
        """Return a batch of the campaign; None if the campaign does not have it."""
        return next(iter(self._offers("platform = ? AND mode = ? AND batch_id = ?", (*self.campaign, batch_id))), None)

    def offered_anywhere(self) -> list[BatchOffer]:
        """The batches of this mode on all platforms: their pairs are not offered again."""
        return self._offers("mode = ?", (self.campaign.mode,))

    def _offers(self, condition: str, values: tuple[str, ...]) -> list[BatchOffer]:
        query = f"SELECT content, places, reward FROM batches WHERE {condition} ORDER BY platform, number"  # noqa: S608
        rows = self._database.execute(query, values).fetchall()
        for content in {content for content, *_ in rows} - self._parsed.keys():
            self._parsed[content] = Batch.model_validate_json(content)
        return [BatchOffer(self._parsed[content], places, reward) for content, places, reward in rows]

    def forget(self) -> None:
        """Remove everything of this platform and mode. Only a rehearsal or a test is ever forgotten."""
        if self.campaign.counts and not self.campaign.made_up:
            raise ValueError(f"the ledger of {self.campaign.platform} records payments and is never forgotten")
        with self._transaction():
            for table in ("decisions", "submissions", "operations", "batches"):
                self._database.execute(f"DELETE FROM {table} WHERE platform = ? AND mode = ?", self.campaign)  # noqa: S608

    def posted(self, platform: PlatformName) -> set[str]:
        """Return the batches that were, or may have been, offered on a platform in this mode."""
        rows = self._database.execute(
            "SELECT subject FROM operations WHERE platform = ? AND mode = ? AND kind = 'post' AND state != 'refused'",
            (platform, self.campaign.mode),
        )
        return {batch_id for (batch_id,) in rows}

    def drop_waiting(self, unwanted: Callable[[Batch], bool]) -> None:
        """Remove unwanted batches that were never offered; their other pairs go into later batches."""
        begun = self.posted(self.campaign.platform)
        with self._transaction():
            for offer in self.offered():
                if offer.batch.batch_id not in begun and unwanted(offer.batch):
                    self._database.execute(
                        "DELETE FROM batches WHERE platform = ? AND mode = ? AND batch_id = ?",
                        (*self.campaign, offer.batch.batch_id),
                    )

    def add_batches(self, batches: list[BatchOffer]) -> None:
        """Add batches to the campaign, all or none."""
        with self._transaction():
            (first,) = self._database.execute(
                "SELECT COALESCE(MAX(number) + 1, 0) FROM batches WHERE platform = ? AND mode = ?", self.campaign
            ).fetchone()
            for number, offer in enumerate(batches, first):
                row = (offer.batch.batch_id, offer.places, offer.reward, offer.batch.model_dump_json())
                self._database.execute(
                    "INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, ?)", (*self.campaign, number, *row)
                )

    # Operations

    def once(
        self, intention: tuple[Kind, str, int], details: Mapping[str, Any], find: Callable[[Operation], str | None],
        do: Callable[[Operation], str],
    ) -> str:  # fmt: skip
        """Carry out an operation on the platform once and for all; return its outcome, even from an earlier call.

        `intention` is its kind, subject and cost in cents. `find` first looks for an operation that is still intended
        (None: it did not take effect). Raises what `do` raises. After RefusedError the intention is settled as refused
        and costs nothing, except for NoMoneyError at a second try; after any other error it stays intended, and the
        next call looks for it.
        """
        kind, subject, cents = intention
        operation = self.operation(kind, subject)
        if operation is not None and operation.state == "done":
            return operation.outcome
        outcome, first = None, operation is None or operation.state == "refused"
        if operation is None or operation.state == "refused":
            operation = self._intend(kind, subject, cents, details)
        else:
            outcome = find(operation)
        if outcome is None:
            try:
                outcome = do(operation)
            except RefusedError as error:
                if first or not isinstance(error, NoMoneyError):
                    self._settle(operation, "refused", str(error))
                raise
        self._settle(operation, "done", outcome)
        return outcome

    def operation(self, kind: Kind, subject: str) -> Operation | None:
        """Return an operation, or None if it was never intended."""
        return next(self._operations("AND kind = ? AND subject = ?", (kind, subject)), None)

    def operations(self, kind: Kind | None = None, state: str = "") -> list[Operation]:
        """All operations (of a kind, in a state), the oldest first."""
        return list(self._operations("AND ? IN ('', kind) AND ? IN ('', state)", (kind or "", state)))

    def spent(self) -> int:
        """The cents of all operations done or intended in this mode, on all platforms.

        The money of a rejection is counted back when the rejection is done.
        """
        query = f"SELECT COALESCE(SUM(cents), 0) FROM operations WHERE mode = ? AND {_SPENT}"  # noqa: S608
        return int(self._database.execute(query, (self.campaign.mode,)).fetchone()[0])

    def spent_on(self) -> dict[str, int]:
        """The cents of all operations done or intended in this mode on this platform alone, by kind, in their order."""
        where = f"platform = ? AND mode = ? AND {_SPENT} GROUP BY kind ORDER BY MIN(rowid)"
        return dict(self._database.execute(f"SELECT kind, SUM(cents) FROM operations WHERE {where}", self.campaign))  # noqa: S608

    def reserved(self) -> Counter[str]:
        """The cents of each batch that are spent or reserved, without bonuses."""
        query = f"""SELECT COALESCE(json_extract(details, '$.batch'), s.batch_id, subject), SUM(cents) FROM operations o
            LEFT JOIN submissions s ON (o.platform, o.mode, subject) = (s.platform, s.mode, submission_id)
            WHERE o.platform = ? AND o.mode = ? AND kind != 'bonus' AND {_SPENT.replace("state", "o.state")}
            GROUP BY 1"""  # noqa: S608
        return Counter(dict(self._database.execute(query, self.campaign)))

    def approved(self, batch_id: str, *, but: str) -> int:
        """Return how many submissions to a batch are approved, or may be after a crash, beside the one `but`."""
        decided = (
            "SELECT subject FROM operations WHERE platform = ? AND mode = ? AND kind = 'approve' AND state != 'refused'"
        )
        query = f"""SELECT COUNT(*) FROM submissions WHERE platform = ? AND mode = ? AND batch_id = ?
            AND submission_id != ? AND (state = 'approved' OR submission_id IN ({decided}))"""  # noqa: S608
        return int(self._database.execute(query, (*self.campaign, batch_id, but, *self.campaign)).fetchone()[0])

    def _operations(self, more: str, values: tuple[str, ...]) -> Iterator[Operation]:
        columns = "kind, subject, cents, details, state, outcome, intended_at"
        rows = self._database.execute(
            f"SELECT {columns} FROM operations WHERE platform = ? AND mode = ? {more} ORDER BY rowid",  # noqa: S608
            (*self.campaign, *values),
        )
        for kind, subject, cents, details, state, outcome, at in rows.fetchall():
            # 64 characters are the most that MTurk allows.
            token = sha256("\0".join(("crowd-v1", *self.campaign, kind, subject, at)).encode()).hexdigest()
            intended_at = datetime.fromisoformat(at)
            yield OPERATIONS[kind](kind, subject, cents, json.loads(details), state, outcome, intended_at, token)

    def _intend(self, kind: Kind, subject: str, cents: int, details: Mapping[str, Any]) -> Operation:
        at = datetime.now(UTC).isoformat()
        # A refused operation is intended anew, at another time and so with another token.
        self._database.execute(
            "INSERT OR REPLACE INTO operations VALUES (?, ?, ?, ?, ?, ?, 'intended', '', ?, NULL)",
            (*self.campaign, kind, subject, cents, json.dumps(details, ensure_ascii=False), at),
        )
        return next(self._operations("AND kind = ? AND subject = ?", (kind, subject)))

    def _settle(self, operation: Operation, state: str, outcome: str) -> None:
        self._database.execute(
            "UPDATE operations SET state = ?, outcome = ?, settled_at = ? WHERE platform = ? AND mode = ? AND kind = ?"
            " AND subject = ?",
            (state, outcome, datetime.now(UTC).isoformat(), *self.campaign, operation.kind, operation.subject),
        )

    # Work

    def note(self, submission: Submission, batch_id: str, pseudonym: str) -> None:
        """Record a submission's present state; answers that were read stay."""
        at = submission.submitted_at.isoformat() if submission.submitted_at else None
        seconds = None if math.isnan(submission.seconds) else submission.seconds
        self._database.execute(
            "INSERT INTO submissions (platform, mode, submission_id, batch_id, worker, pseudonym, state, seconds,"
            " submitted_at, bonuses) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
            " state = excluded.state, seconds = excluded.seconds, submitted_at = excluded.submitted_at,"
            " bonuses = excluded.bonuses",
            (*self.campaign, submission.submission_id, batch_id, submission.worker, pseudonym, submission.state,
             seconds, at, json.dumps(submission.bonuses)),
        )  # fmt: skip

    def keep_answers(self, submission_id: str, answers: str, trouble: str = "") -> None:
        """Store a submission's answers (JSON), or the reason why they cannot be read."""
        self._database.execute(
            "UPDATE submissions SET answers = ?, trouble = ? WHERE platform = ? AND mode = ? AND submission_id = ?",
            (answers, trouble, *self.campaign, submission_id),
        )

    def answers(self, submission_id: str) -> str:
        """Return a submission's stored answers; empty if none are stored."""
        row = self._database.execute(
            "SELECT answers FROM submissions WHERE platform = ? AND mode = ? AND submission_id = ?",
            (*self.campaign, submission_id),
        ).fetchone()
        return (row[0] or "") if row else ""

    def work(self) -> list[Work]:
        """All submissions, in the order of their batches."""
        rows = self._database.execute(
            "SELECT s.submission_id, s.batch_id, worker, pseudonym, state, seconds, submitted_at, bonuses,"
            " answers IS NOT NULL, trouble, COALESCE((SELECT outcome FROM operations o WHERE o.platform = s.platform"
            " AND o.mode = s.mode AND o.kind = 'post' AND o.subject = s.batch_id), '')"
            " FROM submissions s JOIN batches b USING (platform, mode, batch_id)"
            " WHERE platform = ? AND mode = ? ORDER BY b.number, submitted_at, submission_id",
            self.campaign,
        )
        works = []
        for key, batch_id, worker, pseudonym, state, seconds, at, bonuses, answered, trouble, posted_id in rows:
            when = datetime.fromisoformat(at) if at else None
            time = float("nan") if seconds is None else seconds
            paid = tuple(json.loads(bonuses))
            submission = Submission(key, posted_id, worker, state, time, when, paid)
            works.append(Work(submission, batch_id, pseudonym, bool(answered), trouble))
        return works

    def work_by_batch(self) -> Mapping[str, list[Work]]:
        """Return the work on each batch; [] for a batch without work."""
        works = defaultdict[str, list[Work]](list)
        for work in self.work():
            works[work.batch_id].append(work)
        return works

    def payments(self) -> dict[Submission, tuple[int, int]]:
        """Return the reward and the bonus of each approved submission, in cents."""
        rewards = {offer.batch.batch_id: offer.reward for offer in self.offered()}
        paid = {bonus.subject: int(bonus.details["cents"]) for bonus in self.operations("bonus", state="done")}
        return {  # a platform shows a bonus some time after it was paid
            (done := work.submission): (rewards[work.batch_id], max(sum(done.bonuses), paid.get(done.submission_id, 0)))
            for work in self.work()
            if work.submission.state == "approved"
        }

    def closed(self) -> set[str]:
        """Return the batches that a person closed."""
        return {operation.details["batch"] for operation in self.operations("close")}

    def judge(self, judgement: SubmissionReview) -> None:
        """Record a person's decision; later decisions take precedence, earlier ones stay."""
        signs = json.dumps(judgement.signs, ensure_ascii=False)
        row = (judgement.submission_id, judgement.decision, judgement.reason, signs, judgement.decided_at.isoformat())
        self._database.execute("INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?, ?)", (*self.campaign, *row))

    def judgements(self, submission_id: str = "") -> list[SubmissionReview]:
        """All decisions (about a submission), the oldest first."""
        rows = self._database.execute(
            "SELECT submission_id, decision, reason, signs, decided_at FROM decisions WHERE platform = ? AND mode = ?"
            " AND ? IN ('', submission_id) ORDER BY rowid",
            (*self.campaign, submission_id),
        )
        return [
            SubmissionReview(key, decision, reason, tuple(json.loads(signs)), datetime.fromisoformat(at))
            for key, decision, reason, signs, at in rows
        ]


def refuse_lost_batches(records: CampaignRecords, ledger: Ledger) -> None:
    """Raise DataError if ratings belong to a live batch, on any platform, that the ledger never offered.

    Such a ledger is new or an older copy, and would offer and pay the same work again. Raises StudyError if the
    ratings are a rehearsal's, and as `refuse_lost_campaign`.
    """
    refuse_lost_campaign(records, ledger.campaign.mode)
    if ledger.campaign.mode != "live":
        return  # there it costs nothing
    ratings = records.all_ratings
    if (ratings["source"] == REHEARSAL).any():
        raise StudyError(
            f"{records.study.folder}: its ratings are a rehearsal's; remove the rehearsal first:"
            f" `{REHEARSED.command(records.study, 'close --forget')}`"
        )
    for platform in PLATFORMS:
        rated = set(ratings.loc[ratings["source"] == CampaignName(platform, "live").source, "batch"])
        if unoffered := sorted(rated - ledger.posted(platform)):
            raise DataError(
                f"{ledger.path}: {count(len(unoffered), f'live {platform} batch has', f'live {platform} batches have')}"
                f" ratings, but no offer in this ledger (first: {unoffered[0]}); restore the latest copy of the ledger:"
                " with this one the same work would be paid again"
            )


def refuse_lost_campaign(records: CampaignRecords, mode: Mode) -> None:
    """Raise DataError if this machine's ledger has no batch of a live campaign on record.

    With records at an address, each machine has its own ledger; only the launching machine's knows what was paid.
    """
    path = records.study.scratch / LEDGER
    if mode != "live":
        return
    live_campaigns = set(map(str, ledgers(path)))
    for offering in records.offerings:
        if offering.to.startswith("live ") and offering.to not in live_campaigns:
            raise DataError(
                f"{path}: this ledger does not have the batches that were offered on {offering.at:%Y-%m-%d}"
                f" ({offering.to}); continue on the machine that launched them, or copy its ledger here:"
                " with this one the same work would be paid again"
            )
