"""What people answered, as it counts: of each item so many raters as the task asks for, in the data set's own words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from annotation.human.asking import Given, answers_of
from annotation.human.records import UNKNOWN, HumanAnswer, HumanItem, HumanTask
from plumbline.frames import that_count


@dataclass(frozen=True)
class Answered:
    """The answers of a study's people, and what did not count."""

    answers: list[HumanAnswer]
    left_out: Mapping[str, Counter[str]]  #: records with a rater's answer, by task and reason


def answered(tasks: Sequence[HumanTask], items: Sequence[HumanItem], ratings: Mapping[str, pd.DataFrame]) -> Answered:
    """The answers of a frame of ratings (rows of `Rating`) for each task: those that count, by task.

    An item whose candidates have a record each counts with those that were answered; orders without an order do not
    count (`human.asking.answers_of`).
    """
    by_task = {one.task: one for one in tasks}
    found, left = list[HumanAnswer](), {one.task: Counter[str]() for one in tasks}
    given: dict[str, dict[str, dict[str, Given]]] = {}  # by task, rater and pair
    simulated = dict[str, bool]()
    columns = ["pair_id", "rater_id", "question", "answer", "seconds", "simulated", "order"]
    for name, frame in ratings.items():
        counting = that_count(frame)
        whole = counting if "order" in counting else counting.assign(order="")
        raters = given.setdefault(name, {})
        for (pair_id, rater), own in whole[columns].groupby(["pair_id", "rater_id"], sort=True, observed=True):
            answers = dict(zip(own["question"].astype(str), own["answer"].astype(str), strict=True))
            raters.setdefault(str(rater), {})[str(pair_id)] = Given(
                answers, float(own["seconds"].iloc[0]), order_of(str(own["order"].iloc[0]))
            )
            simulated[str(rater)] = bool(own["simulated"].iloc[0])
    for item in items:
        for rater, records in given.get(item.task, {}).items():
            rows = list(answers_of(by_task[item.task], item, records, rater, simulated=simulated[rater]))
            there = any(one in records for one in (item.records or (item.pair_id,)))
            if there and not rows:
                left[item.task]["orders that rank not all candidates"] += 1
            found += rows
    return Answered(found, left)


def order_of(kept: str) -> tuple[int, ...] | None:
    """An order as ratings keep it (`Rating.order`)."""
    return None if kept == UNKNOWN else tuple(map(int, kept.split()))


def lines_of(tasks: Sequence[HumanTask], answers: Sequence[HumanAnswer], left: Mapping[str, Counter[str]]) -> list[str]:
    """A line for each task: how many items, raters and answers count, how often nothing could be told, what did not."""
    lines = []
    for task in tasks:
        own = [one for one in answers if one.task == task.task]
        units = {(one.item, one.rater_id) for one in own}
        full = Counter(item for item, _ in units)
        enough = sum(number >= task.raters for number in full.values())
        told = sum(one.abstained for one in own)
        made = ", simulated" if any(one.simulated for one in own) else ""
        line = (
            f"{task.task} ({task.task_type}): {enough} of {task.n_items} items by {task.raters} raters or more,"
            f" {len(full)} by any; {len({rater for _, rater in units})} raters{made}; cannot tell:"
            f" {told} of {len(own)} answers"
        )
        out = ", ".join(f"{reason} {number}" for reason, number in left.get(task.task, {}).items() if number)
        lines.append(line + (f"; not counted: {out}" if out else ""))
    return lines
