"""Adjust means of ratings for strict and lenient raters who rated different items."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.frames import filled, numbers, once, with_names
from plumbline.statistics.estimates import CONFIDENCE

Floats = NDArray[np.float64]
_UPPER = (1 + CONFIDENCE) / 2
_NOTHING = 1e-8  # share of the error's variance that counts as zero
_STEP = 0.05  # step in the logarithm of a variance, for the likelihood's curvature


@dataclass(frozen=True)
class Severity:
    """Adjusted means, and each rater's deviation from all raters."""

    #: one row per group: plain, adjusted, low, high, items, ratings, reason (why there is no interval)
    means: pd.DataFrame
    raters: pd.DataFrame  #: one row per rater: severity (below 0: strict), low, high, ratings
    item_sd: float  #: standard deviation between items of a group, in points
    rater_sd: float  #: standard deviation between raters' severities
    error_sd: float  #: standard deviation of an answer around its item and rater


def severity(
    ratings: pd.DataFrame,
    group: str | None = None,
    *,
    pair: str = "pair_id",
    rater: str = "rater_id",
    value: str = "value",
) -> Severity:
    """Return each group's mean adjusted for who rated its items, beside the plain mean of its ratings.

    A rating is mean of its group + item + rater + error; items, raters and errors are drawn from normal distributions
    whose variances restricted maximum likelihood estimates. The adjusted means are generalised least squares; their
    95% intervals are over items and raters, by t with Satterthwaite's degrees of freedom. Severities are best
    linear unbiased predictions, with intervals by t with one degree of freedom less than there are raters.

    Args:
        ratings: a row each: the item (column `pair`), who rated it (`rater`), a number (`value`) and its group.
        group: the column of groups, of which each item has one; None makes one group of all.
        pair: the column of items.
        rater: the column of raters.
        value: the column of numbers.

    Returns:
        The means, the raters and the three standard deviations. A group has no interval where the design cannot tell
        errors from items and raters, and says why.

    Raises:
        ValueError: a column is missing, a value is no number, a rater rated an item twice, an item has two groups.

    Source: Patterson and Thompson (1971), Biometrika 58, 545-554; Robinson (1991), That BLUP Is a Good Thing,
    Statistical Science 6, 15-32; Giesbrecht and Burns (1985), Biometrics 41, 477-486 (degrees of freedom).

    >>> import pandas as pd
    >>> from annotation import severity
    >>> rows = [(item, rater, 3 + item % 2 - (rater == "strict")) for item in range(6) for rater in ("mild", "strict")]
    >>> rows = [row for row in rows if row[:2] not in {(0, "mild"), (1, "strict"), (4, "mild"), (3, "strict")}]
    >>> ratings = pd.DataFrame(rows, columns=["pair_id", "rater_id", "value"]).assign(
    ...     system=lambda frame: frame["pair_id"].map(lambda item: "ab"[item % 2])
    ... )
    >>> severity(ratings, "system").means[["plain", "adjusted"]].round(1).to_dict("index")
    {'a': {'plain': 2.2, 'adjusted': 2.5}, 'b': {'plain': 3.8, 'adjusted': 3.5}}
    """
    model = _Model.of(_checked(ratings, group, pair, rater, value))
    return model.severity(group or "group")


def _checked(ratings: pd.DataFrame, group: str | None, pair: str, rater: str, value: str) -> pd.DataFrame:
    columns = {"pair_id": pair, "rater_id": rater, "value": value} | ({"group": group} if group else {})
    frame = with_names(ratings, "ratings", **columns)[[*columns]]
    frame = frame if group else frame.assign(group="all")
    filled(frame, list(frame.columns), "ratings")
    once(frame, ("pair_id", "rater_id"), "ratings of one question")
    frame = frame.assign(value=numbers(frame["value"], "ratings"))
    if frame.empty or not np.isfinite(frame["value"]).all():
        raise ValueError("ratings: the frame is empty" if frame.empty else "ratings: 'value' holds an infinite value")
    groups = frame.groupby("pair_id")["group"].nunique()
    if (groups > 1).any():
        raise ValueError(f"ratings: item {groups.idxmax()} is in {groups.max()} groups; it must be in one")
    return frame


@dataclass(frozen=True)
class _Fit:
    """The model fitted at given variances (shares of the error's): the basis of estimates and likelihood."""

    means: Floats
    covariance: Floats  #: covariances of the means, as shares of the error's variance
    predictions: Floats  #: predictions of the raters
    spread: Floats  #: variances of the predictions' errors, as shares of the error's variance
    error: float  #: the error's variance
    deviance: float  #: minus twice the restricted log likelihood


@dataclass(frozen=True)
class _Model:
    """Sums over ratings that give the likelihood at any variances without a row per rating."""

    groups: pd.Index
    raters: pd.Index
    sizes: Floats  #: ratings per item of each kind; a kind is all items with the same number
    shared: NDArray[np.float64]  #: sums over items of their sums, by kind, group or rater, and group, rater or value
    plain: Floats  #: the same cross products over ratings
    per_kind: Floats  #: items of each kind
    frame: pd.DataFrame

    @classmethod
    def of(cls, frame: pd.DataFrame) -> _Model:
        from scipy import sparse  # noqa: PLC0415 (importing scipy is slow)

        (item, _), (rater, raters) = pd.factorize(frame["pair_id"]), pd.factorize(frame["rater_id"])
        group, groups = pd.factorize(frame["group"], sort=True)
        n, values = len(frame), frame["value"].to_numpy() - frame["value"].mean()
        rows = np.arange(n)
        design = sparse.csr_matrix(
            (
                np.concatenate([np.ones(2 * n), values]),
                (
                    np.concatenate([rows, rows, rows]),
                    np.concatenate([group, len(groups) + rater, np.full(n, len(groups) + len(raters))]),
                ),
            )
        )
        by_item = sparse.csr_matrix((np.ones(n), (item, rows))) @ design
        counts = np.bincount(item)
        sizes = np.unique(counts)
        shared = np.stack([(by_item[counts == size].T @ by_item[counts == size]).toarray() for size in sizes])
        return cls(
            pd.Index(groups, name="group"),
            pd.Index(raters, name="rater_id"),
            sizes.astype(np.float64),
            shared,
            (design.T @ design).toarray(),
            np.array([(counts == size).sum() for size in sizes], np.float64),
            frame,
        )

    @property
    def freedom(self) -> int:
        """The number of ratings less that of groups."""
        return len(self.frame) - len(self.groups)

    def fit(self, items: float, raters: float) -> _Fit:
        """Fit the model with these variances of items and raters, as shares of the error's."""
        g, r = len(self.groups), len(self.raters)
        products = self.plain - np.tensordot(items / (1 + items * self.sizes), self.shared, 1)
        inner = products[g : g + r, g : g + r] + np.eye(r) / raters
        lower = np.linalg.cholesky(inner)
        cross = products[g : g + r][:, [*range(g), g + r]]
        half = np.linalg.solve(lower, cross)
        outer = products[np.ix_([*range(g), g + r], [*range(g), g + r])] - half.T @ half
        covariance = np.linalg.inv(outer[:g, :g])
        means = covariance @ outer[:g, g]
        error = max(float(outer[g, g] - outer[:g, g] @ means), _NOTHING * float(self.plain[-1, -1])) / self.freedom
        solved = np.linalg.solve(lower.T, half)
        inverse = np.linalg.inv(inner)
        spread = np.diag(inverse) + np.einsum("rg,gh,rh->r", solved[:, :g], covariance, solved[:, :g])
        deviance = (
            self.freedom * math.log(error)
            + float((self.per_kind * np.log1p(items * self.sizes)).sum())
            + r * math.log(raters)
            + 2 * float(np.log(np.diag(lower)).sum())
            - float(np.linalg.slogdet(covariance)[1])
        )
        return _Fit(means, covariance, solved[:, g] - solved[:, :g] @ means, spread, error, deviance)

    @functools.cached_property
    def variances(self) -> tuple[float, float]:
        """The variances of items and raters, as shares of the error's, by restricted maximum likelihood."""
        from scipy.optimize import minimize  # noqa: PLC0415

        def deviance(logs: Floats) -> float:
            return self.fit(*np.exp(np.clip(logs, math.log(_NOTHING), 18.0))).deviance

        best = min(
            (
                minimize(deviance, np.array(start), method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-6})
                for start in _STARTS
            ),
            key=lambda result: result.fun,
        )
        items, raters = np.exp(np.clip(best.x, math.log(_NOTHING), 18.0))
        return float(items), float(raters)

    def severity(self, group: str) -> Severity:
        """Return the result; degrees of freedom come from the likelihood's curvature."""
        from scipy.stats import t  # noqa: PLC0415

        frame, center = self.frame, float(self.frame["value"].mean())
        plain = frame.groupby("group").agg(
            plain=("value", "mean"), items=("pair_id", "nunique"), ratings=("value", "size")
        )
        answers = frame.groupby("rater_id", sort=False).size().reindex(self.raters)
        reason = self._undefined()
        if reason:
            nothing = math.nan
            means = plain.assign(adjusted=nothing, low=nothing, high=nothing, reason=reason)
            raters = pd.DataFrame({"severity": nothing, "low": nothing, "high": nothing, "ratings": answers})
            return Severity(_ordered(means, group), raters, nothing, nothing, nothing)
        fit = self.fit(*self.variances)
        errors = np.sqrt(np.diag(fit.covariance) * fit.error)
        reach = t.ppf(_UPPER, self._freedoms(fit)) * errors
        adjusted = fit.means + center
        means = plain.reindex(self.groups).assign(
            adjusted=adjusted, low=adjusted - reach, high=adjusted + reach, reason=""
        )
        spread = t.ppf(_UPPER, len(self.raters) - 1) * np.sqrt(fit.spread * fit.error)
        raters = pd.DataFrame(
            {
                "severity": fit.predictions,
                "low": fit.predictions - spread,
                "high": fit.predictions + spread,
                "ratings": answers,
            },
            index=self.raters,
        )
        items_share, raters_share = self.variances
        return Severity(
            _ordered(means, group),
            raters,
            math.sqrt(items_share * fit.error),
            math.sqrt(raters_share * fit.error),
            math.sqrt(fit.error),
        )

    def _undefined(self) -> str:
        """Return why nothing can be adjusted; empty if it can."""
        if len(self.raters) < 2:
            return "only one rater"
        if self.sizes.max() < 2:
            return "no item has two ratings, so that raters cannot be told from items"
        if np.ptp(self.frame["value"].to_numpy()) == 0:
            return "all ratings are equal"
        return "" if self.freedom > 2 else "too few ratings"

    def _freedoms(self, fit: _Fit) -> Floats:
        """Return Satterthwaite's degrees of freedom of each mean: 2 v^2 over the variance of its variance v."""
        center = np.log([*self.variances, 1.0])

        def at(logs: Floats) -> tuple[float, Floats]:
            """Return (the deviance, the means' variances) at these logarithms of the three variances."""
            refit = self.fit(math.exp(logs[0]), math.exp(logs[1]))
            error = fit.error * math.exp(logs[2])
            deviance = refit.deviance + self.freedom * (math.log(error / refit.error) + refit.error / error - 1)
            return deviance, np.diag(refit.covariance) * error

        free = [axis for axis in range(3) if center[axis] > math.log(10 * _NOTHING)]
        steps = np.eye(3)[free] * _STEP
        (middle, variances), ups, downs = at(center), [at(center + s) for s in steps], [at(center - s) for s in steps]
        slopes = np.array([(up[1] - down[1]) / (2 * _STEP) for up, down in zip(ups, downs, strict=True)])
        curvature = np.empty((len(free), len(free)))
        for row, step in enumerate(steps):
            curvature[row, row] = (ups[row][0] - 2 * middle + downs[row][0]) / _STEP**2
            for column in range(row):
                both = at(center + step + steps[column])[0] - ups[row][0] - ups[column][0] + middle
                back = at(center - step - steps[column])[0] - downs[row][0] - downs[column][0] + middle
                curvature[row, column] = curvature[column, row] = (both + back) / (2 * _STEP**2)
        uncertainty = 2 * np.linalg.pinv(curvature, hermitian=True)
        spread = np.einsum("ag,ab,bg->g", slopes, uncertainty, slopes)
        least = min(len(self.raters) - 1, self.freedom)
        return np.asarray(np.clip(2 * variances**2 / np.maximum(spread, 1e-300), min(1, least), self.freedom))


_STARTS = ((0.0, -1.0), (-3.0, -5.0))


def _ordered(means: pd.DataFrame, group: str) -> pd.DataFrame:
    columns = ["plain", "adjusted", "low", "high", "items", "ratings", "reason"]
    return means[columns].rename_axis(group)
