"""Answers to items that are drawn no more: taken away with them, as items are called by their rows in the data set."""

from __future__ import annotations

from collections.abc import Sequence

from annotation.human.records import ANSWERS, ITEMS, MODEL_ANSWERS, TASKS, HumanAnswer, HumanItem, HumanTask
from plumbline.errors import DataError
from plumbline.manifest import read_kept, read_kept_frame, refuse_replaced_table, write_kept_table
from plumbline.store import read_records
from plumbline.study import Study

_COMMAND = "annotation sample"
#: What a task's answers mean something by, beside its items.
_ASKED = ("asked", "scale", "labels", "label_words", "clusters_told", "candidates", "relevant_in", "cut",
          "instructions_hash")  # fmt: skip


def drop_answers(study: Study, tasks: Sequence[HumanTask], items: Sequence[HumanItem]) -> None:
    """Take answers away that would be taken for answers to these tasks' items and are not.

    People's are made again of what was collected (`annotation accept`). Of models' those stay that are to the same
    items, asked in the same way; what models answered of others is kept with the models (`human/models/`), and what is
    lacking is asked by `annotation judge run`.
    """
    try:
        was = read_kept(study, TASKS, HumanTask, study.command(_COMMAND))
        if was == list(tasks):
            return
        same = _same(study, was, tasks, items)
        there = (study.folder / MODEL_ANSWERS).exists() and same
        answers = read_kept_frame(study, MODEL_ANSWERS, HumanAnswer, "") if there else None
    except DataError:
        answers = None
    (study.folder / ANSWERS).unlink(missing_ok=True)
    if answers is None:
        (study.folder / MODEL_ANSWERS).unlink(missing_ok=True)
        return
    kept = [key in same for key in zip(answers["task"], answers["item"], strict=True)]
    write_kept_table(study, MODEL_ANSWERS, answers[kept].reset_index(drop=True), HumanAnswer)


def _same(
    study: Study, was: Sequence[HumanTask], tasks: Sequence[HumanTask], items: Sequence[HumanItem]
) -> set[tuple[str, str]]:
    """Task and item of those that are shown and asked as before; of clusterings all of a task's, or none."""
    refuse_replaced_table(study, ITEMS, _COMMAND)
    before = {(one.task, one.item): one for one in read_records(study.folder / ITEMS, HumanItem, _COMMAND)}
    known, now = {one.task: one for one in was}, {one.task: one for one in tasks}
    asked = {
        name
        for name, task in now.items()
        if name in known
        and all(getattr(known[name], field) == getattr(task, field) for field in _ASKED)
        and (task.asked != "cluster" or known[name].content_hash == task.content_hash)
    }
    return {(one.task, one.item) for one in items if one.task in asked and before.get((one.task, one.item)) == one}
