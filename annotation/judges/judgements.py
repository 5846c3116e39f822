"""What judges said, as one frame: a row for each output, judge, question and order (`records.Judgement`).

Everything that computes of judgements takes such a frame, from a study's files or from anywhere:

| column | what it holds |
|---|---|
| judge | the judge's name in the study |
| question | the question that it answered, such as quality |
| order | how it read the scale (up, down), or two texts; one word for all where there is one order |
| pair_id | the output, by the hash that `pairs.parquet` names it with; outputs outside the sample have one likewise |
| score | on the question's scale; NaN where the judgement failed, never something in the middle |
| status | ok, failed (cannot be read as a score), unanswered (the next run asks again) |

These are always needed. `dataset`, `transformation`, `output_language`, `stratum` and `prompt_hash` are as the record
has them; a selection of generators also takes `generator`, `sample` (the source sample of a text) and `text_id`.
`mode`, `label_mass`, `entropy`, `reason` and others are for reading; no number here rests on them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from plumbline.frames import filled, need, numbers, once

KEY = ("judge", "question", "order", "pair_id")
STATUSES = ("ok", "failed", "unanswered")


def checked(judgements: pd.DataFrame, more: Sequence[str] = ()) -> pd.DataFrame:
    """The judgements with their scores as numbers; `more` are further columns that must be there.

    Raises ValueError for a frame without the columns, a judgement twice, an unknown status, one that is ok without a
    finite score, and one that is not ok with a score.
    """
    filled(judgements, (*KEY, "status", *more), "judgements")
    need(judgements, ("score",), "judgements")
    once(judgements, KEY, "judgements")
    strange = judgements.loc[~judgements["status"].isin(STATUSES), "status"]
    if len(strange):
        raise ValueError(f"judgements: status {strange.iloc[0]!r} is none; there are {', '.join(STATUSES)}")
    scores, ok = numbers(judgements["score"], "judgements"), (judgements["status"] == "ok").to_numpy()
    if (ok & ~np.isfinite(scores)).any():
        raise ValueError("judgements: one that is ok has no score; what cannot be read is failed")
    if (~ok & ~np.isnan(scores)).any():
        raise ValueError("judgements: one that is not ok has a score; it says nothing, so its score is NaN")
    return judgements.assign(score=scores)


def on_scale(judgements: pd.DataFrame, scale: Sequence[float]) -> None:
    """Raise ValueError for scores that lie beyond the ends of the scale."""
    scores = judgements["score"].to_numpy(np.float64)
    off = (scores < scale[0] - 1e-9) | (scores > scale[-1] + 1e-9)
    if off.any():
        row = judgements.iloc[int(off.argmax())]
        raise ValueError(
            f"judgements: {row['score']:g} of {row['judge']} lies off the scale from {scale[0]:g} to {scale[-1]:g}"
            f" ({off.sum()} of {len(off)} do); what is off the scale is failed"
        )


def over_orders(judgements: pd.DataFrame, more: Sequence[str] = ()) -> pd.DataFrame:
    """One row a judge, question and output: the mean over all orders in which the judge read; NaN where one failed.

    A mean over fewer orders than the judge's others would be one of something else. `more` are columns of the output
    to keep. Columns: judge, question, pair_id, score, *more.
    """
    own = checked(judgements, more)
    keys = ["judge", "question", "pair_id"]
    kept = {name: (name, "first") for name in more}
    found = own.groupby(keys, sort=False).agg(score=("score", "mean"), n=("score", "count"), **kept)
    orders = own.groupby(["judge", "question"])["order"].nunique()
    found = found.reset_index()
    wanted = orders.reindex(pd.MultiIndex.from_frame(found[["judge", "question"]])).to_numpy()
    return found.assign(score=found["score"].where(found["n"] == wanted)).drop(columns="n")


def together(scores: pd.DataFrame, judges: Sequence[str]) -> pd.DataFrame:
    """The mean over some judges of each question and output; NaN where one of them has none.

    `scores` are those of `over_orders`. Raises ValueError for a judge that is not there. Columns: question, pair_id,
    score.
    """
    names = list(dict.fromkeys(judges))
    there = set(scores["judge"])
    if missing := [name for name in names if name not in there]:
        raise ValueError(
            f"judgements: there are none of {missing[0]!r}; there are {', '.join(sorted(there)) or 'none'}"
        )
    wide = scores.pivot(index=["question", "pair_id"], columns="judge", values="score")[names]
    return wide.mean(axis=1, skipna=False).rename("score").reset_index()
