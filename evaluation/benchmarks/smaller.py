"""Make data sets smaller: documents of clustering; queries of retrieval, with passages that are hard to rank.

Models rank a corpus for queries to find hard passages (the study's embedding models, and mteb's BM25), and are scored
on the smaller data set to check that their ranking stays. `plumbline shrink` writes it for studies, with its evidence.
Source: MMTEB, 2.3.1 and C.1; docs/build.md lists differences.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import math
import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import pandas as pd
from cyclopts import Parameter
from tqdm import tqdm

from evaluation.benchmarks.checks import known_scores, originals_of, refuse_unknown_data
from evaluation.benchmarks.contents import Contents, contents_of
from evaluation.benchmarks.selection import correlation
from evaluation.models.encoder import ModelHost
from evaluation.records import SCORES, EvaluationRecords
from evaluation.tasks.scoring import evaluate_task, main_score
from evaluation.units import Model
from evaluation.work import quiet, versions
from generation.datasets import mteb_loading
from generation.datasets.dataset import Dataset
from generation.datasets.local import TableDataset
from generation.datasets.mteb_loading import gold_column, in_memory, text_columns
from generation.datasets.mteb_tasks import MtebTask
from plumbline.cli import Choice, Count, Named, Seed, Several, StudyOptions
from plumbline.errors import DataError, StudyError
from plumbline.exhibits.table import Exhibit, cell, csv_bytes, json_file, numbers, write_files
from plumbline.importing import datasets
from plumbline.records import Text
from plumbline.statistics.estimates import Estimate, stream
from plumbline.statistics.paired import spearman_interval
from plumbline.statistics.rankings import kendall_interval
from plumbline.study import Study
from plumbline.study.evaluation import EvaluationSpec, ModelSpec
from plumbline.study.places import output_folder

D = TypeVar("D", bound=Dataset)
Ranking = Mapping[str, Sequence[str]]  # a model's passages for each query, the best first


@dataclass(frozen=True)
class Smaller:
    """A smaller data set, the sizes before and after, and the steps in words."""

    dataset: Dataset
    full_counts: Mapping[str, int]
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
    with_passages = dataclasses.replace(dataset, passages=True)

    def keep(text: Text, cell: str) -> str | None:
        return cell if _bare(text, search.subset) in (query_set if text.field == "query" else judged_passages) else None

    drawn_by_model = ", ".join(f"{name}: {len(drawn):,}" for name, drawn in pools.items())
    how = [
        f"{len(queries):,} of {len(search.queries):,} queries, drawn without replacement from those with a relevant"
        " passage",
        f"{len(judged_passages):,} of {len(search.passages):,} passages: {len(judged):,} judged ones, and"
        f" the first {depth:,} of each model for each query ({drawn_by_model})",
    ]
    small = dataclasses.replace(with_passages.replaced(keep), passages=dataset.passages)
    sizes = {"queries": len(search.queries), "passages": len(search.passages)}
    return Smaller(small, sizes, {"queries": len(queries), "passages": len(judged_passages)}, how)


def _stratified(name: str, labels: Sequence[Any], number: int, seed: int) -> list[int]:
    from mteb.abstasks.abstask import AbsTask  # noqa: PLC0415 (takes seconds)

    rows = in_memory({"label": list(map(str, labels)), "place": list(range(len(labels)))})
    try:
        with mteb_loading.quiet():
            drawn = AbsTask.stratified_subsampling(datasets.DatasetDict({"test": rows}), seed, n_samples=number)
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
    return text.item if subset == "default" else text.item.removeprefix(f"{subset}/")


BM25 = "bm25"
_BM25 = "mteb/baseline-bm25s"
_NEEDS = ("bm25s", "Stemmer")


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
    full_scores: Mapping[str, float],
    pooled: Collection[str],
    seed: int,
    progress: Callable[[], object] = lambda: None,
) -> Holding:
    """Score the models that have a score on the whole data set on the smaller one, by the same protocol.

    `full_scores` has the scores on the whole data set by model; `pooled` names the models whose rankings made the pool.
    The intervals are 95% percentile bootstraps over models.
    """
    evaluation, rows = host.evaluation, []
    for model in Model.all_of(host):
        if model.name not in full_scores:
            continue
        loaded = host.load(model.spec)
        try:
            result = evaluate_task(small, loaded, evaluation.protocol, evaluation.batch_size, prepare=_all_documents)
        finally:
            loaded.close()
        rows.append((model.name, full_scores[model.name], main_score(small, result), model.name in pooled))
        progress()
    scores = pd.DataFrame(rows, columns=["model", "whole", "smaller", "in_pool"])
    both = scores["whole"].to_numpy(float), scores["smaller"].to_numpy(float)
    rngs = [stream(seed, "holding", small.name, name) for name in ("rho", "tau")]
    return Holding(scores, spearman_interval(*both, rng=rngs[0]), kendall_interval(*both, rng=rngs[1]))


def _all_documents(task: Any) -> None:
    """Make mteb's clustering embed all documents, instead of 4% of them again."""
    if hasattr(task, "max_fraction_of_documents_to_embed"):
        task.max_fraction_of_documents_to_embed = task.max_document_to_embed = None


_QUERIES, _DEPTH = 1000, 250  # MMTEB, 2.3.1
#: Options by type of data set.
_OF = {"clustering": ("documents", "draw"), "retrieval": ("queries", "depth", "pool")}


@Parameter(name="*")
@dataclass(frozen=True)
class ShrinkOptions:
    """The data set, and how it is made smaller.

    Args:
        task: The study's data set to make smaller.
        documents: Clustering: number of documents (default: 4% of them).
        draw: Clustering: draw documents by label (default), or regardless of labels.
        queries: Retrieval: maximum number of queries (default: 1000).
        depth: Retrieval: number of passages of each model for each query (default: 250).
        pool: Retrieval: models that rank passages, by name, or bm25 (default: all models of the study).
        seed: Random seed for drawing and resampling (default: 1337).
    """

    task: Annotated[str, Parameter(metavar="NAME")]
    documents: Count | None = None
    draw: Annotated[Literal["stratified", "uniform"] | None, Choice] = None
    queries: Count | None = None
    depth: Count | None = None
    pool: Annotated[tuple[str, ...], Several, Parameter(metavar="MODEL...")] = ()
    seed: Seed = 1337


def shrink(
    *, options: StudyOptions, drawing: ShrinkOptions, out: Annotated[Named | None, Parameter(metavar="FOLDER")] = None
) -> None:
    """Make a smaller data set that keeps the ranking of models.

    As in MMTEB: for clustering, documents are drawn; for retrieval, queries are drawn, and the passages that models
    rank high or people judged are kept.

    Example: plumbline shrink --study studies/demo.yaml --task sample_retrieval

    Args:
        options: The study.
        drawing: The data set, and what is drawn of it.
        out: The folder for the files (default: NAME-small).
    """
    study = options.load()
    refuse_unknown_data([drawing.task], study.datasets, study.file)
    if study.subject or not study.evaluation.models:
        raise StudyError(f"{study.file} has no `evaluation.models`, which judge the smaller data set; add them")
    folder = output_folder(out, f"{drawing.task}-small")
    with quiet(study.datasets, study.evaluation.models):
        smaller, holds, pooled = _made(study, drawing)

    about = {
        "answer": answer(holds),
        "task": drawing.task,
        "whole": smaller.full_counts,
        "smaller": smaller.counts,
        "how": [*smaller.how],
        "pooled_by": pooled,
        "rho": dict(holds.rho),
        "tau": dict(holds.tau),
        "rests_on": {"data set": smaller.dataset.revision},
        "seed": drawing.seed,
        "versions": versions(),
    }
    write(folder, smaller, holds, about)
    print(exhibit(smaller, holds).text("no model has a score on both"))
    print(f"-> {folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")


def _made(study: Study, options: ShrinkOptions) -> tuple[Smaller, Holding, list[str]]:
    whole_data = tuple(spec for spec in study.datasets if spec.name == options.task)
    (unit,), host = originals_of(study.model_copy(update={"datasets": whole_data})), ModelHost.of(study)
    refuse_unfit(unit.dataset)
    for kind, names in _OF.items():
        if kind != unit.task and (named := [name for name in names if getattr(options, name)]):
            options_of_task = ", ".join(f"--{name}" for name in _OF[unit.task])
            raise StudyError(
                f"--{named[0]} works only for {kind}, but {options.task!r} is {unit.task}; use {options_of_task}"
            )
    pooled: list[str] = []
    if unit.task == "clustering":
        number = options.documents or int(0.04 * len(contents_of(unit.dataset).scored[0].items))
        smaller = draw_documents(unit.dataset, number, stratified=options.draw != "uniform", seed=options.seed)
    else:
        smaller, pooled = _pooled(host, unit.dataset, options)
    records = EvaluationRecords(study)
    scores = records.scores if records.has(SCORES) else pd.DataFrame()
    scores_before = known_scores(scores, unit, Model.all_of(host), study.evaluation.protocol)
    with tqdm(total=len(scores_before), desc="scoring", unit="model", delay=1, leave=False) as bar:
        return smaller, holding(host, smaller.dataset, scores_before, pooled, options.seed, bar.update), pooled


def _pooled(host: ModelHost, dataset: Dataset, options: ShrinkOptions) -> tuple[Smaller, list[str]]:
    bm25 = BM25 in options.pool
    if bm25 and not all(importlib.util.find_spec(module) for module in _NEEDS):
        raise StudyError(
            "--pool bm25: mteb's BM25 is not installed; pip install 'mteb[bm25s]', or pool only by embedding models"
            " (--pool MODEL ...)"
        )
    names = [name for name in options.pool if name != BM25]
    specs = host.chosen(names) if names or not bm25 else []
    queries, depth = draw_queries(dataset, options.queries or _QUERIES, options.seed), options.depth or _DEPTH
    drawn = with_queries(dataset, queries)
    by_model = {}
    with tqdm(total=len(specs) + bm25, desc="ranking", unit="model", delay=1, leave=False) as bar:
        for name, ranking in rankings(host, drawn, specs, depth, bm25=bm25):
            by_model[name] = ranking
            bar.update()
    return pool(dataset, queries, by_model, depth), list(by_model)


def answer(holds: Holding) -> str:
    """Return the answer in one sentence."""
    n = len(holds.scores)
    if math.isnan(holds.tau.value):
        reason = holds.tau.reason if n else "no model of the study has a score on the whole data set; evaluate it first"
        return f"Whether the smaller data set ranks models like the whole one is unknown: {reason}."
    tau, rho = map(correlation, (holds.tau, holds.rho))
    return f"Agreement between the rankings of {n} models on the smaller and the whole data set: tau {tau}, rho {rho}."


def exhibit(smaller: Smaller, holds: Holding) -> Exhibit:
    """Return the models' scores on the whole and the smaller data set."""
    columns = {
        "Model": "model",
        "Whole": numbers("whole", 4),
        "Smaller": numbers("smaller", 4),
        "In the pool": cell("in_pool", lambda pooled: "yes" if pooled else "no"),
    }
    return Exhibit.of("scores", answer(holds), holds.scores, columns, notes(smaller, holds))


def notes(smaller: Smaller, holds: Holding) -> Sequence[str]:
    """Return notes on the basis of the numbers."""
    lines = list(smaller.how)
    for name, estimate in (("rho", holds.rho), ("tau", holds.tau)):
        if math.isnan(estimate.low) and estimate.reason:
            lines.append(estimate.reason if estimate.reason.startswith(name) else f"{name}: {estimate.reason}")
    if len(holds.scores) and holds.scores["in_pool"].all():
        lines.append("every ranked model also helped to make the pool, so nothing is known about other models")
    return lines


def write(folder: Path, smaller: Smaller, holds: Holding, about: Mapping[str, Any]) -> None:
    """Write all files atomically; delete those of an earlier run, and no others."""
    contents = contents_of(smaller.dataset)
    dataset, name, task = smaller.dataset, f"{smaller.dataset.name}-small", smaller.dataset.task
    languages = [next((text.language for text in dataset.texts()), "und")]
    if task == "retrieval":
        languages += [search.languages[1] for search in dataset.searches()][:1]
    language = "-".join(dict.fromkeys(languages))  # of the texts, or of queries and passages; the first of several
    data, path = (_documents(contents), "data.jsonl") if task == "clustering" else (_search(contents), "data")
    files = {
        **{file: content.encode() for file, content in data.items()},
        "dataset.yaml": (
            "# Copy this into a study, with `path` relative to the study file:\n"
            f"datasets:\n  - {{name: {name}, task: {task}, path: {path}, language: {language}}}\n"
        ).encode(),
        "scores.csv": csv_bytes(holds.scores),
        "about.json": json_file(about),
    }
    write_files(folder, files)


def _documents(contents: Contents) -> dict[str, str]:
    (part,) = contents.scored
    labels = [gold[0] if isinstance(gold, list) else gold for gold in part.gold]
    rows = [{"text": texts[0], "label": str(label)} for texts, label in zip(part.texts, labels, strict=True)]
    return {"data.jsonl": _lines(rows)}


def _search(contents: Contents) -> dict[str, str]:
    """Return the files in BEIR's layout; a passage's title comes before its text, as models read it.

    A study leaves a passage with a query's id out of its results. Unless the task does so too, queries get other ids.
    """
    parts = {part.noun: part for part in contents.scored}
    (search,) = contents.searches
    prefix_of_queries = ""
    while not search.ignores_own_id and search.passages.intersection(
        prefix_of_queries + query for query in search.queries
    ):
        prefix_of_queries += "query-"
    sides = {
        name: _lines(
            [
                {"_id": prefix + item, "text": texts[0]}
                for item, texts in zip(parts[name].items, parts[name].texts, strict=True)
            ]
        )
        for name, prefix in (("queries", prefix_of_queries), ("passages", ""))
    }
    judged = "".join(
        f"{prefix_of_queries}{query}\t{passage}\t{value}\n"
        for query in search.queries
        for passage, value in search.relevant[query].items()
        if passage in search.passages
    )
    return {
        "data/queries.jsonl": sides["queries"],
        "data/corpus.jsonl": sides["passages"],
        "data/qrels/test.tsv": f"query-id\tcorpus-id\tscore\n{judged}",
    }


def _lines(rows: list[dict[str, str]]) -> str:
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
