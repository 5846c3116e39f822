"""Scores under two generators (HTEB, Table 22), and under several prompts of one (PTEB, Table 12)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from evaluation.tables.scores import averaged, axis_means, counting_scores, with_originals
from generation.output_tables import OVERALL
from plumbline.study.transformations import Axes, in_order
from plumbline.words import count

_CELL = ["model", "dataset", "transformation"]
_RUN = [*_CELL, "seed"]
_SIDES = ("first", "second")
_NUMBERS = ["original", *_SIDES, "first_difference", "second_difference", "change"]
_COLUMNS = ["name", "axis", *_NUMBERS, "n_datasets", "n_models", "reason", "included_rejected"]


def generator_table(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """Return scores of two studies with different generators (HTEB, Table 22): transformations under their axes.

    Only models, data sets, transformations and seeds of both count, so that only the generator differs, and the items
    that its outputs lost: each difference is from the originals of the items left. Of the second study, scores included
    without an accepting verdict count too: HTEB had one generator's outputs rated and used the other as a check of
    sensitivity (appendix O). Columns: name (transformation, axis or total), axis, original (of whole data sets), first,
    second, first_difference and second_difference (from each study's own originals, points), change (second_difference
    - first_difference), n_datasets, n_models, reason, included_rejected (whether any of the second's scores is one of
    those). Means are over data sets and models, then over transformations, then over axes (METHOD: HTEB, 2.3).
    """
    both, notes = _shared(first, second)
    if both.empty:
        return pd.DataFrame(columns=_COLUMNS)
    axes = Axes.of(both)
    pooled = {column: axis_means(both.assign(model=""), column, axes).loc[""] for column in _NUMBERS}
    rows = []
    for axis in axes.names:
        total = axis == axes.total
        mine = both[both["axis"].isin(axes.of_total if total else [axis])]
        if mine.empty:
            continue
        values = {column: means[axis] for column, means in pooled.items()}
        undefined = "an axis has no score in both studies" if total and np.isnan(values["first"]) else ""
        reason = "; ".join(filter(None, [undefined, notes]))
        rows.append(_row(axis, "" if total else axis, mine, values, reason))
        for name in [] if total else in_order(mine["transformation"].unique()):
            part = mine[mine["transformation"] == name]
            rows.append(_row(name, axis, part, part[_NUMBERS].mean(skipna=False).to_dict(), notes))
    return pd.DataFrame(rows, columns=_COLUMNS)


def _shared(first: pd.DataFrame, second: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return both studies' common scores side by side, and the numbers of scores left out, in words."""
    sources = ((first, False), (second, True))
    paired = [with_originals(counting_scores(scores, include_rejected=include), scores) for scores, include in sources]
    defined = [rows[rows["why"] == ""] for rows in paired]
    common = defined[0][_RUN].merge(defined[1][_RUN])
    pairs = [averaged(rows.merge(common, on=_RUN)) for rows in defined]
    added = pairs[1][[*_CELL, "score", "difference", "included_rejected"]]
    both = pairs[0].drop(columns=["included_rejected", "original"]).rename(columns={"original_all": "original"})
    both = both.merge(added, on=_CELL, suffixes=("_1", "_2"))
    for number, side in enumerate(_SIDES, 1):
        both = both.rename(columns={f"score_{number}": side, f"difference_{number}": f"{side}_difference"})
    dropped = [len(rows) - len(common) for rows in paired]
    failed = [int(pair["n_failed"].sum()) for pair in pairs]
    notes = [
        f"left out: {count(dropped[0], 'score')} of the first study and {dropped[1]:,} of the second that the studies"
        " do not share, or that are undefined in one"
    ] * any(dropped)
    if any(failed):
        notes.append(f"failed outputs: {count(failed[0], 'item')} of the first study and {failed[1]:,} of the second")
    return both.assign(change=both["second_difference"] - both["first_difference"]), "; ".join(notes)


def _row(name: str, axis: str, part: pd.DataFrame, values: Mapping[Any, Any], reason: str) -> dict[str, object]:
    counts = {"n_datasets": part["dataset"].nunique(), "n_models": part["model"].nunique()}
    return {"name": name, "axis": axis, **values, **counts, "reason": reason} | {
        "included_rejected": bool(part["included_rejected"].any())
    }


_PROMPT_RUN = ["model", "dataset", "transformation", "seed"]
_PLACE = ["transformation", "seed", "original", "language", "output_language"]  # identifies an output of a text
_JUDGE = ["judge_hash", "prompt_hash"]
_SCORED = ["original", "score", "difference"]
_OF_SCORES = [*_SCORED, "n_datasets", "n_models", "included_rejected"]
_OF_LENGTHS = ["distance", "failed", "texts"]
_PROMPT_COLUMNS = [
    "name",
    "prompts",
    "similarity",
    "n_judged",
    "n_judges",
    *_OF_LENGTHS,
    *_SCORED,
    "change",
    *_OF_SCORES[3:],
    "reason",
]
NOT_JUDGED = "no judge rated outputs of the same texts under all prompts in the same way"
NOT_SCORED = "no model has counting scores under all prompts (in the first study only accepted ones count)"


def prompt_table(
    scores: Mapping[str, pd.DataFrame], lengths: pd.DataFrame, judgements: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """Return a generator's results under several prompts (PTEB, Table 12): a row a transformation and wording.

    `scores` are those of each wording's study by its name, the first the one that others are compared with; `lengths`
    is `generation.output_tables.length_table` with these names as generators; `judgements` are those of one question,
    by the same names, each with `original` (empty frames if there are none).

    Scores count for models, data sets and seeds of all studies; judgements for texts and runs whose outputs in all
    studies the same judges rated in the same way. Of all studies except the first, scores included without an
    accepting verdict count too. Columns: name (transformation), prompts, similarity (mean judgement, judges
    averaged first), n_judged (outputs), n_judges, distance (PTEB's edit distance, 3.2.2), failed (% of texts), texts,
    original (score of whole data sets), score, difference (to the originals of the same items, points), change
    (difference minus the first's), n_datasets, n_models, included_rejected, reason.
    """
    of_transformations = (
        lengths[(lengths["name"] != lengths["axis"]) & (lengths["name"] != OVERALL)] if len(lengths) else lengths
    )
    edits = (
        of_transformations.set_index(["name", "generator"])[_OF_LENGTHS]
        if len(lengths)
        else pd.DataFrame(columns=_OF_LENGTHS)
    )
    parts = [_similarities(judgements), edits, _scores(scores)]
    names = in_order({str(name) for part in parts if len(part) for name in part.index.unique(0)})
    places = pd.MultiIndex.from_product([names, scores], names=["name", "prompts"])
    table = pd.concat([part.reindex(places) for part in parts], axis=1)
    table["change"] = table["difference"] - table.xs(next(iter(scores)), level="prompts")["difference"]
    counts = ["n_judged", "n_judges", "n_datasets", "n_models"]
    table[counts] = table[counts].fillna(0).astype(int)
    table["included_rejected"] = table["included_rejected"].eq(True)
    undefined = zip(table["similarity"].isna(), table["score"].isna(), strict=True)
    table["reason"] = ["; ".join([NOT_JUDGED] * judged + [NOT_SCORED] * score) for judged, score in undefined]
    return table.reset_index()[_PROMPT_COLUMNS]


def _scores(studies: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return means over the models and data sets of all studies, by transformation and prompts."""
    paired = {
        name: with_originals(counting_scores(scores, include_rejected=number > 0), scores)
        for number, (name, scores) in enumerate(studies.items())
    }
    defined = [rows.loc[rows["why"] == "", _PROMPT_RUN] for rows in paired.values()]
    common = functools.reduce(lambda first, second: first.merge(second, on=_PROMPT_RUN), defined)
    parts = []
    for name, rows in paired.items():
        pairs = averaged(rows.merge(common, on=_PROMPT_RUN))
        pairs = pairs.drop(columns="original").rename(columns={"original_all": "original"})
        groups = pairs.groupby("transformation")
        counts = groups.agg(
            n_datasets=("dataset", "nunique"),
            n_models=("model", "nunique"),
            included_rejected=("included_rejected", "max"),
        )
        parts.append(groups[_SCORED].mean().join(counts).assign(prompts=name))
    return pd.concat(parts).rename_axis("name").set_index("prompts", append=True)[_OF_SCORES]


def _similarities(judgements: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return mean judgements of outputs that the same judges scored in all studies, by transformation and prompts."""
    rows = []
    every = pd.concat([frame.assign(prompts=name) for name, frame in judgements.items()], ignore_index=True)
    for name, judged in every.groupby("transformation") if len(every) else ():
        wide = judged.pivot_table("score", _PLACE, [*_JUDGE, "prompts"])
        studies = pd.Series(1, wide.columns).groupby(level=_JUDGE).sum()
        shared = studies.index[studies == len(judgements)]
        wide = wide.loc[:, [column[:-1] in shared for column in wide.columns]].dropna()
        if wide.empty:
            continue
        by_judge = wide.mean().groupby(level=["judge_hash", "prompts"]).mean()
        for prompts, mean in by_judge.groupby(level="prompts").mean().items():
            judges = len(by_judge.index.unique("judge_hash"))
            rows.append(
                {"name": name, "prompts": prompts, "similarity": mean, "n_judged": len(wide), "n_judges": judges}
            )
    table = pd.DataFrame(rows, columns=["name", "prompts", "similarity", "n_judged", "n_judges"])
    return table.set_index(["name", "prompts"])
