"""A study's tasks for people: drawn from its data sets, written with their instructions, and read by later steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from annotation.human.records import TASKS, HumanItem, HumanTask
from annotation.human.types import TASK_KINDS, TaskDrawing, TaskSource
from annotation.human.wording import InstructionFiles, human_rubric
from generation.datasets.loading import load_dataset
from generation.datasets.scored import scored_items
from plumbline.errors import DataError, StudyError
from plumbline.identity import identity
from plumbline.manifest import Manifest
from plumbline.study import Study
from plumbline.study.human import HumanSubject, HumanTaskSpec
from plumbline.words import count

COMMAND = "sample"


@dataclass(frozen=True)
class PreparedTask:
    """A task with its drawn items and their gold; only `task` is written to files."""

    task: HumanTask
    drawn: TaskDrawing


def prepared(study: Study) -> Iterator[PreparedTask]:
    """Yield the study's tasks, each drawn anew from its data set. Raises StudyError or DataError."""
    specs, files = {spec.name: spec for spec in study.datasets}, InstructionFiles.of(study)
    for spec in subject_of(study).tasks:
        dataset = load_dataset(specs[spec.dataset], study.file.parent)
        source = TaskSource(specs[spec.dataset], dataset, files.general, study.sample.batch if study.crowd else None)
        yield prepare(spec, source, files, study.sample.seed)


def prepare(spec: HumanTaskSpec, source: TaskSource, files: InstructionFiles, seed: int) -> PreparedTask:
    """Draw a task from its data set by a seed. Raises StudyError for tasks that people cannot do."""
    dataset = source.dataset
    items, kind = scored_items(dataset), TASK_KINDS[str(dataset.task)]
    drawn = kind.draw(spec, items, seed)
    facts = kind.facts(drawn, source)
    languages = dict.fromkeys(code for item in drawn.scored for code in (item.language, item.output_language))
    return PreparedTask(
        HumanTask(
            task=spec.name,
            task_type=kind.name,
            source=source.data.mteb or source.data.path,
            revision=dataset.revision,
            languages=tuple(languages),
            content_hash=identity("human-content-v1", [item.content() for item in drawn.items]),
            left_out=dict(drawn.left_out),
            words=files.words(kind.name),
            settings=settings_of(spec, seed),
            **facts,
        ),
        drawn,
    )


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
            fault = "has not been drawn" if task is None else "was drawn with other settings"
            raise StudyError(f"{study.file}: task {spec.name!r} {fault}; {advice}")
        if set(task.words.wordings) != set(study.wordings):
            raise StudyError(f"{study.file}: `wordings` have changed since task {spec.name!r} was drawn; {advice}")
    return [drawn[spec.name] for spec in subject.tasks]


def refuse_other_tasks(study: Study, tasks: Sequence[HumanTask]) -> None:
    """Raise StudyError if offered tasks have changed; changed texts are refused with the sample."""
    was = {task.task: task for task in Manifest.of(study).models(TASKS, HumanTask, study.command(COMMAND))}
    for task in tasks:
        earlier = was.get(task.task)
        same = earlier and (earlier.settings, earlier.content_hash) == (task.settings, task.content_hash)
        if not earlier or not same or set(earlier.words.wordings) != set(study.wordings):
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


def task_lines(tasks: Iterable[HumanTask], items: Iterable[HumanItem]) -> Iterator[str]:
    """Yield a line for each drawn task: its work, its number of items, and the items left out."""
    n_items = Counter(item.task for item in items)
    for task in tasks:
        size = f"{count(n_items[task.task], 'item')}, {count(task.raters, 'rater')} each"
        line = f"{task.task}: {task.task_type} on {size}"
        if task.candidates:
            line += f"; {task.candidates} candidates each, always with a right one"
        out = ", ".join(f"{number} {reason}" for reason, number in task.left_out.items())
        yield line + (f"; left out: {out}" if out else "")
