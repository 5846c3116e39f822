"""Judges' biases: self-preference, length; and their distance from each other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from annotation.judges.records import checked
from plumbline.importing import scipy
from plumbline.scales import nearest_points
from plumbline.statistics.agreement import Answers, gwet_ac2
from plumbline.statistics.estimates import Estimate, Floats, over_pairs, quantile
from plumbline.words import count_words


@dataclass(frozen=True)
class Effects:
    """Effects of judges and generators on the cells of a crossed judging, by least squares."""

    mean: float  #: of all judges and generators
    judges: pd.Series  #: each judge's effect: above 0 for a lenient judge; they sum to 0
    generators: pd.Series  #: each generator's effect; they sum to 0
    self_preference: pd.Series  #: a model's own cell minus (mean + judge + generator); NaN without a fit or that cell
    reason: str  #: why all values are NaN; empty otherwise


def additive_fit(cells: pd.DataFrame) -> Effects:
    """Judge effects and generator effects from the cells where judge and generator differ; self-preference beside them.

    `cells` have a row per judge and a column per generator; a cell may be NaN. Least squares on mean + judge +
    generator: a plain mean over the other judges would compare generators by different sets of judges, and favour
    whoever is a harsh judge. NaN with a reason where the cells do not connect all judges and generators.

    Of HTEB's Table 6 it finds +0.343 for Olmo's own outputs, and +0.036 at most for the others'.
    """
    values = cells.to_numpy(np.float64)
    judges, generators = [str(name) for name in cells.index], [str(name) for name in cells.columns]
    same = np.array(judges)[:, None] == np.array(generators)
    rows, columns = np.nonzero(~same & ~np.isnan(values))
    design = np.zeros((len(rows), 1 + len(judges) + len(generators)))
    design[:, 0] = 1
    design[np.arange(len(rows)), 1 + rows] = 1
    design[np.arange(len(rows)), 1 + len(judges) + columns] = 1
    if len(rows) == 0 or np.linalg.matrix_rank(design) < len(judges) + len(generators) - 1:
        judge, generator, preference = (
            pd.Series(math.nan, names) for names in (judges, generators, [n for n in judges if n in generators])
        )
        reason = "without models' scores of their own outputs, not all judges and generators are connected"
        return Effects(math.nan, judge, generator, preference, reason)
    parts = np.linalg.lstsq(design, values[rows, columns], rcond=None)[0]
    of_judges, of_generators = parts[1 : 1 + len(judges)], parts[1 + len(judges) :]
    mean = float(parts[0] + of_judges.mean() + of_generators.mean())
    of_judges, of_generators = of_judges - of_judges.mean(), of_generators - of_generators.mean()
    beyond = values - (mean + of_judges[:, None] + of_generators)
    both = [(name, i, generators.index(name)) for i, name in enumerate(judges) if name in generators]
    preference = pd.Series({name: float(beyond[i, j]) for name, i, j in both}, dtype=np.float64)
    return Effects(mean, pd.Series(of_judges, judges), pd.Series(of_generators, generators), preference, "")


def mean_with_interval(values: Floats, none: str) -> Estimate:
    """Return the mean of independent values with its 95% t interval; `none` is the reason if there are no values."""
    if not len(values):
        return Estimate.undefined(none)
    interval = over_pairs(values, np.ones(len(values))) if len(values) > 1 else None
    if interval is None or math.isnan(float(interval.low)):
        reason = (
            "all values are the same, so their spread is unknown"
            if len(values) > 1
            else "there is only one output, so the spread is unknown"
        )
        return Estimate.alone(float(values.mean()), reason)
    return Estimate(value=float(interval.value), low=float(interval.low), high=float(interval.high))


def length_slope(scores: Floats, ratios: Floats) -> Estimate:
    """Return how scores rise with length: the least-squares slope on the natural logarithm of the length ratio.

    `scores` are judge minus people, or the judge's alone (of which a part may be deserved); `ratios` are words of the
    output over words of the original, above 0. The interval has HC3 errors (MacKinnon and White 1985, J. Econometrics
    29, 305-325) and Student's t with n - 2 degrees of freedom. A slope of 0.1 is 0.07 points for a text twice as long.
    """
    usable = np.isfinite(scores) & np.isfinite(ratios) & (ratios > 0)
    x, y = np.log(ratios[usable]), scores[usable]
    if len(x) < 3:
        return Estimate.undefined(f"a slope needs at least 3 outputs, found {len(x)}")
    away = x - x.mean()
    spread = float((away**2).sum())
    if spread < 1e-12:
        return Estimate.undefined("all outputs have the same length ratio")
    slope = float((away * y).sum() / spread)
    residuals = y - y.mean() - slope * away
    leverage = 1 / len(x) + away**2 / spread
    if leverage.max() > 1 - 1e-9:
        return Estimate.alone(slope, "a single output determines the slope")
    error = math.sqrt(float((away**2 * (residuals / (1 - leverage)) ** 2).sum())) / spread
    reach = float(quantile(np.array([len(x) - 2.0]))[0]) * error
    return Estimate(value=slope, low=slope - reach, high=slope + reach)


def length_ratios(outputs: pd.DataFrame) -> pd.Series:
    """Return the words of each output over those of its original, by pair_id; NaN where the original has none."""
    texts = outputs.drop_duplicates("pair_id").set_index("pair_id")
    original, output = (texts[name].astype(str).map(count_words) for name in ("original", "transformed"))
    return output / original.where(original > 0)


def between_judges(judgements: pd.DataFrame, scale: Sequence[float]) -> pd.DataFrame:
    """Return how far every two judges agree on the outputs that both judged, by question.

    Columns: question, first, second, n, pearson, spearman, ac2 (of scores rounded to the scale), mean_absolute,
    difference (mean of first - second).
    """
    scores = checked(judgements)
    rows = []
    for question, of_question in scores.groupby("question"):
        wide = of_question.pivot(index="pair_id", columns="judge", values="score")
        for first, second in itertools.combinations(sorted(wide.columns), 2):
            both = wide[[first, second]].dropna().to_numpy(np.float64)
            x, y = both[:, 0], both[:, 1]
            distance = float(np.abs(x - y).mean()) if len(x) else math.nan
            mean = float((x - y).mean()) if len(x) else math.nan
            rows.append(
                (question, first, second, len(x), pearson(x, y), spearman(x, y), ac2_of(x, y, scale), distance, mean)
            )
    names = ["question", "first", "second", "n", "pearson", "spearman", "ac2", "mean_absolute", "difference"]
    return pd.DataFrame(rows, columns=names)


def pearson(x: Floats, y: Floats) -> float:
    """Pearson's r; NaN for fewer than 3 values, and where one side is constant."""
    if len(x) < 3 or np.ptp(x) < 1e-12 or np.ptp(y) < 1e-12:
        return math.nan
    return float(np.corrcoef(x, y)[0, 1])


def spearman(x: Floats, y: Floats) -> float:
    """Spearman's rho, ties with average ranks; NaN as for `pearson`."""
    return pearson(scipy.stats.rankdata(x), scipy.stats.rankdata(y)) if len(x) else math.nan


def ac2_of(x: Floats, y: Floats, scale: Sequence[float]) -> float:
    """Return Gwet's AC2 with ordinal weights of two rows of scores, rounded to the scale; NaN if undefined."""
    if not len(x):
        return math.nan
    points = np.column_stack([nearest_points(x, scale), nearest_points(y, scale)])
    return float(gwet_ac2(Answers.of_table(points, scale)).value)
