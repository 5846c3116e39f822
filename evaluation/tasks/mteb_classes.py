"""mteb's classes where ours differ: what they rank is settled first, what they fit waits for nothing, ours are listed.

Similarities that differ by rounding alone are equal. The same text gives embeddings that differ in their last digits
with the batch, the machine and the library, and sums of equal words do with their order; which of two equal
similarities is larger is then chance, and a bag of words loses or wins a hundredth of MAP by it. So what is ranked is
settled first: values whose neighbours are nearer than `TOLERANCE` are one value. Ties are then what the metric's own
program makes of them: average ranks (Spearman, scipy), one threshold (average precision, scikit-learn), the later
passage id first (searches, trec_eval; the ids of candidates of reranking are hashes of their texts, so that neither
order nor relevance decides), the first of the nearest (bitext mining). Clustering, and the nearest neighbours of
multilabel classification, rank nothing that could be settled.
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
from mteb.models.models_protocols import SearchProtocol
from mteb.models.search_wrappers import SearchEncoderWrapper
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from plumbline.study.datasets import TaskType

if TYPE_CHECKING:
    from evaluation.models.encoder import Encoder


TOLERANCE = 1e-6  # single precision keeps a cosine to some 1e-7, and no two texts are so nearly alike by meaning
PASSAGES = 50_000  # that are ranked at a time, as mteb has it
_RANKED = ("cosine_scores", "similarity_scores")


def settled(values: ArrayLike) -> NDArray[np.float64]:
    """The values, neighbours that are nearer than `TOLERANCE` made equal (the largest of such a chain stands)."""
    similarities = np.asarray(values, dtype=np.float64)
    order = np.argsort(-similarities, kind="stable")
    ranked = similarities[order]
    first = np.concatenate([[True], -np.diff(ranked) > TOLERANCE])[: len(ranked)]
    rounded = np.empty_like(similarities)
    rounded[order] = ranked[np.maximum.accumulate(np.where(first, np.arange(len(ranked)), 0))]
    return rounded


def settle(task: Any, kind: TaskType) -> None:
    """Let a task of mteb's (an object of its own for each evaluation) settle similarities before it ranks them."""
    if kind in ("sts", "str"):
        task._calculate_scores = partial(_settled_first, task._calculate_scores)
    elif kind == "pair_classification":
        task._compute_metrics = partial(_settled_first, task._compute_metrics)
    elif kind == "summarisation":
        task.evaluator = partial(_of_summaries, task.evaluator)


def searcher(encoder: Encoder | EncoderProtocol | SearchProtocol, kind: TaskType) -> Any:
    """What mteb is given as the model of a task: the encoder, or what ranks by it with settled similarities."""
    if isinstance(encoder, SearchProtocol):  # it ranks by itself, as BM25 does
        return encoder
    if kind in ("reranking", "retrieval", "instruction_reranking"):
        return _Search(encoder, corpus_chunk_size=PASSAGES)
    return _Nearest(encoder) if kind == "bitext_mining" else encoder


class _Search(SearchEncoderWrapper):
    """mteb's search, its similarities settled for each query."""

    def search(self, *args: Any, **options: Any) -> Any:
        """Passages and their similarities for each query."""
        rankings = super().search(*args, **options)
        return {
            query: dict(zip(passages, settled(list(passages.values())).tolist(), strict=True))
            for query, passages in rankings.items()
        }


class _Nearest:
    """An encoder of which mteb asks the nearest alone: of equally near ones the first is the nearest."""

    def __init__(self, encoder: Encoder | EncoderProtocol) -> None:
        self.encode, self.similarity_pairwise = encoder.encode, encoder.similarity_pairwise
        self.mteb_model_meta = encoder.mteb_model_meta
        self._encoder = encoder

    def similarity(self, first: Any, second: Any) -> Any:
        """All of `first` with all of `second`; in each row the first of the largest stands out."""
        similarities = torch.as_tensor(self._encoder.similarity(first, second)).cpu().numpy().astype(np.float64)
        best = similarities.max(axis=1, keepdims=True)
        nearest = (similarities >= best - TOLERANCE).argmax(axis=1)
        similarities[np.arange(len(similarities)), nearest] = best[:, 0] + TOLERANCE
        return similarities


def _settled_first(measure: Callable[..., Any], scores: Any, *others: Any) -> Any:
    """What mteb measures of pairs, of settled similarities."""
    rankings = {name: settled(scores[name]).tolist() for name in _RANKED if scores[name] is not None}
    return measure({**scores, **rankings}, *others)


def _of_summaries(kind: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Mteb's evaluator of summaries, its similarities settled."""
    evaluator = kind(*args, **options)
    evaluator._calculate_metrics = partial(_summaries, evaluator._calculate_metrics)
    return evaluator


def _summaries(measure: Callable[..., Any], distances: Any) -> Any:
    """What mteb measures of summaries; texts whose similarities are all equal it leaves out."""
    both = [[settled(scores).tolist() for scores in distances[name]] for name in _RANKED]
    distinct = [index for index, scores in enumerate(both[0]) if len(set(scores)) > 1]
    settled_scores = {**distances, **dict(zip(_RANKED, both, strict=True))}
    chosen = {name: [scores[index] for index in distinct] for name, scores in settled_scores.items()}
    return measure(chosen)


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


T = TypeVar("T", bound=AbsTask)


class OwnTask(AbsTask):
    """A task whose data are here before mteb asks for them; a subclass evaluates all its subsets at once."""

    def load_data(self, num_proc: int | None = None, **_: Any) -> None:
        """Nothing to load."""
        self.data_loaded = True

    def unload_data(self) -> None:
        """Nothing to forget."""
        self.data_loaded = False

    def _evaluate_subset(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("a task of a study is evaluated as a whole")

    def _calculate_descriptive_statistics_from_split(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("the study's records describe its texts")


def registered(kind: type[T]) -> T:
    """A task of a class of ours, which mteb knows by its name from now on in this process.

    Its cache and tables ask a registry for tasks' classes, and there is no public way into it.
    """
    importlib.import_module("mteb.get_tasks")._TASKS_REGISTRY[kind.metadata.name] = kind
    return kind()
