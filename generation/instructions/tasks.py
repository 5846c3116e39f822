"""What a study's data sets are to be done with, in words: for the generator, and for the people who label wordings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from generation.datasets.mteb_registry import task_of
from plumbline.errors import StudyError
from plumbline.languages import language_name, language_pair
from plumbline.prompts import PROMPTS
from plumbline.reading import read_yaml
from plumbline.study import Study
from plumbline.study.datasets import MtebDataset, TaskType
from plumbline.study.subject import InstructionsSubject

FOLDER: Path = PROMPTS / "instructions"


@dataclass(frozen=True)
class DatasetDescription:
    """A data set of the study: its name, what is done with it, what it holds, and its texts' languages in English."""

    name: str
    task_type: TaskType
    type_words: str
    description: str  #: empty where nobody says
    languages: tuple[str, ...]


def asked_of(study: Study) -> InstructionsSubject:
    """The subject of a study of instructions. Raises StudyError where it is another one."""
    if not isinstance(study.subject, InstructionsSubject):
        raise StudyError(
            f"{study.file}: it words no instructions; write `subject: {{kind: instructions}}` (docs/instructions.md)"
        )
    return study.subject


def tasks_of(study: Study) -> list[DatasetDescription]:
    """The study's data sets, in its order; no data are loaded.

    Raises StudyError for what mteb does not have, and for a data set without a description that a context needs.
    """
    subject, types = asked_of(study), type_words()
    descriptions = []
    for spec in study.datasets:
        if isinstance(spec, MtebDataset):
            task, kind, _, languages = task_of(spec)
            codes = [code for pair in languages.values() for code in pair]
            description = str(task.metadata.description or "")
        else:
            kind, codes, description = spec.task, list(language_pair(spec.language)), ""
        description = " ".join((subject.descriptions.get(spec.name) or description).split())
        if not description and set(subject.contexts) - {"task_type"}:
            raise StudyError(
                f"{study.file}: nobody says what data set {spec.name!r} holds; write it as `subject.descriptions:"
                f" {{{spec.name}: ...}}`, or leave `contexts: [task_type]`"
            )
        names = tuple(dict.fromkeys(language_name(code) for code in codes))
        descriptions.append(DatasetDescription(spec.name, kind, types[kind], description, names))
    return descriptions


def type_words() -> Mapping[TaskType, str]:
    """What a task of each type does, in a sentence."""
    words: dict[TaskType, str] = read_yaml(FOLDER / "task_types.yaml")
    if lost := set(get_args(TaskType)) - set(words):
        raise StudyError(f"{FOLDER / 'task_types.yaml'}: says nothing of {min(lost)!r}; add it")
    return words


def listed(names: Sequence[str]) -> str:
    """`German`, `German and English`, `German, English and French`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
