"""People's decisions about raters and pairs, recorded with reason and time and never changed; the evidence for them."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType

import pandas as pd

from annotation.campaign.counting import counting_ratings, stays
from annotation.campaign.names import named
from annotation.campaign.records import AGAIN, DECISIONS, CampaignRecords
from annotation.ratings.answers import write_ratings
from annotation.ratings.signs import of_questions
from annotation.records import Decision, OfferedAgain, Sign
from plumbline.cli import columns
from plumbline.errors import StudyError, nearest
from plumbline.identity import identity
from plumbline.manifest import Manifest
from plumbline.records import Pair
from plumbline.scales import as_number
from plumbline.study import Study
from plumbline.study.campaign import QualityLimits


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
    rater_ids = sorted(set(ratings["rater_id"]))
    for rater in raters:
        if rater not in rater_ids and rater in names:
            raise StudyError(f"{study.name} has no answer from {named(rater, names)}; there is nothing to decide yet")
        if rater not in rater_ids:
            candidates = [*(names[name] for name in rater_ids if name in names), *rater_ids]
            raise StudyError(f"{study.name} has no rater {rater!r}; {nearest(rater, candidates)}")
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


def pairs_to_read(ratings: pd.DataFrame, per_pair: int, rules: QualityLimits) -> pd.DataFrame:
    """Return the pairs to read first: most comments, then ratings farthest apart, then low means.

    Pairs that people withdrew are not among them. A pair has one row, of the question on which its ratings lie farthest
    apart as a share of its scale (of such, that with the lowest mean). Columns: pair_id, question, lowest, highest,
    mean (of ratings that count; missing of a pair that has only comments), n_ratings, comments (raters who wrote one,
    counting or not). `ratings` is a frame of `plumbline.records.Rating`.
    """
    counting = counting_ratings(ratings, per_pair)
    values = counting[counting["value"].notna()].groupby(["pair_id", "question"], sort=False, observed=True)["value"]
    rated = values.agg(lowest="min", highest="max", mean="mean", n_ratings="size").reset_index()
    quarter, low = (of_questions(rated["question"], rules, name) for name in ("apart", "low"))
    rated["apart"] = (rated["highest"] - rated["lowest"]) / quarter
    rated["height"] = (rated["mean"] - low) / quarter
    keys = ["apart", "height", "question"]
    rated = rated.sort_values(keys, ascending=[False, True, True]).drop_duplicates("pair_id")
    written = ratings.loc[stays(ratings) & (ratings["comment"].str.strip() != ""), ["pair_id", "rater_id"]]
    comments = written.drop_duplicates()["pair_id"].value_counts().rename("comments").reset_index()
    table = rated.merge(comments, how="outer", on="pair_id")
    table = table.fillna({"comments": 0, "n_ratings": 0, "question": ""}).convert_dtypes()
    keys = ["comments", "apart", "height", "pair_id"]
    table = table.sort_values(keys, ascending=[False, False, True, True], ignore_index=True)
    return table.drop(columns=["apart", "height"])


def low_pairs(ratings: pd.DataFrame, rules: QualityLimits) -> pd.DataFrame:
    """Pairs whose mean over raters is at most the question's `Tolerance.low`, lowest first; `ratings` are the sample's.

    Columns: pair_id, transformation, question, mean, n. PTEB, appendix B, step 3: they are read by a person.
    """
    counting = ratings[(ratings["status"] == "submitted") & ratings["value"].notna()]
    means = counting.groupby(["pair_id", "transformation", "question"], as_index=False).agg(
        mean=("value", "mean"), n=("value", "size")
    )
    means["mean"] = means["mean"].astype(float)
    low = of_questions(means["question"], rules, "low")
    return means[means["mean"] <= low].sort_values(["mean", "pair_id", "question"], ignore_index=True)


SHOWN = 20  # pairs in the printed list


def review_text(
    records: CampaignRecords,
    signs: Sequence[Sign],
    unlooked: Sequence[str] = (),
    names: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return signs by rater, pairs rated low, and the decisions so far about raters and pairs.

    `unlooked` has lines on rules that could not check some raters.
    """
    study, of_sample = records.study, records.collected.of_sample
    ratings = of_sample[stays(of_sample)]
    simulated = " (simulated ratings)" if ratings["simulated"].any() else ""
    rows = [[named(sign.rater_id, names), sign.rule, sign.evidence] for sign in signs]
    low = low_pairs(counting_ratings(of_sample, study.raters.per_pair), records.rubric.quality)
    pairs = [
        [row["pair_id"][:12], row["transformation"], row["question"], f"{row['mean']:.2f}", str(row["n"])]
        for row in low.head(SHOWN).to_dict(orient="records")
    ]
    decisions = [
        [
            named(decision.rater_id, names),
            decision_words(decision),
            f"{decision.decided_at:%Y-%m-%d %H:%M}",
            decision.reason,
        ]
        for decision in records.decisions
    ]
    withdrawals = [
        [decision.pair_id[:12], decision_words(decision), f"{decision.decided_at:%Y-%m-%d %H:%M}", decision.reason]
        for decision in records.withdrawals
    ]
    more = f"\n... and {len(low) - SHOWN} more" if len(low) > SHOWN else ""
    rated = ratings.empty or bool(ratings["value"].notna().any())  # labels have no mean
    item, lowest = study.called.item, defaultdict[float, list[str]](list)
    for question, tolerance in records.rubric.quality.questions.items():
        lowest[tolerance.low].append(question)
    limits = " or ".join(
        f"{low:g} ({', '.join(lowest[low])})" if len(lowest) > 1 else f"{low:g}"
        for low in records.rubric.quality.each("low")
    )
    to_read = [
        f"{item.capitalize()}s to read, with a mean of at most {limits}",
        columns([item, study.called.judged, "question", "mean", "ratings"], pairs, empty="none") + more,
    ]
    return "\n\n".join(
        [
            f"Signs of careless answers in study {study.name}{simulated}; they decide nothing",
            columns(["rater", "rule", "evidence"], rows, empty="no sign in any rater's answers"),
            *(["Signs that could not be checked", "\n".join(unlooked)] if unlooked else []),
            *(to_read if rated else []),
            "Decisions",
            columns(["rater", "decision", "when", "reason"], decisions, empty="none so far"),
            *([] if not withdrawals else ["Pairs", columns(["pair", "decision", "when", "reason"], withdrawals)]),
        ]
    )
