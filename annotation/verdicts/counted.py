"""The pairs that a verdict rests on: all its numbers (means, intervals, agreement, P, counts) are of these.

Without `raters.blocks` a pair counts with `min_raters` ratings on every question. With them the pairs stand in a random
order that the sample fixes, and those of its first blocks count, up to the look that decided (`verdicts.looks`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.extensions import take

from annotation.campaign.counting import PairCoverage, rows_of
from annotation.campaign.records import pair_records
from annotation.records import NO_REASON
from annotation.sampling.queues import SCOPES, in_order, original_shared
from annotation.sampling.sample import COMMAND
from annotation.statistics.summaries import Design
from annotation.verdicts.looks import BlockProgress, block_progress
from annotation.verdicts.tables import scoped
from plumbline.frames import is_among, rows_where
from plumbline.records import Pair
from plumbline.statistics.group_sequential import FEWEST
from plumbline.study import Study
from plumbline.study.campaign import AcceptanceSpec
from plumbline.words import count

Place = tuple[str, ...]  # the key of one group that is judged apart
_GROUPS = ("pool", "task_type")  # what the keys of groups are made of, with the ratings' own language


@dataclass(frozen=True)
class Basis:
    """The pairs and ratings that verdicts rest on."""

    ratings: pd.DataFrame  #: of the pairs that count, with their `pool` and `task_type`
    blocks: Mapping[Place, BlockProgress] = field(default_factory=dict)  #: by group; empty without blocks


def basis(sample: pd.DataFrame, ratings: pd.DataFrame, design: Design, coverage: PairCoverage | None = None) -> Basis:
    """Return the ratings of the pairs that verdicts rest on.

    `sample` has rows of `Pair`, `ratings` are those that count,
    none of a withdrawn pair. `coverage` says which pairs need not be waited for (`campaign.counting.coverage_of`).
    """
    if not design.blocks:
        return Basis(with_facts(with_enough(ratings, design), sample, _GROUPS))
    answered = answers(ratings, design)
    waves = dict(zip(sample["pair_id"], sample["wave"], strict=True))
    originals = {pair.pair_id: original_shared(pair) for pair in pair_records(sample)}
    order = in_order(sample["pair_id"], design.seed, waves, originals)
    turns = pd.Series(range(len(order)), index=order)
    numbers, blocks = dict(zip(answered.index, answered.tolist(), strict=True)), dict[Place, BlockProgress]()
    for key, of_group in sample.groupby(SCOPES[design.rule.scope], sort=False)["pair_id"]:
        ids, group = of_group.iloc[turns.loc[of_group].to_numpy().argsort()], tuple(map(str, key))
        of_blocks = ratings[ratings["pair_id"].isin(ids) & ratings["question"].isin(design.questions)]
        blocks[group] = block_progress(ids.tolist(), of_blocks, numbers, coverage or PairCoverage(), design, group)
    pair_ids = [pair_id for progress in blocks.values() for pair_id in progress.counting]
    counted = ratings[ratings["question"].isin(design.questions) & is_among(ratings["pair_id"], pair_ids)]
    return Basis(with_facts(counted, sample, _GROUPS), blocks)


def with_facts(ratings: pd.DataFrame, sample: pd.DataFrame, names: Collection[str]) -> pd.DataFrame:
    """Return ratings with these columns of their pairs in the sample; NaN for a pair that is not in it."""
    rows = rows_of(sample, ratings["pair_id"])
    return ratings.assign(**{name: take(sample[name].array, rows, allow_fill=True) for name in names})


def answers(ratings: pd.DataFrame, design: Design) -> pd.Series:
    """Return each pair's number of answers on its required question with the fewest.

    `ratings` are those that count. Questions that need no answer, or are not asked about a pair, play no part.
    """
    pair, names = pd.factorize(ratings["pair_id"])
    least = np.full(len(names), np.iinfo(np.int64).max)
    for question in design.questions:
        scale = design.asked(question)
        if scale.required:
            got = np.bincount(pair[(ratings["question"] == question).to_numpy()], minlength=len(names))
            if scale.pools:  # pairs about which it is not asked need no answer
                first = ratings.drop_duplicates("pair_id").set_index("pair_id")["transformation"].astype(str)
                is_asked = first.map(design.pool_of).reindex(names).isin(scale.pools).to_numpy()
                got = np.where(is_asked, got, least)
            least = np.minimum(least, got)
    return pd.Series(least, index=names)


def with_enough(ratings: pd.DataFrame, design: Design) -> pd.DataFrame:
    """Return the ratings of pairs with `min_raters` answers on every question; `ratings` are counting ones."""
    enough = answers(ratings, design).to_numpy() >= design.rule.min_raters
    chosen = ratings["question"].isin(design.questions) & enough[pd.factorize(ratings["pair_id"])[0]]
    return rows_where(ratings, chosen.to_numpy())


_NAMED = 3  # verdicts that a line names


@dataclass(frozen=True)
class Ahead:
    """The largest numbers that one group can reach."""

    key: Place
    names: tuple[str, ...]  #: as people read them, with language and task
    units: tuple[tuple[str, str], ...]  #: the transformations and languages of its pairs
    pairs: int  #: pairs that count, or still could
    fewest: int  #: of these the pairs of the transformation with the fewest
    awaited: int  #: answers that raters are still asked for
    anew: int = 0  #: answers that could be asked for again, since their raters are excluded
    enough: int = 0  #: pairs of the transformation with the fewest that have enough answers already

    def lacks(self, study: Study) -> str:
        """Return the reachable and the needed number of pairs if the group can never be decided; else empty."""
        least = _least(study.acceptance)
        return f"{self.fewest} of {least}" if self.fewest < least else ""

    def suffices(self, study: Study) -> bool:
        """Return whether a verdict on the answers so far would have enough pairs."""
        return self.enough >= _least(study.acceptance)


def _least(rule: AcceptanceSpec) -> int:
    """Return the fewest pairs that decide anything."""
    return max(rule.min_pairs, FEWEST if rule.by_interval else 0)


def ahead(pairs: pd.DataFrame, rule: AcceptanceSpec) -> list[Ahead]:
    """Return the largest numbers that each group can reach; `pairs` has a row per pair of the sample.

    Its columns: transformation, pool, language, task_type, `counting` (answers), `asked` (that raters are still asked
    for), `enough` (whether enough count), `could` (whether enough count, or still could) and `most` (how many count, or
    could).
    """
    key, groups = list(SCOPES[rule.scope]), dict[Place, list[dict[Any, Any]]]()
    anew = (pairs["most"] - pairs["counting"] - pairs["asked"]).clip(lower=0)
    units = list(dict.fromkeys([*key, "transformation", "language"]))
    sums = (
        pairs.assign(anew=anew, enough=pairs["enough"] & pairs["could"])
        .groupby(units, sort=False, observed=True)[["could", "asked", "anew", "enough"]]
        .sum()
    )
    for row in sums.reset_index().astype(dict.fromkeys(units, str)).to_dict("records"):
        groups.setdefault(tuple(row[name] for name in key), []).append(row)
    return [_ahead(values, rows) for values, rows in groups.items()]


def _ahead(values: Place, rows: Sequence[Mapping[Any, Any]]) -> Ahead:
    """Return what a group can reach; it has a row per transformation, language and what else tells groups apart."""
    could, enough = Counter[str](), Counter[str]()
    for row in rows:
        could[row["transformation"]] += int(row["could"])
        enough[row["transformation"]] += int(row["enough"])
    language = values[1] if len(values) > 1 else ", ".join(sorted({row["language"] for row in rows}))
    return Ahead(
        key=values,
        names=tuple(scoped(name, language, values[2] if len(values) > 2 else "") for name in could),
        units=tuple((row["transformation"], row["language"]) for row in rows),
        pairs=could.total(),
        fewest=min(could.values()),
        awaited=sum(int(row["asked"]) for row in rows),
        anew=sum(int(row["anew"]) for row in rows),
        enough=min(enough.values()),
    )


def ahead_of_sample(pairs: Sequence[Pair], rule: AcceptanceSpec, raters_of: Callable[[str], int]) -> list[Ahead]:
    """Return the largest numbers that each group can reach before any answer; `raters_of` gives an item's raters."""
    names = ("transformation", "pool", "language", "task_type")
    frame = pd.DataFrame([[getattr(pair, name) for name in names] for pair in pairs], columns=list(names))
    raters = frame["transformation"].map(raters_of) if len(frame) else pd.Series(dtype=int)
    could = raters >= rule.min_raters
    return ahead(frame.assign(counting=0, asked=raters, most=raters, could=could, enough=False), rule)


def never_lines(study: Study, groups: Sequence[Ahead], *, offered: bool, imported: bool = False) -> list[str]:
    """Return lines on groups that can never be decided, with advice; none if all may be.

    `offered` is whether raters may have seen the sample, `imported` whether nobody was asked.
    """
    item = study.called.item
    short = [(group, lacks) for group in groups if (lacks := group.lacks(study))]
    if not short:
        return []
    named = [f"{' and '.join(group.names)} {lacks}" for group, lacks in short]
    more = f"; and {len(named) - _NAMED} more" if len(named) > _NAMED + 1 else ""
    again = f" (`{study.command('generate')} --again` asks for failed outputs again)"
    again = again if study.judging.transforms else ""
    draw = f"{again} and draw more with `{study.command(COMMAND)}{f' --extend {NO_REASON}' * offered}`"
    add = f"Import more {item}s, with --replace" if imported else f"Add texts, data sets or seeds{draw}"
    lower = f"{study.command('accept')} --amend {NO_REASON}" if offered else study.command(COMMAND)
    return [
        f"too few {item}s can ever count for a verdict (acceptance.min_pairs):"
        f" {'; '.join(named[:_NAMED] if more else named)}{more}. {add}, or lower the number"
        f" in the study, then run `{lower}`"
    ]


def size_line(groups: Sequence[Ahead], item: str, rule: AcceptanceSpec) -> str:
    """Return a line on the number of verdicts and the pairs of each; empty without a sample."""
    sizes = sorted(group.pairs for group in groups)
    if not sizes:
        return ""
    number = sum(len(group.names) for group in groups)
    pairs = count(sizes[0], item) if sizes[0] == sizes[-1] else f"{sizes[0]:,} to {count(sizes[-1], item)}"
    about = f"{count(number, 'verdict')} by acceptance.scope {rule.scope}"
    return f"{about}, on {pairs}{' each' if number > 1 else ''} ({rule.min_pairs} are needed)"
