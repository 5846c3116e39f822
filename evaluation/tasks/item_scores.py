"""A model's result on each item of a data set.

Most of mteb's metrics are means over items (accuracy, nDCG of queries) or measures of all items at once (Spearman's rho
of pairs, the V-measure). Both are split here into items and a measure of them, from mteb's own predictions and measures
in one run, and combined again: if that does not give mteb's own score, items are not reported.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evaluation.tasks.protocols import METRICS, Protocol
from evaluation.tasks.scoring import evaluate_task, main_score
from generation.datasets.dataset import Dataset
from generation.datasets.mteb_registry import gold_column
from plumbline.statistics.estimates import Floats
from plumbline.statistics.resampled_measures import Measure, mean, precision, rho, v_measure, weighted_f1
from plumbline.study.datasets import SEARCHES, TaskType

if TYPE_CHECKING:
    from mteb.models import EncoderProtocol

    from evaluation.models.encoder import Encoder

_SAME = 1e-4  # mteb rounds its measures of searches to five digits
_QUERY_METRICS: dict[TaskType, str] = {"retrieval": "ndcg_at_10", "reranking": "map"}
_OF_QUERIES = {"ndcg_at_10": "ndcg_cut_10", "map": "map_cut_1000"}  # mteb's names for one query
LABELS = "labels"


@dataclass(frozen=True)
class SubsetScores:
    """The items of one subset: their gold and the model's predictions, in one order.

    `beside` has the values for other metrics: for searches by metric, for classification `LABELS`, a row for each run.
    """

    gold: NDArray[Any]
    predictions: NDArray[Any]
    beside: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def score(self, measure: Measure) -> float:
        """Return the measure of all items, each once."""
        return float(measure(self.gold, self.predictions)(np.ones((1, len(self.gold))))[0])


@dataclass(frozen=True)
class Items:
    """A model's items by subset, and the measure whose mean over subsets is the score; or the reason for none."""

    parts: tuple[SubsetScores, ...] = ()
    measure: Measure | None = None
    reason: str = ""


def measured(
    dataset: Dataset, encoder: Encoder | EncoderProtocol, protocol: Protocol, batch_size: int
) -> tuple[Any, Items]:
    """Return mteb's result of a model on a data set (`scoring.evaluate_task`), and its items.

    Raises the encoder's errors.
    """
    if reason := _not_of_items(dataset, protocol):
        return evaluate_task(dataset, encoder, protocol, batch_size), Items(reason=reason)
    captured = dict[str, Any]()
    with tempfile.TemporaryDirectory(prefix="plumbline-") as folder:
        result = evaluate_task(
            dataset, encoder, protocol, batch_size, prepare=partial(_watch, captured, dataset.task),
            predictions=Path(folder),
        )  # fmt: skip
        predicted = {} if dataset.task in SEARCHES else _predictions(Path(folder))
    (split,) = result.scores
    parts = []
    for subset in captured["task"].hf_subsets:
        predictions = captured.get(subset, {}) if dataset.task in SEARCHES else predicted[subset][split]
        part = _part(dataset.task, captured["task"], captured["task"].dataset[subset][split], predictions)
        if part is None:
            return result, Items(reason="mteb does not report the model's result on each item")
        parts.append(part)
    measure = _MEASURES[dataset.task]
    whole = float(np.mean([part.score(measure) for part in parts]))
    score = main_score(dataset, result)
    if math.isnan(score) or abs(whole - score) > _SAME:
        why = f"{METRICS[dataset.task]} combined from items is {whole:.4f}, but mteb's is {score:.4f}"
        return result, Items(reason=why)
    return result, Items(tuple(parts), measure)


def _not_of_items(dataset: Dataset, protocol: Protocol) -> str:
    """Return why a data set's score cannot be split into items; empty if it can."""
    if dataset.task == "instruction_reranking":
        return "p-MRR compares rankings under two instructions and is not a mean over queries"
    if dataset.task == "clustering" and protocol == "mteb":
        return "mteb's protocol clusters ten draws of the items, not the items themselves"
    return ""


def _watch(scores_by_part: dict[str, Any], kind: TaskType, task: Any) -> None:
    """Keep the task, and for searches mteb's measures of each query, by subset."""
    scores_by_part["task"] = task
    if kind in _QUERY_METRICS:
        measured = task.task_specific_scores

        def keep(scores: Any, *others: Any, hf_subset: str, **named: Any) -> Any:
            scores_by_part[hf_subset] = {
                query: {name: metrics[key] for name, key in _OF_QUERIES.items() if key in metrics}
                for query, metrics in scores.items()
            }
            return measured(scores, *others, hf_subset=hf_subset, **named)

        task.task_specific_scores = keep


def _predictions(folder: Path) -> dict[str, Any]:
    (file,) = folder.glob("*.json")
    predictions: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return predictions


def _part(kind: TaskType, task: Any, rows: Any, outputs: Any) -> SubsetScores | None:
    """Return gold and predictions of one subset; None if they do not match."""
    from evaluation.tasks.mteb_classes import settled  # noqa: PLC0415 (it imports mteb)

    if kind in SEARCHES:
        order = [outputs[query] for query in sorted(outputs)]
        every = {
            name: np.array([query_scores[name] for query_scores in order], np.float64)
            for name in (order[0] if order else ())
        }
        return SubsetScores(np.zeros(len(outputs)), every.pop(_QUERY_METRICS[kind], np.empty(0)), every)
    gold = rows[gold_column(task, kind)] if kind != "bitext_mining" else np.arange(len(rows))
    if kind in ("sts", "str", "pair_classification"):
        part = SubsetScores(np.asarray(gold, dtype=np.float64), settled(outputs["cosine_scores"]))
    elif kind == "classification":
        right, runs = np.asarray(gold), [np.asarray(labels) for labels in outputs]
        values = _right(right, runs)
        part = SubsetScores(right, values, {LABELS: np.stack(runs)} if len(values) else {})
    elif kind == "multilabel_classification":
        from sklearn.preprocessing import MultiLabelBinarizer  # noqa: PLC0415

        wanted = MultiLabelBinarizer().fit_transform(list(gold))
        part = SubsetScores(np.arange(len(wanted)), _right(wanted, [np.asarray(labels) for labels in outputs]))
    elif kind == "summarisation":
        if len(gold) != len(outputs["cosine_scores"]):
            return None  # mteb leaves out texts whose summaries are all equally similar, and does not say which
        both = zip(gold, outputs["cosine_scores"], strict=True)
        values = np.array([SubsetScores(np.asarray(grades), settled(cosines)).score(rho) for grades, cosines in both])
        defined = values[~np.isnan(values)]  # the score leaves out the others too (`mteb_classes`)
        part = SubsetScores(np.zeros(len(defined)), defined)
    elif kind == "clustering":
        nested = len(rows) and isinstance(gold[0], list)
        if nested and len(rows) > 1:
            return None  # sets, or levels of one set
        part = SubsetScores(
            np.asarray(gold[0] if nested else list(gold)), np.asarray(outputs[0] if nested else outputs)
        )
    else:
        (nearest,) = outputs.values()  # of the one pair of columns
        part = SubsetScores(np.asarray(gold), np.asarray([nearest_row["corpus_id"] for nearest_row in nearest]))
    return part if part.gold.shape[:1] == part.predictions.shape[:1] else None


def _right(gold: NDArray[Any], predicted: Sequence[NDArray[Any]]) -> Floats:
    """Return the share of runs that got each item right, with all of its labels."""
    if any(run.shape != gold.shape for run in predicted):
        return np.empty(0)
    right = np.mean([run == gold if gold.ndim == 1 else (run == gold).all(axis=1) for run in predicted], axis=0)
    return np.asarray(right, dtype=np.float64)


_MEASURES: dict[TaskType, Measure] = {
    "sts": rho,
    "str": rho,
    "pair_classification": precision,
    "classification": mean,
    "multilabel_classification": mean,
    "clustering": v_measure,
    "retrieval": mean,
    "reranking": mean,
    "summarisation": mean,
    "bitext_mining": weighted_f1,
}
