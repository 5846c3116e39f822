"""Work of excluded workers in a campaign: others do it again, paid from what is left; the answers stay."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from annotation.crowd.ledger import Ledger, Work
from annotation.ratings.exclusions import read_decisions
from annotation.ratings.ratings import excluded_raters, note_again
from plumbline.study import Study


def lost_work(study: Study, ledger: Ledger) -> Mapping[str, list[Work]]:
    """By batch the work that was not rejected, and whose worker people excluded as a rater; [] for others."""
    excluded = excluded_raters(read_decisions(study)) if study.raters.replace_excluded else {}
    works = defaultdict[str, list[Work]](list)
    for work in ledger.work():
        if work.submission.state not in ("rejected", "returned") and work.pseudonym in excluded:
            works[work.batch_id].append(work)
    return works


def replaced(ledger: Ledger, batch_id: str) -> int:
    """Places of a batch that money is reserved for beside the first ones, since workers were excluded."""
    done = [operation.details for operation in ledger.extensions(batch_id) if operation.state != "refused"]
    return max((int(details.get("lost", 0)) for details in done), default=0)


def note_replaced(study: Study, ledger: Ledger) -> None:
    """Note whose answers are asked for again, by the ledger: whoever opened their batches may have been cut off."""
    pairs = {offer.batch.batch_id: offer.batch.pair_ids for offer in ledger.offered()}
    paid = {key: works for key, works in lost_work(study, ledger).items() if len(works) <= replaced(ledger, key)}
    answers = [(pair, work.pseudonym) for key, works in paid.items() for work in works for pair in pairs[key]]
    note_again(study, answers, read_decisions(study))
