"""A study's tasks for people: drawn from its data sets, written with their instructions, and read by later steps."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotation.human.forms import filled, form_of
from annotation.human.records import TASKS, HumanItem, HumanTask, TaskInstructions
from annotation.human.types import TASK_KINDS, TaskDrawing, TaskSource
from annotation.questions.wordings import with_wordings
from generation.datasets.loading import load_dataset
from generation.datasets.scored import scored_items
from plumbline.errors import DataError, StudyError
from plumbline.identity import identity
from plumbline.manifest import Manifest
from plumbline.prompts import HUMAN_GENERAL, human_file
from plumbline.reading import read_yaml
from plumbline.study import Study
from plumbline.study.human import HUMAN, HumanSubject, HumanTaskSpec
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
    every = tasks[0].words.general  # the same for all tasks, because they are drawn together
    pools, questions, tasks_of = {}, list[dict[str, Any]](), dict[str, list[str]]()
    for task in tasks:
        form = form_of(task)
        pools[task.task] = form.pool()
        questions += [
            {
                "name": question.name,
                "title": filled(task.words.own[question.title], n=question.position or 1),
                "kind": question.kind,
                "labels": {label: form.words_on(label) for label in question.labels},
                "required": question.required,
                "pools": [task.task],
            }
            for question in form.questions()
        ]
        for name in task.kind.fields_with(per_candidate=form.per_candidate):
            tasks_of.setdefault(name, []).append(task.task)
    fields = [{**field, "pools": tasks_of[field["name"]]} for field in every["fields"] if field["name"] in tasks_of]
    return {
        "name": HUMAN,
        "source": every["source"],
        "fields": fields,
        "comment": every["comment"],
        "questions": questions,
        "guidelines": every["guidelines"],
        "pools": pools,
    }


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


@dataclass(frozen=True)
class InstructionFiles:
    """The present files of people's instructions (`prompts/human/`, one for each type of task).

    Reading raises StudyError for a faulty translation.
    """

    languages: tuple[str, ...]  #: codes of the raters' further languages

    @classmethod
    def of(cls, study: Study) -> InstructionFiles:
        """Return the files of a study."""
        return cls(study.wordings)

    @property
    def general(self) -> dict[str, Any]:
        """The instructions for all tasks, with their translations."""
        return self._read(human_file(HUMAN_GENERAL))

    def words(self, task_type: str) -> TaskInstructions:
        """Return the instructions that a task would have if it were drawn now."""
        every, task_words = as_recorded(self.general), as_recorded(self._read(human_file(f"{task_type}.yaml")))
        return TaskInstructions(general=every, own=task_words, wordings=tuple(sorted(self.languages)))

    def _read(self, path: Path) -> dict[str, Any]:
        content: dict[str, Any] = with_wordings(read_yaml(path), path, self.languages)
        return content


def as_recorded(words: dict[str, Any]) -> dict[str, Any]:
    """Return a file of instructions in the form of records: all keys are texts."""
    plain: dict[str, Any] = json.loads(json.dumps(words))  # all keys become text, points of a scale too
    return plain
