"""The wording of tasks for people: `prompts/human/`, a file for each type of task, combined into one rubric."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotation.human.forms import filled, form_of
from annotation.human.records import HumanTask, TaskInstructions
from annotation.questions.wordings import HUMAN_GENERAL, human_file, with_wordings
from plumbline.reading import read_yaml
from plumbline.study import Study
from plumbline.study.human import HUMAN


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
        content: dict[str, Any] = with_wordings(read_yaml(path), path, self.languages)
        return content


def as_recorded(words: dict[str, Any]) -> dict[str, Any]:
    """Return a file of instructions in the form of records: all keys are texts."""
    plain: dict[str, Any] = json.loads(json.dumps(words))  # all keys become text, points of a scale too
    return plain


def human_rubric(tasks: Sequence[HumanTask]) -> dict[str, Any]:
    """Return the tasks' rubric in the form of a file."""
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
