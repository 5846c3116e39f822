"""The steps of a crowd campaign: each carried out once, whatever crashes, and none beyond the limit.

All that changes something on a platform goes through `Steps.do`, which keeps the ledger. Nothing here decides anything.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from tqdm import tqdm

from annotation.crowd import platform as pay
from annotation.crowd.ledger import BatchOffer, Kind, Ledger, Operation
from annotation.crowd.platform import Offer, Platform, RefusedError
from annotation.offering import Mode
from annotation.sampling.sample import read_shown
from plumbline.errors import DataError, StudyError
from plumbline.records import Pair
from plumbline.study import Study
from plumbline.study.crowd import CrowdSpec

EXTENDED = "extend"  # the outcome where an offer was opened again; another one where it was open already


class LimitError(StudyError):
    """The next step would cost more than may be spent."""


def crowd_of(study: Study) -> CrowdSpec:
    """The study's crowd settings. Raises StudyError where it has none."""
    if study.crowd is None:
        raise StudyError(f"{study.file}: asks no crowd; add `crowd: {{}}`, which pays $24 an hour (docs/crowd.md)")
    return study.crowd


def other_sample(study: Study, mode: Mode) -> DataError:
    """The error where pairs that were offered are not in the sample any more."""
    return DataError(
        f"{study.folder / 'pairs.parquet'}: the {mode} campaign has pairs that this sample does not have;"
        " bring the sample back that was offered"
    )


class Steps:
    """What one study's campaign does on one platform in one mode, each step once."""

    def __init__(self, study: Study, platform: Platform, ledger: Ledger, key: bytes, limit: int | None = None) -> None:
        """`key` makes workers' pseudonyms; `limit` is what may be spent in all, in cents (None: nothing more)."""
        self.study, self.platform, self.ledger = study, platform, ledger
        self.spec = crowd_of(study)
        self._key, self._limit = key, limit

    @cached_property
    def pairs(self) -> Mapping[str, Pair]:
        """All that workers see, by id."""
        return {pair.pair_id: pair for pair in read_shown(self.study)}

    def do(self, kind: Kind, subject: str, cents: int = 0, details: Mapping[str, Any] | None = None) -> str:
        """Do something on the platform once; its outcome. LimitError where it would cost too much."""
        operation = self.ledger.operation(kind, subject)
        if cents > 0 and (operation is None or operation.state == "refused"):
            self._refuse_beyond_limit(cents)
        return self.ledger.once((kind, subject, cents), details or {}, self._find, self._carry_out)

    def happened(self, kind: Kind, subject: str, cents: int) -> None:
        """Note what a person did on the platform's own page and costs money, whatever the limit."""
        self.ledger.once((kind, subject, cents), {}, self._find, lambda operation: operation.kind)

    def settle(self) -> int:
        """Finish what earlier commands left open; how many operations that were."""
        unsettled = [operation for operation in self.ledger.operations() if operation.state == "intended"]
        if unsettled:
            tqdm.write(
                f"[{self.platform.mode} {self.platform.name}] finishing {len(unsettled)} calls that an earlier command"
                " left open: first it is asked whether they took effect, for a bonus up to a quarter of an hour",
                file=sys.stderr,
            )
        for operation in unsettled:
            try:
                self.ledger.once(
                    (operation.kind, operation.subject, operation.cents), operation.details, self._find, self._carry_out
                )
            except RefusedError as error:  # the others go on
                tqdm.write(f"[{self.platform.mode} {self.platform.name}] refused: {error}", file=sys.stderr)
        return len(unsettled)

    def _refuse_beyond_limit(self, cents: int) -> None:
        if self.platform.mode == "sandbox":
            return  # there it costs nothing
        spent = self.ledger.spent()
        if self._limit is None or spent + cents > self._limit:
            limit = "no --max-cost was given" if self._limit is None else f"the limit is {pay.dollars(self._limit)}"
            raise LimitError(
                f"the next step costs {pay.dollars(cents)}, {pay.dollars(spent)} are spent or reserved, and {limit};"
                " nothing was spent on it"
            )

    def _find(self, operation: Operation) -> str | None:
        """The outcome of an operation that took effect, as the platform shows it; None if it did not."""
        if operation.kind == "post":
            return self.platform.find_posted(operation.token)
        if operation.kind == "bonus":
            paid = self.platform.is_bonus_paid(
                self.platform.submission(operation.details["submission"]),
                operation.details["cents"],
                operation.details["reason"],
                operation.token,
            )
            return "paid" if paid else None
        return None  # all others change nothing at a second call

    def _carry_out(self, operation: Operation) -> str:
        platform = self.platform
        match operation.kind:
            case "post":
                return platform.post(self.offer(operation.subject), operation.token)
            case "extend":
                changed = platform.extend(
                    operation.details["posted"], places=operation.details["places"], token=operation.token
                )
                return EXTENDED if changed else "nothing to do"
            case "approve":
                platform.approve(platform.submission(operation.subject))
            case "reject":
                platform.reject(platform.submission(operation.subject), operation.details["reason"])
            case "bonus":
                submission = platform.submission(operation.details["submission"])
                if operation.details["cents"] not in submission.bonuses:  # else a ledger that is lost paid it
                    platform.bonus(submission, operation.details["cents"], operation.details["reason"], operation.token)
            case "keep_out":
                platform.keep_out(operation.subject)
            case "close":
                platform.close(operation.details["posted"])
            case "release":
                pass  # of the ledger alone: money that nobody can earn any more
        return operation.kind

    def offer(self, batch_id: str) -> Offer:
        """A batch of the ledger as it is put before workers. DataError for a batch of another campaign."""
        offer = self.ledger.find_offered(batch_id)
        if offer is None:
            raise DataError(
                f"{self.ledger.path}: no batch {batch_id!r} in the {self.platform.mode} {self.platform.name} campaign"
            )
        return self.shown(offer)

    def shown(self, offer: BatchOffer) -> Offer:
        """A batch with the texts of its pairs. DataError where the sample does not have them any more."""
        if not self.pairs.keys() >= set(offer.batch.pair_ids):
            raise other_sample(self.study, self.platform.mode)
        pairs = tuple(self.pairs[pair_id] for pair_id in offer.batch.pair_ids)
        return Offer(offer.batch, pairs, offer.places, offer.reward)
