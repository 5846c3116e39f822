"""The order in which each rater sees the candidates of an item, or systems' outputs, if it is drawn for each rater.

Answers name a candidate by its number in `HumanItem.shown`, whatever its place was, so an answer means the same in
every order. The local Argilla server draws an order for each rater, and a crowd's page for each worker; an Argilla
elsewhere shows everybody the same order. Records of a group stay together: the candidates of a query, or the outputs of
an original that are rated on one page (`sample.together`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from annotation.human.forms import TaskQuestion, form_of
from annotation.human.records import ANSWERS, ITEMS, MODEL_ANSWERS, TASKS, HumanAnswer, HumanItem, HumanTask
from annotation.human.tasks import read_tasks
from plumbline.errors import DataError
from plumbline.fields import fields_of
from plumbline.identity import identity
from plumbline.manifest import Manifest
from plumbline.records import Pair
from plumbline.store import read_records
from plumbline.study import Study

FIELD = "candidates"  # the field that holds all candidates of an item


@dataclass(frozen=True)
class OrderDrawing:
    """The orders drawn for each rater of one queue."""

    seed: str  #: draws an order, together with the rater's name
    number: int = 0  #: candidates of each item; 0 if they are not in one field
    questions: tuple[str, ...] = ()  #: the questions about one candidate each, in the candidates' order
    options: tuple[str, ...] = ()  #: the labels that each name a candidate
    groups: Mapping[str, str] | None = None  #: by pair, the group of records shown together: 32 hexadecimal digits

    @classmethod
    def of_candidates(cls, seed: str, questions: Sequence[TaskQuestion], pairs: Sequence[Pair]) -> Self:
        """Return the drawing for items that have their candidates in one field; none are drawn if numbers differ."""
        numbers = {len(field.value) for pair in pairs for field in fields_of(pair) if field.name == FIELD}
        if len(numbers) != 1:
            return cls(seed)
        (number,) = numbers
        about = tuple(question.name for question in questions if question.position)[:number]
        labels = tuple(f"d{position}" for position in range(1, number + 1))
        name_candidates = any(set(labels) <= set(question.labels) for question in questions)
        return cls(seed, number, about, labels if name_candidates else ())

    def drawn_for(self, rater: str, pairs: Sequence[Pair]) -> dict[str, dict[str, Any]]:
        """Return by pair the order and turn in which a simulated rater sees it, as a server draws them."""

        def drawn(name: object) -> str:
            return identity("order-of-rater-v1", self.seed, rater, name)

        groups = {pair.pair_id: (self.groups or {}).get(pair.pair_id, pair.pair_id) for pair in pairs}
        queue = sorted(groups, key=lambda pair_id: (drawn(groups[pair_id]), drawn(pair_id)))
        candidates, places = " ".join(map(str, sorted(range(1, self.number + 1), key=drawn))), Counter[str]()
        orders = dict[str, dict[str, Any]]()
        for turn, pair_id in enumerate(queue, 1):
            places[groups[pair_id]] += 1
            order = candidates if self.groups is None else str(places[groups[pair_id]])
            orders[pair_id] = {"order": order, "turn": turn}
        return orders

    def of_dataset(self) -> dict[str, Any]:
        """Return the drawing as a dataset's metadata, which `plumbline_argilla.entries` reads."""
        values = {"seed": self.seed, "number": self.number, "questions": self.questions, "options": self.options}
        values |= {"field": FIELD} if self.number else {}  # makes the rating page show a list
        return {**values, "groups": self.groups is not None}

    def of_page(self, task: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the drawing for the rating page in one file, with its task and items."""
        return {
            "seed": self.seed,
            "questions": self.questions,
            "options": self.options,
            "field": [text["name"] for text in task["texts"]].index(FIELD) if self.number else -1,
            "groups": [(self.groups or {}).get(item["id"], "") for item in items],
        }

    def of_pair(self, pair: Pair) -> dict[str, Any]:
        """Return the drawing as a record's metadata."""
        if self.groups is not None:
            return {"group": self.groups[pair.pair_id]} if pair.pair_id in self.groups else {}
        (entries,) = [field.value for field in fields_of(pair) if field.name == FIELD] if self.number else [()]
        return {"seed": self.seed, "field": FIELD, "lengths": list(map(len, entries))} if entries else {}


def drawing_of(study: Study, pairs: Sequence[Pair]) -> OrderDrawing | None:
    """Return the drawing of orders for some pairs of one queue.

    None for studies without tasks whose raters see one pair at a time.
    """
    pages = pages_shown(study, pairs)
    if not pairs or not (study.judging.does_tasks or pages):
        return None
    pool = pairs[0].queue or pairs[0].pool
    seed = identity("order-of-raters-v1", study.sample.seed, pool, pairs[0].language, pairs[0].output_language)
    if pages:
        return OrderDrawing(seed, groups=pages)
    form = form_of(next(task for task in read_tasks(study) if task.task == pool))
    if not form.per_candidate:
        return OrderDrawing.of_candidates(seed, form.questions(), pairs)
    items = read_records(study.folder / ITEMS, HumanItem, study.command(_COMMAND))
    of_task = [item for item in items if item.task == pool]
    # Raters see the records of a query together.
    groups = {record: identity("query-v1", pool, item.item)[:32] for item in of_task for record in item.records}
    return OrderDrawing(seed, groups=groups)


def pages_shown(study: Study, pairs: Iterable[Pair]) -> dict[str, str]:
    """Return by pair the page on which raters see it with the other outputs of its original; none for other pairs.

    Controls and repeats have pages of their own.
    """
    if not study.sample.together:
        return {}
    return {pair.pair_id: page_of(pair) for pair in pairs if study.shown_together(pair.queue) > 1}


def page_of(pair: Pair) -> str:
    """Return the page of a pair, 32 hexadecimal digits, where raters see the outputs of an original together."""
    check = "repeat" if pair.control == "repeat" else "control" if pair.control else ""
    return identity("page-v1", check, pair.wave, pair.language, pair.original, pair.seed)[:32]


_COMMAND = "sample"
#: The fields of a task that give its answers their meaning, beside its items.
_ASKED = ("asked", "scale", "labels", "label_words", "clusters_told", "candidates", "words")


def drop_answers(study: Study, tasks: Sequence[HumanTask], items: Sequence[HumanItem]) -> None:
    """Remove answers that would be mistaken for answers to these tasks' items.

    People's answers are made again from the collected ones (`plumbline accept`). Models' answers stay if their items
    and questions are the same; their other answers are kept in `human/models/`, and `plumbline judge run` asks for
    missing ones.
    """
    manifest, same, answers = Manifest.of(study), dict[tuple[str, str], object](), None
    try:
        drawn_before = manifest.models(TASKS, HumanTask, study.command(_COMMAND))
        if drawn_before == list(tasks):
            return
        manifest.refuse_replaced(ITEMS, _COMMAND)
        same = _asked_of(drawn_before, read_records(study.folder / ITEMS, HumanItem, _COMMAND))
        if (study.folder / MODEL_ANSWERS).exists():
            answers = manifest.frame(MODEL_ANSWERS, HumanAnswer, "")
    except DataError:
        same = {}
    (study.folder / ANSWERS).unlink(missing_ok=True)
    same = {key: meaning for key, meaning in _asked_of(tasks, items).items() if same.get(key) == meaning}
    if answers is None or not same:
        (study.folder / MODEL_ANSWERS).unlink(missing_ok=True)
        return
    mask = [key in same for key in zip(answers["task"], answers["item"], strict=True)]
    manifest.write_table(MODEL_ANSWERS, answers[mask].reset_index(drop=True), HumanAnswer)


def _asked_of(tasks: Sequence[HumanTask], items: Sequence[HumanItem]) -> dict[tuple[str, str], object]:
    """Return what is shown and asked of each item, by task and item; of a clustering all items belong to it."""
    by_name = {
        task.task: [*(getattr(task, name) for name in _ASKED), form_of(task).at_once and task.content_hash]
        for task in tasks
    }
    return {(item.task, item.item): (item, by_name.get(item.task)) for item in items}
