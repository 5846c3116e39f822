"""Work of excluded workers in a campaign: others do it again, paid from what is left; the answers stay."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from annotation.crowd.ledger import Ledger
from annotation.crowd.submissions import Work
from annotation.ratings.exclusions import read_decisions
from annotation.ratings.ratings import excluded_raters, note_again
from plumbline.study import Study


def lost_work(study: Study, ledger: Ledger) -> Mapping[str, list[Work]]:
    """By batch the work that was not rejected, and whose worker people excluded as a rater; [] for others."""
    excluded = excluded_raters(read_decisions(study)) if study.raters.replace_excluded else {}
    found = defaultdict[str, list[Work]](list)
    for one in ledger.work():
        if one.submission.state not in ("rejected", "returned") and one.pseudonym in excluded:
            found[one.batch_id].append(one)
    return found


def replaced(ledger: Ledger, batch_id: str) -> int:
    """Places of a batch that money is reserved for beside the first ones, since workers were excluded."""
    done = [one.details for one in ledger.extensions(batch_id) if one.state != "refused"]
    return max((int(one.get("lost", 0)) for one in done), default=0)


def note_replaced(study: Study, ledger: Ledger, batch_ids: Sequence[str]) -> None:
    """Note whose answers are asked for again in these batches, which were opened to more workers."""
    lost, pairs = lost_work(study, ledger), {one.batch.batch_id: one.batch.pair_ids for one in ledger.offered()}
    answers = [(pair, one.pseudonym) for batch_id in batch_ids for one in lost[batch_id] for pair in pairs[batch_id]]
    note_again(study, answers, read_decisions(study))
