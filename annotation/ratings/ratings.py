"""The ratings on disk: read, marked with what people decided and with what comes too late to count, written.

`ratings.parquet` holds the ratings of the sample and `control_ratings.parquet` those of controls and repeats, so that
no verdict can count these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import pandas as pd

from annotation.records import Decision, OfferedAgain, Review
from annotation.sampling.controls import read_controls
from plumbline.errors import DataError
from plumbline.manifest import is_kept, read_kept, refuse_replaced_table, write_kept, write_kept_table
from plumbline.records import Pair, Rating
from plumbline.store import joined, read_frame, read_table
from plumbline.study import Study

COMMAND = "annotation collect"
SAMPLE, CONTROLS = "ratings.parquet", "control_ratings.parquet"
AGAIN = "offered_again.json"


def read_ratings(study: Study) -> pd.DataFrame:
    """The sample's ratings collected so far."""
    refuse_replaced_table(study, SAMPLE, study.command(COMMAND))
    return read_frame(study.folder / SAMPLE, Rating, study.command(COMMAND))


def read_control_ratings(study: Study) -> pd.DataFrame:
    """The ratings of controls and repeats collected so far."""
    _refuse_other_tables(study)
    return read_frame(study.folder / CONTROLS, Rating, study.command(COMMAND))


def read_all_ratings(study: Study, words: Collection[str] = ()) -> pd.DataFrame:
    """All ratings collected so far, of the sample, controls and repeats; an empty frame before the first time.

    Columns of text that `words` names are categories, in their order.
    """
    _refuse_other_tables(study)
    paths = [study.folder / name for name in (SAMPLE, CONTROLS)]
    tables = (read_table(path, Rating, study.command(COMMAND), words=words) for path in paths if path.exists())
    return joined(tables, Rating, words)


def read_marks(study: Study) -> pd.DataFrame:
    """What of the sample's ratings says whose they are, of what, and whether a person lets them count."""
    names = ("rater_id", "pair_id", "excluded", "withdrawn")
    frame: pd.DataFrame = read_table(study.folder / SAMPLE, Rating, study.command(COMMAND), names, names).to_pandas()
    return frame


def _refuse_other_tables(study: Study) -> None:
    """Raise DataError where ratings were edited, or those of controls taken away: these tell about raters."""
    for name in (SAMPLE, CONTROLS):
        refuse_replaced_table(study, name, study.command(COMMAND))
    path = study.folder / CONTROLS
    if not path.exists() and (study.folder / SAMPLE).exists() and is_kept(study, CONTROLS):
        command = study.command(COMMAND)
        advice = f"bring it back from a copy, or move {SAMPLE} away too and run `{command}` again"
        raise DataError(f"{path} is gone; {advice}")


def write_ratings(study: Study, whole: pd.DataFrame, decisions: Sequence[Decision]) -> None:
    """Write all ratings, of the sample, controls and repeats, with their marks."""
    controls = read_controls(study)
    whole = marked(whole, decisions, study.raters.per_pair, withdrawals(decisions, controls), read_again(study))
    of_controls = whole["pair_id"].isin([pair.pair_id for pair in controls])
    write_kept_table(study, CONTROLS, whole[of_controls], Rating)
    write_kept_table(study, SAMPLE, whole[~of_controls], Rating)


def read_again(study: Study) -> set[tuple[str, str]]:
    """The answers of excluded raters whose pairs were offered again: (pair, rater); also if taken back."""
    notes = read_kept(study, AGAIN, OfferedAgain, study.command("annotation publish"))
    return {(note.pair_id, note.rater_id) for note in notes}


def note_again(study: Study, answers: Iterable[tuple[str, str]], decisions: Sequence[Decision]) -> None:
    """Note that the pairs of these answers, (pair, rater), are offered again, and mark the ratings."""
    before = read_kept(study, AGAIN, OfferedAgain, study.command("annotation publish"))
    new, now = sorted(set(answers) - {(note.pair_id, note.rater_id) for note in before}), datetime.now(UTC)
    if new:
        noted = [OfferedAgain(rater_id=rater, pair_id=pair_id, at=now) for pair_id, rater in new]
        write_kept(study, AGAIN, [*before, *noted])
        write_ratings(study, read_all_ratings(study), decisions)


def marked(
    ratings: pd.DataFrame,
    decisions: Sequence[Decision],
    per_pair: int,
    withdrawn: Mapping[str, str],
    again: Collection[tuple[str, str]] = (),
) -> pd.DataFrame:
    """The ratings with `excluded` and `withdrawn` as people decided last, and `surplus` by the study's rule.

    `withdrawn` are the reasons of `withdrawals`, `again` is as `read_again` has it.
    """
    ratings = ratings.assign(excluded=exclusions(ratings, decisions))
    ratings = ratings.assign(withdrawn=[withdrawn.get(pair_id, "") for pair_id in ratings["pair_id"]])
    offered = pd.MultiIndex.from_frame(ratings[["pair_id", "rater_id"]]).isin(list(again))
    ratings = ratings.assign(again=offered & (ratings["excluded"] != "").to_numpy())
    counting = counting_ratings(ratings, per_pair).index
    could = (ratings["status"] == "submitted") & (ratings["excluded"] == "") & stays(ratings)
    return ratings.assign(surplus=could & ~ratings.index.isin(counting))


def exclusions(ratings: pd.DataFrame, decisions: Sequence[Decision]) -> list[str]:
    """Why each rating does not count, by the last decision about its rater; empty where it may."""
    reasons = excluded_raters(decisions)
    return [reasons.get(rater, "") for rater in ratings["rater_id"]]


def excluded_raters(decisions: Sequence[Decision]) -> dict[str, str]:
    """Why raters are excluded, by pseudonym, as the last decision about each says."""
    last = {decision.rater_id: decision for decision in decisions if decision.rater_id}
    return {rater: decision.reason for rater, decision in last.items() if decision.exclude}


def asked_again(ratings: pd.DataFrame) -> pd.Series:
    """Which ratings are of excluded raters whose pairs were offered again; none in frames without a word of that."""
    return ratings["again"].astype(bool) if "again" in ratings else pd.Series(False, ratings.index)


def withdrawals(decisions: Sequence[Decision], controls: Sequence[Pair]) -> dict[str, str]:
    """Why pairs are withdrawn, by id, as the last decision about each says; repeats among `controls` go with them."""
    last = {decision.pair_id: decision for decision in decisions if decision.pair_id}
    reasons = {pair_id: decision.reason for pair_id, decision in last.items() if decision.exclude}
    return reasons | {pair.pair_id: reasons[pair.repeats] for pair in controls if pair.repeats in reasons}


def stays(ratings: pd.DataFrame) -> pd.Series:
    """Which ratings are of pairs that nobody withdrew; frames without a word of that are."""
    return ratings["withdrawn"] == "" if "withdrawn" in ratings else pd.Series(True, ratings.index)


def untimed(ratings: pd.DataFrame) -> pd.Series:
    """Which ratings are of a file that gives all its answers the same time: when they were given is unknown.

    A crowd's batches are none: their pages measure the time on each pair.
    """
    if "source" not in ratings or ratings.empty:
        return pd.Series(False, ratings.index)
    sources = ratings[ratings["batch"] == ""].groupby("source", observed=True)
    times, rated = sources["submitted_at"].nunique(), sources["pair_id"].nunique()
    alike = times.index[(times == 1) & (rated > 1)]
    return ratings["source"].isin(list(alike)) & (ratings["batch"] == "")


@dataclass(frozen=True)
class Dealt:
    """What an anytime rule need not wait for (`verdicts.counted`)."""

    raters: Mapping[str, int] = field(default_factory=dict)  #: how many are done with each pair
    withdrawn: Collection[str] = ()  #: pairs that people withdrew


def dealt_with(ratings: pd.DataFrame, withdrawn: Collection[str] = ()) -> Dealt:
    """How many raters submitted or discarded each pair (`ratings` are all of the sample's), and which are withdrawn.

    Excluded ones too, but where their pairs were offered again: these are waited for.
    """
    done = (ratings["status"] != "draft") & ~asked_again(ratings)
    dealt = ratings.loc[done, ["pair_id", "rater_id"]].drop_duplicates()
    return Dealt({str(pair_id): int(number) for pair_id, number in dealt["pair_id"].value_counts().items()}, withdrawn)


def rows_of(pairs: pd.DataFrame, names: pd.Series) -> np.ndarray:
    """The row in `pairs` of each pair that is named, -1 where there is none; each name is looked up once."""
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


def saw_scores(reviews: Sequence[Review], ratings: pd.DataFrame) -> list[str]:
    """Pseudonyms of those whose submitted ratings came in after they had been given judges' scores to adjudicate by."""
    first: dict[str, pd.Timestamp] = {}
    for review in reviews:
        for rater in review.adjudicators:
            first.setdefault(rater, pd.Timestamp(review.at))
    submitted = ratings[(ratings["status"] == "submitted") & ratings["rater_id"].isin(list(first))]
    late = submitted["submitted_at"] > submitted["rater_id"].astype(str).map(first)
    return sorted(submitted.loc[late, "rater_id"].astype(str).unique()) if len(submitted) else []
