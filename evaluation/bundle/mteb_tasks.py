"""A bundle's accepted sets for plain mteb: data sets in the hub's layout, and a module of tasks.

Neither needs Plumbline. Nothing here reads a bundle: no command imports the module that travels in one.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import mteb
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from evaluation.bundle.drafts import MOST, TaskDraft, drafts_of, identifier
from evaluation.bundle.facts import BundleFacts
from evaluation.bundle.records import CARD
from evaluation.sources import OutputSource
from generation.datasets.mteb_loading import quiet
from plumbline.errors import StudyError
from plumbline.exhibits.table import as_markdown
from plumbline.records import Pair

# Class settings on loading data, which here is mteb's default.
_OF_LOADING = ("fast_loading", "parallel_subsets", "abstask_prompt")


def module_name(study: str) -> str:
    """Return the name of the module of a study's tasks."""
    return f"{identifier(study).lower()}_tasks"


def write_study_tasks(
    source: OutputSource, facts: BundleFacts, pairs: Sequence[Pair], folder: Path
) -> tuple[list[TaskDraft], list[str]]:
    """Write a study's accepted sets as tasks to a folder; return (the tasks, the parts left out with reasons).

    Raises StudyError if two tasks would have one name.
    """
    with quiet():
        drafts, left_out = drafts_of(source, facts, pairs)
        names = [draft.metadata.name for draft in drafts]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise StudyError(f"two tasks would be called {twice[0]}; rename one of the study's data sets")
        if drafts:
            write_tasks(folder, module_name(facts.study), drafts, f"Tasks of {facts.title}", facts.warnings)
        return drafts, left_out


def write_tasks(folder: Path, module: str, drafts: Sequence[TaskDraft], title: str, notes: Sequence[str] = ()) -> Path:
    """Write the data of tasks below a folder, and the module of the tasks with this title and notes.

    Returns the module's file.
    """
    drafts = [_with_data(folder / "tasks" / draft.metadata.name, draft) for draft in drafts]
    file = folder / f"{module}.py"
    file.write_text(_module_of(module, drafts, title, notes), encoding="utf-8")
    return file


def _with_data(folder: Path, draft: TaskDraft) -> TaskDraft:
    """Write a task's data as a repository of the hub, and return the task with their hash as revision."""
    folder.mkdir(parents=True)
    configs, digest = [], hashlib.sha256()
    for subset, parts in draft.task.dataset.items():
        tables = _row_tables if draft.kind.columns(draft.task) else _search_tables
        for config, splits in tables(draft, subset, parts).items():
            (folder / config).mkdir(exist_ok=True)
            for split, rows in splits.items():
                file = folder / config / f"{split}.parquet"
                pq.write_table(rows, file, compression="zstd")
                digest.update(file.read_bytes())
            files = [{"split": split, "path": f"{config}/{split}.parquet"} for split in splits]
            configs.append({"config_name": config, "data_files": files})
    facts = draft.metadata
    front = {"license": facts.license, "language": facts.languages, "configs": configs, "tags": ["mteb", "text"]}
    words = f"---\n{yaml.safe_dump(front, sort_keys=False)}---\n\n# {facts.name}\n\n{as_markdown(facts.description)}\n"
    (folder / CARD).write_text(words, encoding="utf-8")
    revision = {"path": facts.name, "revision": digest.hexdigest()}
    return replace(draft, metadata=facts.model_copy(update={"dataset": revision}))


def _row_tables(draft: TaskDraft, subset: str, parts: Mapping[str, Any]) -> dict[str, dict[str, pa.Table]]:
    task, columns = draft.task, draft.kind.columns(draft.task)
    (scored,) = task.eval_splits
    wanted = {scored: "test"} | ({task.train_split: "train"} if draft.kind.trained else {})
    return {subset: {ours: _table(parts[theirs].select_columns(columns)) for theirs, ours in wanted.items()}}


def _table(rows: Any) -> pa.Table:
    """Return rows of the library `datasets` as a table, without its metadata."""
    return rows.with_format("arrow")[:].replace_schema_metadata(None)


def _search_tables(draft: TaskDraft, subset: str, parts: Mapping[str, Any]) -> dict[str, dict[str, pa.Table]]:
    (scored,) = draft.task.eval_splits
    part = parts[scored]
    before = "" if subset == "default" else f"{subset}-"
    queries = set(part["queries"]["id"])
    judged = [
        {"query-id": query, "corpus-id": passage, "score": value}
        for query, judgements in part["relevant_docs"].items()
        if query in queries
        for passage, value in judgements.items()
    ]
    tables = {
        f"{before}corpus": _table(part["corpus"]),
        f"{before}queries": _table(part["queries"]),
        f"{before}qrels" if before else "default": pa.Table.from_pylist(judged),
    }
    if part["top_ranked"]:
        ranked = [{"query-id": query, "corpus-ids": list(part["top_ranked"][query])} for query in sorted(queries)]
        tables[f"{before}top_ranked"] = pa.Table.from_pylist(ranked)
    return {config: {"test": table} for config, table in tables.items()}


_HEAD = '''"""{title}.

For mteb {version}: `mteb.evaluate(model, {module}.TASKS)`. The data are in the folder `tasks` beside this
file. Once they are on the hub, set each task's `path` to its repository and its `revision` to that repository's
commit.{notes}
"""

from pathlib import Path

from mteb.abstasks.task_metadata import TaskMetadata
{imports}

DATA = Path(__file__).resolve().parent / "tasks"
'''


def _module_of(name: str, drafts: Sequence[TaskDraft], title: str, notes: Sequence[str]) -> str:
    """Return the module's text. Text by others appears in it only as literals."""
    bases = {base.__name__: base.__module__ for base in (_base(draft.task) for draft in drafts)}
    imports = "\n".join(f"from {module} import {base}" for base, module in sorted(bases.items()))
    notes = "".join(f"\n\n{_unquoted(line)}" for line in notes)
    parts = [_HEAD.format(title=_unquoted(title), version=mteb.__version__, module=name, notes=notes, imports=imports)]
    parts += [_class(draft) for draft in drafts]
    names = [draft.metadata.name for draft in drafts]
    parts.append(f"__all__ = {names!r}\nTASKS = [{', '.join(f'{name}()' for name in names)}]\n")
    return "\n\n".join(parts)


def _unquoted(text: str) -> str:
    """Return text by others for a docstring."""
    return "".join(sign for sign in text if sign.isprintable() and sign not in '"\\')


def _class(draft: TaskDraft) -> str:
    facts = draft.metadata.model_dump(exclude_defaults=True) | {"dataset": None}
    lines = [
        f'        dataset={{"path": str(DATA / {draft.metadata.name!r}), "revision": {draft.metadata.revision!r}}},'
        if name == "dataset"
        else f"        {name}={_literal(value)},"
        for name, value in facts.items()
    ]
    settings = [f"    {name} = {value!r}" for name, value in _settings(draft).items()]
    head = [f"class {draft.metadata.name}({_base(draft.task).__name__}):", "    metadata = TaskMetadata("]
    return "\n".join([*head, *lines, "    )", *settings]) + "\n"


def _literal(value: Any) -> str:
    """Return a plain value as a Python literal."""
    plain = json.loads(json.dumps(value, default=str))
    return repr(tuple(plain)) if isinstance(value, tuple) else repr(plain)


def _base(task: Any) -> type:
    """Return mteb's class of a task; classes below it have only settings."""
    return next(kind for kind in type(task).__mro__ if kind.__module__.startswith("mteb.abstasks"))


def _settings(draft: TaskDraft) -> dict[str, Any]:
    """Return a task's class attributes beside its metadata: column names, bounds of scores, sizes of samples."""
    task, base = draft.task, _base(draft.task)
    below = type(task).__mro__[: type(task).__mro__.index(base)]
    settings = {
        name: value
        for kind in reversed(below)
        for name, value in vars(kind).items()
        if not name.startswith("_") and name not in _OF_LOADING and _is_literal(value)
    }
    return settings | draft.kind.export_settings(task, settings, MOST)


def _is_literal(value: Any) -> bool:
    if not isinstance(value, str | int | float | tuple | list | None):
        return False
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError):
        return False
