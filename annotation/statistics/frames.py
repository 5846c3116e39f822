"""Agreement and means of ratings in a data frame, checked and then computed like a study's.

A frame has one question's ratings, a row each: pair_id, rater_id (any names or numbers) and value (a point of the
scale), or the columns that `pair`, `rater` and `value` name (`rater="worker"`). Of the other
columns of a study's `ratings.parquet`, `status`, `excluded`, `withdrawn` and `surplus` decide which ratings count
(`plumbline.frames.that_count`), as for the commands, which also leave out pairs with fewer ratings than
`acceptance.min_raters`; further columns do not matter. Every function returns an `Estimate`: value, low and high (its
95% interval) and reason, which says why something is NaN. An invalid frame raises a ValueError in one line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
import scipy  # noqa: F401 (its parts are imported where used; here so that a missing scipy is reported at once)

from annotation.questions.summary import MeanOfAnswers
from annotation.statistics.summaries import HTEB_SCALE
from plumbline import scales
from plumbline.frames import filled, numbers, once, that_count, with_names
from plumbline.scales import Continuous, points_of
from plumbline.statistics.agreement import Answers, gwet_ac2, krippendorff_alpha, mean_kappa
from plumbline.statistics.estimates import Estimate


def ac2(
    ratings: pd.DataFrame,
    scale: Sequence[float] = HTEB_SCALE,
    *,
    pair: str = "pair_id",
    rater: str = "rater_id",
    value: str = "value",
) -> Estimate:
    """Gwet's AC2 with ordinal weights, and its interval over pairs; at most 1.

    `scale` has all points that raters could choose, in order; points that nobody chose count in weights and in chance
    agreement. Raters may have rated different pairs, and pairs may have different numbers of ratings.

    Source: Gwet (2014), Handbook of Inter-Rater Reliability, 4th ed., chapters 3 and 5; HTEB, section 2.4; the formulas
    are in `plumbline.statistics.agreement.gwet_ac2`. The example is Gwet's, of four raters and twelve units, and so
    is its value.

    >>> import pandas as pd
    >>> from annotation import ac2
    >>> rows = ["11.1", "2232", "3333", "3333", "2222", "1234", "4444", "1121", "2222", ".555", "..11", "..3."]
    >>> ratings = pd.DataFrame(
    ...     [(pair, rater, int(v)) for pair, row in enumerate(rows) for rater, v in enumerate(row) if v != "."],
    ...     columns=["pair_id", "rater_id", "value"],
    ... )
    >>> found = ac2(ratings, scale=(1, 2, 3, 4, 5))
    >>> print(f"{found.value:.5f}, 95% from {found.low:.3f} to {found.high:.3f}")
    0.89894, 95% from 0.664 to 1.000
    """
    return gwet_ac2(_answers(ratings, scale, pair, rater, value))


def alpha(
    ratings: pd.DataFrame,
    scale: Sequence[float] = HTEB_SCALE,
    *,
    seed: int = 1337,
    pair: str = "pair_id",
    rater: str = "rater_id",
    value: str = "value",
) -> Estimate:
    """Krippendorff's alpha with the ordinal metric; BCa bootstrap interval over pairs, at most 1.

    Pairs with one rating do not count. Equal ratings and seeds have equal intervals.

    Source: Krippendorff (2019), Content Analysis, 4th ed., chapter 12, as the package krippendorff. The example is C of
    Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, which prints 0.815.

    >>> import pandas as pd
    >>> from annotation import alpha
    >>> rows = ["11.1", "2232", "3333", "3333", "2222", "1234", "4444", "1121", "2222", ".555", "..11", ".3.."]
    >>> ratings = pd.DataFrame(
    ...     [(pair, rater, int(v)) for pair, row in enumerate(rows) for rater, v in enumerate(row) if v != "."],
    ...     columns=["pair_id", "rater_id", "value"],
    ... )
    >>> print(f"{alpha(ratings).value:.3f}")
    0.815
    """
    return krippendorff_alpha(_answers(ratings, scale, pair, rater, value), np.random.default_rng(seed))


def kappa(
    ratings: pd.DataFrame,
    scale: Sequence[float] = HTEB_SCALE,
    *,
    pair: str = "pair_id",
    rater: str = "rater_id",
    value: str = "value",
) -> Estimate:
    """The mean of Cohen's kappas of every two raters, with squared weights; jackknife interval over pairs, at most 1.

    Each kappa counts in proportion to the pairs that the two raters share; raters who share fewer than 5 are left out,
    as are two who both always gave the same point.

    Source: Cohen (1968), Psychological Bulletin 70, 213-220; the mean: Light (1971), Psychological Bulletin 76,
    365-377. Of the example by hand: the squared differences sum to 2, and to 28 by chance (all ratings of the one
    beside all of the other, over 6): 1 - 2 / 28.

    >>> import pandas as pd
    >>> from annotation import kappa
    >>> ratings = pd.DataFrame(
    ...     {"pair_id": [1, 2, 3, 4, 5, 6] * 2, "rater_id": ["a"] * 6 + ["b"] * 6}
    ...     | {"value": [1, 2, 3, 4, 5, 5] + [1, 1, 3, 4, 5, 4]}
    ... )
    >>> print(f"{kappa(ratings).value:.4f}")
    0.9286
    """
    return mean_kappa(_answers(ratings, scale, pair, rater, value))


def mean_interval(
    ratings: pd.DataFrame,
    scale: Sequence[float] = HTEB_SCALE,
    *,
    over: Literal["pairs", "pairs_and_raters"] = "pairs",
    pair: str = "pair_id",
    rater: str = "rater_id",
    value: str = "value",
) -> Estimate:
    """The mean of single ratings, in points of the scale, with its 95% interval by the empirical likelihood.

    `over` says what is a sample: the pairs, with the raters taken as fixed; or the pairs and the raters, which is
    wide with few raters: then it reaches as far as the t interval over both. Fewer than 8 pairs have no interval (the
    reason says so).

    Source: the means of pairs: Owen (1990), Ann. Stat. 18, 90-120 (`plumbline.statistics.group_sequential.p_above`);
    with raters: the t quantiles weighted as by Cochran and Cox, Experimental Designs, 2nd ed., section 4.14.

    >>> import pandas as pd
    >>> from annotation import mean_interval
    >>> ratings = pd.DataFrame({"pair_id": range(20), "rater_id": 1, "value": [1] * 3 + [4] * 10 + [5] * 7})
    >>> found = mean_interval(ratings)
    >>> print(f"{found.value:.2f}, 95% from {found.low:.2f} to {found.high:.2f}")
    3.90, 95% from 3.12 to 4.37
    >>> mean_interval(ratings[ratings["pair_id"] < 7]).reason
    'fewer than 8 pairs say too little about the mean'
    """
    if over not in ("pairs", "pairs_and_raters"):
        raise ValueError(f"over must be 'pairs' or 'pairs_and_raters', not {over!r}")
    answers = _answers(ratings, scale, pair, rater, value)
    if not answers.pairs:
        return Estimate.undefined("no ratings")
    return MeanOfAnswers(answers, over).estimate()


def _answers(ratings: pd.DataFrame, scale: Sequence[float], pair: str, rater: str, value: str) -> Answers:
    """Return the frame's ratings that count, as numbers. Raises ValueError for an invalid frame or scale."""
    points = points_of(scale)
    counting = that_count(with_names(ratings, "ratings", pair_id=pair, rater_id=rater, value=value))
    filled(counting, ("pair_id", "rater_id", "value"), "ratings")
    on_scale(counting, points)
    once(counting, ("pair_id", "rater_id"), "ratings of one question")
    return Answers.of(counting, points)


def on_scale(ratings: pd.DataFrame, scale: Sequence[float]) -> None:
    """Raise ValueError for values that are not on the scale."""
    values = numbers(ratings["value"], "ratings")
    if (off := ~scales.on_scale(values, scale)).any():
        points = f"from {scale[0]} to {scale[-1]}" if isinstance(scale, Continuous) else ", ".join(map(str, scale))
        fault = f"{values[off.argmax()]:g} in column 'value' is not on the scale {points}"
        raise ValueError(f"ratings: {fault} ({off.sum()} of {len(off)} values are not)")
