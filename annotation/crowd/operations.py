"""What a campaign changes on a platform, one class for each kind of change; the ledger keeps them.

An operation knows how it is carried out, and how the platform shows whether an earlier try took effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from annotation.crowd.platform import Offer, Platform

Kind = Literal["tester", "post", "extend", "approve", "reject", "bonus", "keep_out", "close", "release"]
EXTENDED = "extend"  # the outcome if an offer was opened again; otherwise it was open already


@dataclass(frozen=True)
class Operation:
    """A call that a platform must carry out once: the intention, and the outcome once known."""

    kind: Kind
    subject: str  #: the batch, submission or worker; with a suffix if one subject has several operations
    cents: int  #: what it costs, fees included
    details: Mapping[str, Any]
    state: Literal["intended", "done", "refused"]
    outcome: str
    intended_at: datetime
    token: str  #: the same at each try; different for every operation

    def find(self, platform: Platform) -> str | None:
        """Return the outcome as the platform shows it; None if the operation did not take effect.

        Also None where a second call changes nothing.
        """
        return None

    def carry_out(self, platform: Platform, offer_of: Callable[[str], Offer]) -> str | None:
        """Make the change; return its outcome if there is more to say than the kind's name.

        `offer_of` gives a batch as workers see it.
        """
        return None


class Tester(Operation):
    """Make a test participant with an e-mail address."""

    def carry_out(self, platform: Platform, offer_of: Callable[[str], Offer]) -> str:
        return platform.add_tester(self.subject)


class Post(Operation):
    """Offer a batch."""

    def find(self, platform: Platform) -> str | None:
        return platform.find_posted(self.token)

    def carry_out(self, platform: Platform, offer_of: Callable[[str], Offer]) -> str | None:
        return platform.post(offer_of(self.subject), self.token)


class Extend(Operation):
    """Open an offer again, or to more workers."""

    def carry_out(self, platform: Platform, offer_of: Callable[[str], Offer]) -> str | None:
        changed = platform.extend(self.details["posted"], places=self.details["places"], token=self.token)
        return EXTENDED if changed else "nothing to do"


class Approve(Operation):
    """Approve a submission, which pays its reward."""

    def carry_out(self, platform: Platform, offer_of: Callable[[str], Offer]) -> None:
        platform.approve(platform.submission(self.subject))


class Reject(Operation):
    """Reject a submission with a reason."""

    def carry_out(self, platform: Platform, offer_of: Callable[[str], Offer]) -> None:
        platform.reject(platform.submission(self.subject), self.details["reason"])


class Bonus(Operation):
    """Pay a submission's bonus."""

    def find(self, platform: Platform) -> str | None:
        submission = platform.submission(self.details["submission"])
        return "paid" if platform.is_bonus_paid(submission, self.details["cents"], self.details["reason"]) else None

    def carry_out(self, platform: Platform, offer_of: Callable[[str], Offer]) -> None:
        """Pay it, unless the submission shows one: a lost ledger has paid that."""
        submission = platform.submission(self.details["submission"])
        if self.details["cents"] not in submission.bonuses:
            platform.bonus(submission, self.details["cents"], self.details["reason"], self.token)


class KeepOut(Operation):
    """Exclude a worker from further batches."""

    def carry_out(self, platform: Platform, offer_of: Callable[[str], Offer]) -> None:
        platform.keep_out(self.subject)


class Close(Operation):
    """Let no further worker begin a batch."""

    def carry_out(self, platform: Platform, offer_of: Callable[[str], Offer]) -> None:
        platform.close(self.details["posted"])


class Release(Operation):
    """Free the money of a closed batch's empty places: only in the ledger, as nobody can earn it any more."""


OPERATIONS: Mapping[Kind, type[Operation]] = {
    "tester": Tester, "post": Post, "extend": Extend, "approve": Approve, "reject": Reject, "bonus": Bonus,
    "keep_out": KeepOut, "close": Close, "release": Release,
}  # fmt: skip
