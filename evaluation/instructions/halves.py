"""What the best wording is worth on items that did not choose it: chosen on half of the items, scored on the others.

The best of fifteen is best by noise alone too: some of its lead is gone on other items.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from annotation.statistics.paired import Floats
from evaluation.instructions.grid import Grid
from evaluation.instructions.scores import DEFAULT
from plumbline.streams import stream

N_SPLITS = 1000
_LEAST = 2  # items of a half
_SAME = 1e-3  # by which the mean over items may be off the task's score: mteb rounds what it measures of queries


@dataclass(frozen=True)
class Chosen:
    """A best wording's score where it was chosen (`naive`) and on the other half (`other_half`), over random halves.

    `low` and `high` hold 95% of the splits' scores on the other half; `n_items` and `n_wordings` are what it rests on.
    """

    naive: float
    other_half: float
    low: float
    high: float
    n_items: int
    n_wordings: int
    reason: str


def split_half_choice(items: Floats, *, n_splits: int = N_SPLITS, rng: np.random.Generator) -> Chosen:
    """The best of several wordings, chosen on a random half of the items and scored on the other, `n_splits` times.

    `items` are wordings by items, each cell what an item adds to the score, whose mean is the score; all wordings have
    all items. Both halves choose and score in turn; the odd item goes to either. `naive` is the largest mean over all
    items, which chooses and scores on the same ones. NaN with a reason for fewer than 2 wordings or 4 items.

    >>> import numpy as np
    >>> from evaluation import split_half_choice
    >>> noise = np.random.default_rng(1).random((15, 200))  # 15 wordings that are all the same
    >>> found = split_half_choice(noise, rng=np.random.default_rng(2))
    >>> found.naive > 0.52, abs(found.other_half - 0.5) < 0.02
    (True, True)
    """
    given = np.asarray(items, dtype=np.float64)
    if given.ndim != 2:
        raise ValueError(f"wordings by items are needed, not an array of shape {given.shape}")
    n_wordings, n_items = given.shape
    reason = ""
    if n_wordings < 2:
        reason = "a choice needs at least 2 wordings"
    elif n_items < 2 * _LEAST:
        reason = f"halves need at least {2 * _LEAST} items, there are {n_items}"
    elif not np.isfinite(given).all():
        reason = "not every wording has every item"
    if reason:
        return Chosen(math.nan, math.nan, math.nan, math.nan, n_items, n_wordings, reason)
    first = np.zeros((n_splits, n_items))
    order = rng.random((n_splits, n_items)).argsort(axis=1)
    sizes = n_items // 2 + (rng.integers(0, 2, n_splits) if n_items % 2 else np.zeros(n_splits, np.int64))
    np.put_along_axis(first, order, (np.arange(n_items) < sizes[:, None]).astype(np.float64), axis=1)
    sums, total = first @ given.T, given.sum(axis=1)  # splits by wordings
    one, other = sums / sizes[:, None], (total - sums) / (n_items - sizes)[:, None]
    rows = np.arange(n_splits)
    scored = (other[rows, one.argmax(axis=1)] + one[rows, other.argmax(axis=1)]) / 2
    low, high = np.percentile(scored, [2.5, 97.5])
    naive = float(given.mean(axis=1).max())
    return Chosen(naive, float(scored.mean()), float(low), float(high), n_items, n_wordings, "")


def choice_table(grid: Grid, items: pd.DataFrame, *, seed: int, named: dict[str, str]) -> pd.DataFrame:
    """`split_half_choice` for each model and task with scores by item (`PromptItemScore`), beside the default's score.

    Columns: model, task, n_wordings, n_items, default, naive, other_half, low, high, lost (naive less other_half, in
    points), gain (other_half less default, in points), reason. Wordings are those that count in the grid. A task whose
    score is not the mean over its items is not halved, and the reason says so. `named` gives models their names there.
    """
    rows = []
    for (model, task), own in items.groupby([items["model"].map(lambda one: named.get(one, one)), "task"], sort=False):
        if model not in grid.models or task not in grid.tasks:
            continue
        m, t = grid.models.index(str(model)), grid.tasks.index(str(task))
        wide = own.pivot(index="prompt_id", columns="item", values="score")
        counting = [p for k, p in enumerate(grid.prompts[t]) if p in wide.index and not np.isnan(grid.scores[m, t, k])]
        values = wide.loc[counting].to_numpy(np.float64)
        scores = [grid.scores[m, t, list(grid.prompts[t]).index(name)] for name in counting]
        default = float(grid.default[m, t])
        if counting and np.abs(values.mean(axis=1) - scores).max() > _SAME:
            nothing = (math.nan,) * 4
            found = Chosen(*nothing, values.shape[1], len(counting), "its score is not the mean over its items")
        else:
            found = split_half_choice(values, rng=stream(seed, "split-half choice", str(model), str(task)))
        if DEFAULT in wide.index and not found.reason:
            default = float(wide.loc[DEFAULT].to_numpy(np.float64).mean())
        rows.append(
            {"model": model, "task": task, "n_wordings": found.n_wordings, "n_items": found.n_items}
            | {"default": default, "naive": found.naive, "other_half": found.other_half, "low": found.low}
            | {"high": found.high, "lost": 100 * (found.naive - found.other_half)}
            | {"gain": 100 * (found.other_half - default), "reason": found.reason}
        )
    names = ["model", "task", "n_wordings", "n_items", "default", "naive", "other_half", "low", "high", "lost", "gain"]
    return pd.DataFrame(rows, columns=[*names, "reason"])
