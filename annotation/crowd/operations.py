"""What a campaign changes on a platform, one class for each kind of change; the ledger keeps them.

An operation knows how it is carried out, and how the platform shows whether an earlier try took effect.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from annotation.crowd.platform import Offer, Platform

Kind = Literal["post", "extend", "approve", "reject", "bonus", "keep_out", "close", "release"]
EXTENDED = "extend"  # the outcome if an offer was opened again; otherwise it was open already


@dataclass(frozen=True)
class Operation(ABC):
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

    def carry_out(self, platform: Platform, offer_of: Callable[[str], Offer]) -> str:
        """Make the change; return the outcome. `offer_of` gives a batch as workers see it."""
        return self._change(platform, offer_of) or self.kind

    @abstractmethod
    def _change(self, platform: Platform, offer_of: Callable[[str], Offer]) -> str:
        """Make the change; return an outcome that is more than the kind's name."""


class Post(Operation):
    """Offer a batch."""

    def find(self, platform: Platform) -> str | None:
        """Return the platform's id of the offer."""
        return platform.find_posted(self.token)

    def _change(self, platform: Platform, offer_of: Callable[[str], Offer]) -> str:
        return platform.post(offer_of(self.subject), self.token)


class Extend(Operation):
    """Open an offer again, or to more workers."""

    def _change(self, platform: Platform, offer_of: Callable[[str], Offer]) -> str:
        changed = platform.extend(self.details["posted"], places=self.details["places"], token=self.token)
        return EXTENDED if changed else "nothing to do"


class Approve(Operation):
    """Approve a submission, which pays its reward."""

    def _change(self, platform: Platform, offer_of: Callable[[str], Offer]) -> str:
        platform.approve(platform.submission(self.subject))
        return ""


class Reject(Operation):
    """Reject a submission with a reason."""

    def _change(self, platform: Platform, offer_of: Callable[[str], Offer]) -> str:
        platform.reject(platform.submission(self.subject), self.details["reason"])
        return ""


class Bonus(Operation):
    """Pay a submission's bonus."""

    def find(self, platform: Platform) -> str | None:
        """Return whether the bonus shows, after waiting for it."""
        submission = platform.submission(self.details["submission"])
        return "paid" if platform.is_bonus_paid(submission, self.details["cents"], self.details["reason"]) else None

    def _change(self, platform: Platform, offer_of: Callable[[str], Offer]) -> str:
        submission = platform.submission(self.details["submission"])
        if self.details["cents"] not in submission.bonuses:  # otherwise a lost ledger has paid it
            platform.bonus(submission, self.details["cents"], self.details["reason"], self.token)
        return ""


class KeepOut(Operation):
    """Exclude a worker from further batches."""

    def _change(self, platform: Platform, offer_of: Callable[[str], Offer]) -> str:
        platform.keep_out(self.subject)
        return ""


class Close(Operation):
    """Let no further worker begin a batch."""

    def _change(self, platform: Platform, offer_of: Callable[[str], Offer]) -> str:
        platform.close(self.details["posted"])
        return ""


class Release(Operation):
    """Free the money of a closed batch's empty places: only in the ledger, as nobody can earn it any more."""

    def _change(self, platform: Platform, offer_of: Callable[[str], Offer]) -> str:
        return ""


OPERATIONS: Mapping[Kind, type[Operation]] = {
    "post": Post, "extend": Extend, "approve": Approve, "reject": Reject, "bonus": Bonus, "keep_out": KeepOut,
    "close": Close, "release": Release,
}  # fmt: skip
