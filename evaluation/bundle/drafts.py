"""Drafts of mteb tasks from a bundle, in memory: their items, data, metadata, and people's verdicts in words.

All tasks of a data set have the same items, at most `MOST`, so that their scores compare.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mteb.abstasks.task_metadata import TaskMetadata

from annotation.records import Summary, Verdict
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.records import DatasetSource
from evaluation.bundle.source import BundleSource
from evaluation.bundle.tasks import grouped, metadata_of
from evaluation.tasks.protocols import METRICS
from evaluation.tasks.scoring import make_task, unusable
from evaluation.texts import transformed
from evaluation.units import ScoreUnit, plan_units
from generation.datasets.dataset import Dataset
from plumbline.errors import DataError, StudyError
from plumbline.records import Text
from plumbline.statistics.estimates import stream
from plumbline.study.datasets import TaskType
from plumbline.transformations import ORIGINAL
from plumbline.words import count

MOST = 2048  # examples of a task: mteb's check list for new tasks
SHORTEST = 4  # characters of a text: mteb's test of new tasks refuses shorter ones


@dataclass(frozen=True)
class TaskDraft:
    """A task before it is written: mteb's task with its data, and its metadata."""

    dataset: str
    transformation: str
    kind: TaskType
    task: Any
    metadata: TaskMetadata
    n_items: int = 0
    verdict: str = ""  #: in words; empty for the untransformed texts


def drafts_of(bundle: Bundle) -> tuple[list[TaskDraft], list[str]]:
    """Return (the tasks of a bundle, the parts left out with reasons)."""
    study = bundle.study([{"name": "whatever mteb brings"}])
    source = BundleSource(bundle, study)
    hidden = {dataset.name for dataset in bundle.manifest.datasets if dataset.texts == "reference"}
    shared = [dataset for dataset in bundle.manifest.datasets if dataset.name not in hidden]
    left_out = [f"{name}: its texts may not be shared" for name in sorted(hidden)]
    units = plan_units(source, bundle.verdicts, source.pairs(), include_rejected=False)
    drafts: list[TaskDraft] = []
    for dataset in shared:
        of_dataset, without = _units_of(dataset.name, units)
        left_out += without
        drafts += _of_dataset(bundle, source, dataset, of_dataset, left_out)
    if not any(draft.transformation != ORIGINAL for draft in drafts):
        reasons = "; ".join(left_out) or "no verdict accepts a transformation"
        raise DataError(f"{bundle.path}: no task can be made ({reasons})")
    names = [draft.metadata.name for draft in drafts]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise StudyError(f"two tasks would be called {twice[0]}; rename one of the study's data sets")
    return drafts, left_out


def _units_of(name: str, units: Sequence[ScoreUnit]) -> tuple[list[ScoreUnit], list[str]]:
    """Return (a data set's accepted units, for each transformation the first seed's; what is left out)."""
    chosen, left_out = list[ScoreUnit](), list[str]()
    for dataset, transformation, of_place in grouped(units):
        if dataset != name:
            continue
        first = of_place[0]
        if first.task == "instruction_reranking":
            return [], [
                f"{name}: instruction reranking is not exported, as its mteb tasks would need code of their own"
            ]
        if any(unit.decision.status == "left_out" for unit in of_place):
            left_out.append(f"{name}, {transformation}: {first.decision.reason}")
        else:
            chosen.append(first)
    return chosen, left_out


def _of_dataset(
    bundle: Bundle, source: BundleSource, dataset: DatasetSource, units: Sequence[ScoreUnit], left_out: list[str]
) -> Iterator[TaskDraft]:
    """Yield the tasks of a data set; add what is left out to `left_out`."""
    if not units:
        return
    items = SharedItems.of(units, source.study.sample.seed)
    if items.n_flawed:
        left_out.append(
            f"{dataset.name}: {count(items.n_flawed, 'item')} whose text, in one of the tasks, has fewer than"
            f" {SHORTEST} characters, is a duplicate, or is also in the train split"
        )
    if items.n_drawn_from > MOST:
        unused = count(items.n_drawn_from - MOST, "item")
        left_out.append(f"{dataset.name}: {unused}, because at most {MOST:,} are used (drawn at random)")
    for unit in units:
        data = items.data(unit)
        if reason := unusable(data, "paper"):
            left_out.append(f"{unit.name}, {unit.transformation}: {reason}")
            continue
        task = make_task(data, "mteb")
        verdict = _verdict(bundle.verdicts, unit)
        metadata = _metadata(bundle, source, dataset, unit, task, verdict)
        n_items = sum(data.sizes().values())
        yield TaskDraft(unit.name, unit.transformation, unit.task, task, metadata, n_items, verdict)


@dataclass(frozen=True)
class SharedItems:
    """The items of a data set that all its tasks share: good in each of them, and at most `MOST`.

    `lost` are texts (ids) whose outputs failed in one of them.
    """

    chosen: frozenset[str]
    lost: frozenset[str]
    n_flawed: int
    n_drawn_from: int

    @classmethod
    def of(cls, units: Sequence[ScoreUnit], seed: int) -> SharedItems:
        """Choose the items of a data set's units."""
        dataset = units[0].dataset
        lost = frozenset().union(*(unit.lost for unit in units))
        texts = [text for text in dataset.texts() if text.field != "passage" and text.text_id not in lost]
        incomplete = {
            _item(text) for text in dataset.texts() if text.text_id in lost and _is_scored(text) and not _nested(text)
        }
        names = list(dict.fromkeys(_item(text) for text in texts if _is_scored(text)))
        whole = [name for name in names if name not in incomplete]
        flawed = frozenset().union(*(_flawed(texts, unit) for unit in units))
        good = [name for name in whole if name not in flawed]
        positions = stream(seed, "mteb", units[0].name).permutation(len(good))[:MOST]
        return cls(frozenset(good[position] for position in positions), lost, len(whole) - len(good), len(good))

    def data(self, unit: ScoreUnit) -> Dataset:
        """Return the data set of a unit with only these items."""
        narrowed = unit.dataset.replaced(lambda text, cell: cell if self._keeps(text) else None)
        return narrowed if unit.outputs is None else transformed(narrowed, unit.outputs)

    def _keeps(self, text: Text) -> bool:
        if text.text_id in self.lost:
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
    flawed, seen = set[str](), set[tuple[str, ...]]()
    for item, words in by_item.items():
        if any(len(word) < SHORTEST for word in words) or tuple(words) in seen or trained.intersection(words):
            flawed.add(item)
        seen.add(tuple(words))
    return flawed


def _metadata(
    bundle: Bundle, source: BundleSource, dataset: DatasetSource, unit: ScoreUnit, task: Any, verdict: str
) -> TaskMetadata:
    """Return all metadata that mteb requires of a task. Raises StudyError if the study lacks some."""
    reference = dataset.reference or bundle.manifest.reference
    if not reference:
        raise StudyError(
            f"data set {dataset.name!r} has no `reference`, the address of a page about it, which mteb requires; add it"
            f" to `bundle.datasets` in the study, or to `bundle`"
        )
    of_bundle = metadata_of(bundle, source, dataset, [unit], ["default"])
    name = identifier(dataset.name) + identifier(unit.transformation)  # of no task of mteb, where originals may be one
    several = set(task.dataset) != {"default"}
    changes: dict[str, Any] = {
        "name": name,
        "description": f"{of_bundle.description} {verdict}" if verdict else _untransformed(bundle, dataset),
        "dataset": {"path": name, "revision": bundle.identity},
        "reference": reference,
        "bibtex_citation": of_bundle.bibtex_citation or "",
        "main_score": METRICS[unit.task],
        "adapted_from": [task.metadata.name] if dataset.kind == "mteb" else None,
        "domains": of_bundle.domains or [],
    }
    if several:
        changes["eval_langs"] = {name: task.metadata.hf_subsets_to_langscripts[name] for name in task.dataset}
    return TaskMetadata.model_validate(of_bundle.model_dump() | changes)


def _untransformed(bundle: Bundle, dataset: DatasetSource) -> str:
    return f"{dataset.name} untransformed, with the items of the transformed tasks of {bundle.manifest.study}."


def _verdict(verdicts: Sequence[Verdict], unit: ScoreUnit) -> str:
    """Return the verdicts on a transformation in words."""
    return " ".join(
        f"Verdict of {'simulated raters' if verdict.simulated else 'people'} on {verdict.language}: {verdict.decision};"
        f" {', '.join(_mean(summary) for summary in verdict.questions)};"
        f" {verdict.n_pairs} pairs, {verdict.n_ratings} ratings."
        for verdict in verdicts
        if verdict.transformation == unit.transformation
        and verdict.decision == "accepted"
        and verdict.language in unit.languages
        and verdict.task_type in ("", unit.task)
    )


def _mean(summary: Summary) -> str:
    agreement = f", AC2 {summary.ac2.value:.2f}" if summary.ac2.value == summary.ac2.value else ""
    return f"{summary.question} {summary.mean:.2f} (95% interval {summary.low:.2f} to {summary.high:.2f}{agreement})"


def identifier(name: str) -> str:
    """Return a name as mteb writes task names: `sample_sts` is SampleSts."""
    words = [word for word in re.split(r"[^A-Za-z0-9]+", name) if word]
    joined = "".join(word[0].upper() + word[1:] for word in words)
    return joined if joined[:1].isalpha() else f"Set{joined}"
