"""Choice of a generator.

Those with the lowest error rates judge each other, sample by sample (HTEB, A.2, A.3, Tables 5 to 7).

Every mean here is over the same judgements for all generators: a judgement that one of them lacks (its output or the
judge's answer failed) is left out for all, and the number of these is reported.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from annotation.judges.effects import additive_fit
from annotation.judges.records import checked
from generation.output_tables import edit_distance
from plumbline.frames import filled, numbers
from plumbline.statistics import paired
from plumbline.statistics.estimates import stream

ALPHA = 0.05
SMALLEST = 0.001  # the smallest adjusted p to be distinguished, as HTEB reports it
CELL = ["judge", "transformation", "sample", "text_id"]  # identify a judgement, whichever the generator


def lowest_error_rates(error_rates: Mapping[str, float], k: int = 5) -> pd.DataFrame:
    """Return candidates by total error rate, and which k are chosen: generator, error_rate, chosen, reason.

    `error_rates` are shares from 0 to 1 (NaN is never chosen); equal rates are ordered by name. Raises ValueError for k
    below 1, and if fewer than k have a rate.

    Source: HTEB, A.2 and Table 5, with k = 5.
    """
    rates = {str(name): float(rate) for name, rate in error_rates.items()}
    if off := [name for name, rate in rates.items() if not (math.isnan(rate) or 0 <= rate <= 1)]:
        raise ValueError(f"error rates are shares from 0 to 1, but the rate of {off[0]} is {rates[off[0]]:g}")
    order = sorted((name for name in rates if not math.isnan(rates[name])), key=lambda name: (rates[name], name))
    if not 1 <= k <= len(order):
        raise ValueError(f"k must be from 1 to {len(order)}, the number of candidates with an error rate, not {k}")
    last = rates[order[k - 1]]
    tied = [name for name in order if rates[name] == last]
    by_name = bool(set(tied) & set(order[k:]))
    rows = [
        (name, rates[name], i < k, "tied for the last place; decided by name" if by_name and name in tied else "")
        for i, name in enumerate(order)
    ]
    rows += [(name, math.nan, False, "has no error rate") for name in sorted(rates) if math.isnan(rates[name])]
    return pd.DataFrame(rows, columns=["generator", "error_rate", "chosen", "reason"])


@dataclass(frozen=True)
class CrossJudgements:
    """Judgements that every generator has."""

    cells: pd.DataFrame  #: a row for each of `CELL` (and output language, if there is one), a column per generator
    left_out: int  #: rows without a score for one generator or more
    failed: Mapping[str, int]  #: judgements that each generator lacks

    @property
    def observations(self) -> pd.DataFrame:
        """Rows by source sample, columns by generator: the mean over texts, transformations, judges (HTEB, 2.3)."""
        return self.cells.groupby("sample").mean()


def crossed(judgements: pd.DataFrame, question: str) -> CrossJudgements:
    """Return the judgements of one question on which generators can be compared.

    `judgements` also have transformation, generator, sample and text_id (`annotation.judges.records`); `language`
    and others do not matter. Raises ValueError for fewer than two generators, or if they have no judgement in common.
    """
    scores = checked(judgements, (*CELL[1:], "generator"))
    scores = scores[scores["question"] == question]
    generators = sorted(scores["generator"].unique())
    if len(generators) < 2:
        raise ValueError(f"a selection needs two generators or more; {question!r} has judgements of {len(generators)}")
    if (twice := scores.duplicated([*CELL, "generator"])).any():
        row = scores[twice].iloc[0]
        raise ValueError(f"judgements: {row['judge']} judged {row['generator']}'s {row['text_id']} more than once")
    wide = scores.pivot(index=CELL, columns="generator", values="score")
    full = wide.dropna()
    if full.empty:
        raise ValueError(f"no judgement of {question!r} is common to all {len(generators)} generators")
    return CrossJudgements(full, len(wide) - len(full), {str(name): int(n) for name, n in wide.isna().sum().items()})


def comparisons(observations: pd.DataFrame, seed: int, resamples: int | None = None) -> pd.DataFrame:
    """Compare every two generators: difference of means, 95% interval, p, Holm's p, significant at 0.05 or not.

    `observations` have a row per source sample and a column per generator. Columns: first (the better one), second,
    difference, low, high, p, p_holm, significant, n, resamples, reason.

    Source: HTEB, 2.3 and Table 13: paired bootstrap over source samples, Holm over all pairs.
    """
    order = _best_first(observations)
    pairs = list(itertools.combinations(order, 2))
    number = resamples or paired.enough_resamples(len(pairs), SMALLEST, 10_000)
    rows = []
    for first, second in pairs:
        better, worse = observations[first].to_numpy(), observations[second].to_numpy()
        chance = stream(seed, "comparison", first, second)
        test = paired.paired_bootstrap(better, worse, n_resamples=number, rng=chance)
        gap = test.estimate
        rows.append((first, second, gap.value, gap.low, gap.high, test.p, gap.n, number, gap.reason))
    names = ["first", "second", "difference", "low", "high", "p", "n", "resamples", "reason"]
    table = pd.DataFrame(rows, columns=names)
    adjusted = paired.holm(table["p"].to_numpy(np.float64))
    table.insert(6, "p_holm", adjusted)
    table.insert(7, "significant", adjusted < ALPHA)
    return table


def ranking(observations: pd.DataFrame, compared: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return the generators by their means: generator, mean, low, high, letters, n.

    The interval is Efron's percentile bootstrap over source samples, with as many resamples as the comparisons;
    generators that share a letter do not differ significantly (`comparisons`).
    """
    number = int(compared["resamples"].iloc[0])
    order = _best_first(observations)
    different = compared.loc[compared["significant"], ["first", "second"]].itertuples(index=False, name=None)
    letters = paired.letter_display(order, list(different))
    rows = []
    for name in order:
        values = observations[name].to_numpy(np.float64)
        none = np.zeros(len(values))
        interval = paired.paired_bootstrap(values, none, n_resamples=number, rng=stream(seed, "mean", name)).estimate
        mean = interval.value if interval.reason == "" else float(values.mean())
        rows.append((name, mean, interval.low, interval.high, letters[name], interval.n))
    return pd.DataFrame(rows, columns=["generator", "mean", "low", "high", "letters", "n"])


def not_told_apart(ranked: pd.DataFrame) -> list[str]:
    """Return the generators that share a letter with the first one of a `ranking`."""
    best, *rest = ranked.to_dict("records")
    return [str(row["generator"]) for row in rest if set(row["letters"]) & set(best["letters"])]


def table_six(judgements: CrossJudgements, ranked: pd.DataFrame) -> pd.DataFrame:
    """Judges by generators, then the average with its interval and letters (HTEB, Table 6).

    Columns: judge, then a generator each, in the order of their names. The last rows are called average (the plain
    mean over judgements, a model's own among them), low, high and letters.
    """
    cells = judgements.cells.groupby("judge").mean()
    rows = ranked.set_index("generator")[["mean", "low", "high", "letters"]].T
    below = rows.rename(index={"mean": "average"})[list(cells.columns)]
    return pd.concat([cells.astype(object), below]).rename_axis("judge").reset_index()


def table_seven(judgements: CrossJudgements) -> pd.DataFrame:
    """Transformations by generators, means over judges, with totals of both before rounding (HTEB, Table 7)."""
    cells = judgements.cells.groupby("transformation").mean()
    total = judgements.cells.mean().to_frame("total").T
    table = pd.concat([cells, total])
    table["total"] = [*cells.mean(axis=1), judgements.cells.to_numpy().mean()]
    return table.rename_axis("transformation").reset_index()


def self_preference(judgements: CrossJudgements, seed: int, resamples: int = 10_000) -> pd.DataFrame:
    """Return how much better a model judges its own outputs than the additive fit expects, with a 95% interval.

    The fit (`annotation.judges.effects.additive_fit`) is linear in the cells, so that its mean over source samples is
    that of the means; the interval is the percentile bootstrap over the samples that all judges judged. Part of it
    may be deserved: only people's ratings can show that. Columns: model, self_preference, low, high, n, reason.
    """
    cells = judgements.cells.groupby(["sample", "judge"]).mean().unstack("judge").dropna()
    judges = sorted(judgements.cells.index.unique("judge"))
    each = [
        pd.DataFrame({name: row[name].reindex(judges) for name in judgements.cells.columns})
        for _, row in cells.iterrows()
    ]
    values = pd.DataFrame([additive_fit(of_sample).self_preference for of_sample in each])
    rows = []
    for name in values.columns:
        sample = values[name].to_numpy(np.float64)
        chance = stream(seed, "self-preference", str(name))
        estimate = paired.paired_bootstrap(sample, np.zeros(len(sample)), n_resamples=resamples, rng=chance).estimate
        rows.append((name, estimate.value, estimate.low, estimate.high, estimate.n, estimate.reason))
    return pd.DataFrame(rows, columns=["model", "self_preference", "low", "high", "n", "reason"])


def by_language(judgements: pd.DataFrame, question: str) -> pd.DataFrame:
    """Return means by transformation and the output's language, which tells translations apart.

    `judgements` also have output_language. Columns: transformation, output_language, n (judgements common to all
    generators), and a generator each. HTEB's translation and cross-translation differ by 0.58 under one prompt; which
    languages each drew the paper does not say.
    """
    scores = checked(judgements, (*CELL[1:], "generator", "output_language"))
    scores = scores[scores["question"] == question]
    wide = scores.pivot(index=[*CELL, "output_language"], columns="generator", values="score").dropna()
    groups = wide.groupby(["transformation", "output_language"])
    table = groups.mean()
    table.insert(0, "n", groups.size())
    return table.reset_index()


def _best_first(observations: pd.DataFrame) -> list[str]:
    means = observations.mean()
    return sorted(map(str, observations.columns), key=lambda name: (-means[name], name))


def compared(judgements: pd.DataFrame, texts: pd.DataFrame) -> pd.DataFrame:
    """Compare generators, by one judge each: similarity, edit distance, seconds a text (PTEB, Table 4).

    `judgements` are of one question and also have `generator`; `texts` have a row per output: pair_id, generator,
    original, transformed and, where they are known, seconds (NaN or no column elsewhere). Columns: judge, generator, n
    (outputs with a score), failed (judgements), similarity, edit_distance (over all outputs; from 0 to 1, though the
    paper's caption says percent), seconds.
    """
    filled(texts, ("pair_id", "generator", "original", "transformed"), "texts")
    pairs = zip(texts["original"].astype(str), texts["transformed"].astype(str), strict=True)
    seconds = numbers(texts["seconds"], "texts") if "seconds" in texts else np.full(len(texts), np.nan)
    frame = texts.assign(edit_distance=[edit_distance(*pair) for pair in pairs], seconds=seconds)
    means = frame.groupby("generator")[["edit_distance", "seconds"]].mean()
    scores = checked(judgements, ("generator",))
    if scores["question"].nunique() > 1:
        raise ValueError("judgements answer more than one question; select one of them")
    rows = []
    for (judge, generator), of_pair in scores.groupby(["judge", "generator"]):
        scored = of_pair["score"].dropna()
        distance, took = (means[name].get(generator, np.nan) for name in ("edit_distance", "seconds"))
        rows.append((judge, generator, len(scored), len(of_pair) - len(scored), scored.mean(), distance, took))
    names = ["judge", "generator", "n", "failed", "similarity", "edit_distance", "seconds"]
    return pd.DataFrame(rows, columns=names)


def cross_checked(
    judgements: pd.DataFrame, seed: int, unit: Sequence[str] = ("pair_id",), resamples: int = 1000
) -> pd.DataFrame:
    """Return the scores that several judges give to one generator's outputs.

    Columns: mean, Hodges-Lehmann's centre, interval (PTEB, Table 5).

    `unit` are the columns within which scores are averaged first; the paper does not say over what its centre is, and
    (dataset,) is another reading. The centre is the median of all means of two units, the interval a percentile
    bootstrap with 1,000 resamples, as in the paper; the time grows with the square of the units. Only units that every
    judge scored count, for all judges alike. Columns: judge, n, left_out, mean, centre, low, high, reason.
    """
    more = [name for name in unit if name != "pair_id"]
    scores = checked(judgements, more)
    wide = scores.pivot(index=list(dict.fromkeys(["question", "pair_id", *more])), columns="judge", values="score")
    complete = wide.dropna()
    units = complete.groupby(level=list(unit)).mean()
    rows = []
    for judge in units.columns:
        values = units[judge].to_numpy(np.float64)
        centre = paired.hodges_lehmann_bootstrap(
            values, np.zeros(len(values)), n_resamples=resamples, rng=stream(seed, "cross-check", str(judge))
        )
        mean = values.mean() if len(values) else np.nan
        rows.append(
            (judge, len(values), len(wide) - len(complete), mean, centre.value, centre.low, centre.high, centre.reason)
        )
    return pd.DataFrame(rows, columns=["judge", "n", "left_out", "mean", "centre", "low", "high", "reason"])
