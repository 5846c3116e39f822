"""mteb's classification without its waiting: the same numbers as mteb's and scikit-learn's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from mteb.abstasks.classification import AbsTaskClassification
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info, threadpool_limits

from evaluation.tasks.mteb_classes import OneThread, scores


def threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_a_fit_in_one_thread_is_scikit_learns_and_leaves_the_threads_as_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(1337)
    rows, labels = rng.normal(size=(60, 5)).astype(np.float32), np.arange(60) % 3
    seen: list[int] = []
    fit = LogisticRegression.fit

    def watched(self: Any, *data: Any, **weights: Any) -> Any:
        seen.extend(threads())
        return fit(self, *data, **weights)

    with threadpool_limits(2, user_api="blas"):
        before = threads()
        monkeypatch.setattr(LogisticRegression, "fit", watched)
        ours = OneThread(max_iter=100).fit(rows, labels)
        assert threads() == before
    monkeypatch.undo()
    with threadpool_limits(1, user_api="blas"):
        theirs = LogisticRegression(max_iter=100).fit(rows, labels)
    assert seen
    assert set(seen) == {1}
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)


@pytest.mark.parametrize("classes", [2, 3])  # of two mteb measures average precision too
def test_scores_of_a_column_are_mtebs_of_its_labels(classes: int) -> None:
    rng = np.random.default_rng(classes)
    given = rng.integers(0, classes, 40).tolist()
    predicted = rng.integers(0, classes, 40)
    task: Any = AbsTaskClassification
    wanted = task._calculate_scores(task, given, predicted)
    assert scores(Dataset.from_dict({"label": given})["label"], predicted) == wanted
    right = sum(int(a == b) for a, b in zip(given, predicted, strict=True))
    assert wanted["accuracy"] == right / 40
    assert (wanted["ap"] is not None) == (classes == 2)


@pytest.mark.filterwarnings("ignore:.*ill-defined")  # the third label is never true
@pytest.mark.parametrize("labels", [(0, 3, 1), (2, 3, 1), ("no", "yes", "other")])
def test_two_true_labels_of_several_have_scores_too(labels: tuple[Any, Any, Any]) -> None:
    one, other, third = labels
    found = scores([one, other, other, one], np.array([one, other, one, third]))  # right, right, wrong, wrong
    # F1 of one: 2 / (2 + 1 + 1), of the other: 2 / (2 + 0 + 1), of the third: 0
    assert (found["accuracy"], found["f1"]) == (0.5, pytest.approx((1 / 2 + 2 / 3 + 0) / 3))
