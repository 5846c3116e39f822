"""Make data sets smaller: documents of clustering; queries of retrieval, with passages that are hard to rank.

Models rank a corpus for queries to find hard passages (the study's embedding models, and mteb's BM25), and are scored
on the smaller data set to check that their ranking stays. Source: MMTEB, 2.3.1 and C.1; docs/build.md lists
differences.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from evaluation.benchmarks.contents import contents_of
from evaluation.models.encoder import ModelHost
from evaluation.tasks.scoring import evaluate_task, main_score
from evaluation.units import Model
from generation.datasets.dataset import Dataset
from generation.datasets.local import TableDataset
from generation.datasets.mteb_loading import in_memory
from generation.datasets.mteb_registry import gold_column, text_columns
from generation.datasets.mteb_tasks import MtebTask
from plumbline.errors import DataError, StudyError
from plumbline.records import Text
from plumbline.statistics.estimates import Estimate, stream
from plumbline.statistics.paired import spearman_interval
from plumbline.statistics.rankings import kendall_interval
from plumbline.study.evaluation import EvaluationSpec, ModelSpec

D = TypeVar("D", bound=Dataset)
Ranking = Mapping[str, Sequence[str]]  # a model's passages for each query, the best first


@dataclass(frozen=True)
class Smaller:
    """A smaller data set, the sizes before and after, and the steps in words."""

    dataset: Dataset
    whole: Mapping[str, int]
    counts: Mapping[str, int]
    how: Sequence[str]


def refuse_unfit(dataset: Dataset) -> None:
    """Raise StudyError for a data set that cannot be made smaller: another type, or several subsets."""
    if dataset.task not in ("clustering", "retrieval"):
        raise StudyError(
            f"data set {dataset.name!r} is {dataset.task}; only clustering and retrieval can be made smaller"
        )
    if isinstance(dataset, MtebTask) and len(dataset.loaded.task.dataset) > 1:
        subsets = ", ".join(dataset.loaded.task.dataset)
        raise StudyError(
            f"data set {dataset.name!r} has {len(dataset.loaded.task.dataset)} subsets, but only one can be made"
            f" smaller at a time: name one in the study's `subsets` ({subsets[:200]})"
        )


def draw_documents(dataset: Dataset, number: int, *, stratified: bool, seed: int) -> Smaller:
    """Draw documents of a clustering data set without replacement, by label (mteb's `stratified_subsampling`) or not.

    Raises DataError if `number` is not below the number of documents, or is below the number of labels, and if a label
    is too small for stratification.
    """
    contents = contents_of(dataset)
    (part,) = contents.scored
    labels = [gold[0] if isinstance(gold, list) and len(gold) == 1 else gold for gold in part.gold]
    if any(isinstance(label, list) for label in labels):
        raise DataError(
            f"data set {dataset.name!r} has labels of several levels, which smaller data sets do not support"
        )
    distinct = len(set(labels))
    if not distinct <= number < len(labels):
        raise DataError(
            f"--documents {number:,}: {dataset.name!r} has {len(labels):,} documents and {distinct:,} labels; choose a"
            " number below that of documents and not below that of labels"
        )
    if stratified:
        chosen = _stratified(dataset.name, labels, number, seed)
    else:
        chosen = stream(seed, "documents", dataset.name).choice(len(labels), number, replace=False).tolist()
    small = _with_documents(dataset, [part.items[index] for index in sorted(chosen)], part.subset)
    chosen_labels = {labels[index] for index in chosen}
    how = [
        f"{number:,} of {len(labels):,} documents, drawn without replacement,"
        f" {'stratified by label' if stratified else 'regardless of labels'} (seed {seed})",
        f"{len(chosen_labels):,} of {distinct:,} labels are left",
        "mteb's protocol clusters ten draws of 16,384 of them, with replacement; `protocol: paper` clusters all once",
    ]
    sizes = {"documents": len(labels), "labels": distinct}
    return Smaller(small, sizes, {"documents": number, "labels": len(chosen_labels)}, how)


def draw_queries(dataset: Dataset, number: int, seed: int) -> list[str]:
    """Draw at most this many queries with a relevant passage, without replacement, in the data set's order."""
    (search,) = contents_of(dataset).searches
    answered = [
        query
        for query in search.queries
        if any(value > 0 and passage in search.passages for passage, value in search.relevant.get(query, {}).items())
    ]
    if not answered:
        raise DataError(f"data set {dataset.name!r}: no query has a relevant passage, so no query can be drawn")
    if len(answered) <= number:
        return answered
    places = stream(seed, "queries", dataset.name).choice(len(answered), number, replace=False)
    return [answered[index] for index in sorted(places.tolist())]


def with_queries(dataset: D, queries: Collection[str]) -> D:
    """Return the data set with only these queries, over the whole corpus."""
    queries_kept, (search,) = set(queries), contents_of(dataset).searches
    return dataset.replaced(
        lambda text, cell: None if text.field == "query" and _bare(text, search.subset) not in queries_kept else cell
    )


def pool(dataset: Dataset, queries: Sequence[str], rankings: Mapping[str, Ranking], depth: int) -> Smaller:
    """Return the queries over the union of each model's top passages for any of them, and all judged passages.

    `depth` is the number of each model's passages for each query. Judged passages are always included: MMTEB found that
    it makes no difference (footnote 9), and otherwise a relevant passage that no model finds would be lost.
    """
    if not isinstance(dataset, (TableDataset, MtebTask)):
        raise TypeError(f"no pool of {type(dataset).__name__}")
    (search,) = contents_of(dataset).searches
    judged = {passage for query in queries for passage in search.relevant[query] if passage in search.passages}
    pools = {
        name: {passage for query in queries for passage in list(ranking.get(query, ()))[:depth]}
        for name, ranking in rankings.items()
    }
    judged_passages = judged.union(*pools.values())
    query_set = set(queries)
    whole = dataclasses.replace(dataset, passages=True)

    def keep(text: Text, cell: str) -> str | None:
        return cell if _bare(text, search.subset) in (query_set if text.field == "query" else judged_passages) else None

    drawn_by_model = ", ".join(f"{name}: {len(drawn):,}" for name, drawn in pools.items())
    how = [
        f"{len(queries):,} of {len(search.queries):,} queries, drawn without replacement from those with a relevant"
        " passage",
        f"{len(judged_passages):,} of {len(search.passages):,} passages: {len(judged):,} judged ones, and"
        f" the first {depth:,} of each model for each query ({drawn_by_model})",
    ]
    small = dataclasses.replace(whole.replaced(keep), passages=dataset.passages)
    sizes = {"queries": len(search.queries), "passages": len(search.passages)}
    return Smaller(small, sizes, {"queries": len(queries), "passages": len(judged_passages)}, how)


def _stratified(name: str, labels: Sequence[Any], number: int, seed: int) -> list[int]:
    from datasets import DatasetDict  # noqa: PLC0415
    from mteb.abstasks.abstask import AbsTask  # noqa: PLC0415 (takes seconds)

    from generation.datasets.mteb_loading import quiet  # noqa: PLC0415

    rows = in_memory({"label": list(map(str, labels)), "place": list(range(len(labels)))})
    try:
        with quiet():
            drawn = AbsTask.stratified_subsampling(DatasetDict({"test": rows}), seed, n_samples=number)
    except ValueError as error:  # scikit-learn's: a label with one document, or too few for one of each
        reason = str(error).strip().rstrip(".")
        raise DataError(f"data set {name!r} cannot be drawn by label ({reason}); use --draw uniform") from None
    return sorted(drawn["test"]["place"])


def _with_documents(dataset: Dataset, items: Sequence[str], subset: str) -> Dataset:
    """Return a clustering data set with only these documents."""
    if isinstance(dataset, TableDataset):
        rows = dataset.splits["test"].iloc[list(map(int, items))].reset_index(drop=True)
        return dataclasses.replace(dataset, splits={"test": rows})
    if not isinstance(dataset, MtebTask):
        raise TypeError(f"no documents of {type(dataset).__name__}")
    split, parts = dataset.loaded.split, dataset.loaded.task.dataset[subset]
    rows = parts[split]
    if not any("/" in item for item in items):
        small = rows.select(list(map(int, items)))
    else:
        places: dict[int, list[int]] = defaultdict(list)
        for row, _, index in (item.partition("/") for item in items):
            places[int(row)].append(int(index))
        task = dataset.loaded.task
        lists = [*text_columns(task, "clustering"), gold_column(task, "clustering")]
        columns = {
            name: [[rows[row][name][at] for at in positions] for row, positions in places.items()] for name in lists
        }
        small = in_memory(columns)
    return dataclasses.replace(dataset, loaded=dataset.loaded.with_data({subset: type(parts)({split: small})}))


def _bare(text: Text, subset: str) -> str:
    """Return a text's item without its subset's prefix."""
    return text.item if subset == "default" else text.item.removeprefix(f"{subset}/")


BM25 = "bm25"
_BM25 = "mteb/baseline-bm25s"
_NEEDS = ("bm25s", "Stemmer")


def refuse_without_bm25() -> None:
    """Raise StudyError if the packages of mteb's BM25 are not installed."""
    for module in _NEEDS:
        if importlib.util.find_spec(module) is None:
            raise StudyError(
                "--pool bm25: mteb's BM25 is not installed; pip install 'mteb[bm25s]', or pool only by embedding models"
                " (--pool MODEL ...)"
            )


def rankings(
    host: ModelHost, dataset: Dataset, specs: Sequence[ModelSpec], depth: int, *, bm25: bool
) -> Iterator[tuple[str, Ranking]]:
    """Yield each model's name and its first passages for each query; embeddings are stored as usual."""
    if bm25:
        import mteb  # noqa: PLC0415 (takes seconds)

        yield BM25, _ranking(host.evaluation, dataset, mteb.get_model(_BM25), depth)
    for spec in specs:
        model = host.load(spec)
        try:
            yield host.label(spec), _ranking(host.evaluation, dataset, model, depth)
        finally:
            model.close()


def _ranking(evaluation: EvaluationSpec, dataset: Dataset, model: Any, depth: int) -> Ranking:
    """Return a model's ranking by mteb's own search, to this depth."""

    def deep(task: Any) -> None:
        task._top_k = max(depth, task._top_k)  # mteb has no public way for it

    with tempfile.TemporaryDirectory(prefix="plumbline-") as folder:
        evaluate_task(
            dataset, model, evaluation.protocol, evaluation.batch_size, prepare=deep,
            predictions=Path(folder),
        )  # fmt: skip
        (file,) = Path(folder).glob("*.json")
        ranked_lists = json.loads(file.read_text(encoding="utf-8"))
    (subset,) = (name for name in ranked_lists if name != "mteb_model_meta")
    (ranked,) = ranked_lists[subset].values()
    return {
        query: sorted(passages, key=lambda passage: (-passages[passage], passage))[:depth]
        for query, passages in ranked.items()
    }


@dataclass(frozen=True)
class Holding:
    """Scores by model (columns model, whole, smaller, in_pool), and rho and tau with intervals over models."""

    scores: pd.DataFrame
    rho: Estimate
    tau: Estimate


def holding(
    host: ModelHost,
    small: Dataset,
    whole: Mapping[str, float],
    pooled: Collection[str],
    seed: int,
    progress: Callable[[], object] = lambda: None,
) -> Holding:
    """Score the models that have a score on the whole data set on the smaller one, by the same protocol.

    `whole` has the scores on the whole data set by model; `pooled` names the models whose rankings made the pool.
    The intervals are 95% percentile bootstraps over models.
    """
    evaluation, rows = host.evaluation, []
    for model in Model.all_of(host):
        if model.name not in whole:
            continue
        loaded = host.load(model.spec)
        try:
            result = evaluate_task(small, loaded, evaluation.protocol, evaluation.batch_size, prepare=_all_documents)
        finally:
            loaded.close()
        rows.append((model.name, whole[model.name], main_score(small, result), model.name in pooled))
        progress()
    scores = pd.DataFrame(rows, columns=["model", "whole", "smaller", "in_pool"])
    both = scores["whole"].to_numpy(float), scores["smaller"].to_numpy(float)
    rngs = [stream(seed, "holding", small.name, name) for name in ("rho", "tau")]
    return Holding(scores, spearman_interval(*both, rng=rngs[0]), kendall_interval(*both, rng=rngs[1]))


def _all_documents(task: Any) -> None:
    """Make mteb's clustering embed all documents, instead of 4% of them again."""
    if hasattr(task, "max_fraction_of_documents_to_embed"):
        task.max_fraction_of_documents_to_embed = task.max_document_to_embed = None
