"""What people decided about raters and pairs: `decisions.json`, and its marks on the ratings.

Nothing is ever deleted: answers of excluded raters and to withdrawn pairs stay, with the reason; a later decision about
a rater or a pair goes before earlier ones, which stay too. Verdicts that rest on other answers are refused until they
are reached again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType

import pandas as pd

from annotation.names import named
from annotation.ratings.ratings import exclusions, read_all_ratings, read_marks, stays, withdrawals, write_ratings
from annotation.records import Decision, Sign
from annotation.sampling.controls import read_controls
from annotation.sampling.sample import read_pairs
from plumbline.errors import DataError, StudyError, nearest
from plumbline.identity import identity
from plumbline.manifest import read_kept, write_kept
from plumbline.records import SUGGESTED, Pair
from plumbline.study import Study

FILE = "decisions.json"
COMMAND = "annotation review"
_SHORTEST = 8  # characters of a pair's id that name it; `review` prints twelve


def read_decisions(study: Study) -> list[Decision]:
    """All decisions, the oldest first; none before the first."""
    return read_kept(study, FILE, Decision, study.command(COMMAND))


def decision_words(decision: Decision) -> str:
    """A decision in a word or two."""
    if decision.pair_id:
        return "withdrawn" if decision.exclude else "taken back"
    return "excluded" if decision.exclude else "kept"


def withdrawn_pairs(study: Study) -> dict[str, str]:
    """Why pairs are withdrawn, by id, repeats of them too; they are not offered, and no rating of theirs counts."""
    decisions = [decision for decision in read_decisions(study) if decision.pair_id]
    return withdrawals(decisions, read_controls(study)) if decisions else {}


def withdrawn_hash(withdrawn: Collection[str]) -> str:
    """Identity of which pairs are withdrawn; empty where none is."""
    return identity("withdrawn-v1", *sorted(withdrawn)) if withdrawn else ""


def kept_hash(decisions: Sequence[Decision]) -> str:
    """Identity of whom people keep, as they had answered; empty where none is. Decisions of before say no answers."""
    last = {decision.rater_id: decision for decision in decisions if decision.rater_id}
    raters = sorted(
        f"{decision.rater_id} {decision.answers}"
        for decision in last.values()
        if decision.answers and not decision.exclude
    )
    return identity("kept-v1", *raters) if raters else ""


def is_marked(study: Study, ratings: pd.DataFrame) -> bool:
    """Whether ratings carry what was decided: who decided may have been cut off before they were marked."""
    decisions = read_decisions(study)
    if not decisions:
        return not (ratings["excluded"] != "").any() and bool(stays(ratings).all())
    names = ["rater_id", "pair_id", "excluded", "withdrawn"]
    once = ratings[names].drop_duplicates()
    withdrawn = withdrawals(decisions, read_controls(study))
    return list(once["excluded"]) == exclusions(once, decisions) and list(once["withdrawn"]) == [
        withdrawn.get(pair_id, "") for pair_id in once["pair_id"]
    ]


def refuse_unmarked(study: Study) -> None:
    """Raise DataError where the sample's ratings do not carry what was decided: whoever decided was cut off."""
    if read_decisions(study) and not is_marked(study, read_marks(study)):
        raise DataError(
            f"{study.folder / FILE} has decisions that the ratings do not carry yet; run"
            f" `{study.command('annotation accept')}` again"
        )


def decide(
    study: Study,
    *raters: str,
    exclude: bool,
    reason: str,
    signs: Sequence[Sign] = (),
    names: Mapping[str, str] = MappingProxyType({}),
) -> Decision:
    """Note a decision about raters and mark the ratings; `signs` are those that the person saw, `names` those known.

    Returns the last rater's. Raises StudyError for a rater without ratings and for a decision without a reason.
    """
    ratings = read_all_ratings(study)
    answers = answered(ratings)
    for rater in raters:
        _refuse_unknown(study, rater, sorted(set(ratings["rater_id"])), names)
        if not reason.strip():
            raise StudyError(f"a decision about {named(rater, names)} needs a reason; add --reason 'why'")
    decisions = [
        Decision(
            rater_id=rater,
            exclude=exclude,
            reason=" ".join(reason.split()),
            decided_at=datetime.now(UTC),
            signs=tuple(f"{sign.rule}: {sign.evidence}" for sign in signs if sign.rater_id == rater),
            answers=answers.get(rater, 0),
            answers_hash=answers_hash(ratings, rater),
        )
        for rater in dict.fromkeys(raters)
    ]
    _note(study, decisions, ratings)
    return decisions[-1]


def _refuse_unknown(study: Study, rater: str, raters: Sequence[str], names: Mapping[str, str]) -> None:
    if rater in raters:
        return
    if rater in names:
        raise StudyError(f"{study.name} has no answer of {named(rater, names)}; there is nothing to decide yet")
    candidates = [*(names[name] for name in raters if name in names), *raters]
    raise StudyError(f"{study.name} has no rater {rater!r}; {nearest(rater, candidates)}")


def withdraw(study: Study, pair_ids: Sequence[str], *, take_back: bool, reason: str) -> list[Decision]:
    """Note that pairs of the sample are withdrawn, or taken back, and mark the ratings; ids may be cut short.

    What a run that was cut off has noted, with the same reason, is not noted again. Raises StudyError for what is no
    pair of the sample, or is withdrawn (or not) already, and for want of a reason.
    """
    if not reason.strip():
        raise StudyError(f"{'taking back' if take_back else 'withdrawing'} pairs needs a reason; add --reason 'why'")
    sample, controls = read_pairs(study), read_controls(study)
    whole = [_pair_named(study, name, sample, controls) for name in pair_ids]
    if twice := next((pair_id for pair_id, times in Counter(whole).items() if times > 1), ""):
        raise StudyError(f"pair {twice} is named twice; name each pair once")
    withdrawn, now, words = withdrawn_pairs(study), datetime.now(UTC), " ".join(reason.split())
    latest = {decision.pair_id: decision for decision in read_decisions(study) if decision.pair_id}
    noted = [latest[pair_id] for pair_id in whole if _says(latest.get(pair_id), not take_back, words)]
    new = [pair_id for pair_id in whole if not _says(latest.get(pair_id), not take_back, words)]
    for pair_id in new:
        if take_back != (pair_id in withdrawn):
            state = f"is withdrawn already ({withdrawn[pair_id]})" if pair_id in withdrawn else "is not withdrawn"
            raise StudyError(f"pair {pair_id} {state}; leave it out")
    decisions = [
        Decision(rater_id="", pair_id=pair_id, exclude=not take_back, reason=words, decided_at=now, signs=())
        for pair_id in new
    ]
    _note(study, decisions, read_all_ratings(study))
    return [*noted, *decisions]


def _says(decision: Decision | None, exclude: bool, reason: str) -> bool:
    return decision is not None and (decision.exclude, decision.reason) == (exclude, reason)


def answered(ratings: pd.DataFrame) -> dict[str, int]:
    """How many pairs each rater has answered, controls among them."""
    pairs = ratings.loc[ratings["status"] == "submitted", ["rater_id", "pair_id"]].drop_duplicates()
    return {str(rater): int(number) for rater, number in pairs["rater_id"].value_counts().items() if number}


def answers_hash(ratings: pd.DataFrame, rater: str) -> str:
    """Identity of what a rater has answered, controls among it; comments and times say nothing."""
    submitted = ratings[(ratings["rater_id"] == rater) & (ratings["status"] == "submitted")]
    values = ["" if pd.isna(value) else str(int(value)) for value in submitted["value"]]
    rows = zip(
        submitted["pair_id"].astype(str),
        submitted["question"].astype(str),
        values,
        submitted["answer"].astype(str),
        strict=True,
    )
    return identity("answers-v1", *(part for row in sorted(rows) for part in row))


def _pair_named(study: Study, name: str, sample: Sequence[Pair], controls: Sequence[Pair]) -> str:
    """The id of the one pair of the sample that begins so. Raises StudyError where there is none, or several."""
    matches = [pair for pair in (*sample, *controls) if pair.pair_id.startswith(name)] if len(name) >= _SHORTEST else []
    if len(matches) > 1:
        raise StudyError(f"{len(matches)} pairs of {study.name} have ids that begin with {name!r}; write more of it")
    if not matches:
        raise StudyError(
            f"{study.name} has no pair {name[:80]!r}; write at least {_SHORTEST} characters of an id in pairs.parquet"
        )
    if matches[0].control == "repeat":
        raise StudyError(f"{name} is a repeat of pair {matches[0].repeats}: withdraw that one, and it goes with it")
    if matches[0].control == SUGGESTED:
        raise StudyError(f"{name} shows judges' scores in an experiment, so that no verdict counts it; leave it out")
    if matches[0].control:
        raise StudyError(f"{name} is a {matches[0].control} control, which no verdict counts; it cannot be withdrawn")
    return matches[0].pair_id


def _note(study: Study, new: Sequence[Decision], ratings: pd.DataFrame) -> None:
    """Add decisions, then mark the ratings: whoever reads in between finds that they lack the marks (`is_marked`)."""
    decisions = [*read_decisions(study), *new]
    write_kept(study, FILE, decisions)
    if len(ratings):
        write_ratings(study, ratings, decisions)
