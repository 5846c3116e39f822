"""The items of a study's subject, whichever it is."""

from __future__ import annotations

from collections import Counter

from annotation.rubric import Rubric
from annotation.subjects.item import Item
from annotation.subjects.tasks import read_tasks
from annotation.subjects.texts import read_texts
from plumbline.errors import StudyError
from plumbline.study import Study
from plumbline.study.subject import OF_TEXTS, ItemsSubject


def read_items(study: Study, rubric: Rubric) -> tuple[list[Item], Counter[str]]:
    """All items of a subject, in their order, each once; and by group how many lack a text that raters are to see.

    Raises DataError or StudyError for what cannot be judged.
    """
    lacking, found = Counter[str](), list[Item]()
    if isinstance(study.subject, OF_TEXTS):
        found = read_texts(study, study.subject, rubric)
    elif isinstance(study.subject, ItemsSubject):
        for one in read_tasks(study, study.subject, rubric):
            if isinstance(one, str):
                lacking[one] += 1
            else:
                found.append(one)
    else:
        raise StudyError(f"{study.file}: its subject is pairs, which are drawn from outputs")
    return list({(item.key, bool(item.expected)): item for item in reversed(found)}.values())[::-1], lacking
