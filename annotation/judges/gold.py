"""Which judge: how far each reproduces the gold scores of pairs of sentences (PTEB, section 2 and 3.2.1).

The frame of judgements has dataset, and its `pair_id` names a pair of sentences; `gold` has a row a pair of sentences:
pair_id, gold and, for bins by length, sentence1 and sentence2.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from annotation.judges.effects import spearman
from annotation.judges.records import over_orders
from plumbline.frames import filled, numbers, once
from plumbline.statistics.estimates import Floats
from plumbline.words import count_words

WORD_BINS = (0, 5, 10, 15, 20)  # PTEB, Figure 4: [0, 5) to [15, 20), and from 20 on
AVERAGE = "average"


def beside_gold(judgements: pd.DataFrame, gold: pd.DataFrame) -> pd.DataFrame:
    """Each judge's score of each pair of sentences with its gold score: judge, dataset, pair_id, score, gold.

    Scores that failed are NaN. Raises ValueError for gold scores that are no numbers, a pair of two gold scores, and
    judgements of pairs that have none, or of more than one question.
    """
    filled(gold, ("pair_id", "gold"), "gold scores")
    once(gold, ("pair_id",), "gold scores")
    values = pd.Series(numbers(gold["gold"], "gold scores"), index=gold["pair_id"])
    scores = over_orders(judgements, ("dataset",))
    if scores["question"].nunique() > 1:
        questions = ", ".join(sorted(map(str, scores["question"].unique())))
        raise ValueError(f"judgements answer {questions}; gold scores are beside those of one question")
    if (missing := ~scores["pair_id"].isin(values.index)).any():
        pair = scores.loc[missing, "pair_id"].iloc[0]
        raise ValueError(f"judgements: pair {pair} has no gold score ({missing.sum()} have none)")
    frame = scores.assign(gold=values.reindex(scores["pair_id"]).to_numpy())
    return frame[["judge", "dataset", "pair_id", "score", "gold"]]


def spearman_by_dataset(beside: pd.DataFrame) -> pd.DataFrame:
    """Spearman's rho of judge and gold by data set, and their plain mean over data sets (PTEB, Table 2).

    `beside` is that of `beside_gold`. Columns: dataset, judge, n (pairs that the judge did not fail on), failed,
    spearman; the last rows are those of `with_averages`.
    """
    rows = []
    for (dataset, judge), group in beside.groupby(["dataset", "judge"]):
        rows.append((dataset, judge, *_n_and_failed(group), _rho(group)))
    return with_averages(pd.DataFrame(rows, columns=["dataset", "judge", "n", "failed", "spearman"]))


def with_averages(table: pd.DataFrame) -> pd.DataFrame:
    """The table with a row for each judge that is called average: the plain mean over data sets.

    NaN where a judge lacks one of the data sets: a mean over others would be of something else. (PTEB prints 80.89 for
    qwen3-32b, whose nine rows have a mean of 80.36.)
    """
    wanted, rows = set(table["dataset"]), []
    for judge, of_judge in table.groupby("judge"):
        mean = of_judge["spearman"].mean(skipna=False) if set(of_judge["dataset"]) == wanted else math.nan
        rows.append((AVERAGE, judge, of_judge["n"].sum(), of_judge["failed"].sum(), mean))
    return pd.concat([table, pd.DataFrame(rows, columns=list(table.columns))], ignore_index=True)


def by_size(table: pd.DataFrame, sizes: Mapping[str, float]) -> pd.DataFrame:
    """The judges of one family by their size, smallest first, with their average (PTEB, Table 3).

    `table` is that of `spearman_by_dataset`, `sizes` are in billions of parameters. Columns: judge, size, spearman.
    """
    averages = table[table["dataset"] == AVERAGE].set_index("judge")["spearman"]
    if missing := [name for name in sizes if name not in averages]:
        raise ValueError(f"there are no judgements of {missing[0]!r}; there are {', '.join(map(str, averages.index))}")
    rows = [(name, float(size), averages[name]) for name, size in sorted(sizes.items(), key=lambda pair: pair[1])]
    return pd.DataFrame(rows, columns=["judge", "size", "spearman"])


def mapped(scores: Floats, scale: Sequence[float], onto: Sequence[float]) -> Floats:
    """Scores of one scale on another, linearly: its ends on the other's ends. Both are (lowest, highest).

    SICK-R goes from 1 to 5, BIOSSES and STS22 have scales of their own; an absolute error needs one scale for all.
    Raises ValueError for scores beyond the ends, which would be of another scale than was said.
    """
    low, high = float(scale[0]), float(scale[-1])
    if not low < high:
        raise ValueError(f"a scale goes from a lower to a higher number, not from {low:g} to {high:g}")
    off = (scores < low - 1e-9) | (scores > high + 1e-9)
    if off.any():
        raise ValueError(f"gold scores: {scores[off][0]:g} lies off the scale from {low:g} to {high:g}")
    values: Floats = onto[0] + (scores - low) / (high - low) * (onto[-1] - onto[0])
    return values


def error_by_gold(
    beside: pd.DataFrame, scales: Mapping[str, Sequence[float]], onto: Sequence[float] = (0, 5)
) -> pd.DataFrame:
    """Mean absolute error of each judge by gold score, rounded to the points of the judge's scale (PTEB, Figure 3).

    `scales` are the gold scales of the data sets, which are mapped onto that of the judge (`mapped`). Columns: judge,
    gold (the nearest whole point), n, mean_absolute_error, bias (mean of judge - gold).
    """
    if missing := sorted(set(map(str, beside["dataset"])) - set(scales)):
        raise ValueError(f"gold scores: no scale is given for {missing[0]}; there are {', '.join(sorted(scales))}")
    gold = np.empty(len(beside))
    for dataset, places in beside.groupby("dataset").indices.items():
        gold[places] = mapped(beside["gold"].to_numpy(np.float64)[places], scales[str(dataset)], onto)
    error = beside["score"].to_numpy(np.float64) - gold
    frame = pd.DataFrame({"judge": beside["judge"].to_numpy(), "gold": np.floor(gold + 0.5).astype(int), "bias": error})
    frame["mean_absolute_error"] = frame["bias"].abs()
    groups = frame.dropna().groupby(["judge", "gold"])
    table = groups[["mean_absolute_error", "bias"]].mean()
    table.insert(0, "n", groups.size())
    return table.reset_index()


def spearman_by_words(
    beside: pd.DataFrame, gold: pd.DataFrame, bins: Sequence[int] = WORD_BINS, fewest: int = 10
) -> pd.DataFrame:
    """Spearman's rho by data set and length, mean over the judges, with the pairs in each bin (PTEB, Figure 4).

    `gold` has sentence1 and sentence2; the length of a pair is the mean of its sentences' words (the paper does not say
    whether it is that of a sentence or of a pair). `bins` are the lower ends, the last one without upper end. Columns:
    dataset, words (such as 5-9, 20+), n (pairs, judged by all), spearman (NaN below `fewest` pairs), judges. The last
    rows, called average, are means over the data sets that have a rho there, as the paper's; which these are differs
    from bin to bin.
    """
    filled(gold, ("pair_id", "sentence1", "sentence2"), "gold scores")
    lengths = sum(gold[name].astype(str).map(count_words).to_numpy() for name in ("sentence1", "sentence2")) / 2
    words = pd.Series(lengths, index=gold["pair_id"])
    wide = beside.pivot(index=["dataset", "pair_id", "gold"], columns="judge", values="score").dropna().reset_index()
    bin_of = np.searchsorted(np.array(bins), words.reindex(wide["pair_id"]).to_numpy(), side="right") - 1
    names = [f"{low}-{high - 1}" for low, high in itertools.pairwise(bins)] + [f"{bins[-1]}+"]
    judges = sorted(beside["judge"].unique())
    rows = []
    for dataset in sorted(wide["dataset"].unique()):
        for i, name in enumerate(names):
            in_bin = wide[(wide["dataset"] == dataset) & (bin_of == i)]
            gold_scores = in_bin["gold"].to_numpy(np.float64)
            each = [spearman(in_bin[judge].to_numpy(np.float64), gold_scores) for judge in judges]
            rows.append(
                (dataset, name, len(in_bin), float(np.mean(each)) if len(in_bin) >= fewest else math.nan, len(judges))
            )
    table = pd.DataFrame(rows, columns=["dataset", "words", "n", "spearman", "judges"])
    below = [
        (AVERAGE, name, of_bin.loc[of_bin["spearman"].notna(), "n"].sum(), of_bin["spearman"].mean(), len(judges))
        for name, of_bin in table.groupby("words", sort=False)
    ]
    return pd.concat([table, pd.DataFrame(below, columns=list(table.columns))], ignore_index=True)


def _n_and_failed(scores: pd.DataFrame) -> tuple[int, int]:
    failed = int(scores["score"].isna().sum())
    return len(scores) - failed, failed


def _rho(scores: pd.DataFrame) -> float:
    scored = scores.dropna(subset=["score"])
    return spearman(scored["score"].to_numpy(np.float64), scored["gold"].to_numpy(np.float64))
