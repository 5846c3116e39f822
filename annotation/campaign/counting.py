"""Which ratings count: computed from the answers and from people's decisions whenever the ratings are opened."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from annotation.records import Decision
from plumbline.frames import rows_where
from plumbline.records import SANDBOX, SOURCES, Pair

MARKS = ("excluded", "withdrawn", "again", "surplus")  # columns of `Rating` that are computed at each opening


def marked(
    ratings: pd.DataFrame,
    decisions: Sequence[Decision],
    per_pair: int,
    withdrawn: Mapping[str, str],
    again: Collection[tuple[str, str]] = (),
) -> pd.DataFrame:
    """Return answers with `MARKS`: `excluded` and `withdrawn` as people decided last, `surplus` by the study's rule.

    `withdrawn` are the reasons of `withdrawals`, `again` the answers, (pair, rater), whose pairs were offered again.
    """
    excluded = _looked_up(ratings["rater_id"], excluded_raters(decisions))
    ratings = ratings.assign(excluded=excluded, withdrawn=_looked_up(ratings["pair_id"], withdrawn))
    offered = np.zeros(len(ratings), np.bool_)
    if again:
        answers = pd.MultiIndex.from_frame(ratings[["pair_id", "rater_id"]].astype(str))
        offered = answers.isin(list(again)) & (ratings["excluded"] != "").to_numpy()
    ratings = ratings.assign(again=offered)
    could = (ratings["status"] == "submitted") & (ratings["excluded"] == "") & stays(ratings)
    return ratings.assign(surplus=could & ~ratings.index.isin(counting_ratings(ratings, per_pair).index))


def _looked_up(names: pd.Series, reasons: Mapping[str, str]) -> pd.Categorical[str]:
    """Return the reason of each name; empty without one."""
    named, words = names.astype("category").cat, sorted({"", *reasons.values()})
    of_name, places = np.zeros(len(named.categories), np.int64), named.categories.get_indexer(pd.Index(list(reasons)))
    of_name[places[places >= 0]] = [
        words.index(word) for word, at in zip(reasons.values(), places, strict=True) if at >= 0
    ]
    return pd.Categorical.from_codes(of_name[named.codes], pd.Index(words))


def excluded_raters(decisions: Sequence[Decision]) -> dict[str, str]:
    """Return why raters are excluded, by pseudonym, from the last decision about each."""
    last = {decision.rater_id: decision for decision in decisions if decision.rater_id}
    return {rater: decision.reason for rater, decision in last.items() if decision.exclude}


def withdrawals(decisions: Sequence[Decision], controls: Sequence[Pair]) -> dict[str, str]:
    """Return why pairs are withdrawn, by id, from the last decision about each; repeats among `controls` follow."""
    last = {decision.pair_id: decision for decision in decisions if decision.pair_id}
    reasons = {pair_id: decision.reason for pair_id, decision in last.items() if decision.exclude}
    return reasons | {pair.pair_id: reasons[pair.repeats] for pair in controls if pair.repeats in reasons}


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
class PairCoverage:
    """Pairs that a block need not wait for (`verdicts.counted`)."""

    raters: Mapping[str, int] = field(default_factory=dict)  #: how many are done with each pair
    withdrawn: Collection[str] = ()  #: pairs that people withdrew


def coverage_of(ratings: pd.DataFrame, withdrawn: Collection[str] = ()) -> PairCoverage:
    """Return how many raters submitted or discarded each pair of these ratings, and the withdrawn pairs.

    Excluded ones too, but where their pairs were offered again: these are waited for.
    """
    done = (ratings["status"] != "draft") & ~asked_again(ratings)
    raters = ratings.loc[done, ["pair_id", "rater_id"]].drop_duplicates()["pair_id"].value_counts()
    return PairCoverage({str(pair_id): int(number) for pair_id, number in raters.items()}, withdrawn)


def rows_of(pairs: pd.DataFrame, names: pd.Series) -> np.ndarray:
    """Return the row in `pairs` of each named pair, -1 for an unknown name; each name is looked up once."""
    named = names.astype("category").cat
    rows = np.full(len(named.categories) + 1, -1)
    rows[named.categories.get_indexer(pd.Index(pairs["pair_id"]))] = np.arange(len(pairs))
    rows[-1] = -1  # of pairs without a name here, and of names that are missing
    return rows[named.codes]


def counting_ratings(ratings: pd.DataFrame, per_pair: int, *, with_excluded: bool = False) -> pd.DataFrame:
    """The ratings that count: submitted, of pairs that stay and raters who are not excluded.

    Of each pair they are the first `per_pair` raters' by submission.

    More can come in when raters work at once; the rule is fixed beforehand, so nobody chooses among ratings.
    Ties in time are broken by the rater's pseudonym. `with_excluded` also lets in what people excluded.
    """
    rated = (ratings["status"] == "submitted") & stays(ratings)
    rated = rated if with_excluded else rated & (ratings["excluded"] == "")
    submitted = rows_where(ratings, rated.to_numpy(np.bool_))
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


def by_pair(
    pairs: pd.DataFrame,
    ratings: pd.DataFrame,
    per_pair: int | Callable[[str], int],
    min_raters: int,
    withdrawn: Collection[str] = (),
    unopened: Collection[str] = (),
) -> pd.DataFrame:
    """A row for each pair of the sample, in its order; `ratings` are of the sample's `pairs`.

    Columns: transformation, pool, language, task_type; whether the pair is `withdrawn`, or else among the `pairs`,
    `complete` (with `per_pair` answers that count, which a transformation may say itself), has `enough` (`min_raters`)
    or `could` have; numbers of answers: `counting`, `most` (that count, or could), `wanted` (`per_pair`), `open` (those
    that are missing), `asked` (those that raters are still asked for; what was excluded is where it was offered again),
    `drafts`, `discarded`, `surplus` and `excluded`. What was excluded could be offered again. Of a withdrawn pair no
    answer counts; none is wanted of an `unopened` one, whose block raters do not get yet, or not at all.
    """
    frame, answer = (
        pairs[["transformation", "language", "pool", "task_type"]].reset_index(drop=True),
        ["pair", "rater_id"],
    )
    out = pairs["pair_id"].isin(list(withdrawn)).to_numpy()
    per_name = {
        name: per_pair if isinstance(per_pair, int) else per_pair(str(name))
        for name in frame["transformation"].unique()
    }
    wanted = frame["transformation"].astype(object).map(per_name).astype(int)
    ratings = ratings[["pair_id", "rater_id", "status", "excluded", "submitted_at"]].assign(
        pair=rows_of(pairs, ratings["pair_id"]), again=asked_again(ratings)
    )
    ratings = ratings[~out[ratings["pair"]]] if out.any() else ratings
    answers = ratings.drop_duplicates(answer)
    submitted = answers["status"] == "submitted"
    counts = {
        "submitted": answers[submitted],
        "counting": counting_ratings(ratings, max(per_name.values(), default=1)).drop_duplicates(answer),
        "drafts": answers[answers["status"] == "draft"],
        "discarded": answers[answers["status"] == "discarded"],
        "excluded": answers[submitted & (answers["excluded"] != "")],
        "again": answers[submitted & answers["again"]],
    }
    for name, some in counts.items():
        frame[name] = np.bincount(some["pair"], minlength=len(frame))
    frame["surplus"] = frame["submitted"] - frame["excluded"] - frame["counting"]
    later = pairs["pair_id"].isin(list(unopened)).to_numpy()
    frame["asked"] = (wanted - frame["submitted"] + frame["again"]).clip(lower=0) * ~out
    anew = frame["excluded"] - frame["again"]  # could be offered again
    frame["most"] = (frame["counting"] + frame["asked"] + anew).clip(upper=wanted) * ~out
    frame["complete"] = frame["counting"] >= wanted
    for name, number in (("enough", "counting"), ("could", "most")):
        frame[name] = frame[number] >= min_raters
    frame["asked"] *= ~later
    frame["open"] = (wanted - frame["counting"]).clip(lower=0) * ~(out | later)
    return frame.assign(withdrawn=out, pairs=~out, wanted=wanted * ~(out | later))
