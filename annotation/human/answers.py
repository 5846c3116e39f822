"""People's answers to tasks: those that count, and lines about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from annotation.human.forms import RaterAnswers, form_of
from annotation.human.records import UNKNOWN, HumanAnswer, HumanItem, HumanTask
from plumbline.frames import that_count
from plumbline.words import count


@dataclass(frozen=True)
class TaskAnswers:
    """People's answers in a study, and the uncounted ones."""

    answers: list[HumanAnswer]
    left_out: Mapping[str, Counter[str]]  #: records with a rater's answer, by task and reason


def answered(
    tasks: Sequence[HumanTask], items: Sequence[HumanItem], ratings: Mapping[str, pd.DataFrame]
) -> TaskAnswers:
    """Return the answers in a frame of ratings (rows of `Rating`) by task.

    An item whose candidates have a record each counts with its answered records; incomplete rankings do not count
    (`annotation.human.forms.RankedForm`).
    """
    forms = {task.task: form_of(task) for task in tasks}
    collected, left_out = list[HumanAnswer](), {task.task: Counter[str]() for task in tasks}
    answers_by_task: dict[str, dict[str, dict[str, RaterAnswers]]] = {}  # by task, rater and pair
    simulated = dict[str, bool]()
    columns = ["pair_id", "rater_id", "question", "answer", "seconds", "simulated", "order"]
    for name, frame in ratings.items():
        counting = that_count(frame)
        with_order = counting if "order" in counting else counting.assign(order="")
        raters = answers_by_task.setdefault(name, {})
        for (pair_id, rater), group in with_order[columns].groupby(["pair_id", "rater_id"], sort=True, observed=True):
            answers = dict(zip(group["question"].astype(str), group["answer"].astype(str), strict=True))
            raters.setdefault(str(rater), {})[str(pair_id)] = RaterAnswers(
                answers, float(group["seconds"].iloc[0]), order_of(str(group["order"].iloc[0]))
            )
            simulated[str(rater)] = bool(group["simulated"].iloc[0])
    for item in items:
        for rater, records in answers_by_task.get(item.task, {}).items():
            rows = list(forms[item.task].answers(item, records, rater, simulated=simulated[rater]))
            answered_any = any(record in records for record in item.records)
            if answered_any and not rows:
                left_out[item.task]["orders that do not rank all candidates"] += 1
            collected += rows
    return TaskAnswers(collected, left_out)


def order_of(order: str) -> tuple[int, ...] | None:
    """Parse an order as ratings keep it (`Rating.order`)."""
    return None if order == UNKNOWN else tuple(map(int, order.split()))


def lines_of(
    tasks: Sequence[HumanTask],
    items: Sequence[HumanItem],
    answers: Sequence[HumanAnswer],
    left_out: Mapping[str, Counter[str]],
) -> list[str]:
    """Return a line for each task: its counting items, raters and answers, its abstentions, its uncounted answers."""
    lines, n_items = list[str](), Counter(item.task for item in items)
    for task in tasks:
        of_task = [answer for answer in answers if answer.task == task.task]
        units = {(answer.item, answer.rater_id) for answer in of_task}
        full = Counter(item for item, _ in units)
        enough = sum(number >= task.raters for number in full.values())
        abstentions = sum(answer.abstained for answer in of_task)
        raters = count(len({rater for _, rater in units}), "rater")
        simulated = ", simulated" if any(answer.simulated for answer in of_task) else ""
        line = (
            f"{task.task} ({task.task_type}): {enough} of {n_items[task.task]} items {'has' if enough == 1 else 'have'}"
            f" {task.raters} or more raters, {len(full)} {'has' if len(full) == 1 else 'have'} at least one rater;"
            f" {raters}{simulated}; {abstentions} of {len(of_task)} answers"
            f" {'is' if abstentions == 1 else 'are'} 'cannot tell'"
        )
        out = ", ".join(f"{reason} {number}" for reason, number in left_out.get(task.task, {}).items() if number)
        lines.append(line + (f"; not counted: {out}" if out else ""))
    return lines
