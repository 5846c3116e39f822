"""Measure the reliability of ratings on a scale: intraclass correlations, z-scores."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.frames import filled, numbers, once, with_names
from plumbline.importing import scipy
from plumbline.statistics.estimates import CONFIDENCE, Estimate

Form = Literal["1", "2", "3", "1k", "2k", "3k"]
Floats = NDArray[np.float64]
_UPPER = (1 + CONFIDENCE) / 2
_TOO_LITTLE = "items differ less than expected by chance"
_ALIKE = "no two ratings of an item differ, so the spread is unknown"
_ROUNDING = 1e-9  # share of the span of ratings; smaller differences are rounding


def icc(
    ratings: pd.DataFrame, form: Form = "1", *, pair: str = "pair_id", rater: str = "rater_id", value: str = "value"
) -> Estimate:
    """The intraclass correlation of ratings, with its 95% interval.

    With mean squares of a two-way table of n items and k raters (R between items, C between raters, W within items,
    E the rest), it is

        1   (R - W) / (R + (k - 1) W)                       raters differ from item to item
        2   (R - E) / (R + (k - 1) E + k (C - E) / n)       the same raters, a sample of others; absolute agreement
        3   (R - E) / (R + (k - 1) E)                       these raters alone; consistency
        1k  (R - W) / R,  2k  (R - E) / (R + (C - E) / n),  3k  (R - E) / R     of the mean of k ratings.

    Forms 1 and 1k take items with unequal numbers of ratings: k is then (N - sum k_i^2 / N) / (n - 1) of N ratings.

    Args:
        ratings: a row each: the item (column `pair`), who rated it (`rater`) and a number (`value`), on any scale.
        form: which of the six.
        pair: the column of items.
        rater: the column of raters.
        value: the column of numbers.

    Returns:
        The estimate; `n` counts items. NaN with a reason where there are fewer than two items or no item has two
        ratings, where items' means do not vary, and for forms 2 and 3 where not every rater rated every item.

    Raises:
        ValueError: a column is missing, a value is no number, a rater rated an item twice, or there is no such form.

    Source: Shrout and Fleiss (1979), Psychological Bulletin 86, 420-428, whose Table 4 the example is; intervals:
    McGraw and Wong (1996), Psychological Methods 1, 30-46, Table 7; unequal numbers: Donner (1986), International
    Statistical Review 54, 67-82, with the interval of equal ones. The intervals suppose normal ratings: of
    exponential ones, or 100 items of which a tenth is bad and the rest near the end of the scale, they cover 82%, and
    with three bad items 54% (3,000 simulations of three raters each).

    >>> import pandas as pd
    >>> from annotation import icc
    >>> table = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    >>> ratings = pd.DataFrame(
    ...     [(item, rater, value) for item, row in enumerate(table) for rater, value in enumerate(row)],
    ...     columns=["pair_id", "rater_id", "value"],
    ... )
    >>> for form in ("1", "2", "3", "1k", "2k", "3k"):
    ...     found = icc(ratings, form)
    ...     print(f"{form}: {found.value:.2f}, 95% from {found.low:.2f} to {found.high:.2f}")
    1: 0.17, 95% from -0.13 to 0.72
    2: 0.29, 95% from 0.02 to 0.76
    3: 0.71, 95% from 0.34 to 0.95
    1k: 0.44, 95% from -0.88 to 0.91
    2k: 0.62, 95% from 0.07 to 0.93
    3k: 0.91, 95% from 0.68 to 0.99
    """
    if form not in get_args(Form):
        raise ValueError(f"form must be one of {', '.join(get_args(Form))}, not {form!r}")
    columns = ["pair_id", "rater_id", "value"]
    checked = with_names(ratings, "ratings", pair_id=pair, rater_id=rater, value=value)[columns]
    filled(checked, columns, "ratings")
    once(checked, ("pair_id", "rater_id"), "ratings of one question")
    checked = checked.assign(value=numbers(checked["value"], "ratings"))
    if not np.isfinite(checked["value"]).all():
        raise ValueError("ratings: column 'value' holds an infinite value")
    n_items = checked["pair_id"].nunique()
    if n_items < 2 or len(checked) == n_items:
        return Estimate.undefined("fewer than two items, or no item with two ratings", n_items)
    if np.ptp(checked["value"].to_numpy()) == 0:
        return Estimate.undefined("all ratings are equal", n_items)
    if np.ptp(checked.groupby("pair_id")["value"].mean().to_numpy()) < _ROUNDING * np.ptp(checked["value"].to_numpy()):
        return Estimate.undefined("all items have the same mean", n_items)
    if form.startswith("1"):
        return _one_way(checked, n_items, mean=form.endswith("k"))
    if len(checked) < n_items * checked["rater_id"].nunique():  # a table of a crowd takes gigabytes
        return Estimate.undefined(
            "ICC(2) and ICC(3) need a rating of each item by each rater, and some are missing; ICC(1) does not", n_items
        )
    table = checked.pivot_table(index="pair_id", columns="rater_id", values="value")
    return _two_way(table.to_numpy(np.float64), form)


def _one_way(ratings: pd.DataFrame, n: int, *, mean: bool) -> Estimate:
    """ICC(1) or ICC(1, k)."""
    groups = ratings.groupby("pair_id", sort=False)["value"]
    means, counts = groups.mean().to_numpy(), groups.size().to_numpy(np.float64)
    within = ((ratings["value"] - groups.transform("mean")) ** 2).sum() / (len(ratings) - n)
    between = (counts * (means - ratings["value"].mean()) ** 2).sum() / (n - 1)
    k = (len(ratings) - (counts**2).sum() / len(ratings)) / (n - 1)
    if within < _ROUNDING * between:
        return Estimate.alone(1.0, _ALIKE, n)
    values = np.array([between / within, *_f_ends(between / within, n - 1, len(ratings) - n)])
    return _estimate(1 - 1 / values if mean else (values - 1) / (values - 1 + k), n)


def _two_way(table: Floats, form: str) -> Estimate:
    """Return ICC(2), ICC(3) or their averages from a full table: a row per item, a column per rater."""
    n, k = table.shape
    of_items, of_raters, mean = table.mean(axis=1), table.mean(axis=0), table.mean()
    items = k * ((of_items - mean) ** 2).sum() / (n - 1)
    raters = n * ((of_raters - mean) ** 2).sum() / (k - 1)
    rest = ((table - of_items[:, None] - of_raters + mean) ** 2).sum() / ((n - 1) * (k - 1))
    if form.startswith("3"):
        if rest < _ROUNDING * items:
            return Estimate.alone(1.0, "raters differ by the same on every item, so the spread is unknown", n)
        values = np.array([items / rest, *_f_ends(items / rest, n - 1, (n - 1) * (k - 1))])
        return _estimate(1 - 1 / values if form == "3k" else (values - 1) / (values - 1 + k), n)
    if form == "2k" and items + (raters - rest) / n <= 0:
        return Estimate.undefined(_TOO_LITTLE, n)
    if max(rest, raters) < _ROUNDING * items:
        return Estimate.alone(1.0, _ALIKE, n)
    value = (items - rest) / (items + (k - 1) * rest + k * (raters - rest) / n)
    # The interval of ICC(2), with Satterthwaite's degrees of freedom (McGraw and Wong, Table 7).
    a = k * value / (n * (1 - value))
    b = 1 + k * value * (n - 1) / (n * (1 - value))
    freedom = (a * raters + b * rest) ** 2 / ((a * raters) ** 2 / (k - 1) + (b * rest) ** 2 / ((n - 1) * (k - 1)))
    low, high = scipy.special.fdtri(n - 1, freedom, _UPPER), scipy.special.fdtri(freedom, n - 1, _UPPER)
    both = k * raters + (k * n - k - n) * rest
    low_end = n * (items - low * rest) / (low * both + n * items)
    single = np.array([value, low_end, n * (high * items - rest) / (both + n * high * items)])
    values = single * k / (1 + (k - 1) * single) if form == "2k" else single
    if not values[1] <= values[0] <= values[2]:
        return Estimate.alone(float(values[0]), f"no interval: {_TOO_LITTLE}", n)
    return _estimate(values, n)


def _f_ends(ratio: float, above: float, below: float) -> tuple[float, float]:
    """Return the 95% interval of a ratio of mean squares with these degrees of freedom."""
    low, high = (float(scipy.special.fdtri(*pair, _UPPER)) for pair in ((above, below), (below, above)))
    return ratio / low, ratio * high


def _estimate(values: Floats, n: int) -> Estimate:
    return Estimate(value=float(values[0]), low=float(values[1]), high=float(values[2]), n=n)


def z_scores(ratings: pd.DataFrame, *, rater: str = "rater_id", value: str = "value") -> pd.Series:
    """Return each rating less its rater's mean, in the rater's standard deviations (divisor n).

    Args:
        ratings: a row each: who rated (column `rater`) and a number (`value`).
        rater: the column of raters.
        value: the column of numbers.

    Returns:
        A series with the frame's index; NaN for a rater whose ratings are all equal.

    Raises:
        ValueError: a column is missing, or a value is no number.

    Source: Graham et al. (2013), Continuous Measurement Scales in Human Evaluation of Machine Translation, section 3.

    >>> import pandas as pd
    >>> from annotation import z_scores
    >>> ratings = pd.DataFrame({"rater_id": ["a", "a", "b", "b"], "value": [20, 40, 90, 100]})
    >>> z_scores(ratings).tolist()
    [-1.0, 1.0, -1.0, 1.0]
    """
    frame = with_names(ratings, "ratings", rater_id=rater, value=value)
    filled(frame, ["rater_id", "value"], "ratings")
    values = pd.Series(numbers(frame["value"], "ratings"), index=ratings.index)
    groups = values.groupby(frame["rater_id"].to_numpy())
    spread = groups.transform(lambda of_rater: of_rater.std(ddof=0))
    return (values - groups.transform("mean")) / spread.where(groups.transform("max") > groups.transform("min"))
