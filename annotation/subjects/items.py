"""The items of a study's subject, whichever it is."""

from __future__ import annotations

from annotation.rubric import Rubric
from annotation.subjects.item import Item
from annotation.subjects.texts import read_texts
from plumbline.errors import StudyError
from plumbline.study import Study
from plumbline.study.subject import TextsSubject


def read_items(study: Study, rubric: Rubric) -> list[Item]:
    """All items of a subject, in their order, each once. Raises DataError for what cannot be judged."""
    if not isinstance(study.subject, TextsSubject):
        raise StudyError(f"{study.file}: its subject is pairs, which are drawn from outputs")
    return list({(item.key, bool(item.expected)): item for item in read_texts(study, study.subject, rubric)}.values())
