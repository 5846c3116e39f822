"""Work in the ledger: submissions as they were seen last, their answers, and what people decided about them.

Only here stand workers' ids as the platforms know them; all other records have pseudonyms.
"""

from __future__ import annotations

import json
import math
import sqlite3
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from annotation.crowd.platform import Submission
from annotation.offering import Mode
from plumbline.study.crowd import PlatformName


@dataclass(frozen=True)
class Work:
    """A submission in the ledger."""

    submission: Submission
    batch_id: str
    pseudonym: str
    answered: bool  #: whether its answers have been read
    trouble: str  #: why they cannot be; empty where they can


@dataclass(frozen=True)
class Judgement:
    """What a person decided about a submission, and which signs there were."""

    submission_id: str
    decision: Literal["approve", "reject", "ask"]
    reason: str
    signs: tuple[str, ...]
    decided_at: datetime


class WorkTables:
    """The part of a ledger that holds work, of one platform and mode."""

    _database: sqlite3.Connection
    _key: tuple[PlatformName, Mode]

    def note(self, submission: Submission, batch_id: str, pseudonym: str) -> None:
        """Note a submission as it is now; answers that were read stay."""
        at = submission.submitted_at.isoformat() if submission.submitted_at else None
        seconds = None if math.isnan(submission.seconds) else submission.seconds
        self._database.execute(
            "INSERT INTO submissions (platform, mode, submission_id, batch_id, worker, pseudonym, state, seconds,"
            " submitted_at, bonuses) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
            " state = excluded.state, seconds = excluded.seconds, submitted_at = excluded.submitted_at,"
            " bonuses = excluded.bonuses",
            (*self._key, submission.submission_id, batch_id, submission.worker, pseudonym, submission.state,
             seconds, at, json.dumps(submission.bonuses)),
        )  # fmt: skip

    def keep_answers(self, submission_id: str, answers: str, trouble: str = "") -> None:
        """Keep a submission's answers (JSON), or say why they cannot be read."""
        self._database.execute(
            "UPDATE submissions SET answers = ?, trouble = ? WHERE platform = ? AND mode = ? AND submission_id = ?",
            (answers, trouble, *self._key, submission_id),
        )

    def answers(self, submission_id: str) -> str:
        """A submission's answers as they were kept; empty if they were not."""
        row = self._database.execute(
            "SELECT answers FROM submissions WHERE platform = ? AND mode = ? AND submission_id = ?",
            (*self._key, submission_id),
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
            self._key,
        )
        found = []
        for key, batch_id, worker, pseudonym, state, seconds, at, bonuses, answered, trouble, posted_id in rows:
            when = datetime.fromisoformat(at) if at else None
            time = float("nan") if seconds is None else seconds
            paid = tuple(json.loads(bonuses))
            submission = Submission(key, posted_id, worker, state, time, when, paid)
            found.append(Work(submission, batch_id, pseudonym, bool(answered), trouble))
        return found

    def judge(self, judgement: Judgement) -> None:
        """Note what a person decided; later decisions go before earlier ones, which stay."""
        row = (
            judgement.submission_id,
            judgement.decision,
            judgement.reason,
            json.dumps(judgement.signs, ensure_ascii=False),
            judgement.decided_at.isoformat(),
        )
        self._database.execute("INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?, ?)", (*self._key, *row))

    def judgements(self, submission_id: str = "") -> list[Judgement]:
        """All decisions (about a submission), the oldest first."""
        rows = self._database.execute(
            "SELECT submission_id, decision, reason, signs, decided_at FROM decisions WHERE platform = ? AND mode = ?"
            " AND ? IN ('', submission_id) ORDER BY rowid",
            (*self._key, submission_id),
        )
        return [
            Judgement(key, decision, reason, tuple(json.loads(signs)), datetime.fromisoformat(at))
            for key, decision, reason, signs, at in rows
        ]
