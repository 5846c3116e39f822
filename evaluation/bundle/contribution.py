"""`bundle export --format mteb`: accepted sets as data sets in the hub's layout, and a module of tasks for mteb.

Neither needs Plumbline. The folder has all that mteb requires of a new task: data, metadata, descriptive statistics,
and results of baselines.
"""

from __future__ import annotations

import ast
import contextlib
import json
import runpy
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mteb
import pyarrow as pa
import pyarrow.parquet as pq
from huggingface_hub import DatasetCard, DatasetCardData, try_to_load_from_cache
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.cache import ResultCache

from evaluation.benchmarks.data_checks import hidden_bars
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.card import plain, table
from evaluation.bundle.check import open_checked
from evaluation.bundle.drafts import MOST, TaskDraft, drafts_of, identifier
from evaluation.bundle.export import export
from evaluation.bundle.folder import CARD, new_folder
from evaluation.bundle.report import warnings
from evaluation.tasks.scoring import silent_mteb
from generation.datasets.mteb_loading import quiet
from generation.datasets.mteb_registry import gold_column, text_columns
from plumbline.study import Study
from plumbline.study.datasets import SEARCHES, TRAINED

RANDOM = "mteb/baseline-random-encoder"
BASELINES = ("intfloat/multilingual-e5-small", "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2")
_WEIGHTS = "model.safetensors"
# Modules of mteb that show progress bars.
_BARS = ("mteb._content_hashes", "mteb.abstasks.abstask", "mteb.models.model_implementations.random_baseline")
# Class settings on loading data, which here is mteb's default.
_OF_LOADING = ("fast_loading", "parallel_subsets", "abstask_prompt")


@dataclass(frozen=True)
class ContributedTask:
    """A written task."""

    name: str
    dataset: str
    transformation: str
    n_items: int
    verdict: str  #: in words; empty for the untransformed texts
    scores: Mapping[str, float]  #: by baseline


@dataclass(frozen=True)
class Contribution:
    """The written tasks, and the units left out."""

    bundle: Bundle
    tasks: Sequence[ContributedTask]
    left_out: Sequence[str]  #: one line each, with the reason


def export_tasks(
    study: Study, out: Path, *, comments: bool = False, step: Callable[[], object] = lambda: None
) -> Contribution:
    """Write a study's accepted sets for mteb as a folder, which appears complete.

    `step` is called for each task. Raises StudyError if the folder is not empty or the study lacks what mteb requires,
    DataError if there is nothing to write, and as `export`.
    """
    archive = f"{study.name}.plumb"
    with new_folder(out) as temporary, quiet():
        export(study, temporary / archive, comments=comments, check=open_checked)
        bundle = open_checked(temporary / archive)
        drafts, left_out = drafts_of(bundle)
        manifest = bundle.manifest
        title = f"Tasks of {manifest.study}, edition {manifest.edition}, bundle {bundle.identity}"
        module = write_tasks(temporary, f"{identifier(study.name).lower()}_tasks", drafts, title, warnings(bundle))
        scores = _measure(temporary, module, drafts, step)
        tasks = [
            ContributedTask(
                draft.metadata.name, draft.dataset, draft.transformation, draft.n_items, draft.verdict,
                scores[draft.metadata.name],
            )
            for draft in drafts
        ]  # fmt: skip
        (temporary / CARD).write_text(_readme(bundle, tasks, left_out, module.name), encoding="utf-8")
        bundle.archive.close()
    return Contribution(Bundle.open(out / archive), tasks, left_out)


def write_tasks(folder: Path, module: str, drafts: Sequence[TaskDraft], title: str, notes: Sequence[str] = ()) -> Path:
    """Write the data of tasks below a folder, and the module of the tasks with this title and notes.

    Returns the module's file.
    """
    for draft in drafts:
        _write_data(folder / "data" / draft.metadata.name, draft)
    file = folder / f"{module}.py"
    file.write_text(_module_of(module, drafts, title, notes), encoding="utf-8")
    return file


def _write_data(folder: Path, draft: TaskDraft) -> None:
    """Write a task's data as a repository of the hub: Parquet files, and a card that describes them."""
    folder.mkdir(parents=True)
    configs = []
    for subset, parts in draft.task.dataset.items():
        tables = _search_tables if draft.kind in SEARCHES else _row_tables
        for config, splits in tables(draft, subset, parts).items():
            files = []
            for split, rows in splits.items():
                file = f"{config}/{split}.parquet"
                (folder / config).mkdir(exist_ok=True)
                pq.write_table(rows, folder / file, compression="zstd")
                files.append({"split": split, "path": file})
            configs.append({"config_name": config, "data_files": files})
    _write_card(folder, DatasetCardData(configs=configs))


def _row_tables(draft: TaskDraft, subset: str, parts: Mapping[str, Any]) -> dict[str, dict[str, pa.Table]]:
    task, kind = draft.task, draft.kind
    columns = [*text_columns(task, kind), gold_column(task, kind)]
    if kind == "summarisation":
        columns.append(task.text_column_name)
    (scored,) = task.eval_splits
    wanted = {scored: "test"} | ({task.train_split: "train"} if kind in TRAINED else {})
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


def _write_card(folder: Path, data: DatasetCardData) -> None:
    (folder / CARD).write_text(f"---\n{data.to_yaml()}\n---\n", encoding="utf-8")


_HEAD = '''"""{title}.

For mteb {version}: `mteb.evaluate(model, {module}.TASKS)`. The data are in the folder `data` beside this
file. Once they are on the hub, set each task's `path` to its repository and its `revision` to that repository's
commit.{notes}
"""

from pathlib import Path

from mteb.abstasks.task_metadata import TaskMetadata
{imports}

DATA = Path(__file__).resolve().parent / "data"
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
    if draft.kind in ("sts", "str") and "min_score" not in settings:  # of no consequence for ranks
        gold = [score for parts in task.dataset.values() for score in parts[task.eval_splits[0]]["score"]]
        settings |= {"min_score": min(gold), "max_score": max(gold)}
    if draft.kind == "clustering":
        of_draws = {"max_document_to_embed": MOST, "max_documents_per_cluster": MOST}
        settings |= {"max_fraction_of_documents_to_embed": None, **of_draws}
    if draft.kind in TRAINED:
        settings["train_split"] = "train"
    return settings


def _is_literal(value: Any) -> bool:
    if not isinstance(value, str | int | float | tuple | list | None):
        return False
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError):
        return False


class _Beside(TaskMetadata):
    """Metadata of a task whose descriptive statistics are outside mteb's folder."""

    folder: Path

    @property
    def descriptive_stat_path(self) -> Path:
        """The path below this folder, as in mteb's."""
        return self.folder / "descriptive_stats" / self.type / f"{self.name}.json"


def _measure(
    folder: Path, module: Path, drafts: Sequence[TaskDraft], step: Callable[[], object]
) -> dict[str, dict[str, float]]:
    """Load the module as any user would, and write mteb's statistics, cards and results; return scores."""
    cache, models = ResultCache(folder), baselines()
    scores: dict[str, dict[str, float]] = {}
    with contextlib.ExitStack() as stack:
        for bars in _BARS:
            stack.enter_context(hidden_bars(bars))
        stack.enter_context(silent_mteb())
        stack.enter_context(_own_cache())
        for draft, task in zip(drafts, runpy.run_path(str(module))["TASKS"], strict=True):
            facts = _Beside.model_construct(**dict(task.metadata), folder=folder)
            task.metadata = facts
            task.calculate_descriptive_statistics()
            card_data = DatasetCard.load(folder / "data" / facts.name / CARD).data
            card = _portable(facts).generate_dataset_card(DatasetCard(f"---\n{card_data.to_yaml()}\n---\n"))
            (folder / "data" / facts.name / CARD).write_text(str(card), encoding="utf-8")
            del task.metadata
            done = {
                name: mteb.evaluate(
                    model,
                    task,
                    cache=cache,
                    co2_tracker=False,
                    show_progress_bar=False,
                    encode_kwargs={"show_progress_bar": False},
                )
                for name, model in models.items()
            }
            scores[draft.metadata.name] = {name: float(result[0].get_score()) for name, result in done.items()}
            step()
    return scores


def _portable(facts: _Beside) -> _Beside:
    """Return the metadata without this machine's path."""
    return facts.model_copy(update={"dataset": {**facts.dataset, "path": facts.name}})


def baselines() -> dict[str, Any]:
    """Return the random baseline, and those of mteb's check list whose weights are on this machine."""
    models = {RANDOM: mteb.get_model(RANDOM)}
    for name in BASELINES:
        revision = mteb.get_model_meta(name).revision
        if isinstance(try_to_load_from_cache(name, _WEIGHTS, revision=revision), str):
            models[name] = mteb.get_model(name)
    return models


@contextlib.contextmanager
def _own_cache() -> Iterator[None]:
    """Use a temporary cache of `datasets`: the folder is temporary, and copies of it would stay."""
    from datasets import config  # noqa: PLC0415

    before = config.HF_DATASETS_CACHE
    with tempfile.TemporaryDirectory() as folder:
        config.HF_DATASETS_CACHE = Path(folder)
        try:
            yield
        finally:
            config.HF_DATASETS_CACHE = before


_HOW = """
Each task has its data in `data/<task>`, in the layout of the hub, with mteb's card. `{module}` has the tasks for mteb
{version}; using them does not need Plumbline:

```python
import mteb, {stem}

mteb.evaluate(mteb.get_model("intfloat/multilingual-e5-small"), {stem}.TASKS)
```

## To contribute it

1. Upload each folder of `data`: `hf upload --repo-type dataset YOUR-ORGANISATION/<task> data/<task>`.
2. In `{module}`, set the `path` of each task to its repository and the `revision` to the commit.
3. Copy the classes to `mteb/tasks`, the files of `descriptive_stats` to `mteb/descriptive_stats`, and those of
   `results` to `results` in mteb's repository of results.
4. Answer mteb's check list for new tasks. It requires results of two models; still to run: {lacking}.

`{archive}` has the ratings behind the verdicts, and can be checked: `plumbline bundle inspect {archive}`.
"""


def _readme(bundle: Bundle, tasks: Sequence[ContributedTask], left_out: Sequence[str], module: str) -> str:
    manifest = bundle.manifest
    done = list(tasks[0].scores)
    lacking = ", ".join(f"`mteb run -m {name}`" for name in BASELINES if name not in done)
    head = ["task", "data set", "transformation", "items", "verdict", *done]
    rows = [
        [t.name, t.dataset, t.transformation, t.n_items, t.verdict, *(f"{t.scores[name]:.4f}" for name in done)]
        for t in tasks
    ]
    how = _HOW.format(
        module=module,
        stem=module.removesuffix(".py"),
        version=mteb.__version__,
        lacking=lacking or "none",
        archive=f"{manifest.study}.plumb",
    )
    parts = [
        f"# {plain(manifest.study)}, edition {plain(manifest.edition)}: tasks for mteb",
        *(f"**{plain(line)}**" for line in warnings(bundle)),
        f"Bundle {bundle.identity}. All tasks of a data set have the same items. Scores follow mteb's protocol; the"
        " study's scores may cover more items and seeds, and follow another protocol.",
        table(head, rows),
        how.strip(),
        *(["## Left out", "\n".join(f"- {plain(line)}" for line in left_out)] if left_out else []),
    ]
    return "\n\n".join(parts) + "\n"
