"""The wording of tasks for people: `prompts/human/`, a file for each type of task, combined into one rubric."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotation.human.asking import NO, NONE, YES, TaskQuestion, apart, questions_of
from annotation.human.records import HumanTask, TaskInstructions
from annotation.questions import ENGLISH
from annotation.wordings import HUMAN_GENERAL, human_file, with_wordings
from plumbline.errors import DataError, StudyError
from plumbline.reading import read_yaml
from plumbline.study import Study
from plumbline.study.human import CANNOT_TELL, HUMAN

Words = Mapping[str, str]


@dataclass(frozen=True)
class InstructionFiles:
    """The present files of people's instructions. Reading raises StudyError for a faulty translation."""

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
        try:
            content: dict[str, Any] = with_wordings(read_yaml(path), path, self.languages)
        except DataError as error:
            raise StudyError(str(error)) from None
        return content


def as_recorded(words: dict[str, Any]) -> dict[str, Any]:
    """Return a file of instructions in the form of records: all keys are texts."""
    plain: dict[str, Any] = json.loads(json.dumps(words))  # all keys become text, points of a scale too
    return plain


def human_rubric(tasks: Sequence[HumanTask]) -> dict[str, Any]:
    """Return the tasks' rubric in the form of a file."""
    every = tasks[0].words.general  # the same for all tasks, because they are drawn together
    pools, questions, shown = {}, list[dict[str, Any]](), dict[str, list[str]]()
    for task in tasks:
        task_words = task.words.own
        pools[task.task] = _pool(task_words, task)
        questions += [_question(every, task_words, task, asking) for asking in questions_of(task)]
        for name in fields_of(task):
            shown.setdefault(name, []).append(task.task)
    fields = [{**field, "pools": shown[field["name"]]} for field in every["fields"] if field["name"] in shown]
    return {
        "name": HUMAN,
        "source": every["source"],
        "fields": fields,
        "comment": every["comment"],
        "questions": questions,
        "guidelines": every["guidelines"],
        "pools": pools,
    }


def fields_of(task: HumanTask) -> tuple[str, ...]:
    """The fields that a task's raters read, in order."""
    if task.task_type in ("sts", "str", "pair_classification"):
        return ("sentence1", "sentence2")
    if task.task_type == "bitext_mining":
        return ("sentence1", "candidates")
    if task.task_type == "summarisation":
        return ("human_summaries", "summary")
    if task.candidates:
        return ("query", "passage") if apart(task) else ("query", "candidates")
    return ("text",)


def _pool(task_words: Mapping[str, Any], task: HumanTask) -> dict[str, Any]:
    question = task_words["one"] if apart(task) else task_words["asked"]
    if task.candidates and not apart(task):
        question = _joined(question, task_words["always"])
    if task.asked == "cluster":
        question = _joined(question, _filled(task_words["told"], k=task.clusters_told))
    hint = {task.task: {"hint": task_words["hint"]}} if "hint" in task_words else {}
    return {"title": task_words["title"], "asked": question, "questions": hint}


def _question(
    every: Mapping[str, Any], task_words: Mapping[str, Any], task: HumanTask, asking: TaskQuestion
) -> dict[str, Any]:
    title = task_words["question"]
    if task.asked == "ranked":
        title = task_words["order"] if asking.kind == "ranking" else task_words["told"]
    elif apart(task):
        title = task_words["single"]
    title = _filled(title, n=asking.position or 1)
    words = {name: _words(every, task_words, task, name) for name in asking.labels}
    return {
        "name": asking.name,
        "title": title,
        "kind": asking.kind,
        "labels": words,
        "required": asking.required,
        "pools": [task.task],
    }


def _words(every: Mapping[str, Any], task_words: Mapping[str, Any], task: HumanTask, name: str) -> Words:
    """Return the words on a button."""
    if name in (CANNOT_TELL, NONE):
        return dict(every[name])
    if name in (YES, NO):
        words: Words = task_words.get(name, every[name]) if task.asked == "binary" else every[name]
        return dict(words)
    if name[0] == "l":
        label = task.labels[int(name[1:]) - 1]
        return {ENGLISH: task.label_words.get(label, label)}
    if name[0] == "c":
        return _filled(every["cluster"], n=int(name[1:]))
    if name[0] == "d":
        return _filled(every["passage"], n=int(name[1:]))
    return _point(task_words, task, int(name[1:]))


def _point(task_words: Mapping[str, Any], task: HumanTask, point: int) -> Words:
    """Return the words of a scale's point: of all points if they have words, otherwise only of the ends.

    A button has a number, which is its key. So a point shows its own number only if both are equal; on a scale from 0,
    points have words, or a dot for each point below.
    """
    index = task.scale.index(point)
    ends = {str(task.scale[0]): task_words.get("low"), str(task.scale[-1]): task_words.get("high")}
    scale = f"{task.scale[0]} to {task.scale[-1]}"
    every = task_words["grades"] if task.asked == "graded" else task_words.get("scales", {}).get(scale, ends)
    words = every.get(str(point)) or {ENGLISH: ""}
    if all(every.get(str(step)) for step in task.scale):
        return dict(words)
    mark = str(point) if task.scale[0] == 1 else "●" * index or "○"
    return {code: f"{mark} {text}".strip() for code, text in words.items()}


def _joined(first: Words, second: Words) -> Words:
    return {code: f"{text} {second.get(code, second[ENGLISH])}" for code, text in first.items()}


def _filled(words: Words, **numbers: int) -> Words:
    """Put numbers into the places `{n}` and `{k}` of words."""
    filled = dict(words)
    for name, number in numbers.items():
        filled = {code: text.replace(f"{{{name}}}", str(number)) for code, text in filled.items()}
    return filled
