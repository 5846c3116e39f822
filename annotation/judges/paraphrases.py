"""Which paraphraser: judged similarity, how much it changes, how long it takes (PTEB, section 3.2.2, Tables 4, 5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from annotation.judges.judgements import over_orders
from annotation.statistics.paired import hodges_lehmann_bootstrap
from generation.compare import edit_distance
from plumbline.frames import filled, numbers
from plumbline.streams import stream


def compared(judgements: pd.DataFrame, texts: pd.DataFrame) -> pd.DataFrame:
    """Generators beside each other, by one judge each: similarity, edit distance, seconds a text (PTEB, Table 4).

    `judgements` are of one question and also have `generator`; `texts` have a row an output: pair_id, generator,
    original, transformed and, where they are known, seconds (NaN or no column elsewhere). Columns: judge, generator, n
    (outputs with a score), failed (judgements), similarity, edit_distance (over all outputs; from 0 to 1, though the
    paper's caption says percent), seconds.
    """
    filled(texts, ("pair_id", "generator", "original", "transformed"), "texts")
    pairs = zip(texts["original"].astype(str), texts["transformed"].astype(str), strict=True)
    seconds = numbers(texts["seconds"], "texts") if "seconds" in texts else np.full(len(texts), np.nan)
    frame = texts.assign(edit_distance=[edit_distance(*pair) for pair in pairs], seconds=seconds)
    made = frame.groupby("generator")[["edit_distance", "seconds"]].mean()
    scores = over_orders(judgements, ("generator",))
    if scores["question"].nunique() > 1:
        raise ValueError("judgements answer more than one question; similarity is one")
    rows = []
    for (judge, generator), own in scores.groupby(["judge", "generator"]):
        there = own["score"].dropna()
        apart, took = (made[name].get(generator, np.nan) for name in ("edit_distance", "seconds"))
        rows.append((judge, generator, len(there), len(own) - len(there), there.mean(), apart, took))
    names = ["judge", "generator", "n", "failed", "similarity", "edit_distance", "seconds"]
    return pd.DataFrame(rows, columns=names)


def cross_checked(
    judgements: pd.DataFrame, seed: int, unit: Sequence[str] = ("pair_id",), resamples: int = 1000
) -> pd.DataFrame:
    """What several judges say of one generator's outputs: mean, Hodges-Lehmann's centre, interval (PTEB, Table 5).

    `unit` are the columns within which scores are averaged first; the paper does not say over what its centre is, and
    (dataset,) is another reading. The centre is the median of all means of two units, the interval a percentile
    bootstrap with 1,000 resamples, as in the paper; the time grows with the square of the units. Only units that every
    judge scored count, for all judges alike. Columns: judge, n, left_out, mean, centre, low, high, reason.
    """
    more = [name for name in unit if name != "pair_id"]
    scores = over_orders(judgements, more)
    wide = scores.pivot(index=list(dict.fromkeys(["question", "pair_id", *more])), columns="judge", values="score")
    whole = wide.dropna()
    units = whole.groupby(level=list(unit)).mean()
    rows = []
    for judge in units.columns:
        values = units[judge].to_numpy(np.float64)
        found = hodges_lehmann_bootstrap(
            values, np.zeros(len(values)), n_resamples=resamples, rng=stream(seed, "cross-check", str(judge))
        )
        mean = values.mean() if len(values) else np.nan
        rows.append(
            (judge, len(values), len(wide) - len(whole), mean, found.value, found.low, found.high, found.reason)
        )
    return pd.DataFrame(rows, columns=["judge", "n", "left_out", "mean", "centre", "low", "high", "reason"])
