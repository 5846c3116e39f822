"""The ratings on disk: read, marked with what people decided and with what comes too late to count, written.

`ratings.parquet` holds the ratings of the sample and `control_ratings.parquet` those of controls and repeats, so that
no verdict can count these.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd

from annotation.records import Decision
from annotation.sampling.controls import read_controls
from plumbline.errors import DataError
from plumbline.manifest import is_kept, refuse_replaced_table, write_kept_table
from plumbline.records import Rating
from plumbline.store import joined, read_frame, read_table
from plumbline.study import Study

COMMAND = "annotation collect"
SAMPLE, CONTROLS = "ratings.parquet", "control_ratings.parquet"


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
    whole = marked(whole, decisions, study.raters.per_pair)
    controls = {pair.pair_id for pair in read_controls(study)}
    told = whole["pair_id"].isin(controls)
    write_kept_table(study, CONTROLS, whole[told], Rating)
    write_kept_table(study, SAMPLE, whole[~told], Rating)


def marked(ratings: pd.DataFrame, decisions: Sequence[Decision], per_pair: int) -> pd.DataFrame:
    """The ratings with `excluded` as the last decision about each rater says, and `surplus` by the study's rule."""
    ratings = ratings.assign(excluded=exclusions(ratings, decisions))
    counting = counting_ratings(ratings, per_pair).index
    could = (ratings["status"] == "submitted") & (ratings["excluded"] == "")
    return ratings.assign(surplus=could & ~ratings.index.isin(counting))


def exclusions(ratings: pd.DataFrame, decisions: Sequence[Decision]) -> list[str]:
    """Why each rating does not count, by the last decision about its rater; empty where it may."""
    last = {decision.rater_id: decision for decision in decisions}
    reasons = {rater: decision.reason for rater, decision in last.items() if decision.exclude}
    return [reasons.get(rater, "") for rater in ratings["rater_id"]]


def dealt_with(ratings: pd.DataFrame) -> dict[str, int]:
    """How many raters have dealt with each pair: submitted or discarded, excluded ones too.

    An anytime rule waits for no pair that as many did as are wanted (`verdicts.counted`). `ratings` are all of the
    sample's.
    """
    dealt = ratings.loc[ratings["status"] != "draft", ["pair_id", "rater_id"]].drop_duplicates()
    return {str(pair_id): int(number) for pair_id, number in dealt["pair_id"].value_counts().items()}


def rows_of(pairs: pd.DataFrame, names: pd.Series) -> np.ndarray:
    """The row in `pairs` of each pair that is named, -1 where there is none; each name is looked up once."""
    named = names.astype("category").cat
    rows: np.ndarray = pd.Index(pairs["pair_id"]).get_indexer(named.categories)[named.codes]
    return rows


def counting_ratings(ratings: pd.DataFrame, per_pair: int, *, with_excluded: bool = False) -> pd.DataFrame:
    """The ratings that count: submitted and not excluded, of each pair the first `per_pair` raters' by submission.

    More can come in when raters work at once; the rule is fixed beforehand, so nobody chooses among ratings.
    Ties in time are broken by the rater's pseudonym. `with_excluded` also lets in what people excluded.
    """
    rated = ratings["status"] == "submitted"
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
