"""The items of tasks that people do as models do them: what raters read of each, and how it is found again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from annotation.human.asking import apart
from annotation.human.drawing import Chosen, cut
from annotation.human.records import HumanItem, HumanTask
from annotation.human.tasks import Prepared
from annotation.human.wording import fields_of
from annotation.subjects.item import Item
from plumbline.fields import Value
from plumbline.records import Pair
from plumbline.study.judged import Judged


@dataclass(frozen=True)
class Shown:
    """A task's items as raters see them, without what is right."""

    items: list[HumanItem]
    pairs: list[Pair]


def shown(prepared: Prepared, kind: Judged) -> Shown:
    """The records of a task, in its items' order."""
    items, pairs = list[HumanItem](), list[Pair]()
    for chosen in prepared.drawn.items:
        own = [item.pair(kind) for item in _items(prepared.task, chosen)]
        pairs += own
        one, several = chosen.one, apart(prepared.task)
        by_name = dict(zip(chosen.shown, own, strict=True)) if several else {}
        items.append(
            HumanItem(
                pair_id="" if several else own[0].pair_id,
                task=prepared.task.task,
                subset=one.subset,
                item=one.item,
                language=one.language,
                candidates=chosen.candidates,
                shown=chosen.shown,
                records=tuple(by_name[name].pair_id for name in chosen.candidates) if several else (),
                n_chars=sum(map(len, _texts(chosen))),
            )
        )
    return Shown(items, pairs)


def _texts(chosen: Chosen) -> Iterator[str]:
    for value in chosen.one.fields.values():
        yield from [value] if isinstance(value, str) else value
    yield from (chosen.one.candidates[name] for name in chosen.candidates)


def _items(task: HumanTask, chosen: Chosen) -> Iterator[Item]:
    """What stands in a record each: the item with all its candidates, or with one of them."""
    one = chosen.one
    texts = [one.candidates[name] for name in chosen.shown]
    beside: list[dict[str, Value]] = [{"candidates": texts}] if texts else [{}]
    if apart(task):
        beside = [{"passage": text} for text in texts]
    for more in beside:
        values: dict[str, Value] = {**one.fields, **more}
        yield Item(
            group=task.task,
            language=one.language,
            output_language=one.output_language,
            dataset=task.dataset,
            task_type=task.task_type,
            fields={name: cut(values[name], task.cut) for name in fields_of(task)},
            maker=(task.source[:200], task.revision[:200]),
        )
