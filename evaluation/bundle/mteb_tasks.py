"""A bundle's accepted sets for plain mteb: drafts of tasks, their data in the hub's layout, and a module of them.

All tasks of a data set have the same items, at most `MOST`, so that their scores compare. Neither data nor module needs
Plumbline. Nothing here reads a bundle: no command imports the module that travels in one.
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
import re
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mteb
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from mteb.abstasks.task_metadata import TaskDomain, TaskMetadata
from mteb.types import Licenses

from annotation.questions.summary import Summary
from annotation.records import Verdict
from annotation.verdicts.tables import rated
from evaluation.bundle.records import CARD, BundleFacts
from evaluation.sources import OutputSource
from evaluation.tasks.kinds import KINDS, TaskScorer
from evaluation.tasks.protocols import METRICS
from evaluation.tasks.scoring import make_task, unusable
from evaluation.texts import transformed
from evaluation.units import ScoreUnit, plan_units
from generation.datasets.dataset import Dataset
from generation.datasets.mteb_loading import quiet
from plumbline.errors import StudyError
from plumbline.exhibits.table import as_markdown
from plumbline.languages import with_script
from plumbline.records import Pair, Text
from plumbline.statistics.estimates import stream
from plumbline.study.subject import ORIGINAL
from plumbline.words import count

MOST = 2048  # examples of a task: mteb's check list for new tasks
SHORTEST = 4  # characters of a text: mteb's test of new tasks refuses shorter ones


@dataclass(frozen=True)
class TaskDraft:
    """A task before it is written: mteb's task with its data, and its metadata."""

    dataset: str
    transformation: str
    kind: TaskScorer
    task: Any
    metadata: TaskMetadata
    n_items: int = 0
    verdict: str = ""  #: in words; empty for the untransformed texts


def drafts_of(source: OutputSource, facts: BundleFacts, pairs: Sequence[Pair]) -> tuple[list[TaskDraft], list[str]]:
    """Return tasks (accepted transformations by their first seed, and their data sets), and why others are left out."""
    by_place: dict[str, dict[str, list[ScoreUnit]]] = {}
    for unit in plan_units(source, facts.verdicts, pairs):
        by_place.setdefault(unit.name, {}).setdefault(unit.transformation, []).append(unit)
    drafts, left_out = list[TaskDraft](), list[str]()
    for name, of_dataset in by_place.items():
        if facts.manifest.datasets[name].texts == "reference":
            left_out.append(f"{name}: its texts may not be shared")
            continue
        if reason := KINDS[next(iter(of_dataset.values()))[0].task].no_export:
            left_out.append(f"{name}: {reason}")
            continue
        chosen = []
        for transformation, units in of_dataset.items():
            if refused := [unit.decision.reason for unit in units if unit.decision.status == "left_out"]:
                left_out.append(f"{name}, {transformation}: {refused[0]}")
            else:
                chosen.append(units[0])
        if any(unit.transformation != ORIGINAL for unit in chosen):
            drafts += _of_dataset(source, facts, chosen, left_out)
    return drafts, left_out


def _of_dataset(
    source: OutputSource, facts: BundleFacts, units: Sequence[ScoreUnit], left_out: list[str]
) -> Iterator[TaskDraft]:
    """Yield the tasks of a data set; add what is left out to `left_out`."""
    items, name = SharedItems.of(units, source.study.sample.seed), units[0].name
    if items.n_flawed:
        left_out.append(
            f"{name}: {count(items.n_flawed, 'item')} whose text, in one of the tasks, has fewer than"
            f" {SHORTEST} characters, is a duplicate, or is also in the train split"
        )
    if items.n_drawn_from > MOST:
        unused = count(items.n_drawn_from - MOST, "item")
        left_out.append(f"{name}: {unused}, because at most {MOST:,} are used (drawn at random)")
    for unit in units:
        data = items.data(unit)
        if reason := unusable(data, "paper"):
            left_out.append(f"{unit.name}, {unit.transformation}: {reason}")
            continue
        task, verdict = make_task(data, "mteb"), _verdict(facts.verdicts, unit)
        metadata = _metadata(source, facts, unit, task, verdict)
        n_items = sum(data.sizes().values())
        yield TaskDraft(unit.name, unit.transformation, KINDS[unit.task], task, metadata, n_items, verdict)


@dataclass(frozen=True)
class SharedItems:
    """The items of a data set that all its tasks share: good in each of them, and at most `MOST`.

    `failed` are texts (ids) whose outputs failed in one of them.
    """

    chosen: frozenset[str]
    failed: frozenset[str]
    n_flawed: int
    n_drawn_from: int

    @classmethod
    def of(cls, units: Sequence[ScoreUnit], seed: int) -> SharedItems:
        """Choose the items of a data set's units."""
        dataset = units[0].dataset
        failed = frozenset().union(*(unit.failed_texts for unit in units))
        texts = [text for text in dataset.texts() if text.field != "passage" and text.text_id not in failed]
        incomplete = {
            _item(text) for text in dataset.texts() if text.text_id in failed and _is_scored(text) and not _nested(text)
        }
        names = list(dict.fromkeys(_item(text) for text in texts if _is_scored(text)))
        complete = [name for name in names if name not in incomplete]
        flawed = frozenset().union(*(_flawed(texts, unit) for unit in units))
        good = [name for name in complete if name not in flawed]
        positions = stream(seed, "mteb", units[0].name).permutation(len(good))[:MOST]
        return cls(frozenset(good[position] for position in positions), failed, len(complete) - len(good), len(good))

    def data(self, unit: ScoreUnit) -> Dataset:
        """Return the data set of a unit with only these items."""
        narrowed = unit.dataset.replaced(lambda text, cell: cell if self._keeps(text) else None)
        return narrowed if unit.outputs is None else transformed(narrowed, unit.outputs)

    def _keeps(self, text: Text) -> bool:
        if text.text_id in self.failed:
            return False
        return text.field == "passage" or not _is_scored(text) or _item(text) in self.chosen


def _is_scored(text: Text) -> bool:
    return text.split == "test"


def _nested(text: Text) -> bool:
    """Return whether a text is one of a list in its row."""
    return re.search(rf"/{re.escape(text.field)}/\d+$", text.item) is not None


def _item(text: Text) -> str:
    """Return the example that a text belongs to: its row, or itself if a row is a set of texts to cluster."""
    return text.item if text.task_type == "clustering" else re.sub(rf"/{re.escape(text.field)}/\d+$", "", text.item)


def _flawed(texts: Sequence[Text], unit: ScoreUnit) -> set[str]:
    """Return the items that mteb's test of new tasks refuses: short texts, duplicates, and texts of training."""
    change = (lambda _, cell: cell) if unit.outputs is None else unit.outputs.change
    trained = {change(text, text.text) for text in texts if not _is_scored(text)}
    by_item: dict[str, list[str]] = {}
    for text in texts:
        if _is_scored(text):
            by_item.setdefault(_item(text), []).append(change(text, text.text) or "")
    flawed, earlier = set[str](), set[tuple[str, ...]]()
    for item, words in by_item.items():
        if any(len(word) < SHORTEST for word in words) or tuple(words) in earlier or trained.intersection(words):
            flawed.add(item)
        earlier.add(tuple(words))
    return flawed


def _metadata(source: OutputSource, facts: BundleFacts, unit: ScoreUnit, task: Any, verdict: str) -> TaskMetadata:
    """Return all metadata that mteb requires of a task; its revision is set when its data are written."""
    manifest, rights, base = facts.manifest, facts.manifest.datasets[unit.name], task.metadata
    name = identifier(unit.name) + identifier(unit.transformation)  # of no task of mteb, where originals may be one
    of_study = f"From {facts.title}; {facts.origin}.{''.join(f' {line}' for line in facts.warnings)}"
    untransformed = f"{unit.name} untransformed, with the items of the transformed tasks of {facts.study}."
    codes = _languages(source, unit)
    several = set(task.dataset) != {"default"}
    by_people = verdict and not facts.warnings
    return TaskMetadata(
        name=name,
        description=f"{unit.name}, {unit.transformation.replace('_', ' ')}. {of_study} {verdict}"
        if verdict
        else untransformed,
        dataset={"path": name, "revision": "0"},
        type=base.type,
        category=base.category,
        modalities=base.modalities,
        prompt=base.prompt,
        reference=rights.reference or manifest.metadata.get("url"),
        eval_splits=["test"],
        eval_langs={name: base.hf_subsets_to_langscripts[name] for name in task.dataset} if several else codes,
        main_score=METRICS[unit.task],
        date=facts.rated,
        domains=[domain for domain in rights.domains if domain in typing.get_args(TaskDomain)],
        task_subtypes=[],
        license=_licence(rights.licence),
        annotations_creators=base.annotations_creators or "derived",
        dialect=[],
        sample_creation="LM-generated and verified" if by_people else base.sample_creation or "created",
        bibtex_citation="\n".join(text for text in (rights.citation, manifest.citation) if text),
        adapted_from=[base.name] if unit.spec.mteb else None,
    )


def _languages(source: OutputSource, unit: ScoreUnit) -> list[str]:
    """Return the languages of the outputs, for searches also those of the searched texts."""
    if unit.transformation == ORIGINAL:
        return [with_script(code) for code in unit.languages]
    jobs = (source.plan.job(text, unit.transformation, unit.seed) for text in unit.dataset.texts())
    codes = {job.languages[-1] for job in jobs}
    codes |= set(unit.languages) if KINDS[unit.task].second_side else set()
    return [with_script(code) for code in sorted(codes)]


def _licence(name: str) -> Any:
    """Return the licence in mteb's words, or its address."""
    if name.lower() in typing.get_args(Licenses):
        return name.lower()
    return name if name.startswith(("http://", "https://")) else "not specified"


def _verdict(verdicts: Sequence[Verdict], unit: ScoreUnit) -> str:
    """Return the verdicts on a transformation in words, and whether they are carried over to these outputs."""
    words = [
        f"Verdict of {'simulated raters' if verdict.simulated else 'people'} on {verdict.language}: {verdict.decision};"
        f" {', '.join(mean_words(summary) for summary in rated(verdict.questions)) or '; '.join(verdict.reasons)};"
        f" {verdict.n_pairs} pairs, {verdict.n_ratings} ratings."
        for verdict in verdicts
        if verdict.transformation == unit.transformation
        and verdict.decision == "accepted"
        and verdict.language in unit.languages
        and verdict.task_type in ("", unit.task)
    ]
    return " ".join([*words, *([f"{unit.decision.reason.capitalize()}."] if unit.decision.reason else [])])


def mean_words(summary: Summary) -> str:
    """Return a question's mean in words, with its interval and AC2 if it has them."""
    parts = [f"95% interval {summary.low:.2f} to {summary.high:.2f}"] if not math.isnan(summary.low) else []
    parts += [f"AC2 {summary.ac2.value:.2f}"] if not math.isnan(summary.ac2.value) else []
    return f"{summary.question} {summary.mean:.2f}" + (f" ({', '.join(parts)})" if parts else "")


def identifier(name: str) -> str:
    """Return a name as mteb writes task names: `sample_sts` is SampleSts."""
    words = [word for word in re.split(r"[^A-Za-z0-9]+", name) if word]
    joined = "".join(word[0].upper() + word[1:] for word in words)
    return joined if joined[:1].isalpha() else f"Set{joined}"


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
    prefix = "" if subset == "default" else f"{subset}-"
    queries = set(part["queries"]["id"])
    judged = [
        {"query-id": query, "corpus-id": passage, "score": value}
        for query, judgements in part["relevant_docs"].items()
        if query in queries
        for passage, value in judgements.items()
    ]
    tables = {
        f"{prefix}corpus": _table(part["corpus"]),
        f"{prefix}queries": _table(part["queries"]),
        f"{prefix}qrels" if prefix else "default": pa.Table.from_pylist(judged),
    }
    if part["top_ranked"]:
        ranked = [{"query-id": query, "corpus-ids": list(part["top_ranked"][query])} for query in sorted(queries)]
        tables[f"{prefix}top_ranked"] = pa.Table.from_pylist(ranked)
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
