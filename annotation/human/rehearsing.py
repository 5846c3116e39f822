"""What simulated raters know: the gold of a study's tasks, read from its data sets for a rehearsal alone."""

from __future__ import annotations

from annotation.human.records import ITEMS, HumanItem
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
        gold |= {(one.task.task, item.one.item): item.one for item in one.drawn.items}
    return Rehearsal(tasks, read_items(study), gold, study.raters.simulation_seed)
