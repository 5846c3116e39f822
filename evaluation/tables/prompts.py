"""One generator under several prompts (PTEB, Table 12): similarity, edits and scores beside each other."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import pandas as pd

from evaluation.tables.pairs import averaged, counting_scores, with_originals
from generation.compare import OVERALL
from plumbline.transformations import in_order

_RUN = ["model", "dataset", "transformation", "seed"]
_PLACE = ["transformation", "seed", "original", "language", "output_language"]  # which output of which text
_JUDGE = ["judge_hash", "prompt_hash", "order"]
_SCORED = ["original", "score", "difference"]
_OF_SCORES = [*_SCORED, "n_datasets", "n_models", "included_rejected"]
_OF_LENGTHS = ["distance", "failed", "texts"]
_COLUMNS = [
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
NOT_JUDGED = "no judge was asked alike about outputs of the same texts under all prompts"
NOT_SCORED = "no model has scores that count under all prompts (of the first study, what people accepted)"


def prompt_table(
    scores: Mapping[str, pd.DataFrame], lengths: pd.DataFrame, judgements: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """Prompts that a generator was given, beside each other (PTEB, Table 12): a row a transformation and wording.

    `scores` are those of each wording's study by its name, the first the one that others are compared with;
    `lengths` is `generation.compare.length_table` with these names as generators; `judgements` are those of one
    question, by the same names, with `original` beside each (empty frames where nobody judged).

    Scores count for models, data sets and seeds that all studies have, judgements for the texts and runs of which each
    study's output was judged by the same judges, asked alike. Of all studies but the first what no verdict accepts
    counts too where its user included it. Columns: name (transformation), prompts, similarity (mean judgement, judges
    averaged first), n_judged (outputs), n_judges, distance (PTEB's edit distance, 3.2.2), failed (% of texts), texts,
    original (score of whole data sets), score, difference (to the originals of the same items, points), change
    (difference less the first's), n_datasets, n_models, included_rejected, reason.
    """
    own = lengths[(lengths["name"] != lengths["axis"]) & (lengths["name"] != OVERALL)] if len(lengths) else lengths
    edits = own.set_index(["name", "generator"])[_OF_LENGTHS] if len(lengths) else pd.DataFrame(columns=_OF_LENGTHS)
    made = [_similarities(judgements), edits, _scores(scores)]
    names = in_order({str(name) for part in made if len(part) for name in part.index.unique(0)})
    places = pd.MultiIndex.from_product([names, scores], names=["name", "prompts"])
    table = pd.concat([part.reindex(places) for part in made], axis=1)
    table["change"] = table["difference"] - table.xs(next(iter(scores)), level="prompts")["difference"]
    counts = ["n_judged", "n_judges", "n_datasets", "n_models"]
    table[counts] = table[counts].fillna(0).astype(int)
    table["included_rejected"] = table["included_rejected"].eq(True)
    why = zip(table["similarity"].isna(), table["score"].isna(), strict=True)
    table["reason"] = ["; ".join([NOT_JUDGED] * judged + [NOT_SCORED] * score) for judged, score in why]
    return table.reset_index()[_COLUMNS]


def _scores(studies: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Means over models and data sets of what all studies have, by transformation and prompts."""
    found = {
        name: with_originals(counting_scores(scores, include_rejected=place > 0), scores)
        for place, (name, scores) in enumerate(studies.items())
    }
    defined = [rows.loc[rows["why"] == "", _RUN] for rows in found.values()]
    common = functools.reduce(lambda one, other: one.merge(other, on=_RUN), defined)
    parts = []
    for name, rows in found.items():
        pairs = averaged(rows.merge(common, on=_RUN))
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
    """Mean judgements of outputs that all studies' judges scored alike, by transformation and prompts."""
    rows = []
    every = pd.concat([frame.assign(prompts=name) for name, frame in judgements.items()], ignore_index=True)
    for name, own in every.groupby("transformation") if len(every) else ():
        wide = own.pivot_table("score", _PLACE, [*_JUDGE, "prompts"])
        studies = pd.Series(1, wide.columns).groupby(level=_JUDGE).sum()
        alike = studies.index[studies == len(judgements)]
        wide = wide.loc[:, [column[:-1] in alike for column in wide.columns]].dropna()
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
