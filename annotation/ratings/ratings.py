"""The ratings on disk: read, marked with people's decisions and as surplus if they come too late, and written.

`ratings.parquet` holds the ratings of the sample and `control_ratings.parquet` those of controls and repeats, so that
no verdict can count these.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType

import numpy as np
import pandas as pd

from annotation.campaign_records import AGAIN, CONTROL_RATINGS, DECISIONS, RATINGS, CampaignRecords, withdrawals
from annotation.names import named
from annotation.records import Decision, OfferedAgain, Sign
from plumbline.errors import DataError, StudyError, nearest
from plumbline.identity import identity
from plumbline.manifest import Manifest
from plumbline.records import SANDBOX, SOURCES, Pair, Rating
from plumbline.scales import as_number
from plumbline.study import Study


def write_ratings(records: CampaignRecords, whole: pd.DataFrame) -> None:
    """Write all ratings, of the sample, controls and repeats, with the marks that follow from `records`."""
    study, decisions, controls = records.study, records.decided, records.controls
    withdrawn = withdrawals(decisions, controls)
    whole = marked(whole, decisions, study.raters.per_pair, withdrawn, records.answers_again)
    of_controls = whole["pair_id"].isin([pair.pair_id for pair in controls])
    Manifest.of(study).write_table(CONTROL_RATINGS.name, whole[of_controls], Rating)
    Manifest.of(study).write_table(RATINGS.name, whole[~of_controls], Rating)


def note_again(records: CampaignRecords, answers: Iterable[tuple[str, str]]) -> None:
    """Note that the pairs of these answers, (pair, rater), are offered again, and mark the ratings."""
    new, now = sorted(set(answers) - records.answers_again), datetime.now(UTC)
    if new:
        noted = [OfferedAgain(rater_id=rater, pair_id=pair_id, at=now) for pair_id, rater in new]
        again = [*records.offered_again, *noted]
        Manifest.of(records.study).write_models(AGAIN.name, again)
        write_ratings(records.changed(offered_again=again), records.all_ratings)


def marked(
    ratings: pd.DataFrame,
    decisions: Sequence[Decision],
    per_pair: int,
    withdrawn: Mapping[str, str],
    again: Collection[tuple[str, str]] = (),
) -> pd.DataFrame:
    """The ratings with `excluded` and `withdrawn` as people decided last, and `surplus` by the study's rule.

    `withdrawn` are the reasons of `withdrawals`, `again` the answers, (pair, rater), whose pairs were offered again.
    """
    ratings = ratings.assign(excluded=exclusions(ratings, decisions))
    ratings = ratings.assign(withdrawn=[withdrawn.get(pair_id, "") for pair_id in ratings["pair_id"]])
    offered = pd.MultiIndex.from_frame(ratings[["pair_id", "rater_id"]]).isin(list(again))
    ratings = ratings.assign(again=offered & (ratings["excluded"] != "").to_numpy())
    counting = counting_ratings(ratings, per_pair).index
    could = (ratings["status"] == "submitted") & (ratings["excluded"] == "") & stays(ratings)
    return ratings.assign(surplus=could & ~ratings.index.isin(counting))


def exclusions(ratings: pd.DataFrame, decisions: Sequence[Decision]) -> list[str]:
    """Return why each rating does not count, by the last decision about its rater; empty if it may."""
    reasons = excluded_raters(decisions)
    return [reasons.get(rater, "") for rater in ratings["rater_id"]]


def excluded_raters(decisions: Sequence[Decision]) -> dict[str, str]:
    """Return why raters are excluded, by pseudonym, from the last decision about each."""
    last = {decision.rater_id: decision for decision in decisions if decision.rater_id}
    return {rater: decision.reason for rater, decision in last.items() if decision.exclude}


def asked_again(ratings: pd.DataFrame) -> pd.Series:
    """Return a mask of excluded raters' ratings whose pairs were offered again.

    It is False everywhere in frames without that column.
    """
    return ratings["again"].astype(bool) if "again" in ratings else pd.Series(False, ratings.index)


def stays(ratings: pd.DataFrame) -> pd.Series:
    """Return which ratings are of pairs that nobody withdrew; all of them if the frame does not say."""
    return ratings["withdrawn"] == "" if "withdrawn" in ratings else pd.Series(True, ratings.index)


def imported(ratings: pd.DataFrame) -> pd.Series:
    """Return a mask of the ratings that come from a file, not from the study's own campaign."""
    return ~ratings["source"].isin([*SOURCES, *(f"{name}{SANDBOX}" for name in SOURCES)])


def untimed(ratings: pd.DataFrame) -> pd.Series:
    """Return a mask of ratings whose file gives all answers one time, so that their times are unknown."""
    if "source" not in ratings or ratings.empty:
        return pd.Series(False, ratings.index)
    sources = ratings[imported(ratings)].groupby("source", observed=True)
    times, rated = sources["submitted_at"].nunique(), sources["pair_id"].nunique()
    return ratings["source"].isin(list(times.index[(times == 1) & (rated > 1)]))


def dated_words(rated: pd.DataFrame) -> str:
    """Return the days between which ratings were given; files without times are set aside."""
    unknown = untimed(rated)
    if unknown.all():
        return "of unknown time"
    days = [f"{rated.loc[~unknown, 'submitted_at'].agg(end):%Y-%m-%d}" for end in ("min", "max")]
    dated = f"dated {days[0]}" if days[0] == days[1] else f"dated {days[0]} to {days[1]}"
    return f"{dated} (not counting ratings from files without times)" if unknown.any() else dated


@dataclass(frozen=True)
class Dealt:
    """Pairs that a block need not wait for (`verdicts.counted`)."""

    raters: Mapping[str, int] = field(default_factory=dict)  #: how many are done with each pair
    withdrawn: Collection[str] = ()  #: pairs that people withdrew


def dealt_with(ratings: pd.DataFrame, withdrawn: Collection[str] = ()) -> Dealt:
    """Return how many raters submitted or discarded each pair of these ratings, and the withdrawn pairs.

    Excluded ones too, but where their pairs were offered again: these are waited for.
    """
    done = (ratings["status"] != "draft") & ~asked_again(ratings)
    dealt = ratings.loc[done, ["pair_id", "rater_id"]].drop_duplicates()
    return Dealt({str(pair_id): int(number) for pair_id, number in dealt["pair_id"].value_counts().items()}, withdrawn)


def rows_of(pairs: pd.DataFrame, names: pd.Series) -> np.ndarray:
    """Return the row in `pairs` of each named pair, -1 for an unknown name; each name is looked up once."""
    named = names.astype("category").cat
    rows: np.ndarray = pd.Index(pairs["pair_id"]).get_indexer(named.categories)[named.codes]
    return rows


def counting_ratings(ratings: pd.DataFrame, per_pair: int, *, with_excluded: bool = False) -> pd.DataFrame:
    """The ratings that count: submitted, of pairs that stay and raters who are not excluded.

    Of each pair they are the first `per_pair` raters' by submission.

    More can come in when raters work at once; the rule is fixed beforehand, so nobody chooses among ratings.
    Ties in time are broken by the rater's pseudonym. `with_excluded` also lets in what people excluded.
    """
    rated = (ratings["status"] == "submitted") & stays(ratings)
    submitted = ratings[rated if with_excluded else rated & (ratings["excluded"] == "")]
    pair, rater = pd.factorize(submitted["pair_id"])[0], pd.factorize(submitted["rater_id"], sort=True)[0]
    raters = rater.max(initial=0) + 1
    if np.bincount(pd.unique(pair * raters + rater) // raters).max(initial=0) <= per_pair:
        return submitted  # no pair has more than may count
    numbers = pd.DataFrame({"pair": pair, "rater": rater, "at": submitted["submitted_at"].array})
    keys = ["pair", "rater"]
    turns = numbers.groupby(keys, as_index=False).agg(at=("at", "max")).sort_values(["at", "rater"])
    turns["turn"] = turns.groupby("pair").cumcount()
    turn = numbers.merge(turns[[*keys, "turn"]], on=keys, how="left")["turn"]
    return submitted[(turn < per_pair).to_numpy()]


_SHORTEST = 8  # characters of a pair's id that name it; `review` prints twelve


def decision_words(decision: Decision) -> str:
    """A decision in a word or two."""
    if decision.pair_id:
        return "withdrawn" if decision.exclude else "restored"
    return "excluded" if decision.exclude else "kept"


def withdrawn_hash(withdrawn: Collection[str]) -> str:
    """Identity of which pairs are withdrawn; empty where none is."""
    return identity("withdrawn-v1", *sorted(withdrawn)) if withdrawn else ""


def kept_hash(decisions: Sequence[Decision]) -> str:
    """Return the identity of the raters whom people keep and of their answers; empty without any."""
    last = {decision.rater_id: decision for decision in decisions if decision.rater_id}
    raters = sorted(
        f"{decision.rater_id} {decision.answers_hash}"
        for decision in last.values()
        if decision.answers_hash and not decision.exclude
    )
    return identity("kept-v1", *raters) if raters else ""


def is_marked(records: CampaignRecords, ratings: pd.DataFrame) -> bool:
    """Return whether the ratings carry all decisions; a command may have been killed before it marked them."""
    decisions = records.decided
    if not decisions:
        return not (ratings["excluded"] != "").any() and bool(stays(ratings).all())
    names = ["rater_id", "pair_id", "excluded", "withdrawn"]
    once = ratings[names].drop_duplicates()
    withdrawn = records.withdrawn
    return list(once["excluded"]) == exclusions(once, decisions) and list(once["withdrawn"]) == [
        withdrawn.get(pair_id, "") for pair_id in once["pair_id"]
    ]


def refuse_unmarked(records: CampaignRecords) -> None:
    """Raise DataError if the sample's ratings lack decisions, since a command was killed before it marked them."""
    if records.decided and not is_marked(records, records.collected.sample_ratings):
        raise DataError(
            f"{records.path(DECISIONS)} has decisions that the ratings do not show yet; run"
            f" `{records.study.command('accept')}` again"
        )


def decide(
    study: Study,
    *raters: str,
    exclude: bool,
    reason: str,
    signs: Sequence[Sign] = (),
    names: Mapping[str, str] = MappingProxyType({}),
) -> Decision:
    """Record a decision about raters and mark the ratings; `signs` are those that the person saw.

    Returns the last rater's. Raises StudyError for a rater without ratings and for a decision without a reason.
    """
    records = CampaignRecords.open(study)
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
    """Note that pairs of the sample are withdrawn, or taken back, and mark the ratings; ids may be cut short.

    What a run that was cut off has noted, with the same reason, is not noted again. Raises StudyError for what is no
    pair of the sample, or is withdrawn (or not) already, and for want of a reason.
    """
    if not reason.strip():
        raise StudyError(f"{'taking back' if take_back else 'withdrawing'} pairs needs a reason; add --reason 'why'")
    records = CampaignRecords.open(study)
    whole = [_pair_named(study.name, name, records.shown) for name in pair_ids]
    if twice := next((pair_id for pair_id, times in Counter(whole).items() if times > 1), ""):
        raise StudyError(f"pair {twice} is named twice; name each pair once")
    withdrawn, now, words = records.withdrawn, datetime.now(UTC), " ".join(reason.split())
    latest = {decision.pair_id: decision for decision in records.withdrawals}
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


def _pair_named(study_name: str, name: str, shown: Sequence[Pair]) -> str:
    """The id of the one pair of the sample that begins so. Raises StudyError where there is none, or several."""
    matches = [pair for pair in shown if pair.pair_id.startswith(name)] if len(name) >= _SHORTEST else []
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
    """Add decisions, then mark the ratings; a reader in between sees that marks are missing (`is_marked`)."""
    decisions = [*records.decided, *new]
    Manifest.of(records.study).write_models(DECISIONS.name, decisions)
    if len(records.all_ratings):
        write_ratings(records.changed(decided=decisions), records.all_ratings)
