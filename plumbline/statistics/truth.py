"""Estimate the true class when raters name one of several: by majority, or by a model of raters' accuracy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbline.frames import filled, once, with_names

Floats = NDArray[np.float64]
_LEAST = 1e-300  # smallest probability, so that its logarithm is finite
_STILL = 1e-8  # probabilities that move less have converged


@dataclass(frozen=True)
class Truth:
    """The probable class of each item, and the accuracy of each rater."""

    probabilities: pd.DataFrame  #: one row per item, one column per class; each row sums to 1
    raters: pd.DataFrame  #: one row per rater: answers, and accuracy (the expected share that is right)
    iterations: int  #: iterations of the estimation; 0 if there was none
    converged: bool

    @property
    def labels(self) -> pd.Series:
        """The most probable class of each item; NaN if two are equally probable."""
        values = self.probabilities.to_numpy()
        tied = (np.abs(values - values.max(axis=1, keepdims=True)) < 1e-9).sum(axis=1) > 1
        return self.probabilities.idxmax(axis=1).mask(tied)

    def frame(self) -> pd.DataFrame:
        """Return one row per item: label, and its probability."""
        return pd.DataFrame({"label": self.labels, "probability": self.probabilities.max(axis=1)})


@dataclass(frozen=True)
class _Votes:
    """Answers as numbers: item, rater and class of each."""

    item: NDArray[np.int64]
    rater: NDArray[np.int64]
    label: NDArray[np.int64]
    items: pd.Index
    raters: pd.Index
    labels: pd.Index

    @classmethod
    def of(cls, ratings: pd.DataFrame, pair: str, rater: str, value: str) -> _Votes:
        columns = ["pair_id", "rater_id", "value"]
        frame = with_names(ratings, "ratings", pair_id=pair, rater_id=rater, value=value)[columns]
        filled(frame, columns, "ratings")
        once(frame, ("pair_id", "rater_id"), "ratings of one question")
        if frame.empty:
            raise ValueError("ratings: the frame is empty")
        (item, items), (rater_number, raters) = pd.factorize(frame["pair_id"]), pd.factorize(frame["rater_id"])
        label, labels = pd.factorize(frame["value"], sort=True)
        return cls(item, rater_number, label, pd.Index(items), pd.Index(raters), pd.Index(labels))

    def shares(self) -> Floats:
        """Return, for each item, the share of its raters that named each class."""
        counts = np.zeros((len(self.items), len(self.labels)))
        np.add.at(counts, (self.item, self.label), 1)
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))

    def truth(self, probabilities: Floats, iterations: int = 0, *, converged: bool = True) -> Truth:
        """Return the result, with each rater's expected accuracy under it."""
        right = np.bincount(self.rater, probabilities[self.item, self.label], len(self.raters))
        answers = np.bincount(self.rater, minlength=len(self.raters))
        return Truth(
            pd.DataFrame(probabilities, index=self.items, columns=self.labels),
            pd.DataFrame({"answers": answers, "accuracy": right / answers}, index=self.raters),
            iterations,
            converged,
        )


def majority(ratings: pd.DataFrame, *, pair: str = "pair_id", rater: str = "rater_id", value: str = "value") -> Truth:
    """Return the class that most raters of an item named: each answer counts alike.

    Args:
        ratings: a row each: the item (column `pair`), who answered (`rater`) and a class (`value`: text or number).
        pair: the column of items.
        rater: the column of raters.
        value: the column of classes.

    Returns:
        The shares of answers as probabilities; an item whose raters are split evenly has no label.

    Raises:
        ValueError: a column is missing or has gaps, there are no ratings, or a rater answered twice for an item.

    Source: Zheng et al. (2017), Truth Inference in Crowdsourcing: Is the Problem Solved?, VLDB 10(5), section 4.

    >>> import pandas as pd
    >>> from annotation import majority
    >>> answers = {"a": "yyn", "b": "ynn", "c": "yyn"}
    >>> ratings = pd.DataFrame(
    ...     [(item, rater, label) for rater, labels in answers.items() for item, label in enumerate(labels)],
    ...     columns=["pair_id", "rater_id", "value"],
    ... )
    >>> majority(ratings).labels.tolist()
    ['y', 'y', 'n']
    """
    votes = _Votes.of(ratings, pair, rater, value)
    return votes.truth(votes.shares())


def dawid_skene(
    ratings: pd.DataFrame,
    *,
    smoothing: float = 0.01,
    iterations: int = 10_000,
    pair: str = "pair_id",
    rater: str = "rater_id",
    value: str = "value",
) -> Truth:
    """Estimate the classes by expectation-maximisation, with a confusion matrix for each rater.

    Rater r names class l for an item of class t with probability pi_r(t, l), classes have shares p(t):

        P(t | answers) ~ p(t) prod_r pi_r(t, l_r),     pi_r(t, l) ~ s + sum of P(t | answers) over r's items named l,

    in turn from the shares of the majority on, until no probability of a class moves by more than 1e-8.

    Args:
        ratings: as for `majority`.
        smoothing: s, answers added beforehand for each rater and class; 0 is Dawid and Skene's own version, in which a
            rater with few answers can become infallible.
        iterations: at most.
        pair: the column of items.
        rater: the column of raters.
        value: the column of classes.

    Returns:
        The probabilities, and whether they stood still.

    Raises:
        ValueError: as `majority`, and for smoothing below 0 and fewer iterations than 1.

    Source: Dawid and Skene (1979), Applied Statistics 28, 20-28.

    >>> import pandas as pd
    >>> from annotation import dawid_skene
    >>> answers = {"a": "yynnyyn", "b": "yynnyyn", "c": "nynyyny", "d": "nynyyny", "e": "nynyyny"}
    >>> answers |= {"f": "yynnyyn"}
    >>> ratings = pd.DataFrame(
    ...     [(item, rater, label) for rater, labels in answers.items() for item, label in enumerate(labels)],
    ...     columns=["pair_id", "rater_id", "value"],
    ... )
    >>> dawid_skene(ratings).raters["answers"].tolist()
    [7, 7, 7, 7, 7, 7]
    """
    if smoothing < 0 or iterations < 1:
        raise ValueError(f"smoothing must be at least 0 and iterations at least 1, not {smoothing} and {iterations}")
    votes = _Votes.of(ratings, pair, rater, value)
    n_classes, n_raters = len(votes.labels), len(votes.raters)
    beliefs, answers = votes.shares(), votes.rater * n_classes + votes.label
    for iteration in range(1, iterations + 1):
        counts = [np.bincount(answers, beliefs[votes.item, label], n_raters * n_classes) for label in range(n_classes)]
        confusion = smoothing + np.reshape(counts, (n_classes, n_raters, n_classes)).swapaxes(0, 1)
        of_class = confusion.sum(axis=2, keepdims=True)
        confusion = np.divide(confusion, of_class, out=np.full_like(confusion, 1 / n_classes), where=of_class > 0)
        each = np.log(np.maximum(confusion, _LEAST))[votes.rater, :, votes.label]
        logs = np.stack([np.bincount(votes.item, column, len(votes.items)) for column in each.T], axis=1)
        logs += np.log(np.maximum(beliefs.mean(axis=0), _LEAST))
        likely = np.exp(logs - logs.max(axis=1, keepdims=True))
        previous, beliefs = beliefs, likely / likely.sum(axis=1, keepdims=True)
        if np.abs(beliefs - previous).max() <= _STILL:
            return votes.truth(beliefs, iteration)
    return votes.truth(beliefs, iterations, converged=False)
