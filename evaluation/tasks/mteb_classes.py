"""Changes to mteb's classes: settled similarities before ranking, faster fits, and registered tasks of ours.

Similarities that differ only by rounding count as equal. Embeddings of the same text differ in their last digits with
the batch, the machine and the library, and sums of equal words with their order; chance then decides which of two equal
similarities is larger, which can change the MAP of a bag of words by a hundredth. So similarities are settled before
ranking: values whose neighbours are nearer than `TOLERANCE` become one value. The metric's own program treats the ties:
average ranks (Spearman, scipy), one threshold (average precision, scikit-learn), the later passage id first (searches,
trec_eval; the ids of reranking's candidates are hashes of their texts, so that neither order nor relevance decides),
the first of the nearest (bitext mining). Clustering, and the nearest neighbours of multilabel classification, rank
nothing that could be settled.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
import torch
from mteb.abstasks.abstask import AbsTask
from mteb.abstasks.classification import AbsTaskClassification
from mteb.models import EncoderProtocol
from mteb.models.search_wrappers import SearchEncoderWrapper
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

if TYPE_CHECKING:
    from evaluation.models.encoder import Encoder


TOLERANCE = 1e-6  # single precision keeps a cosine to about 1e-7; texts never differ so little by meaning
PASSAGES = 50_000  # ranked at a time, as in mteb
_RANKED = ("cosine_scores", "similarity_scores")


def with_ties(values: ArrayLike) -> NDArray[np.float64]:
    """Return the values, with neighbours nearer than `TOLERANCE` made equal (to the largest of such a chain)."""
    similarities = np.asarray(values, dtype=np.float64)
    order = np.argsort(-similarities, kind="stable")
    ranked = similarities[order]
    first = np.concatenate([[True], -np.diff(ranked) > TOLERANCE])[: len(ranked)]
    rounded = np.empty_like(similarities)
    rounded[order] = ranked[np.maximum.accumulate(np.where(first, np.arange(len(ranked)), 0))]
    return rounded


def search(encoder: Encoder | EncoderProtocol) -> Any:
    """Return a model that ranks settled similarities of queries and passages."""
    return _Search(encoder, corpus_chunk_size=PASSAGES)


class _Search(SearchEncoderWrapper):
    """Mteb's search, with similarities settled for each query."""

    def search(self, *args: Any, **options: Any) -> Any:
        """Return passages and their similarities for each query."""
        rankings = super().search(*args, **options)
        return {
            query: dict(zip(passages, with_ties(list(passages.values())).tolist(), strict=True))
            for query, passages in rankings.items()
        }


class Nearest:
    """An encoder for tasks that need only the nearest: of equally near ones the first counts."""

    def __init__(self, encoder: Encoder | EncoderProtocol) -> None:
        self.encode, self.similarity_pairwise = encoder.encode, encoder.similarity_pairwise
        self.mteb_model_meta = encoder.mteb_model_meta
        self._encoder = encoder

    def similarity(self, first: Any, second: Any) -> Any:
        """Return all of `first` with all of `second`; in each row the first of the largest is raised."""
        similarities = torch.as_tensor(self._encoder.similarity(first, second)).cpu().numpy().astype(np.float64)
        best = similarities.max(axis=1, keepdims=True)
        nearest = (similarities >= best - TOLERANCE).argmax(axis=1)
        similarities[np.arange(len(similarities)), nearest] = best[:, 0] + TOLERANCE
        return similarities


def measures_with_ties(measure: Callable[..., Any], scores: Any, *values: Any) -> Any:
    """Return mteb's measures of pairs, from settled similarities."""
    rankings = {name: with_ties(scores[name]).tolist() for name in _RANKED if scores[name] is not None}
    return measure({**scores, **rankings}, *values)


def of_summaries(kind: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Return mteb's evaluator of summaries, with settled similarities."""
    evaluator = kind(*args, **options)
    evaluator._calculate_metrics = partial(_summaries, evaluator._calculate_metrics)
    return evaluator


def _summaries(measure: Callable[..., Any], distances: Any) -> Any:
    """Return mteb's measures of summaries, without texts whose similarities are all equal."""
    both = [[with_ties(scores).tolist() for scores in distances[name]] for name in _RANKED]
    distinct = [index for index, scores in enumerate(both[0]) if len(set(scores)) > 1]
    settled_scores = {**distances, **dict(zip(_RANKED, both, strict=True))}
    chosen = {name: [scores[index] for index in distinct] for name, scores in settled_scores.items()}
    return measure(chosen)


class OneThread(LogisticRegression):  # type: ignore[misc]
    """scikit-learn's logistic regression, fitted with one BLAS thread: faster than with two, and equal everywhere.

    numpy and scipy each have a BLAS, whose thread pools compete: each step of the fit uses both.
    """

    def fit(self, *data: Any, **weights: Any) -> Self:
        """Fit as scikit-learn does."""
        with threadpool_limits(1, user_api="blas"):
            fitted: Self = super().fit(*data, **weights)
        return fitted


def own_classifier() -> dict[str, Any]:
    """Return attributes for classification with a separate evaluator: mteb shares one, and changes it."""
    return {"evaluator_model": OneThread(max_iter=100), "_calculate_scores": staticmethod(scores)}


def scores(y_test: Sequence[int], y_pred: NDArray[np.integer]) -> Any:
    """Return mteb's measures of true and predicted labels; scikit-learn would read mteb's column row by row, often.

    Average precision takes label 1 as positive, and mteb fails if the true labels are two others of several. These
    labels are renumbered, which changes no other measure.
    """
    of_mteb: Any = AbsTaskClassification  # its method asks nothing of an instance
    true = np.asarray(y_test[:])
    classes = np.unique(true)
    if len(classes) == 2 and 1 not in classes:
        absent = np.setdiff1d(y_pred, classes)
        order = np.concatenate([classes, absent])
        by_label = np.argsort(order)
        true, y_pred = (by_label[np.searchsorted(order[by_label], labels)] for labels in (true, y_pred))
    return of_mteb._calculate_scores(of_mteb, true, y_pred)


T = TypeVar("T", bound=AbsTask)


class OwnTask(AbsTask):
    """A task with its own data, which mteb need not load; subclasses evaluate all subsets at once."""

    def load_data(self, num_proc: int | None = None, **_: Any) -> None:
        """Mark the data as loaded."""
        self.data_loaded = True

    def unload_data(self) -> None:
        """Mark the data as unloaded."""
        self.data_loaded = False

    def _evaluate_subset(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("a task of a study is evaluated as a whole")

    def _calculate_descriptive_statistics_from_split(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("the study's records describe the task's texts")


def registered(kind: type[T]) -> T:
    """Return a task of our class, registered in mteb by its name in this process.

    mteb's cache and tables look up classes in a registry, which has no public interface.
    """
    importlib.import_module("mteb.get_tasks")._TASKS_REGISTRY[kind.metadata.name] = kind
    return kind()
