"""What simulated raters know: the gold of a study's tasks, read from its data sets for a rehearsal alone."""

from __future__ import annotations

import dataclasses

from annotation.human.records import ITEMS, HumanItem, HumanTask
from annotation.human.simulated import Rehearsal
from annotation.human.tasks import COMMAND, prepared, read_tasks
from generation.datasets.scored import Scored
from plumbline.errors import DataError
from plumbline.manifest import refuse_replaced_table
from plumbline.store import read_records
from plumbline.study import Study


def read_items(study: Study) -> list[HumanItem]:
    """The items of a study's tasks. Raises DataError where they are not there, or not those that were drawn."""
    refuse_replaced_table(study, ITEMS, study.command(COMMAND))
    return read_records(study.folder / ITEMS, HumanItem, study.command(COMMAND))


def rehearsal_of(study: Study) -> Rehearsal:
    """Simulated raters of a study's tasks. Raises DataError where the data are no longer those that were drawn."""
    tasks, gold = read_tasks(study), dict[tuple[str, str], Scored]()
    hashes = {one.task: one.content_hash for one in tasks}
    for one in prepared(study):
        if one.task.content_hash != hashes[one.task.task]:
            raise DataError(
                f"data set {one.task.dataset!r} has other items now than task {one.task.task!r} was drawn from; bring"
                f" them back, or run `{study.command(COMMAND)}` again"
            )
        gold |= {(one.task.task, item.one.item): _on_scale(one.task, item.one) for item in one.drawn.items}
    return Rehearsal(tasks, read_items(study), gold, study.raters.simulation_seed)


def _on_scale(task: HumanTask, one: Scored) -> Scored:
    """An item with its gold on the scale that people are asked on."""
    if not task.gold_scale:
        return one
    low, high = task.gold_scale
    share = (one.score - low) / (high - low)
    return dataclasses.replace(one, score=task.scale[0] + share * (task.scale[-1] - task.scale[0]))
