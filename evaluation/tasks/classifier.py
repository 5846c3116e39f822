"""mteb's classification without its waiting: the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from mteb.abstasks.classification import AbsTaskClassification
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits


class OneThread(LogisticRegression):  # type: ignore[misc]
    """scikit-learn's logistic regression, fitted with one thread of BLAS: faster than with two, and alike everywhere.

    numpy and scipy bring a BLAS each, whose pools of threads get in one another's way: each step of the fit asks both.
    """

    def fit(self, *data: Any, **weights: Any) -> Self:
        """As scikit-learn fits."""
        with threadpool_limits(1, user_api="blas"):
            fitted: Self = super().fit(*data, **weights)
        return fitted


def scores(y_test: Sequence[int], y_pred: NDArray[np.integer]) -> Any:
    """What mteb measures, of true and predicted labels; scikit-learn would read mteb's column a dozen times by rows.

    Average precision takes label 1 for the one that is looked for, and mteb ends in an error where the true labels are
    two others of several. These are numbered anew, on which nothing else depends.
    """
    of_mteb: Any = AbsTaskClassification  # its method asks nothing of an instance
    true = np.asarray(y_test[:])
    classes = np.unique(true)
    if len(classes) == 2 and 1 not in classes:
        others = np.setdiff1d(y_pred, classes)
        order = np.concatenate([classes, others])
        by_label = np.argsort(order)
        true, y_pred = (by_label[np.searchsorted(order[by_label], labels)] for labels in (true, y_pred))
    return of_mteb._calculate_scores(of_mteb, true, y_pred)
