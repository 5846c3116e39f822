"""mteb's classification without its waiting: the same numbers as mteb's and scikit-learn's own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from datasets import Dataset
from mteb.abstasks.classification import AbsTaskClassification
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info, threadpool_limits

from evaluation.models.encoder import Embeddings, Encoder
from evaluation.tasks import mteb_classes as ties
from evaluation.tasks import scoring
from evaluation.tasks.mteb_classes import OneThread, scores
from generation.datasets.local import TableDataset
from generation.datasets.mteb_loading import search_data
from tests.evaluation.conftest import WORDS, FakeModel


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


def test_values_that_differ_by_rounding_alone_are_one() -> None:
    given = [0.5, 0.9 + 1e-7, 0.9, 0.7, 0.9 - 3e-7, 0.5 + 2e-6, -0.2]
    assert ties.with_ties(given).tolist() == [0.5, 0.9 + 1e-7, 0.9 + 1e-7, 0.7, 0.9 + 1e-7, 0.5 + 2e-6, -0.2]
    assert ties.with_ties([]).tolist() == [] and ties.with_ties([0.3]).tolist() == [0.3]


class Noisy(FakeModel):
    """A bag of words whose embeddings differ in their last digits from batch to batch, as on another machine."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._rng = np.random.default_rng(seed)

    def embed(self, texts: Sequence[str], *, prompt: str, role: str, batch_size: int) -> Embeddings:
        made = super().embed(texts, prompt=prompt, role=role, batch_size=batch_size)
        return (made * (1 + 1e-7 * self._rng.normal(size=made.shape))).astype(np.float32)


def mixed(number: int) -> list[str]:
    """Sentences of the same words in other orders: of a bag of words they are one text."""
    words = np.random.default_rng(number).choice(WORDS, size=3, replace=False)
    return [" ".join(order) for order in itertools.permutations(words)]


def pairs() -> pd.DataFrame:
    """Each pair four times, in other orders of its words and with other gold scores and labels."""
    rng = np.random.default_rng(3)
    rows = []
    for number in range(15):
        first, second = mixed(number), mixed(number + 40)
        rows += [(first[k], second[k], rng.uniform(0, 5), int(rng.random() < 0.5)) for k in range(4)]
    return pd.DataFrame(rows, columns=["sentence1", "sentence2", "score", "label"])


def candidates() -> pd.DataFrame:
    rows = [(f"{mixed(n)[0]} today", [*mixed(n)[:2]], [*mixed(n)[2:5], *mixed(n + 60)[:2]]) for n in range(20)]
    return pd.DataFrame(rows, columns=["query", "positive", "negative"])


def sts() -> TableDataset:
    return TableDataset("d", "sts", "en", "1", {"test": pairs().drop(columns="label")})


def pair_classification() -> TableDataset:
    return TableDataset("d", "pair_classification", "en", "1", {"test": pairs().drop(columns="score")})


def reranking() -> TableDataset:
    return TableDataset("d", "reranking", "en", "1", {"test": candidates()})


def retrieval() -> TableDataset:
    corpus = {f"p{n}-{k}": text for n in range(20) for k, text in enumerate(mixed(n))}
    queries = pd.DataFrame({"id": [f"q{n}" for n in range(20)], "query": [f"{mixed(n)[0]} here" for n in range(20)]})
    return TableDataset(
        "d", "retrieval", "en", "1", {"test": queries}, corpus, {f"q{n}": {f"p{n}-2": 1} for n in range(20)}
    )


def summarisation() -> TableDataset:
    rows = [
        {
            "human_summaries": mixed(n)[:2],
            "machine_summaries": [*mixed(n + 9)[:3], *mixed(n + 30)[:2]],
            "relevance": gold,
        }
        for n, gold in enumerate(np.random.default_rng(4).uniform(0, 5, (12, 5)).tolist())
    ]
    return TableDataset("d", "summarisation", "en", "1", {"test": pd.DataFrame(rows)})


def bitext_mining() -> TableDataset:
    rows = [(mixed(n + 60 * (n % 2))[0], mixed(n - n % 2)[1 + n % 2]) for n in range(40)]
    frame = pd.DataFrame(rows, columns=["sentence1", "sentence2"])
    return TableDataset("d", "bitext_mining", "en-de", "1", {"test": frame})


MADE = (sts, pair_classification, reranking, retrieval, summarisation, bitext_mining)


@pytest.mark.parametrize("made", MADE)
def test_a_score_does_not_move_with_the_last_digits(
    made: Callable[[], TableDataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    def scores() -> set[float]:
        return {scoring.evaluate(made(), Encoder(Noisy(seed), "x", "1"), "paper", 8) for seed in range(4)}

    (settled,) = scores()
    assert 0 < abs(settled) < 1
    monkeypatch.setattr(ties, "TOLERANCE", 0.0)
    assert len(scores()) > 1  # else there was nothing to settle


def test_neither_order_nor_relevance_decides_between_candidates_that_are_equally_near() -> None:
    """By numbers in their order the irrelevant passages, which come last, would win every tie."""
    wins = []
    for n in range(200):
        frame = pd.DataFrame({"query": ["red"], "positive": [[f"cat {n}"]], "negative": [[f"dog {n}"]]})
        (right, wrong) = search_data(frame)["relevant_docs"]["q0"]
        wins.append(right > wrong)
    assert 0.4 < np.mean(wins) < 0.6


def test_with_equal_candidates_alone_the_score_is_near_the_expected_one() -> None:
    """One of two equally near passages is relevant: MAP is 1 or 1/2 for each query, 3/4 on the mean."""
    rows: list[Any] = [(mixed(n)[0], [mixed(n)[1]], [mixed(n)[2]]) for n in range(120)]
    frame = pd.DataFrame(rows, columns=["query", "positive", "negative"])
    dataset = TableDataset("d", "reranking", "en", "1", {"test": frame})
    assert scoring.evaluate(dataset, Encoder(Noisy(1), "x", "1"), "paper", 8) == pytest.approx(0.75, abs=0.06)
