"""What mteb's registry knows of a task, and what a study may ask of it; nothing is loaded from the hub here."""

from __future__ import annotations

import difflib
import importlib
import os
import tempfile
from collections.abc import Mapping
from typing import Any

from plumbline.errors import StudyError, nearest
from plumbline.languages import iso639_3, language_code, language_pair, usual_script
from plumbline.resources import installing
from plumbline.study.datasets import PAIRED, SEARCHES, DatasetSpec, TaskType, refuse_pair

BITEXT = ("sentence1", "sentence2")  # of bitext mining the first side is transformed, and sought in the second

# mteb's type of a task: what it can be in a study; the first is meant where the study does not say.
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
    """A task object of mteb's that will load what the study says.

    With it come its task in a study, mteb's name of the split that is scored, and by subset the codes of first and
    second texts. Raises StudyError for what mteb does not have, or does not say.
    """
    task = _task(spec)
    kind = _kind(spec, task)
    languages = {subset: _languages(spec, kind, task.metadata, subset) for subset in _subsets(spec, task)}
    split = _split(spec, task)
    _configure(spec, task, languages, split)
    return task, kind, split, languages


def text_columns(task: Any, kind: TaskType) -> tuple[str, ...]:
    """The columns that hold texts to transform, by mteb's attributes; none for searches, whose texts have tables."""
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
    """The column that holds what texts are scored by."""
    if kind in ("sts", "str"):
        return "score"
    if kind == "bitext_mining":
        return BITEXT[1]
    return str(task.relevancy_column_name if kind == "summarisation" else task.label_column_name)


def _task(spec: DatasetSpec) -> Any:
    """The task object, without data."""
    mteb = _mteb()
    try:
        task = mteb.get_task(spec.mteb)
    except KeyError:
        names = [task.metadata.name for task in mteb.get_tasks(exclude_superseded=False)]
        near = difflib.get_close_matches(spec.mteb, names, n=1, cutoff=0.6)
        hint = f"did you mean {near[0]!r}?" if near else "`mteb.get_tasks()` lists what it has"
        raise StudyError(f"mteb has no task {spec.mteb!r}; {hint}") from None
    if task.is_aggregate:
        parts = ", ".join(part.metadata.name for part in task.metadata.tasks)
        raise StudyError(f"{spec.mteb} is a collection of tasks; name them one by one: {parts}")
    if task.metadata.modalities != ["text"]:
        raise StudyError(f"{spec.mteb} is not of texts alone but of {', '.join(task.metadata.modalities)}")
    return task


def _mteb() -> Any:
    """The library; it takes seconds to import, and would make a folder in the user's home that is not used here."""
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

    several = isinstance(task, AbsTaskMultilabelClassification)  # one of them is of the type Classification
    name = "MultilabelClassification" if several else task.metadata.type
    kinds = TYPES.get(name)
    if kinds is None:
        raise StudyError(
            f"{spec.mteb} is of mteb's type {name}, which cannot be transformed and scored yet; types that can be:"
            f" {', '.join(TYPES)}"
        )
    if spec.task is not None and spec.task not in kinds:
        raise StudyError(f"{spec.mteb} is of mteb's type {name}, so its `task` is {kinds[0]!r}, not {spec.task!r}")
    kind = spec.task or kinds[0]
    for language in (spec.language, *spec.languages.values()):
        try:
            refuse_pair(kind, language)
        except ValueError as error:
            raise StudyError(str(error)) from None
    return kind


def _subsets(spec: DatasetSpec, task: Any) -> list[str]:
    names = list(task.metadata.hf_subsets)
    for subset in (*spec.subsets, *spec.languages):
        if subset not in names and subset not in (spec.languages if subset in spec.subsets else ()):
            hint = nearest(subset, names)
            raise StudyError(f"{spec.mteb} has no subset {subset!r}; {hint[:300]}{' ...' if len(hint) > 300 else ''}")
    return list(spec.subsets) or names


def _languages(spec: DatasetSpec, kind: TaskType, metadata: Any, subset: str) -> tuple[str, str]:
    """The codes of first and second texts: the study's, or mteb's where it says which is which."""
    language = spec.languages.get(subset, spec.language)
    if language:
        return language_pair(language)
    names = metadata.hf_subsets_to_langscripts[subset]
    mend = "give `language`" if subset == "default" else f"give `languages: {{{subset}: ...}}`"
    try:
        codes = list(dict.fromkeys(language_code(name) for name in names))
    except StudyError as error:
        raise StudyError(f"subset {subset!r}: {error}; {mend} in the study") from None
    if len(codes) == 1:
        return codes[0], codes[0]
    # A subset of two languages is called by them, in the order of its two columns (all of mteb's pairs but one task's).
    if len(codes) == 2 and kind in PAIRED and _codes(subset) == codes:
        return codes[0], codes[1]
    raise StudyError(
        f"mteb says of subset {subset!r}: {', '.join(names)}; but not which text is in which; {mend} in the study"
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
        raise StudyError(f"{spec.mteb} has several splits; give `split`, one of: {', '.join(splits)}")
    return "test" if "test" in splits else str(splits[0])


def _configure(spec: DatasetSpec, task: Any, languages: Mapping[str, tuple[str, str]], split: str) -> None:
    """Tell the task object which data to load; its class stays as it is."""
    metadata = task.metadata
    source = {"path": spec.path or metadata.dataset["path"], "revision": spec.revision or metadata.dataset["revision"]}
    changes: dict[str, Any] = {"dataset": {**metadata.dataset, **source}}
    if metadata.is_multilingual:
        wanted = {name: [_langscript(code) for code in dict.fromkeys(codes)] for name, codes in languages.items()}
        changes["eval_langs"] = {**wanted, **metadata.eval_langs}
    task.metadata = metadata.model_copy(update=changes)
    task.hf_subsets = list(languages)
    task.filter_eval_splits([split])


def _langscript(code: str) -> str:
    """A language as mteb names it: `eng-Latn`."""
    return f"{iso639_3(code)}-{usual_script(code) or 'Latn'}"
