"""The places of batches: which are filled, which are to be offered again, and for which money is reserved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from annotation.crowd.ledger import BatchOffer, Ledger, Work
from annotation.crowd.operations import Operation
from annotation.crowd.platform import Platform
from plumbline.study.crowd import CrowdSpec


@dataclass(frozen=True)
class BatchPlaces:
    """The places of one batch, by the ledger and by decisions about raters."""

    offer: BatchOffer
    works: Sequence[Work]
    excluded: Collection[str]  #: raters, by pseudonym
    extensions: Sequence[Operation]  #: of the batch's offer, refused ones too
    closed: bool  #: whether a person closed it
    refills: bool  #: whether the platform reopens a rejected worker's place at the same cost
    unit: int  #: cents for one worker's work, with the fee; none in a test

    @property
    def rejected(self) -> list[Work]:
        """Rejected work, whose ratings do not count."""
        return [work for work in self.works if work.submission.state == "rejected"]

    @property
    def good(self) -> list[Work]:
        """Work that is or will be paid."""
        return [work for work in self.works if work.submission.state not in ("rejected", "returned")]

    @property
    def lost(self) -> list[Work]:
        """The paid work of excluded workers, which others are to do again."""
        return [work for work in self.good if work.pseudonym in self.excluded]

    @property
    def wanted(self) -> int:
        """Places in all: one more for each rejected or lost worker."""
        return self.offer.places + len(self.rejected) + len(self.lost)

    @property
    def short(self) -> bool:
        """Whether workers are still to come."""
        return not self.closed and len(self.good) - len(self.lost) < self.offer.places

    @property
    def reserved(self) -> int:
        """Places that have been paid for in advance, rejected workers' included."""
        return max([self.offer.places, *(int(extension.details["places"]) for extension in self._valid)])

    @property
    def replaced(self) -> int:
        """Places that have been paid for in advance to replace excluded workers."""
        return max((int(extension.details.get("lost", 0)) for extension in self._valid), default=0)

    @property
    def unreserved(self) -> int:
        """Places to be offered again whose money is not reserved yet."""
        if self.refills:
            return max(0, len(self.lost) - self.replaced)
        return max(0, self.wanted - self.reserved)

    @property
    def cost_to_come(self) -> int:
        """Cents, with fees, for places that are to be offered again."""
        return self.unit * self.unreserved if self.short else 0

    @property
    def workers_to_come(self) -> int:
        """Workers who are still to begin."""
        return max(0, self.offer.places + len(self.lost) - len(self.good)) if self.short else 0

    @property
    def _valid(self) -> list[Operation]:
        return [extension for extension in self.extensions if extension.state != "refused"]


def places_of(
    ledger: Ledger,
    excluded: Collection[str],
    platform: Platform | type[Platform],
    spec: CrowdSpec,
    to_offer: Sequence[BatchOffer] = (),
) -> list[BatchPlaces]:
    """Return the places of a campaign's batches in their order, then of those `to_offer`, which it does not have yet.

    `excluded` are raters, by pseudonym.
    """
    works, closed, extensions = ledger.work_by_batch(), ledger.closed(), defaultdict[str, list[Operation]](list)
    for extension in ledger.operations("extend"):
        extensions[extension.details["batch"]].append(extension)
    batches = []
    for offer in [*ledger.offered(), *to_offer]:
        key, cost = offer.batch.batch_id, platform.cost(offer.reward, offer.places, spec)
        unit = cost // offer.places if ledger.campaign.counts else 0
        batches.append(BatchPlaces(offer, works[key], excluded, extensions[key], key in closed, platform.refills, unit))
    return batches
