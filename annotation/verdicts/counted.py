"""The pairs that a verdict rests on: all its numbers (means, intervals, agreement, P, counts) are of these.

With `stop: fixed` a pair counts with `min_raters` ratings on every question. With `stop: anytime` the pairs also stand
in a random order that the sample fixes, and only those count before which nothing is missing: which pairs raters
happened to finish first then plays no part (decisions/0005-verdicts.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotation.questions import QuestionScale
from annotation.ratings.ratings import Dealt
from annotation.statistics.summaries import Design
from annotation.verdicts.tables import count
from plumbline.identity import identity_from, prefix

# What is judged apart, by the rule's scope; each has the key of the one before it.
SCOPES = {"transformation": ["pool"], "language": ["pool", "language"], "task": ["pool", "language", "task_type"]}
Place = tuple[str, ...]  # the key of one group that is judged apart


@dataclass(frozen=True)
class SequenceProgress:
    """How far the sequence of an anytime rule has come, in one group that is judged apart."""

    complete: int  #: pairs that have all their ratings, wherever they stand in the order
    counted: int  #: pairs of the sequence: before each of them nothing is missing
    passed: int  #: pairs before its end that are dealt with and have too few ratings
    waits: str  #: the first pair that is not dealt with; empty where none is left
    missing: int  #: answers that it waits for
    withdrawn: int = 0  #: pairs of the whole order that people withdrew; it passes them over

    def lines(self, name: str, min_raters: int) -> tuple[str, ...]:
        """What a reader must know beside the decision; `name` is that of the pair that holds the others up."""
        lines = []
        if self.passed:
            lines.append(
                f"passed over in the sequence, since fewer than {min_raters} of the ratings that they got count:"
                f" {count(self.passed, 'pair')}"
            )
        if self.withdrawn:
            lines.append(f"passed over in the sequence, since they were withdrawn: {count(self.withdrawn, 'pair')}")
        if self.waits and self.complete > self.counted:
            lines.append(
                f"complete are {count(self.complete, 'pair')}, of which {self.counted} count in the sequence:"
                f" {name} waits for {count(self.missing, 'answer')}"
            )
        return tuple(lines)


@dataclass(frozen=True)
class Basis:
    """What verdicts rest on."""

    ratings: pd.DataFrame  #: of the pairs that count; with `stop: anytime` also `turn`, the pairs' place in the order
    standings: Mapping[Place, SequenceProgress]  #: by group; empty with `stop: fixed`


def basis(sample: pd.DataFrame, ratings: pd.DataFrame, design: Design, dealt: Dealt | None = None) -> Basis:
    """The ratings of the pairs that verdicts rest on.

    `sample` has a row a pair (pair_id, pool, language, task_type, wave), `ratings` are those that count, `dealt` says
    what need not be waited for (`annotation.ratings.ratings.dealt_with`); no rating of a withdrawn pair is among them.
    """
    answered = answers(ratings, design)
    if design.rule.stop == "fixed":
        return Basis(_of_pairs(ratings, answered.index[answered >= design.rule.min_raters], design.questions), {})
    order = in_order(sample["pair_id"], design.seed, dict(zip(sample["pair_id"], sample["wave"], strict=True)))
    turns = pd.Series(range(len(order)), index=order)
    standings, pair_ids = dict[Place, SequenceProgress](), list[str]()
    settled = dealt or Dealt()
    numbers = dict(zip(answered.index, answered.tolist(), strict=True))
    for key, of_group in sample.groupby(SCOPES[design.rule.scope], sort=False)["pair_id"]:
        ids = of_group.iloc[turns.loc[of_group].to_numpy().argsort()]
        staying = [pair_id for pair_id in ids.tolist() if pair_id not in settled.withdrawn]
        standing, counting = sequence(staying, numbers, design, settled.raters)
        standings[tuple(map(str, key))] = replace(standing, withdrawn=len(ids) - len(staying))
        pair_ids += counting
    own_ratings = _of_pairs(ratings, pair_ids, design.questions)
    return Basis(own_ratings.assign(turn=own_ratings["pair_id"].map(turns).astype(np.int64)), standings)


def sequence(
    order: Sequence[str], answered: Mapping[str, int], design: Design, dealt: Mapping[str, int]
) -> tuple[SequenceProgress, list[str]]:
    """(how far it is, the pairs that count so far) of pairs in their `order`.

    `answered` are the ratings of each pair that count, on its question with the fewest. Up to the first pair that still
    wants some, a pair counts with `min_raters`; one that enough raters have dealt with, and fewer rated, is passed
    over. `dealt` counts who submitted or discarded. Nothing here knows what the ratings say.
    """

    def heard(pair_id: str) -> int:
        return max(answered.get(pair_id, 0), dealt.get(pair_id, 0))

    def done(pair_id: str) -> bool:
        return heard(pair_id) >= design.per_pair

    def enough(pair_id: str) -> bool:
        return answered.get(pair_id, 0) >= design.rule.min_raters

    end = next((index for index, pair_id in enumerate(order) if not done(pair_id)), len(order))
    counting = [pair_id for pair_id in order[:end] if enough(pair_id)]
    waits = order[end] if end < len(order) else ""
    missing = design.per_pair - heard(waits) if waits else 0
    complete = sum(done(pair_id) and enough(pair_id) for pair_id in order)
    return SequenceProgress(complete, len(counting), end - len(counting), waits, missing), counting


def in_order(pair_ids: Iterable[str], seed: int, waves: Mapping[str, int] | None = None) -> list[str]:
    """The pairs in the sample's own random order: by a hash of its seed and of the pair, in which no answer is.

    A later wave (`waves`, by pair; all are of the first without) stands behind the earlier ones: what has been looked
    at stays the beginning of the sequence.
    """
    start, wave_of = prefix("sequence-v1", seed), waves or {}
    return sorted(pair_ids, key=lambda pair_id: (wave_of.get(pair_id, 1), identity_from(start, pair_id)))


def answers(ratings: pd.DataFrame, design: Design) -> pd.Series:
    """How many answers each pair has, on the question that needs one where it has the fewest.

    `ratings` are those that count. Questions that need no answer, or are not asked about a pair, play no part.
    """
    pair, names = pd.factorize(ratings["pair_id"])
    least = np.full(len(names), np.iinfo(np.int64).max)
    for question in design.questions:
        scale = design.asked(question)
        if scale.required:
            got = np.bincount(pair[(ratings["question"] == question).to_numpy()], minlength=len(names))
            least = np.minimum(least, np.where(_asked(ratings, names, scale, design), got, least))
    return pd.Series(least, index=names)


def _asked(ratings: pd.DataFrame, pair_ids: pd.Index, scale: QuestionScale, design: Design) -> NDArray[np.bool_]:
    """Of which pairs a question is asked."""
    if not scale.pools:
        return np.ones(len(pair_ids), np.bool_)
    first = ratings.drop_duplicates("pair_id").set_index("pair_id")["transformation"].astype(str)
    pools = first.map(design.pool_of)
    return pools.reindex(pair_ids).isin(scale.pools).to_numpy()


def with_enough(ratings: pd.DataFrame, design: Design) -> pd.DataFrame:
    """The ratings of pairs that `min_raters` answered on every question; `ratings` are those that count."""
    answered = answers(ratings, design)
    return _of_pairs(ratings, answered.index[answered >= design.rule.min_raters], design.questions)


def _of_pairs(ratings: pd.DataFrame, pair_ids: Collection[str], questions: Sequence[str]) -> pd.DataFrame:
    chosen = ratings["pair_id"].isin(pair_ids) & ratings["question"].isin(questions)
    return ratings if chosen.all() else ratings[chosen]
