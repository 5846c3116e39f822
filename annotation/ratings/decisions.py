"""People's decisions about raters and pairs: recorded with reason and time, and never changed."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType

import pandas as pd

from annotation.campaign.names import named
from annotation.campaign.records import AGAIN, DECISIONS, CampaignRecords
from annotation.ratings.answers import write_ratings
from annotation.records import Decision, OfferedAgain, Sign
from plumbline.errors import StudyError, nearest
from plumbline.identity import identity
from plumbline.manifest import Manifest
from plumbline.records import Pair
from plumbline.scales import as_number
from plumbline.study import Study


def note_again(records: CampaignRecords, answers: Iterable[tuple[str, str]]) -> None:
    """Note that the pairs of these answers, (pair, rater), are offered again."""
    new, at = sorted(set(answers) - records.answers_again), datetime.now(UTC)
    if new:
        noted = [OfferedAgain(rater_id=rater, pair_id=pair_id, at=at) for pair_id, rater in new]
        again = [*records.offered_again, *noted]
        Manifest.of(records.study).write_models(AGAIN.name, again)
        write_ratings(records.changed(offered_again=again), records.all_ratings)


_SHORTEST = 8  # characters of a pair's id that name it; `review` prints twelve


def decision_words(decision: Decision) -> str:
    """A decision in a word or two."""
    if decision.pair_id:
        return "withdrawn" if decision.exclude else "restored"
    return "excluded" if decision.exclude else "kept"


def identity_of(decisions: Sequence[Decision], again: Collection[tuple[str, str]]) -> str:
    """Return the identity of what people decided last about raters and pairs, without their reasons.

    `again` are the answers, (pair, rater), whose pairs were offered again.
    """
    last = sorted({(decision.rater_id, decision.pair_id): decision for decision in decisions}.items())
    parts = [(*key, each.exclude, each.answers_hash) for key, each in last if each.exclude or each.answers_hash]
    return identity("decisions-v1", parts, sorted(again)) if parts else ""


def decide(
    study: Study,
    *raters: str,
    exclude: bool,
    reason: str,
    signs: Sequence[Sign] = (),
    names: Mapping[str, str] = MappingProxyType({}),
) -> Decision:
    """Record a decision about raters; `signs` are those that the person saw.

    Returns the last rater's. Raises StudyError for a rater without ratings and for a decision without a reason.
    """
    records = CampaignRecords(study)
    ratings = records.all_ratings
    for rater in raters:
        _refuse_unknown(study.name, rater, sorted(set(ratings["rater_id"])), names)
        if not reason.strip():
            raise StudyError(f"a decision about {named(rater, names)} needs a reason; add --reason 'why'")
    decisions = [
        Decision(
            rater_id=rater,
            exclude=exclude,
            reason=" ".join(reason.split()),
            decided_at=datetime.now(UTC),
            signs=tuple(f"{sign.rule}: {sign.evidence}" for sign in signs if sign.rater_id == rater),
            answers_hash=answers_hash(ratings, rater),
        )
        for rater in dict.fromkeys(raters)
    ]
    _note(records, decisions)
    return decisions[-1]


def _refuse_unknown(study_name: str, rater: str, raters: Sequence[str], names: Mapping[str, str]) -> None:
    if rater in raters:
        return
    if rater in names:
        raise StudyError(f"{study_name} has no answer from {named(rater, names)}; there is nothing to decide yet")
    candidates = [*(names[name] for name in raters if name in names), *raters]
    raise StudyError(f"{study_name} has no rater {rater!r}; {nearest(rater, candidates)}")


def withdraw(study: Study, pair_ids: Sequence[str], *, take_back: bool, reason: str) -> list[Decision]:
    """Note that pairs of the sample are withdrawn, or taken back; ids may be cut short.

    What a run that was cut off has noted, with the same reason, is not noted again. Raises StudyError for what is no
    pair of the sample, or is withdrawn (or not) already, and for want of a reason.
    """
    if not reason.strip():
        raise StudyError(f"{'taking back' if take_back else 'withdrawing'} pairs needs a reason; add --reason 'why'")
    records = CampaignRecords(study)
    ids = [_pair_named(study.name, name, records.shown) for name in pair_ids]
    if twice := next((pair_id for pair_id, times in Counter(ids).items() if times > 1), ""):
        raise StudyError(f"pair {twice} is named twice; name each pair once")
    withdrawn, decided_at, words = records.withdrawn, datetime.now(UTC), " ".join(reason.split())
    latest = {decision.pair_id: decision for decision in records.withdrawals}
    noted = [latest[pair_id] for pair_id in ids if _says(latest.get(pair_id), not take_back, words)]
    new = [pair_id for pair_id in ids if not _says(latest.get(pair_id), not take_back, words)]
    for pair_id in new:
        if take_back != (pair_id in withdrawn):
            state = f"is withdrawn already ({withdrawn[pair_id]})" if pair_id in withdrawn else "is not withdrawn"
            raise StudyError(f"pair {pair_id} {state}; leave it out")
    decisions = [
        Decision(rater_id="", pair_id=pair_id, exclude=not take_back, reason=words, decided_at=decided_at, signs=())
        for pair_id in new
    ]
    _note(records, decisions)
    return [*noted, *decisions]


def _says(decision: Decision | None, exclude: bool, reason: str) -> bool:
    return decision is not None and (decision.exclude, decision.reason) == (exclude, reason)


def answers_hash(ratings: pd.DataFrame, rater: str) -> str:
    """Return the identity of a rater's answers, controls included, without comments and times; empty without any."""
    submitted = ratings[(ratings["rater_id"] == rater) & (ratings["status"] == "submitted")]
    values = ["" if pd.isna(value) else str(as_number(value)) for value in submitted["value"]]
    columns = [submitted[name].astype(str) for name in ("pair_id", "question", "answer")]
    rows = sorted(zip(*columns, values, strict=True))
    return identity("answers-v1", *itertools.chain(*rows)) if rows else ""


def _pair_named(study_name: str, name: str, pairs: Sequence[Pair]) -> str:
    """The id of the one pair of the sample that begins so. Raises StudyError where there is none, or several."""
    matches = [pair for pair in pairs if pair.pair_id.startswith(name)] if len(name) >= _SHORTEST else []
    if len(matches) > 1:
        raise StudyError(
            f"{len(matches)} pairs of {study_name} have ids that begin with {name!r}; write more characters"
        )
    if not matches:
        raise StudyError(
            f"{study_name} has no pair {name[:80]!r}; write at least {_SHORTEST} characters of an id in pairs.parquet"
        )
    if matches[0].control == "repeat":
        raise StudyError(f"{name} repeats pair {matches[0].repeats}: withdraw that pair, and its repeat goes too")
    if matches[0].control:
        raise StudyError(
            f"{name} is a control (positive, negative or with a known answer), which no verdict counts; leave it out"
        )
    return matches[0].pair_id


def _note(records: CampaignRecords, new: Sequence[Decision]) -> None:
    decisions = [*records.decided, *new]
    Manifest.of(records.study).write_models(DECISIONS.name, decisions)
    if len(records.all_ratings):
        write_ratings(records.changed(decided=decisions), records.all_ratings)
