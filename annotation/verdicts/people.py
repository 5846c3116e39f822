"""What people answered in tasks that models are scored on, written for the evaluation when a campaign is accepted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import pandas as pd

from annotation.human.answers import answered, lines_of
from annotation.human.records import ANSWERS, HumanAnswer, HumanTask
from annotation.human.rehearsing import read_items
from annotation.human.tasks import read_tasks
from annotation.ratings.collected import Collected
from annotation.ratings.ratings import counting_ratings, stays
from annotation.records import Group
from annotation.verdicts.acceptance import Accepted
from plumbline.manifest import write_kept_table
from plumbline.study import Study

FLAGGED = 0.4  # HUME's bound of Fleiss' kappa, below which it calls a task problematic (section 5.3)
_NOMINAL = ("label", "same", "choice")  # answers that are alike or not


def write_answers(study: Study, collected: Collected) -> list[str]:
    """Write the answers that count to `human/answers.parquet`; lines that say what counts and what does not."""
    tasks, items, every = read_tasks(study), read_items(study), collected.sample_ratings
    ratings, left = dict[str, pd.DataFrame](), dict[str, Counter[str]]()
    for task in tasks:
        own = every[every["transformation"] == task.task]
        ratings[task.task] = counting_ratings(own, task.raters)
        left[task.task] = Counter(dict(_left(own, ratings[task.task])))
    found = answered(tasks, items, ratings)
    for name, more in found.left_out.items():
        left[name].update(more)
    write_kept_table(study, ANSWERS, found.answers, HumanAnswer)
    return lines_of(tasks, found.answers, left)


def answers_lines(study: Study, done: Accepted) -> list[str]:
    """Write what people answered, and say what counts and where they agree too little to say anything."""
    lines = write_answers(study, done.evidence.collected)
    return [*lines, f"-> {study.folder / ANSWERS}", *flagged(read_tasks(study), done.groups)]


def _left(own: pd.DataFrame, counting: pd.DataFrame) -> Iterator[tuple[str, int]]:
    """How many raters' answers to a record do not count, by reason."""

    def number(frame: pd.DataFrame) -> int:
        return len(frame.drop_duplicates(["pair_id", "rater_id"]))

    submitted = own[own["status"] == "submitted"]
    out = (submitted["excluded"] != "") | ~stays(submitted)
    yield "drafts", number(own[own["status"] == "draft"])
    yield "discarded", number(own[own["status"] == "discarded"])
    yield "excluded or withdrawn", number(submitted[out])
    yield "beyond the raters that were asked for", number(submitted[~out]) - number(counting)


def flagged(tasks: Sequence[HumanTask], groups: Sequence[Group]) -> Iterator[str]:
    """A line for each task on which people agree less than HUME's bound, and for those whose kappa says nothing."""
    summaries = {one.question: one for group in groups if group.level == "pool" for one in group.questions}
    for task in tasks:
        if task.asked == "cluster":
            yield f"{task.task}: each rater numbers clusters anew, so that kappa and AC1 of the numbers say nothing"
        for one in summaries[task.task].coefficients if task.asked in _NOMINAL and task.task in summaries else ():
            value = one.estimate.value
            if one.name == "Fleiss' kappa" and value < FLAGGED:
                yield (
                    f"{task.task}: Fleiss' kappa {value:.2f} is below {FLAGGED}, HUME's bound: where people do not"
                    " agree, a score against the labels says little"
                )
