"""Load the data of an mteb task as a study configures it, or say in one line why it cannot be loaded.

`task_of` takes facts about a task from mteb's registry, checks the study's settings, and loads nothing from the hub.
mteb loads the data itself, so renamed columns, subsamples and splits are mteb's. A study may name another repository or
revision than mteb's registry. Older layouts are read too: reranking as rows with a query and its candidates, pairs all
in one row, and clustering in sets where mteb expects one text a row.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import difflib
import hashlib
import importlib
import itertools
import logging
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from plumbline.errors import DataError, PlumblineError, ServiceError, StudyError, nearest
from plumbline.identity import identity
from plumbline.importing import datasets
from plumbline.languages import language_code, language_pair, with_script
from plumbline.resources import installing
from plumbline.study.datasets import PAIRED, SEARCHES, TRAINED, DatasetSpec, TaskType, refuse_pair

if TYPE_CHECKING:
    import pandas as pd

BITEXT = ("sentence1", "sentence2")  # bitext mining transforms the first side, and searches the second for it

# mteb's type of a task, and its possible tasks in a study; the first is the default.
TYPES: Mapping[str, tuple[TaskType, ...]] = {
    "STS": ("sts", "str"),
    "PairClassification": ("pair_classification",),
    "Classification": ("classification",),
    "Clustering": ("clustering",),
    "Reranking": ("reranking",),
    "Retrieval": ("retrieval",),
    "Summarization": ("summarisation",),
    "BitextMining": ("bitext_mining",),
    "MultilabelClassification": ("multilabel_classification",),
    "InstructionReranking": ("instruction_reranking",),
}
_CANDIDATES = {"query", "positive", "negative"}


def task_of(spec: DatasetSpec) -> tuple[Any, TaskType, str, dict[str, tuple[str, str]]]:
    """Return an mteb task object that will load the data that the study names.

    Returns (the object, its task in a study, mteb's name of the scored split, by subset the codes of first and second
    texts). Raises StudyError for a task, subset or split that mteb lacks, and for a setting that mteb leaves open.
    """
    task = _task(spec)
    kind, metadata = _kind(spec, task), task.metadata
    subsets = list(metadata.hf_subsets)
    for subset in (*spec.subsets, *spec.by_subset):
        if subset not in subsets and subset not in (spec.by_subset if subset in spec.subsets else ()):
            hint = nearest(subset, subsets)
            raise StudyError(f"{spec.mteb} has no subset {subset!r}; {hint[:300]}{' ...' if len(hint) > 300 else ''}")
    languages = {subset: _languages(spec, kind, metadata, subset) for subset in spec.subsets or subsets}
    split = _split(spec, task)
    # Set which data the task object loads; its class stays unchanged.
    source = {"path": spec.path or metadata.dataset["path"], "revision": spec.revision or metadata.dataset["revision"]}
    changes: dict[str, Any] = {"dataset": {**metadata.dataset, **source}}
    if metadata.is_multilingual:
        wanted = {name: [with_script(code) for code in dict.fromkeys(codes)] for name, codes in languages.items()}
        changes["eval_langs"] = {**wanted, **metadata.eval_langs}
    task.metadata = metadata.model_copy(update=changes)
    task.hf_subsets = list(languages)
    task.filter_eval_splits([split])
    return task, kind, split, languages


def text_columns(task: Any, kind: TaskType) -> tuple[str, ...]:
    """Return the columns that hold texts to transform, by mteb's attributes; none for searches."""
    if kind in ("sts", "str"):
        return tuple(task.column_names)
    if kind == "pair_classification":
        return task.input1_column_name, task.input2_column_name
    if kind == "bitext_mining":
        return (BITEXT[0],)
    if kind == "summarisation":
        return task.human_summaries_column_name, task.machine_summaries_column_name
    return () if kind in SEARCHES else (task.input_column_name,)


def gold_column(task: Any, kind: TaskType) -> str:
    """Return the column by which texts are scored."""
    if kind in ("sts", "str"):
        return "score"
    if kind == "bitext_mining":
        return BITEXT[1]
    return str(task.relevancy_column_name if kind == "summarisation" else task.label_column_name)


def _task(spec: DatasetSpec) -> Any:
    mteb = _mteb()
    try:
        task = mteb.get_task(spec.mteb)
    except KeyError:
        names = [task.metadata.name for task in mteb.get_tasks(exclude_superseded=False)]
        near = difflib.get_close_matches(spec.mteb, names, n=1, cutoff=0.6)
        hint = f"did you mean {near[0]!r}?" if near else "`mteb.get_tasks()` lists its tasks"
        raise StudyError(f"mteb has no task {spec.mteb!r}; {hint}") from None
    if task.is_aggregate:
        parts = ", ".join(part.metadata.name for part in task.metadata.tasks)
        raise StudyError(f"{spec.mteb} is a collection of tasks; name them one by one: {parts}")
    if task.metadata.modalities != ["text"]:
        raise StudyError(
            f"{spec.mteb} has the modalities {', '.join(task.metadata.modalities)}; choose a task with texts only"
        )
    return task


def _mteb() -> Any:
    """Import mteb, which takes seconds, without letting it make an unused folder in the user's home."""
    with tempfile.TemporaryDirectory(prefix="plumbline-mteb-") as unused:
        unset = "MTEB_CACHE" not in os.environ
        os.environ.setdefault("MTEB_CACHE", unused)
        try:
            return importlib.import_module("mteb")
        except ImportError as error:
            raise StudyError(f"mteb's tasks need mteb ({error}): {installing('evaluation')}") from None
        finally:
            if unset:
                del os.environ["MTEB_CACHE"]


def _kind(spec: DatasetSpec, task: Any) -> TaskType:
    from mteb.abstasks.multilabel_classification import AbsTaskMultilabelClassification  # noqa: PLC0415

    several = isinstance(task, AbsTaskMultilabelClassification)  # mteb gives one of these the type Classification
    name = "MultilabelClassification" if several else task.metadata.type
    kinds = TYPES.get(name)
    if kinds is None:
        raise StudyError(
            f"{spec.mteb} has mteb's type {name}, which Plumbline cannot transform and score; choose one of:"
            f" {', '.join(TYPES)}"
        )
    if spec.task is not None and spec.task not in kinds:
        raise StudyError(f"{spec.mteb} has mteb's type {name}, so its `task` is {kinds[0]!r}, not {spec.task!r}")
    kind = spec.task or kinds[0]
    for language in (spec.code, *spec.by_subset.values()):
        try:
            refuse_pair(kind, language)
        except ValueError as error:
            raise StudyError(str(error)) from None
    return kind


def _languages(spec: DatasetSpec, kind: TaskType, metadata: Any, subset: str) -> tuple[str, str]:
    """Return the codes of first and second texts: the study's, or mteb's if it tells them apart."""
    language = spec.by_subset.get(subset, spec.code)
    if language:
        return language_pair(language)
    names = metadata.hf_subsets_to_langscripts[subset]
    mend = "give `language`" if subset == "default" else f"give `language: {{{subset}: ...}}`"
    try:
        codes = list(dict.fromkeys(language_code(name) for name in names))
    except StudyError as error:
        raise StudyError(f"subset {subset!r}: {error}; {mend} in the study") from None
    if len(codes) == 1:
        return codes[0], codes[0]
    # A subset's name has its two languages in the order of its columns (in all of mteb's pairs but one task's).
    with contextlib.suppress(StudyError):
        if len(codes) == 2 and kind in PAIRED and [language_code(part) for part in subset.split("-")] == codes:
            return codes[0], codes[1]
    raise StudyError(
        f"mteb does not say which text of subset {subset!r} is in which of {', '.join(names)}; {mend} in the study"
    )


def _split(spec: DatasetSpec, task: Any) -> str:
    splits = list(task.metadata.eval_splits)
    if spec.split:
        if spec.split not in splits and _kind(spec, task) in SEARCHES:  # these load any one split
            raise StudyError(f"{spec.mteb} has no split {spec.split!r}; {nearest(spec.split, splits)}")
        return spec.split
    if "test" not in splits and len(splits) > 1:
        raise StudyError(f"{spec.mteb} has several splits; set `split` to one of: {', '.join(splits)}")
    return "test" if "test" in splits else str(splits[0])


@dataclass(frozen=True)
class MtebTaskData:
    """An mteb task with its data, and the study's settings for it.

    `task` is mteb's object; its `dataset` has the splits of each subset: tables of the library datasets or, for
    searches, dictionaries with `queries`, `corpus`, `relevant_docs` and `top_ranked`, and for instruction reranking
    `changed`: by query the passages that its second instruction makes irrelevant. `split` is mteb's name of the scored
    split; `languages` has the codes of first and second texts by subset.
    """

    task: Any
    kind: TaskType
    split: str
    languages: Mapping[str, tuple[str, str]]

    @property
    def revision(self) -> str:
        """The repository and revision of the data on the hub."""
        return f"{self.task.metadata.dataset['path']}@{self.task.metadata.dataset['revision']}"

    def splits(self) -> list[tuple[str, str]]:
        """Return our name and mteb's of each split with texts: classification may have two, others one."""
        trained = self.kind in TRAINED and self.task.train_split != self.split
        return [*([("train", self.task.train_split)] if trained else []), ("test", self.split)]

    def with_data(self, data: Mapping[str, Any]) -> MtebTaskData:
        """Return a copy with other data and its own random state, which mteb changes when it runs a task."""
        from mteb._set_seed import _set_seed  # noqa: PLC0415 (as AbsTask.__init__ does; it has no public way)

        task = copy.copy(self.task)
        task.hf_subsets = list(task.hf_subsets)
        task.rng_state, task.np_rng = _set_seed(task.seed)
        task.dataset = dict(data)
        return dataclasses.replace(self, task=task)


def load_task(spec: DatasetSpec) -> MtebTaskData:
    """Load a task's data.

    Raises StudyError for a task, subset, split or column that mteb lacks, DataError for data that mteb does not expect,
    and ServiceError if the hub cannot be reached.
    """
    try:
        task, kind, split, languages = task_of(spec)
        with quiet(), _cache_of(task):
            _read(task)
            _arrange(spec, task, kind, split)
            if kind == "instruction_reranking":
                _read_changed(task, split)
    except PlumblineError as error:
        raise type(error)(f"data set {spec.name!r}: {error}") from None
    return MtebTaskData(task, kind, split, languages)


def _read(task: Any) -> None:
    """Load the data as mteb does, or in an older layout."""
    from mteb.abstasks.clustering import AbsTaskClustering  # noqa: PLC0415

    try:
        task.load_data()
        has_sets = False
        if isinstance(task, AbsTaskClustering):
            data: Any = task.dataset
            parts = next(iter(data.values())) if task.metadata.is_multilingual else data
            has_sets = isinstance(parts[task.eval_splits[0]][0][task.input_column_name], list)
        if not has_sets:
            return
        failure: PlumblineError = DataError("its rows have lists of texts; mteb expects one text per row")
    except Exception as error:  # whatever mteb, datasets and the hub raise means one thing: no data
        failure = _explained(task, error)
    if isinstance(failure, ServiceError):
        raise failure from None
    with contextlib.suppress(Exception):
        if task.metadata.type == "Reranking":
            _read_candidates(task)
            return
        if isinstance(task, AbsTaskClustering) and not task.metadata.is_multilingual:
            _read_sets(task)
            return
        if task.fast_loading:
            task.fast_loading = False
            task.load_data()
            return
    raise failure from None


def _read_candidates(task: Any) -> None:
    """Load reranking as rows with a query and two lists: mteb's layout until 2025."""
    (split,) = task.eval_splits
    data = {}
    for subset in task.hf_subsets:
        name = subset if task.metadata.is_multilingual else None
        rows = datasets.load_dataset(name=name, split=split, **task.metadata.dataset)
        if not _CANDIDATES.issubset(rows.column_names):
            raise DataError(
                f"the data need the columns query, positive and negative, but have {', '.join(rows.column_names)}"
            )
        data[subset] = {split: search_data(rows.to_pandas())}
    task.dataset = data
    task.data_loaded = True


def _read_changed(task: Any, split: str) -> None:
    """Load the passages that instructions change, which mteb would fetch from the hub for each scoring."""
    source = task.metadata.dataset
    for subset in task.hf_subsets:
        name = f"qrel_diff-{subset.removeprefix('eng-')}" if task.metadata.is_multilingual else "qrel_diff"
        try:
            rows = datasets.load_dataset(source["path"], name, split="qrel_diff", revision=source["revision"])
            changed = dict(zip(rows["query-id"], rows["corpus-ids"], strict=True))
        except Exception as error:  # as in `_read`
            raise _explained(task, error) from None
        task.dataset[subset][split]["changed"] = changed


def _read_sets(task: Any) -> None:
    """Load clustering as rows of whole sets, for a class that expects one text per row."""
    columns = (task.input_column_name, task.label_column_name)
    parts = datasets.load_dataset(**task.metadata.dataset)
    flat = {name: {column: list(itertools.chain(*rows[column])) for column in columns} for name, rows in parts.items()}
    task.dataset = datasets.DatasetDict({name: in_memory(rows) for name, rows in flat.items()})
    task.dataset_transform()
    task.data_loaded = True


def _explained(task: Any, error: Exception) -> PlumblineError:
    """Return the one-line error for data that could not be loaded."""
    source = task.metadata.dataset
    message = (str(error).strip() or type(error).__name__).splitlines()[0]
    if isinstance(error, datasets.exceptions.DatasetNotFoundError):
        return StudyError(
            f"{message} The study has `path` {source['path']} and `revision` {source['revision']}; correct them"
        )
    if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
        return ServiceError(
            f"{source['path']} cannot be loaded from the hub: {message}; connect to the hub and load it once"
        )
    return DataError(
        f"mteb cannot read {source['path']} at revision {source['revision']}: {type(error).__name__}: {message};"
        " remove `path` and `revision` to use mteb's own"
    )


def _arrange(spec: DatasetSpec, task: Any, kind: TaskType, split: str) -> None:
    """Arrange the data by subset and split, and check that all are there."""
    if hasattr(task, "convert_v1_dataset_format_to_v2"):
        task.convert_v1_dataset_format_to_v2(num_proc=None)
    elif kind == "bitext_mining" and task.parallel_subsets:
        _split_sides(task)
    elif not task.metadata.is_multilingual and "default" not in task.dataset:
        task.dataset = {"default": task.dataset}
    splits = [split, task.train_split] if kind in TRAINED else [split]
    arranged: dict[str, dict[str, Any]] = {}
    for subset in task.hf_subsets:
        if subset not in task.dataset:
            raise StudyError(f"the data have no subset {subset!r}; list existing ones in `subsets`")
        present = task.dataset[subset]
        for name in splits:
            if name not in present:
                raise StudyError(f"subset {subset!r} of the data has no split {name!r}; {nearest(name, list(present))}")
        parts = {name: _part(spec, task, kind, present[name]) for name in dict.fromkeys(splits)}
        arranged[subset] = parts if kind in SEARCHES else datasets.DatasetDict(parts)
    task.dataset = arranged


def _split_sides(task: Any) -> None:
    """Turn bitext mining with a column for each language into a table of two columns for each pair of languages."""
    tables, task.parallel_subsets = task.dataset, False
    task.dataset = {
        subset: {
            split: in_memory(dict(zip(BITEXT, (rows[side] for side in subset.split("-")), strict=True)))
            for split, rows in tables.items()
        }
        for subset in task.hf_subsets
        if all(side in next(iter(tables.values())).column_names for side in subset.split("-"))
    }


def _part(spec: DatasetSpec, task: Any, kind: TaskType, part: Any) -> Any:
    """Return one split with the columns that the task expects, one pair per row."""
    if kind in SEARCHES:
        if len(part["queries"]) and not isinstance(part["queries"][0]["text"], str):
            raise StudyError("its queries are conversations, which Plumbline cannot transform; choose another task")
        return part
    if not isinstance(part, datasets.Dataset):
        raise StudyError("its two sides are lists of different lengths; use a later version of the task")
    for column, name in spec.columns.items():
        if name not in part.column_names:
            raise StudyError(f"the data have no column {name!r}; {nearest(name, list(part.column_names))}")
        part = part.rename_column(name, column)
    for column in (*text_columns(task, kind), gold_column(task, kind)):
        if column not in part.column_names:
            hint = nearest(column, list(part.column_names))
            raise StudyError(f"the data have no column {column!r}; {hint} (`columns` maps names)")
    if kind == "pair_classification" and len(part) == 1 and isinstance(part[0][gold_column(task, kind)], list):
        return in_memory(part[0])
    return part


@contextlib.contextmanager
def _cache_of(task: Any) -> Iterator[None]:
    """Use a `datasets` cache for each repository and revision: offline, the newest copy of any would be taken."""
    source, cache = task.metadata.dataset, datasets.config.HF_DATASETS_CACHE
    datasets.config.HF_DATASETS_CACHE = Path(cache) / f"{source['path'].replace('/', '--')}@{source['revision']}"
    try:
        yield
    finally:
        datasets.config.HF_DATASETS_CACHE = cache


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the libraries' messages and bars off the screen: the commands print their own."""
    logs = [logging.getLogger(name) for name in ("mteb", "datasets", "huggingface_hub.repocard")]
    levels, bars = [log.level for log in logs], datasets.is_progress_bar_enabled()
    for log in logs:
        log.setLevel(logging.ERROR)
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)
        if bars:
            datasets.enable_progress_bars()


def in_memory(columns: Mapping[Any, Iterable[Any]]) -> Any:
    """Return a `datasets.Dataset` of these columns, in memory, whose fingerprint is a hash of its Arrow stream.

    `Dataset.from_dict` pickles the whole table for its fingerprint, which takes six times as long for 50 rows.
    """
    table = pa.table({name: list(column) for name, column in columns.items()})
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    fingerprint = hashlib.blake2b(stream.getvalue(), digest_size=8).hexdigest()
    return datasets.Dataset(table, fingerprint=fingerprint)


def search_data(frame: pd.DataFrame) -> dict[str, Any]:
    """Return rows with a query and its positive and negative candidates, in mteb 2's form of reranking.

    Rows that lack one or the other are left out, as mteb does.
    """
    queries: dict[str, str] = {}
    corpus: dict[str, str] = {}
    judged: dict[str, dict[str, int]] = {}
    for number, (query_text, relevant, irrelevant) in enumerate(
        zip(frame["query"], frame["positive"], frame["negative"], strict=True)
    ):
        if not len(relevant) or not len(irrelevant):
            continue
        query = f"q{number}"
        queries[query], judged[query] = query_text, {}
        texts = [*relevant, *irrelevant]
        for index, (passage, text) in enumerate(zip(passage_names(query, texts), texts, strict=True)):
            corpus[passage] = text
            judged[query][passage] = int(index < len(relevant))
    return {
        "queries": in_memory({"id": list(queries), "text": list(queries.values())}),
        "corpus": in_memory({"id": list(corpus), "text": list(corpus.values())}),
        "relevant_docs": judged,
        "top_ranked": {query: list(passages) for query, passages in judged.items()},
    }


def passage_names(query: str, texts: Sequence[str]) -> list[str]:
    """Return the ids of a query's own passages, relevant ones first; `query` is `q` and its row."""
    return [_passage(query, index, text) for index, text in enumerate(texts)]


def _passage(query: str, index: int, text: str) -> str:
    return f"{query}-{identity('passage-v1', text)[:12]}-{index}"


def instruction_data(frame: pd.DataFrame) -> dict[str, Any]:
    """Return rows with a query, two instructions and candidates, in mteb's form of instruction reranking.

    Each query is asked twice, with `instruction` and with `changed_instruction`, which makes those positive passages
    irrelevant for which `changed` is true. Rows without such a passage are left out.
    """
    single = search_data(frame)
    queries: dict[str, list[str]] = {"id": [], "text": [], "instruction": []}
    judged: dict[str, dict[str, int]] = {}
    ranked: dict[str, list[str]] = {}
    changed: dict[str, list[str]] = {}
    for query, query_text in zip(single["queries"]["id"], single["queries"]["text"], strict=True):
        row = frame.iloc[int(query.removeprefix("q"))]
        relevance = single["relevant_docs"][query]
        irrelevant = [
            _passage(query, index, text)
            for index, (text, changes) in enumerate(zip(row["positive"], row["changed"], strict=True))
            if changes
        ]
        if not irrelevant:
            continue
        changed[query] = irrelevant
        for version, instruction in (("og", row["instruction"]), ("changed", row["changed_instruction"])):
            name = f"{query}-{version}"
            for column, value in zip(queries, (name, query_text, instruction), strict=True):
                queries[column].append(value)
            judged[name] = {
                passage: 0 if version == "changed" and passage in irrelevant else value
                for passage, value in relevance.items()
            }
            ranked[name] = list(relevance)
    return single | {"queries": in_memory(queries), "relevant_docs": judged, "top_ranked": ranked, "changed": changed}
