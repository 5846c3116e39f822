"""The order in which each rater sees the candidates of an item, where raters are shown orders of their own.

Answers name a candidate by its number among those of `HumanItem.shown`, whatever its place was: whoever shows them in
another order puts the same number's answers beside the same candidate. Argilla's local server does so for each rater,
and a crowd's page for each of its workers; an Argilla elsewhere shows all the one order that was drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from annotation.human.asking import apart, questions_of
from annotation.human.records import ITEMS, HumanItem, HumanTask
from annotation.human.tasks import read_tasks
from plumbline.fields import fields_of
from plumbline.identity import identity
from plumbline.records import Pair
from plumbline.store import read_records
from plumbline.study import Study
from plumbline.study.human import HumanSubject

FIELD = "candidates"  # in which they stand together


@dataclass(frozen=True)
class Drawing:
    """What is drawn for each rater of one queue."""

    seed: str  #: from which an order is drawn, with the rater's name
    number: int = 0  #: candidates of each item; 0 where none stand together
    questions: tuple[str, ...] = ()  #: those that are about one candidate each, in the candidates' order
    options: tuple[str, ...] = ()  #: labels that name one each
    groups: Mapping[str, str] | None = None  #: records that come one after another, by pair: 32 hexadecimal digits

    def of_dataset(self) -> dict[str, Any]:
        """What a dataset of Argilla's says of it, as `plumbline_argilla.entries` reads it."""
        said = {"seed": self.seed, "number": self.number, "questions": self.questions, "options": self.options}
        return {**said, "groups": self.groups is not None}

    def of_pair(self, pair: Pair) -> dict[str, Any]:
        """What a record says of it."""
        if self.groups is not None:
            return {"group": self.groups[pair.pair_id]} if pair.pair_id in self.groups else {}
        (entries,) = [one.value for one in fields_of(pair) if one.name == FIELD] if self.number else [()]
        return {"seed": self.seed, "field": FIELD, "lengths": list(map(len, entries))} if entries else {}


def drawing_of(study: Study, pairs: Sequence[Pair]) -> Drawing | None:
    """What is drawn for each rater of some pairs, which are of one queue; None for other studies than of tasks."""
    if not isinstance(study.subject, HumanSubject) or not pairs:
        return None
    pool = pairs[0].pool
    task = next(one for one in read_tasks(study) if one.task == pool)
    seed = identity("order-of-raters-v1", study.sample.seed, pool, pairs[0].language, pairs[0].output_language)
    if apart(task):
        return Drawing(seed, groups=groups_of(study, task))
    numbers = {len(one.value) for pair in pairs for one in fields_of(pair) if one.name == FIELD}
    if len(numbers) != 1:
        return Drawing(seed)
    (number,) = numbers
    return Drawing(seed, number, *named(task, number))


def named(task: HumanTask, number: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The questions that are about one candidate each, and the labels that name one."""
    places = tuple(f"d{place}" for place in range(1, number + 1))
    asked = questions_of(task)
    about = tuple(one.name for one in asked if one.place)[:number]
    return about, places if any(set(places) <= set(one.labels) for one in asked) else ()


def groups_of(study: Study, task: HumanTask) -> dict[str, str]:
    """The query of each record of a task whose candidates have one each."""
    items = read_records(study.folder / ITEMS, HumanItem, study.command("annotation sample"))
    own = [item for item in items if item.task == task.task]
    return {record: identity("query-v1", item.task, item.item)[:32] for item in own for record in item.records}
