"""A human study with its simulated raters' answers, made without a server: as they would stand after `accept`."""

from __future__ import annotations

from annotation.human.asking import Given, answers_of
from annotation.human.records import ANSWERS, HumanAnswer
from annotation.human.rehearsing import read_items, rehearsal_of
from annotation.human.tasks import read_tasks
from plumbline.manifest import write_kept_table
from plumbline.study import Study


def write_rehearsed(study: Study) -> None:
    """Answers of the study's simulated raters to all items."""
    rehearsal, rows = rehearsal_of(study), list[HumanAnswer]()
    tasks = {one.task: one for one in read_tasks(study)}
    for item in read_items(study):
        for rater in study.raters.simulated:
            given = {
                record: Given(rehearsal.answers(rater, record), 20.0) for record in item.records or (item.pair_id,)
            }
            rows += answers_of(tasks[item.task], item, given, f"simulated-{rater.name}", simulated=True)
    write_kept_table(study, ANSWERS, rows, HumanAnswer)
