"""A study's tasks for people: drawn from its data sets, written with their instructions, and read by later steps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from annotation.human.asking import GRADES, NONE
from annotation.human.drawing import (
    CHOSEN_AMONG,
    LABELLED,
    SCORED,
    SEARCHES,
    TaskDrawing,
    clusters_of,
    draw,
    refuse_other_scale,
)
from annotation.human.records import TASKS, HumanTask
from annotation.human.wording import InstructionFiles, human_rubric
from generation.datasets.dataset import Dataset
from generation.datasets.loading import load_dataset
from generation.datasets.scored import ScoredItem, all_labels, label_words, scored_items, split_of
from plumbline.errors import DataError, StudyError
from plumbline.identity import identity
from plumbline.manifest import Manifest
from plumbline.study import Study
from plumbline.study.datasets import DatasetSpec, TaskType
from plumbline.study.human import CANNOT_TELL, MOST_POINTS, HumanSubject, HumanTaskSpec
from plumbline.words import count, trim

NAMED = ("classification", "multilabel_classification")  # types whose labels have words
MOST_LABELS = 499  # the most that Argilla takes, beside "cannot tell"
LONGEST = 500  # the most characters on a button that Argilla takes
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


def labels_of(
    spec: HumanTaskSpec, dataset: Dataset, general: Mapping[str, Any]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return all labels of the data set in order, and words for labels that are not words.

    `general` has the words of the general answers. Raises StudyError for more labels or longer words than Argilla
    shows, for numbers without words, and for labels that people cannot tell apart.
    """
    labels = order_of(sorted(all_labels(dataset)))
    where, several = f"subject.tasks: {spec.name!r}", dataset.task == "multilabel_classification"
    if len(labels) < 2:
        raise StudyError(f"{where}: its data have only the label {', '.join(labels) or 'none'}; take the task out")
    most = MOST_LABELS - several  # with several labels, one button is "none of them"
    if len(labels) > most:
        raise StudyError(
            f"{where}: {len(labels)} labels are more than the {most} that Argilla shows; take the task out, or"
            " use a data set with fewer labels"
        )
    if strange := [label for label in spec.labels if label not in labels]:
        raise StudyError(f"{where}: its data have no label {strange[0]!r}; the labels are {', '.join(labels[:20])}")
    words = {label: wording for label, wording in {**label_words(dataset), **spec.labels}.items() if label in labels}
    if bare := [label for label in labels if is_number(label) and label not in words]:
        raise StudyError(
            f"{where}: the label {bare[0]!r} is a number, which tells people nothing; write words for the labels,"
            f" such as labels: {{{bare[0]!r}: complaint}}"
        )
    wordings = {label: words.get(label, label) for label in labels}
    _refuse_alike(where, wordings, [CANNOT_TELL, *([NONE] if several else [])], general)
    return labels, {label: wording for label, wording in wordings.items() if wording != label}


def _refuse_alike(where: str, wordings: Mapping[str, str], beside: Sequence[str], general: Mapping[str, Any]) -> None:
    """Raise StudyError for words that are too long, or equal to another label's or to a general answer's."""
    taken = {_read(words): f"the answer {words!r}" for name in beside for words in _wordings(general[name])}
    for label, words in wordings.items():
        if len(words) > LONGEST:
            raise StudyError(
                f"{where}: the words for the label {label[:40]!r} have {len(words)} characters, but a button takes at"
                f" most {LONGEST}; write shorter words under `labels`"
            )
        first = taken.setdefault(_read(words), f"the label {label!r}")
        if first != f"the label {label!r}":
            raise StudyError(
                f"{where}: raters cannot tell {first} and the label {label!r} apart; write other words for it, such as"
                f" labels: {{{label!r}: ...}}"
            )


def _wordings(words: Any) -> Iterator[str]:
    yield from words.values() if isinstance(words, Mapping) else ()


def _read(words: str) -> str:
    return " ".join(trim(words).casefold().split())


def refuse_one_label(spec: HumanTaskSpec, items: Sequence[ScoredItem]) -> None:
    """Raise StudyError if all drawn items have the same labels, so that raters cannot be told apart."""
    labels = {frozenset(item.labels) for item in items}
    if len(labels) < 2:
        only = ", ".join(sorted(next(iter(labels)))) or "none of them"
        raise StudyError(
            f"subject.tasks: {spec.name!r}: all {len(items)} drawn items have the label {only!r}, so raters cannot be"
            " told apart; write `balance: label`, or draw more items"
        )


def order_of(labels: Sequence[str]) -> tuple[str, ...]:
    """Return labels in the order shown: numbers by size, others alphabetically."""
    if all(is_number(label) for label in labels):
        return tuple(sorted(labels, key=lambda label: (float(label), label)))
    return tuple(sorted(labels, key=str.casefold))


def is_number(label: str) -> bool:
    """Return whether a label is a number and nothing else, such as 3, -1 or 0.5."""
    return bool(_NUMBER.fullmatch(label.strip()))


COMMAND = "sample"
#: The metrics of people and models, by mteb's names: its own for each type, except for bitext (a test checks it).
METRICS: dict[TaskType, str] = {
    "sts": "cosine_spearman",
    "str": "cosine_spearman",
    "pair_classification": "cosine_ap",
    "classification": "accuracy",
    "clustering": "v_measure",
    "reranking": "map_at_1000",
    "retrieval": "ndcg_at_10",
    "summarisation": "cosine_spearman",
    "bitext_mining": "accuracy",  # of a choice among candidates; mteb has F1 of a choice among all rows
    "multilabel_classification": "accuracy",
}
_ASKED = {
    "classification": "label",
    "multilabel_classification": "labels",
    "pair_classification": "same",
    "clustering": "cluster",
    "bitext_mining": "choice",
}
#: Keys of a task that have an effect only on some types.
_OF = {
    "candidates": CHOSEN_AMONG,
    "relevance": SEARCHES,
    "scale": SCORED,
    "labels": NAMED,
}


@dataclass(frozen=True)
class PreparedTask:
    """A task with its drawn items and their gold; only `task` is written to files."""

    task: HumanTask
    drawn: TaskDrawing


def prepared(study: Study) -> Iterator[PreparedTask]:
    """Yield the study's tasks, each drawn anew from its data set. Raises StudyError or DataError."""
    specs, files = {spec.name: spec for spec in study.datasets}, InstructionFiles.of(study)
    for spec in subject_of(study).tasks:
        data = specs[spec.dataset]
        dataset = load_dataset(data, study.file.parent)
        batch = study.sample.batch if study.crowd else None
        yield prepare(spec, data, dataset, files, study.sample.seed, batch)


def prepare(
    spec: HumanTaskSpec,
    data: DatasetSpec,
    dataset: Dataset,
    files: InstructionFiles,
    seed: int,
    batch: int | None = None,
) -> PreparedTask:
    """Draw a task from its data set by a seed. `batch` is a crowd worker's most items; None without a crowd.

    Raises StudyError for tasks that people cannot do.
    """
    items, kind = scored_items(dataset), str(dataset.task)
    _refuse_idle(spec, kind)
    drawn = draw(spec, kind, items, seed)
    if kind in LABELLED:
        refuse_one_label(spec, [item.scored for item in drawn.items])
    if kind == "clustering" and batch is not None and len(drawn.items) > batch:
        raise StudyError(
            f"subject.tasks: {spec.name!r}: a worker groups the texts of one batch, and {len(drawn.items)} texts"
            f" are more than sample.batch {batch}; raise sample.batch"
        )
    labels, words = labels_of(spec, dataset, files.general) if kind in NAMED else ((), {})
    scale, gold_scale = _scales(spec, data, drawn) if kind in SCORED else ((), ())
    form = _ASKED.get(kind) or (spec.relevance if kind in SEARCHES else "score")
    scored = [item.scored for item in drawn.items]
    languages = dict.fromkeys(code for item in scored for code in (item.language, item.output_language))
    return PreparedTask(
        HumanTask(
            task=spec.name,
            task_type=kind,
            dataset=spec.dataset,
            source=data.mteb or data.path,
            revision=dataset.revision,
            split=split_of(dataset),
            metric=METRICS[cast("TaskType", kind)],
            asked=cast("Any", form),
            scale=GRADES if form == "graded" else scale,
            gold_scale=gold_scale,
            labels=labels,
            label_words=words,
            clusters_told=_told(spec, drawn) if kind == "clustering" else 0,
            candidates=max(len(item.candidates) for item in drawn.items),
            raters=spec.raters,
            n_items=len(drawn.items),
            languages=tuple(languages),
            content_hash=identity("human-content-v1", [item.content() for item in drawn.items]),
            left_out=dict(drawn.left_out),
            words=files.words(kind),
            settings=settings_of(spec, seed),
        ),
        drawn,
    )


def _refuse_idle(spec: HumanTaskSpec, kind: str) -> None:
    """Raise StudyError for a key that has no effect on tasks of this type."""
    for key, kinds in _OF.items():
        if key in spec.model_fields_set and kind not in kinds:
            raise StudyError(
                f"subject.tasks: {spec.name!r}: {key} has no effect on {kind.replace('_', ' ')}, only on"
                f" {', '.join(name.replace('_', ' ') for name in kinds)}; take it out"
            )


def _told(spec: HumanTaskSpec, drawn: TaskDrawing) -> int:
    n_clusters = clusters_of(spec, drawn.items)
    if n_clusters > MOST_LABELS:
        raise StudyError(
            f"subject.tasks: {spec.name!r}: {n_clusters} clusters are more than the {MOST_LABELS} that Argilla shows;"
            " draw fewer items"
        )
    return n_clusters


def _scales(spec: HumanTaskSpec, data: DatasetSpec, drawn: TaskDrawing) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return the points of people's scale, and the ends of gold's scale if the data set has another.

    Raises StudyError for gold off its scale.
    """
    scale = _scale(spec, data.gold_scale)
    declared = data.gold_scale if "gold_scale" in data.model_fields_set else ()
    gold_scale = () if (scale[0], scale[-1]) == declared else declared
    refuse_other_scale(spec, scale, gold_scale, [item.scored for item in drawn.items])
    return scale, gold_scale


def _scale(spec: HumanTaskSpec, gold_scale: tuple[float, float]) -> tuple[int, ...]:
    low, high = spec.scale or gold_scale
    if low != int(low) or high != int(high) or not 1 <= high - low < MOST_POINTS:
        raise StudyError(
            f"subject.tasks: {spec.name!r}: people answer in whole points, {MOST_POINTS} at most, but gold_scale is"
            f" {low:g} to {high:g}; write `scale`, such as [1, 5]"
        )
    return tuple(range(int(low), int(high) + 1))


def settings_of(spec: HumanTaskSpec, seed: int) -> dict[str, Any]:
    """Return a task's settings and its sample's seed, which identify the drawing."""
    return {**spec.model_dump(mode="json"), "seed": seed}


def subject_of(study: Study) -> HumanSubject:
    """Return the study's tasks for people. Raises StudyError if it has none."""
    if not isinstance(study.subject, HumanSubject):
        raise StudyError(f"{study.file}: this study has no tasks for people; write a `subject` of kind human")
    return study.subject


def read_tasks(study: Study) -> list[HumanTask]:
    """Return the tasks as last drawn, with their instructions at that time.

    Raises DataError if they were not drawn yet, or were edited, and StudyError if the study's settings have changed.
    """
    subject, path = subject_of(study), study.folder / TASKS
    tasks = Manifest.of(study).models(TASKS, HumanTask, study.command(COMMAND))
    if not tasks:
        raise DataError(f"{path} does not exist yet; run `{study.command(COMMAND)}` first")
    drawn = {task.task: task for task in tasks}
    advice = f"run `{study.command(COMMAND)}` again, or undo the change"
    if (study.folder / "offered.json").exists():  # then no other sample is ever drawn
        advice = "people were asked already: undo the change, or give the new study another name"
    for spec in subject.tasks:
        task = drawn.get(spec.name)
        if task is None or task.settings != settings_of(spec, study.sample.seed):
            what = "has not been drawn" if task is None else "was drawn with other settings"
            raise StudyError(f"{study.file}: task {spec.name!r} {what}; {advice}")
        if set(task.words.wordings) != set(study.wordings):
            raise StudyError(f"{study.file}: `wordings` have changed since task {spec.name!r} was drawn; {advice}")
    return [drawn[spec.name] for spec in subject.tasks]


def refuse_other_tasks(study: Study, now: Sequence[HumanTask]) -> None:
    """Raise StudyError if offered tasks have changed; changed texts are refused with the sample."""
    was = {task.task: task for task in Manifest.of(study).models(TASKS, HumanTask, study.command(COMMAND))}
    for task in now:
        before = was.get(task.task)
        same = before and (before.settings, before.content_hash) == (task.settings, task.content_hash)
        if not before or not same or set(before.words.wordings) != set(study.wordings):
            raise StudyError(
                f"{study.file}: task {task.task!r} was offered to people, but its settings, `wordings` or gold have"
                " changed; undo the change, or give the new study another name"
            )


def rubric_of(study: Study, tasks: Sequence[HumanTask] | None = None) -> dict[str, Any]:
    """Return the questions to raters of a study's tasks, in the form of a rubric's file.

    `tasks` are by default those last drawn, or, before any drawing, those that would be drawn.
    """
    if tasks is None:
        drawn = (study.folder / TASKS).exists() or Manifest.of(study).notes(TASKS)
        tasks = read_tasks(study) if drawn else [drawn_task.task for drawn_task in prepared(study)]
    return human_rubric(tasks)


def task_lines(tasks: Iterable[HumanTask]) -> Iterator[str]:
    """Yield a line for each drawn task: its work, its number of items, and the items left out."""
    for task in tasks:
        size = f"{count(task.n_items, 'item')}, {count(task.raters, 'rater')} each"
        line = f"{task.task}: {task.task_type} on {size}"
        if task.candidates:
            line += f"; {task.candidates} candidates each, always with a right one"
        out = ", ".join(f"{number} {reason}" for reason, number in task.left_out.items())
        yield line + (f"; left out: {out}" if out else "")
