"""Platforms without a service that keeps accounts: offers, decisions and payments are in a file of ours.

The file lies beside the ledger and is rewritten after each change. It keeps each payment's token, so that no token pays
twice, and the number of its list of payments, so that no payment is on two lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field

from annotation.campaign.offering import Mode
from annotation.crowd.platform import Decision, Offer, Platform, PlatformOffer, RefusedError, Submission
from plumbline.errors import DataError
from plumbline.records import Record
from plumbline.store import read_json, write_json
from plumbline.study import Study


class AccountOffer(Record):
    """A batch as it was offered."""

    KEY = ("posted_id",)
    posted_id: str = Field(description="the offer's id in the account")
    batch_id: str = Field(description="the batch")
    token: str = Field(description="token of the call that posted the offer")
    places: int = Field(description="how many workers may take the batch in all")
    reward: int = Field(description="reward of each worker, in cents")
    open: bool = Field(default=True, description="whether workers may still begin")


class AccountDecision(Record):
    """The decision about a submission."""

    KEY = ("submission_id",)
    submission_id: str = Field(description="the submission")
    decision: Decision = Field(description="approved or rejected")
    reason: str = Field(description="why it was rejected; empty if it was not")


class Payment(Record):
    """A payment to a worker."""

    KEY = ("token",)
    token: str = Field(
        description="the payment's token, under which it is paid only once; for a reward, the submission's id"
    )
    submission_id: str = Field(description="the submission that is paid")
    worker: str = Field(description="the platform's id of the worker who is paid")
    kind: Literal["reward", "bonus"] = Field(description="reward or bonus")
    cents: int = Field(description="cents, without fees")
    reason: str = Field(description="the reason that the worker reads; empty for a reward")
    list: int = Field(
        default=0, description="number of the payment list that contains this payment; 0 while no list does"
    )


#: The tables of an account, by the records of their rows.
TABLES: Mapping[str, type[Record]] = {"offers": AccountOffer, "decisions": AccountDecision, "payments": Payment}


@dataclass
class PaymentAccount:
    """The rows of an account by key, with the platform's further notes."""

    path: Path
    offers: dict[str, AccountOffer]
    decisions: dict[str, AccountDecision]
    payments: dict[str, Payment]
    out: set[str]  #: workers who may begin no further batch
    notes: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the account; an account without rows if the file does not exist.

        Raises DataError for a damaged file.
        """
        advice = "restore the file from a backup: it records who was paid"
        content: dict[str, Any] = read_json(path, "crowd launch", advice) if path.exists() else {}
        try:
            tables: dict[str, Any] = {
                name: {row[record.KEY[0]]: record(**row) for row in content.get(name, [])}
                for name, record in TABLES.items()
            }
            return cls(path, **tables, out=set(content.get("out", [])), notes=dict(content.get("notes", {})))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{path}: damaged ({error.__class__.__name__}); {advice}") from None

    def write(self) -> None:
        """Write the account to disk."""
        tables = {name: [row.model_dump(mode="json") for row in getattr(self, name).values()] for name in TABLES}
        write_json(self.path, tables | {"out": sorted(self.out), "notes": self.notes})


class AccountPlatform(Platform):
    """A platform whose account we keep ourselves; subclasses define the workers and their page."""

    refills = False
    longest_reason = 1024

    def __init__(self, study: Study, mode: Mode, file: str) -> None:
        """`file` is its name beside the ledger. Raises StudyError without crowd settings, DataError for a bad file."""
        super().__init__(study, mode)
        self.account = PaymentAccount.read(study.scratch / file)

    def prepare(self) -> None:
        """Do nothing: offers share nothing."""

    def balance(self) -> int | None:
        """Return None: the money is on another platform."""
        return None

    def send_offer(self, offer: Offer, token: str) -> str:
        posted_id = self.find_posted(token) or self.posted_name(offer.batch.batch_id)
        row = AccountOffer(
            posted_id=posted_id, batch_id=offer.batch.batch_id, token=token, places=offer.places, reward=offer.reward
        )
        self.account.offers.setdefault(posted_id, row)
        self.account.write()
        return posted_id

    def posted_name(self, batch_id: str) -> str:
        """The id of a batch's offer."""
        return batch_id

    def find_posted(self, token: str) -> str | None:
        return next((offer.posted_id for offer in self.account.offers.values() if offer.token == token), None)

    def posted(self, posted_id: str) -> PlatformOffer:
        offer, states = self.offer_of(posted_id), [work.state for work in self.submissions(posted_id)]
        used = sum(state != "returned" for state in states)
        return PlatformOffer(posted_id, offer.places, None, (offer.open and used < offer.places) or "working" in states)

    def extend(self, posted_id: str, *, places: int, token: str) -> bool:
        offer = self.offer_of(posted_id)
        return self.change(offer, {"places": max(places, offer.places), "open": True})

    def close(self, posted_id: str) -> None:
        self.change(self.offer_of(posted_id), {"open": False})

    def change(self, offer: AccountOffer, update: dict[str, object]) -> bool:
        """Change an offer; return whether anything changed."""
        changed = offer.model_copy(update=update)
        self.account.offers[offer.posted_id] = changed
        self.account.write()
        return changed != offer

    def offer_of(self, posted_id: str) -> AccountOffer:
        """Return an offer. Raises RefusedError if the account lacks it."""
        if posted_id not in self.account.offers:
            raise RefusedError(f"{self.account.path}: has no offer {posted_id}; restore the file from a backup")
        return self.account.offers[posted_id]

    def submission_of(self, work: Submission) -> Submission:
        """Return a worker's work with the decision about it, if there is one, and its bonuses."""
        decided = self.account.decisions.get(work.submission_id)
        paid = tuple(payment.cents for payment in self.bonuses(work.submission_id))
        return replace(work, state=decided.decision if decided else work.state, bonuses=paid)

    # Decisions and money

    def send_decision(self, submission_id: str, decision: Decision, reason: str) -> None:
        """Approve a submission, which adds its reward to the payments, or reject it; both are one write."""
        submission = self.submission(submission_id)
        if submission.state != "submitted":
            raise RefusedError(f"submission {submission_id} is {submission.state}, so it cannot be {decision}")
        verdict = AccountDecision(submission_id=submission_id, decision=decision, reason=reason)
        self.account.decisions[submission_id] = verdict
        if decision == "approved":
            reward = self.offer_of(submission.posted_id).reward
            self._pay(submission, kind="reward", cents=reward, reason="", token=submission_id)
        self.account.write()

    def bonus(self, submission: Submission, cents: int, reason: str, token: str) -> None:
        """Add a bonus to the payments, unless its token was used."""
        self._pay(submission, kind="bonus", cents=cents, reason=reason, token=token)
        self.account.write()

    def _pay(self, submission: Submission, **facts: Any) -> None:
        payment = Payment(submission_id=submission.submission_id, worker=submission.worker, **facts)
        self.account.payments.setdefault(payment.token, payment)

    def shows_bonus(self, submission_id: str, cents: int, reason: str) -> bool:
        return any((payment.cents, payment.reason) == (cents, reason) for payment in self.bonuses(submission_id))

    def bonuses(self, submission_id: str) -> Sequence[Payment]:
        """A submission's bonuses."""
        payments = self.account.payments.values()
        return [payment for payment in payments if (payment.submission_id, payment.kind) == (submission_id, "bonus")]

    def keep_out(self, worker: str) -> None:
        self.account.out.add(worker)
        self.account.write()
