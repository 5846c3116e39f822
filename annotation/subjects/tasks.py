"""The items of a study's data sets as raters see them; what is right of them stays outside."""

from __future__ import annotations

from collections.abc import Iterator

from annotation.rubric import Rubric
from annotation.subjects.item import Item
from generation.datasets.items import items_of
from generation.datasets.loading import iter_datasets
from plumbline.errors import StudyError
from plumbline.fields import kind_of
from plumbline.study import Study
from plumbline.study.subject import ItemsSubject


def read_tasks(study: Study, subject: ItemsSubject, rubric: Rubric) -> Iterator[Item | str]:
    """The items of all data sets, in order; of one that lacks a text that raters are to see, its group's name.

    Raises StudyError for a field that no item of a data set has, and what `load_dataset` raises.
    """
    for dataset in iter_datasets(study):
        group = dataset.name
        wanted = {one.name: one.kind for one in rubric.fields.of(group)}
        there = dict[str, str]()
        found = list(items_of(dataset, subject.candidates))
        for one in found:
            there |= {name: kind_of(value) for name, value in one.fields.items()}
        for name, kind in wanted.items():
            if there.get(name) != kind:
                has = ", ".join(f"{other} ({own})" for other, own in there.items())
                raise StudyError(
                    f"{study.file}: rubric {rubric.name!r} shows the field {name!r} ({kind}) of {group!r}, whose items"
                    f" have {has}; correct its `fields`, or say there with `pools` which data sets have it"
                )
        for one in found:
            if not set(wanted) <= set(one.fields):
                yield group
                continue
            yield Item(
                group=group,
                language=one.language,
                output_language=one.output_language,
                dataset=group,
                task_type=dataset.task,
                fields={name: one.fields[name] for name in wanted},
                maker=(group, dataset.revision),
            )
