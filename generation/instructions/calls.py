"""What the generator is asked: one call for each task type, and one or two for each data set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from generation.instructions.tasks import FOLDER, TaskWords, asked_of, listed, tasks_of
from generation.jobs import generator_hash
from plumbline.file_hashes import cached_file_hash
from plumbline.identity import identity
from plumbline.languages import language_name
from plumbline.prompts import Prompt, load_prompt, prompt_hash
from plumbline.study import Study
from plumbline.study.datasets import TaskType
from plumbline.study.generator import RecordedGenerator
from plumbline.study.subject import Context


@dataclass(frozen=True)
class Call:
    """One message to the generator; `task` is empty where the wordings are for all data sets of the type."""

    key: str
    message: str
    context: Context
    task: str
    task_type: TaskType
    number: int
    prompt_hash: str


def calls_of(study: Study) -> list[Call]:
    """The calls that a study wants, in the order of its contexts and data sets. Raises as `tasks_of`."""
    subject, tasks = asked_of(study), tasks_of(study)
    return [call for context in subject.contexts for call in _of_context(study, context, tasks)]


def maker_hash(study: Study) -> str:
    """Identity of the generator; of a recorded one its file's content too."""
    spec, made = study.generator, generator_hash(study.generator)
    if isinstance(spec, RecordedGenerator):
        return identity("recorded-v1", made, cached_file_hash(study.resolve(spec.path)))
    return made


def _of_context(study: Study, context: Context, tasks: list[TaskWords]) -> Iterator[Call]:
    template, subject, maker = load_prompt(context, FOLDER), asked_of(study), maker_hash(study)
    types = set[TaskType]()
    for one in tasks:
        if context == "task_type" and one.task_type in types:
            continue
        types.add(one.task_type)
        message = _message(template, subject.per_call, subject.language, one)
        key = identity("instructions-v1", maker, message, subject.per_call, subject.seed)
        task = "" if context == "task_type" else one.name
        yield Call(key, message, context, task, one.task_type, subject.per_call, prompt_hash((template,)))


def _message(template: Prompt, number: int, language: str, task: TaskWords) -> str:
    values = {
        "number": str(number),
        "wording_language": language_name(language),
        "task": task.type_words,
        "description": task.description,
        "text_languages": listed(task.languages),
    }
    return template.render({name: value for name, value in values.items() if name in template.variables})
