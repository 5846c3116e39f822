"""The types of task, one class each: how mteb scores it, what its items and gold are, and what it lacks.

`evaluation.tasks.protocols` defines metrics and settings. A new type is one class here, and its texts in
`generation.datasets`.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.tasks.protocols import METRICS, RANKED, WHOLE, Protocol
from generation.datasets.dataset import Dataset
from generation.datasets.local import TableDataset
from generation.datasets.mteb_loading import BITEXT, gold_column, in_memory, instruction_data, search_data, text_columns
from generation.datasets.mteb_tasks import MtebTask
from plumbline.importing import datasets
from plumbline.languages import with_script
from plumbline.statistics.estimates import Floats
from plumbline.statistics.resampled_measures import Measure, mean, precision, rho, v_measure, weighted_f1
from plumbline.study.datasets import TaskType

if TYPE_CHECKING:
    from mteb.models import EncoderProtocol

    from evaluation.models.encoder import Encoder

LABELS = "labels"
_CLUSTERED = 0.04  # the share of the rows that mteb's default clusters
_NO_LABEL = -1  # mteb's mark for a level that a text lacks


@dataclass(frozen=True)
class SubsetScores:
    """The items of one subset: their gold and the model's predictions, in one order.

    `extra` has the values for other metrics: for searches by metric, for classification `LABELS`, a row for each run.
    """

    gold: NDArray[Any]
    predictions: NDArray[Any]
    extra: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def score(self, measure: Measure) -> float:
        """Return the measure of all items, each once."""
        return float(measure(self.gold, self.predictions)(np.ones((1, len(self.gold))))[0])


@dataclass(frozen=True)
class TextPart:
    """The columns of the texts of one item (`noun`, such as texts or pairs), and the column of their gold, if any."""

    noun: str
    columns: tuple[str, ...]
    gold: str = ""


class TaskScorer:
    """One type of task; the defaults are those of most types."""

    name: ClassVar[TaskType]
    mteb_type: ClassVar[str]
    mteb_class: ClassVar[str]  #: below `mteb.abstasks`
    class_attributes: ClassVar[Mapping[str, Any]] = {}  #: attributes of the task's own class
    noun: ClassVar[str] = ""  #: word for its items; empty for searches
    no_items: ClassVar[str] = ""  #: why its score cannot be split into items
    ranked_by: ClassVar[str] = ""  #: the method of mteb's class that ranks similarities of pairs
    category: ClassVar[str] = "t2t"
    hub: ClassVar[str] = ""  #: the hub's word for it; empty if it has none
    measure = staticmethod(mean)
    least: ClassVar[int] = 1  #: items that a score needs
    trained: ClassVar[bool] = False  #: whether it trains on one split and is scored on another
    numbered: ClassVar[bool] = False  #: whether labels of files become numbers
    several: ClassVar[bool] = False  #: whether an item has several labels
    second_side: ClassVar[bool] = False  #: whether texts that are not transformed are searched
    checks: ClassVar[tuple[str, ...]] = ()  #: checks of its gold (`evaluation.benchmarks.checks`)
    no_abstention: ClassVar[str] = (
        "abstention needs searches (retrieval, reranking), where a query has several similarities"
    )
    no_export: ClassVar[str] = ""  #: why a bundle has no task for plain mteb; empty if it can

    def task(self, dataset: Dataset, protocol: Protocol) -> Any:
        """Return a new mteb task (`mteb.abstasks.AbsTask`) with the data set loaded."""
        if isinstance(dataset, MtebTask):
            return self.of_mteb(dataset, dataset.fresh(), protocol)
        if not isinstance(dataset, TableDataset):
            raise TypeError(f"no task for {type(dataset).__name__}")
        base, data = self.base(protocol), self.data(dataset, protocol)
        members = {"metadata": self._metadata(dataset), **self.attributes(protocol)}
        task = type(f"Local{base.__name__}", (base,), members)()
        task.hf_subsets = ["default"]
        task.dataset = {"default": data}
        task.data_loaded = True
        return task

    def base(self, protocol: Protocol) -> type:
        """Return mteb's class for local files."""
        module, _, name = self.mteb_class.rpartition(".")
        kind: type = getattr(importlib.import_module(f"mteb.abstasks.{module}"), name)
        return kind

    def attributes(self, protocol: Protocol) -> dict[str, Any]:
        """Return attributes of the task's own class."""
        return dict(self.class_attributes)

    def data(self, dataset: TableDataset, protocol: Protocol) -> Any:
        """Return the data of local files, as mteb's class has it."""
        frames = dataset.splits if self.trained else {"test": dataset.splits["test"]}
        return _split(_numbered(frames) if self.numbered else frames)

    def of_mteb(self, dataset: MtebTask, task: Any, protocol: Protocol) -> Any:
        """Return mteb's own new task object, by `paper` with HTEB's settings, else with mteb's."""
        return task

    def settle(self, task: Any) -> None:
        """Make an mteb task settle similarities before it ranks them (`evaluation.tasks.mteb_classes`)."""
        if self.ranked_by:
            from evaluation.tasks.mteb_classes import measures_with_ties  # noqa: PLC0415

            setattr(task, self.ranked_by, partial(measures_with_ties, getattr(task, self.ranked_by)))

    def model(self, encoder: Encoder | EncoderProtocol) -> Any:
        """Return the model that mteb gets: the encoder, or a wrapper that ranks settled similarities."""
        return encoder

    def unusable(self, dataset: Dataset, protocol: Protocol) -> str:
        """Return why a data set's labels give no score; empty if they can."""
        for split, labels in dataset.labels():
            distinct = set(labels)
            if not distinct:
                return f"there are no rows in {split}"
            if len(distinct) < 2:
                return f"all rows of {split} have the label {labels[0]!r}: {dataset.task} needs two labels"
        return ""

    def parts(self, task: Any) -> list[TextPart]:
        """Return the columns of a task's texts and gold; none for searches, which have queries and passages."""
        if not self.noun:
            return []
        return [TextPart(self.noun, text_columns(task, self.name), gold_column(task, self.name))]

    def columns(self, task: Any) -> list[str]:
        """Return the columns that mteb reads."""
        return [name for part in self.parts(task) for name in (*part.columns, *filter(None, [part.gold]))]

    def export_settings(self, task: Any, settings: Mapping[str, Any], most: int) -> dict[str, Any]:
        """Return further class attributes of a task for plain mteb, whose data have at most this many items."""
        return {"train_split": "train"} if self.trained else {}

    def not_of_items(self, protocol: Protocol) -> str:
        """Return why a score cannot be split into items; empty if it can."""
        return self.no_items

    def watch(self, task: Any, noted: dict[str, Any]) -> None:
        """Note, by subset, what the task measures of items and does not write to its file of predictions."""

    def predictions(self, folder: Path, split: str, noted: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the model's predictions by subset, from the file that mteb wrote."""
        (file,) = folder.glob("*.json")
        subsets = json.loads(file.read_text(encoding="utf-8")).items()
        return {name: parts[split] for name, parts in subsets if name != "mteb_model_meta"}

    def items(self, task: Any, rows: Any, outputs: Any) -> SubsetScores | None:
        """Return gold and predictions of one subset; None if mteb does not report them for each item."""
        raise NotImplementedError

    def _metadata(self, dataset: TableDataset) -> Any:
        from mteb.abstasks.task_metadata import TaskMetadata  # noqa: PLC0415 (mteb takes seconds, here and below)

        return TaskMetadata(
            name=dataset.name,
            description=f"local data set {dataset.name}",
            dataset={"path": f"local/{dataset.name}", "revision": dataset.revision},
            type=self.mteb_type,
            category=self.category,
            eval_splits=["test"],
            eval_langs=[with_script(code) for code in sorted({text.language for text in dataset.texts()})],
            main_score=METRICS[self.name],
        )


class _SentencePairs(TaskScorer):
    """Two sentences with a gold score or label, ranked by their cosine."""

    noun = "pairs"

    def items(self, task: Any, rows: Any, outputs: Any) -> SubsetScores | None:
        from evaluation.tasks.mteb_classes import with_ties  # noqa: PLC0415

        gold = np.asarray(rows[gold_column(task, self.name)], dtype=np.float64)
        return SubsetScores(gold, with_ties(outputs["cosine_scores"]))


class Sts(_SentencePairs):
    """Semantic similarity."""

    name: ClassVar[TaskType] = "sts"
    mteb_type, mteb_class, ranked_by = "STS", "sts.AbsTaskSTS", "_calculate_scores"
    hub = "sentence-similarity"
    measure, least = staticmethod(rho), 2
    checks = ("constant_gold", "conflicts")

    def export_settings(self, task: Any, settings: Mapping[str, Any], most: int) -> dict[str, Any]:
        """Return bounds of the gold scores, which are of no consequence for ranks."""
        if "min_score" in settings:
            return {}
        gold = [score for parts in task.dataset.values() for score in parts[task.eval_splits[0]]["score"]]
        return {"min_score": min(gold), "max_score": max(gold)}


class Relatedness(Sts):
    """Semantic relatedness, scored as similarity is."""

    name = "str"


class PairClassification(_SentencePairs):
    """Pairs with label 1 or 0."""

    name, mteb_type, hub = "pair_classification", "PairClassification", "text-classification"
    mteb_class, ranked_by = "pair_classification.AbsTaskPairClassification", "_compute_metrics"
    measure = staticmethod(precision)
    class_attributes = {"label_column_name": "label"}  # noqa: RUF012
    checks = ("labels", "conflicts")


class BitextMining(TaskScorer):
    """Each first sentence's translation is searched among the second ones."""

    name, mteb_type, hub = "bitext_mining", "BitextMining", "translation"
    mteb_class = "text.bitext_mining.AbsTaskBitextMining"
    measure, second_side = staticmethod(weighted_f1), True

    def model(self, encoder: Encoder | EncoderProtocol) -> Any:
        """Return an encoder of which the first of the nearest counts."""
        from evaluation.tasks.mteb_classes import Nearest  # noqa: PLC0415

        return Nearest(encoder)

    def parts(self, task: Any) -> list[TextPart]:
        return [TextPart("pairs", BITEXT)]

    def items(self, task: Any, rows: Any, outputs: Any) -> SubsetScores | None:
        (nearest,) = outputs.values()  # of the one pair of columns
        return SubsetScores(np.arange(len(rows)), np.asarray([row["corpus_id"] for row in nearest]))


class Summarisation(TaskScorer):
    """Machines' summaries, ranked by their cosine with the nearest human one."""

    name, mteb_type, hub = "summarisation", "Summarization", "summarization"
    mteb_class = "text.summarization.AbsTaskSummarization"
    class_attributes = {"min_score": 0, "max_score": 1}  # noqa: RUF012 (mteb rescales relevances, which changes no rank)
    checks = ("constant_gold",)

    def data(self, dataset: TableDataset, protocol: Protocol) -> Any:
        return _split({"test": dataset.splits["test"].assign(text="")})

    def of_mteb(self, dataset: MtebTask, task: Any, protocol: Protocol) -> Any:
        if protocol == "paper":
            from mteb._evaluators import SummarizationEvaluator  # noqa: PLC0415

            task.evaluator = SummarizationEvaluator
        return task

    def settle(self, task: Any) -> None:
        from evaluation.tasks.mteb_classes import of_summaries  # noqa: PLC0415

        task.evaluator = partial(of_summaries, task.evaluator)

    def parts(self, task: Any) -> list[TextPart]:
        human, machine = text_columns(task, self.name)
        return [TextPart("human summaries", (human,)), TextPart("summaries", (machine,), gold_column(task, self.name))]

    def columns(self, task: Any) -> list[str]:
        return [*super().columns(task), task.text_column_name]

    def items(self, task: Any, rows: Any, outputs: Any) -> SubsetScores | None:
        """Return each text's rho; None if mteb left out texts, as it does not say which."""
        from evaluation.tasks.mteb_classes import with_ties  # noqa: PLC0415

        gold = rows[gold_column(task, self.name)]
        if len(gold) != len(outputs["cosine_scores"]):
            return None  # it leaves out texts whose summaries are all equally similar
        both = zip(gold, outputs["cosine_scores"], strict=True)
        values = np.array([SubsetScores(np.asarray(grades), with_ties(cosines)).score(rho) for grades, cosines in both])
        defined = values[~np.isnan(values)]  # the score leaves out the others too (`mteb_classes`)
        return SubsetScores(np.zeros(len(defined)), defined)


class _LabelledTexts(TaskScorer):
    """Texts with a label."""

    noun, checks = "texts", ("labels", "conflicts")


class Classification(_LabelledTexts):
    """Labels are predicted by logistic regression."""

    name, mteb_type, category, hub = "classification", "Classification", "t2c", "text-classification"
    mteb_class = "classification.AbsTaskClassification"
    trained = numbered = True

    def attributes(self, protocol: Protocol) -> dict[str, Any]:
        from evaluation.tasks.mteb_classes import own_classifier  # noqa: PLC0415

        return own_classifier() | (WHOLE if protocol == "paper" else {})

    def of_mteb(self, dataset: MtebTask, task: Any, protocol: Protocol) -> Any:
        from sklearn.base import clone  # noqa: PLC0415

        mtebs = {"evaluator_model": clone(task.evaluator_model)}
        return _with(task, self.attributes(protocol) if protocol == "paper" else mtebs)

    def items(self, task: Any, rows: Any, outputs: Any) -> SubsetScores | None:
        gold, runs = np.asarray(rows[gold_column(task, self.name)]), [np.asarray(labels) for labels in outputs]
        values = _right(gold, runs)
        return SubsetScores(gold, values, {LABELS: np.stack(runs)} if len(values) else {})


class MultilabelClassification(_LabelledTexts):
    """Sets of labels are predicted by the nearest texts."""

    name, mteb_type, category = "multilabel_classification", "MultilabelClassification", "t2c"
    mteb_class = "multilabel_classification.AbsTaskMultilabelClassification"
    hub, trained, several = "text-classification", True, True

    def attributes(self, protocol: Protocol) -> dict[str, Any]:
        """Return that `paper` trains and scores on all texts; mteb trains a copy of its evaluator each time."""
        return {**WHOLE, "max_eval_samples": None} if protocol == "paper" else {}

    def of_mteb(self, dataset: MtebTask, task: Any, protocol: Protocol) -> Any:
        return _with(task, self.attributes(protocol))

    def unusable(self, dataset: Dataset, protocol: Protocol) -> str:
        """Return whether a scored subset has no label at all, or as for all types."""
        task = self.task(dataset, protocol)
        (scored,) = task.eval_splits
        subsets = (parts[scored][task.label_column_name] for parts in task.dataset.values())
        labelled = all(any(map(len, labels)) for labels in subsets)
        return super().unusable(dataset, protocol) if labelled else "no scored text has a label"

    def items(self, task: Any, rows: Any, outputs: Any) -> SubsetScores | None:
        from sklearn.preprocessing import MultiLabelBinarizer  # noqa: PLC0415

        wanted = MultiLabelBinarizer().fit_transform(list(rows[gold_column(task, self.name)]))
        return SubsetScores(np.arange(len(wanted)), _right(wanted, [np.asarray(labels) for labels in outputs]))


class Clustering(_LabelledTexts):
    """Texts are put into as many groups as there are labels."""

    name, mteb_type, category = "clustering", "Clustering", "t2c"
    class_attributes = {"input_column_name": "text", "label_column_name": "label"}  # noqa: RUF012
    numbered, measure = True, staticmethod(v_measure)

    def base(self, protocol: Protocol) -> type:
        from mteb.abstasks.clustering import AbsTaskClustering  # noqa: PLC0415
        from mteb.abstasks.clustering_legacy import AbsTaskClusteringLegacy  # noqa: PLC0415

        return AbsTaskClustering if protocol == "mteb" else AbsTaskClusteringLegacy

    def data(self, dataset: TableDataset, protocol: Protocol) -> Any:
        """Return the texts; by `paper` a row is a whole set of texts to cluster, and there is one row."""
        if protocol == "mteb":
            return super().data(dataset, protocol)
        frames = _numbered({"test": dataset.splits["test"]})
        columns = {name: [frames["test"][name].tolist()] for name in ("text", "label")}
        return _split({"test": pd.DataFrame(columns)})

    def of_mteb(self, dataset: MtebTask, task: Any, protocol: Protocol) -> Any:
        """Return the task, by `paper` in mteb's original class: a subset's texts as one set, once a level of labels."""
        from mteb.abstasks.clustering_legacy import AbsTaskClusteringLegacy  # noqa: PLC0415

        if protocol == "mteb" or isinstance(task, AbsTaskClusteringLegacy):
            return task
        texts, labels = task.input_column_name, task.label_column_name
        members = {"metadata": task.metadata, "input_column_name": texts, "label_column_name": labels}
        legacy_task = type(f"Whole{type(task).__name__}", (AbsTaskClusteringLegacy,), members)()
        legacy_task.hf_subsets = list(task.hf_subsets)
        legacy_task.filter_eval_splits(task.eval_splits)
        legacy_task.dataset = {
            subset: datasets.DatasetDict(
                {split: in_memory(_sets(part, texts, labels)) for split, part in parts.items()}
            )
            for subset, parts in task.dataset.items()
        }
        legacy_task.data_loaded = True
        return legacy_task

    def unusable(self, dataset: Dataset, protocol: Protocol) -> str:
        """Return the reason of all types, or that mteb's default would cluster fewer rows than there are labels."""
        if (
            (reason := super().unusable(dataset, protocol))
            or protocol == "paper"
            or not isinstance(dataset, TableDataset)
        ):
            return reason
        for _, labels in dataset.labels():
            sampled, distinct = int(_CLUSTERED * len(labels)), len(set(labels))
            if sampled < distinct:
                return (
                    f"mteb's default clusters 4% of the rows, here {sampled} of {len(labels)}, fewer than the"
                    f" {distinct} labels: use `protocol: paper`"
                )
        return ""

    def export_settings(self, task: Any, settings: Mapping[str, Any], most: int) -> dict[str, Any]:
        of_draws = {"max_document_to_embed": most, "max_documents_per_cluster": most}
        return {"max_fraction_of_documents_to_embed": None, **of_draws}

    def not_of_items(self, protocol: Protocol) -> str:
        return "mteb's protocol clusters ten draws of the items, not the items themselves" if protocol == "mteb" else ""

    def items(self, task: Any, rows: Any, outputs: Any) -> SubsetScores | None:
        """Return each text's label and group; None for several sets, or levels of one set."""
        gold = rows[gold_column(task, self.name)]
        nested = len(rows) and isinstance(gold[0], list)
        if nested and len(rows) > 1:
            return None
        groups = np.asarray(outputs[0] if nested else outputs)
        return SubsetScores(np.asarray(gold[0] if nested else list(gold)), groups)


class _PassageSearch(TaskScorer):
    """Passages are ranked for queries."""

    mteb_class = "retrieval.AbsTaskRetrieval"
    second_side = True
    checks = ("without_relevant", "missing_passages")
    hub = "text-ranking"
    no_abstention = ""
    query_metric: ClassVar[str] = ""  #: the metric whose mean over queries is the score

    def model(self, encoder: Encoder | EncoderProtocol) -> Any:
        from evaluation.tasks.mteb_classes import search  # noqa: PLC0415

        return search(encoder)

    def watch(self, task: Any, noted: dict[str, Any]) -> None:
        measured = task.task_specific_scores

        def note(scores: Any, *values: Any, hf_subset: str, **named: Any) -> Any:
            noted[hf_subset] = {
                query: {name: metrics[key] for name, key in _OF_QUERIES.items() if key in metrics}
                for query, metrics in scores.items()
            }
            return measured(scores, *values, hf_subset=hf_subset, **named)

        task.task_specific_scores = note

    def predictions(self, folder: Path, split: str, noted: Mapping[str, Any]) -> Mapping[str, Any]:
        return noted

    def items(self, task: Any, rows: Any, outputs: Any) -> SubsetScores | None:
        """Return each query's metric, in the order of their ids."""
        order = [outputs[query] for query in sorted(outputs)]
        names = order[0] if order else ()
        every = {name: np.array([query[name] for query in order], np.float64) for name in names}
        return SubsetScores(np.zeros(len(outputs)), every.pop(self.query_metric, np.empty(0)), every)


_OF_QUERIES = {"ndcg_at_10": "ndcg_cut_10", "map": "map_cut_1000"}  # mteb's names for one query


class Retrieval(_PassageSearch):
    """A corpus is searched."""

    name, mteb_type, hub, query_metric = "retrieval", "Retrieval", "text-retrieval", "ndcg_at_10"

    def attributes(self, protocol: Protocol) -> dict[str, Any]:
        return {"ignore_identical_ids": True} | ({"k_values": RANKED} if protocol == "paper" else {})

    def data(self, dataset: TableDataset, protocol: Protocol) -> Any:
        frame, listed = dataset.splits["test"], dataset.candidates
        data = {
            "queries": in_memory({"id": list(frame["id"]), "text": list(frame["query"])}),
            "corpus": in_memory({"id": list(dataset.corpus), "text": list(dataset.corpus.values())}),
            "relevant_docs": {query: dict(dataset.qrels[query]) for query in frame["id"]},
            "top_ranked": {query: list(listed[query]) for query in frame["id"]} if listed else None,
        }
        return {"test": data}

    def of_mteb(self, dataset: MtebTask, task: Any, protocol: Protocol) -> Any:
        return _with(task, {"k_values": RANKED, "_top_k": max(RANKED)} if protocol == "paper" else {})


class Reranking(_PassageSearch):
    """A query's own candidates are ranked."""

    name, mteb_type, query_metric = "reranking", "Reranking", "map"

    def data(self, dataset: TableDataset, protocol: Protocol) -> Any:
        return {"test": search_data(dataset.splits["test"])}


class InstructionReranking(_PassageSearch):
    """Ranks of candidates under two instructions are compared (FollowIR)."""

    name, mteb_type = "instruction_reranking", "InstructionReranking"
    no_abstention = "the task's metric compares two rankings, so a single query has no score to abstain from"
    no_items = "p-MRR compares rankings under two instructions and is not a mean over queries"
    no_export = "instruction reranking needs code of its own in mteb"

    def task(self, dataset: Dataset, protocol: Protocol) -> Any:
        """Return the task with its lists of changed passages, which mteb would load from the hub for each scoring."""
        task = super().task(dataset, protocol)
        (split,) = task.eval_splits
        changed = {subset: splits[split]["changed"] for subset, splits in task.dataset.items()}
        return _with(task, {"task_specific_scores": partial(_changed_ranks, changed, task.k_values)})

    def data(self, dataset: TableDataset, protocol: Protocol) -> Any:
        return {"test": instruction_data(dataset.splits["test"])}


KINDS: Mapping[TaskType, TaskScorer] = {
    kind.name: kind
    for kind in (
        Sts(), Relatedness(), PairClassification(), Classification(), Clustering(), Reranking(), Retrieval(),
        Summarisation(), BitextMining(), MultilabelClassification(), InstructionReranking(),
    )
}  # fmt: skip


def label_names(dataset: TableDataset) -> list[str]:
    """Return the labels behind the numbers in a data set's task; none if labels are not numbered."""
    return _names(dataset.splits) if KINDS[dataset.task].numbered else []


def _names(frames: Mapping[str, pd.DataFrame]) -> list[str]:
    return sorted({str(label) for frame in frames.values() for label in frame["label"]})


def _numbered(frames: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return frames with labels as numbers, equal in all splits, as scikit-learn's binary metrics require."""
    number = {name: index for index, name in enumerate(_names(frames))}
    return {
        split: frame.assign(label=np.array([number[str(label)] for label in frame["label"]], dtype=np.int64))
        for split, frame in frames.items()
    }


def _split(frames: Mapping[str, pd.DataFrame]) -> Any:
    return datasets.DatasetDict({name: in_memory(frame.to_dict(orient="list")) for name, frame in frames.items()})


def _with(task: Any, attributes: Mapping[str, Any]) -> Any:
    for name, value in attributes.items():
        setattr(task, name, value)
    return task


def _changed_ranks(
    changed: Mapping[str, Any],
    k_values: Sequence[int],
    scores: Any,
    qrels: Any,
    results: Any,
    *,
    hf_subset: str,
    **_: Any,
) -> Any:
    """Return mteb's measures of a subset, including p-MRR, for the passages that instructions change."""
    from mteb._evaluators.retrieval_metrics import evaluate_p_mrr_change  # noqa: PLC0415

    return evaluate_p_mrr_change(qrels, results, changed[hf_subset], k_values)


def _right(gold: NDArray[Any], predicted: Sequence[NDArray[Any]]) -> Floats:
    if any(run.shape != gold.shape for run in predicted):
        return np.empty(0)
    right = np.mean([run == gold if gold.ndim == 1 else (run == gold).all(axis=1) for run in predicted], axis=0)
    return np.asarray(right, dtype=np.float64)


def _sets(part: Any, texts: str, labels: str) -> dict[str, list[list[Any]]]:
    """Return one row for each level: its texts and their labels, as numbers."""
    levels = [label if isinstance(label, list) else [label] for label in part[labels]]
    rows: dict[str, list[list[Any]]] = {texts: [], labels: []}
    for level in range(max(map(len, levels), default=0)):
        chosen = [
            (text, str(row_levels[level]))
            for text, row_levels in zip(part[texts], levels, strict=True)
            if len(row_levels) > level and row_levels[level] != _NO_LABEL
        ]
        number = {name: index for index, name in enumerate(sorted({name for _, name in chosen}))}
        rows[texts].append([text for text, _ in chosen])
        rows[labels].append([number[name] for _, name in chosen])
    return rows
