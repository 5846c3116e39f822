"""Facts from mteb's registry about a task, and checks of a study's settings; loads nothing from the hub."""

from __future__ import annotations

import difflib
import importlib
import os
import tempfile
from collections.abc import Mapping
from typing import Any

from plumbline.errors import StudyError, nearest
from plumbline.languages import language_code, language_pair, with_script
from plumbline.resources import installing
from plumbline.study.datasets import PAIRED, SEARCHES, DatasetSpec, TaskType, refuse_pair

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


def task_of(spec: DatasetSpec) -> tuple[Any, TaskType, str, dict[str, tuple[str, str]]]:
    """Return an mteb task object that will load the data that the study names.

    Returns (the object, its task in a study, mteb's name of the scored split, by subset the codes of first and second
    texts). Raises StudyError for a task, subset or split that mteb lacks, and for a setting that mteb leaves open.
    """
    task = _task(spec)
    kind = _kind(spec, task)
    languages = {subset: _languages(spec, kind, task.metadata, subset) for subset in _subsets(spec, task)}
    split = _split(spec, task)
    _configure(spec, task, languages, split)
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
    """Return the task object, without data."""
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


def _subsets(spec: DatasetSpec, task: Any) -> list[str]:
    names = list(task.metadata.hf_subsets)
    for subset in (*spec.subsets, *spec.by_subset):
        if subset not in names and subset not in (spec.by_subset if subset in spec.subsets else ()):
            hint = nearest(subset, names)
            raise StudyError(f"{spec.mteb} has no subset {subset!r}; {hint[:300]}{' ...' if len(hint) > 300 else ''}")
    return list(spec.subsets) or names


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
    if len(codes) == 2 and kind in PAIRED and _codes(subset) == codes:
        return codes[0], codes[1]
    raise StudyError(
        f"mteb does not say which text of subset {subset!r} is in which of {', '.join(names)}; {mend} in the study"
    )


def _codes(subset: str) -> list[str]:
    try:
        return [language_code(part) for part in subset.split("-")]
    except StudyError:
        return []


def _split(spec: DatasetSpec, task: Any) -> str:
    splits = list(task.metadata.eval_splits)
    if spec.split:
        if spec.split not in splits and _kind(spec, task) in SEARCHES:  # these load any one split
            raise StudyError(f"{spec.mteb} has no split {spec.split!r}; {nearest(spec.split, splits)}")
        return spec.split
    if "test" not in splits and len(splits) > 1:
        raise StudyError(f"{spec.mteb} has several splits; set `split` to one of: {', '.join(splits)}")
    return "test" if "test" in splits else str(splits[0])


def _configure(spec: DatasetSpec, task: Any, languages: Mapping[str, tuple[str, str]], split: str) -> None:
    """Set which data the task object loads; its class stays unchanged."""
    metadata = task.metadata
    source = {"path": spec.path or metadata.dataset["path"], "revision": spec.revision or metadata.dataset["revision"]}
    changes: dict[str, Any] = {"dataset": {**metadata.dataset, **source}}
    if metadata.is_multilingual:
        wanted = {name: [with_script(code) for code in dict.fromkeys(codes)] for name, codes in languages.items()}
        changes["eval_langs"] = {**wanted, **metadata.eval_langs}
    task.metadata = metadata.model_copy(update=changes)
    task.hf_subsets = list(languages)
    task.filter_eval_splits([split])
