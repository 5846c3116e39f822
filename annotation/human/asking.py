"""Questions about an item of a task, by type of task, and the meaning of their answers.

Every answer is a label of a question, because a button with words is read at a glance and "cannot tell" can be one of
them: points of a scale are `p0`, `p1`, ..., labels `l1`, `l2`, ... in the order of `HumanTask.labels`, clusters `c1`,
candidates `d1` by their places, grades `g0` to `g3`. The first question of a task has the task's name.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from annotation.human.records import UNKNOWN, HumanAnswer, HumanItem, HumanTask
from annotation.questions import Kind, labels_of, ranks_of
from plumbline.frames import that_count
from plumbline.study.human import CANNOT_TELL, TOGETHER
from plumbline.words import count

NONE, YES, NO = "none", "yes", "no"
GRADES = (0, 1, 2, 3)


@dataclass(frozen=True)
class TaskQuestion:
    """One question of a task."""

    name: str
    kind: Kind
    labels: tuple[str, ...]  #: the choices, in order
    position: int = 0  #: the place of the candidate that it is about among those shown; 0 for none
    required: bool = True


@dataclass(frozen=True)
class RaterAnswers:
    """One rater's answers to one record, by question."""

    answers: Mapping[str, str]
    seconds: float = math.nan
    #: The candidates' numbers in this rater's order, or the place of a record's only candidate; empty for the order of
    #: `HumanItem.shown`, None if unknown.
    order: tuple[int, ...] | None = ()

    def place(self, number: int, shown: int) -> int:
        """Return the place at which this rater saw a candidate, by its number among those shown; 0 if unknown.

        A crowd's form may send any numbers: an order that does not name each of the `shown` candidates once is ignored.
        """
        if self.order == ():
            return number
        if self.order is None or sorted(self.order) != list(range(1, shown + 1)):
            return 0
        return self.order.index(number) + 1


def apart(task: HumanTask) -> bool:
    """Return whether each candidate is a record of its own."""
    return task.asked in ("graded", "binary") and task.candidates > TOGETHER


def questions_of(task: HumanTask) -> list[TaskQuestion]:
    """The questions of a task, in order."""
    options = _options(task)
    if task.asked == "labels":
        return [TaskQuestion(task.task, "multi_label", options)]
    if task.asked == "ranked":
        places = tuple(f"d{position}" for position in range(1, task.candidates + 1))
        return [
            TaskQuestion(task.task, "label", (YES, CANNOT_TELL)),
            TaskQuestion(f"{task.task}-order", "ranking", places, required=False),
        ]
    if task.asked in ("graded", "binary") and not apart(task):
        names = [task.task, *(f"{task.task}-{position}" for position in range(2, task.candidates + 1))]
        return [TaskQuestion(name, "label", options, position) for position, name in enumerate(names, 1)]
    return [TaskQuestion(task.task, "label", options)]


def _options(task: HumanTask) -> tuple[str, ...]:
    if task.asked in ("label", "labels"):
        named = tuple(f"l{number}" for number in range(1, len(task.labels) + 1))
        return (*named, *((NONE,) if task.asked == "labels" else ()), CANNOT_TELL)
    if task.asked in ("score", "graded"):
        return (*(point_name(task, point) for point in task.scale), CANNOT_TELL)
    if task.asked == "cluster":
        return (*(f"c{number}" for number in range(1, task.clusters_told + 1)), CANNOT_TELL)
    if task.asked == "choice":
        return (*(f"d{position}" for position in range(1, task.candidates + 1)), CANNOT_TELL)
    return (YES, NO, CANNOT_TELL)


def point_name(task: HumanTask, point: int) -> str:
    """Return the name of a scale's point among a question's labels."""
    return f"{'g' if task.asked == 'graded' else 'p'}{point}"


def answers_of(
    task: HumanTask,
    item: HumanItem,
    answers_by_record: Mapping[str, RaterAnswers],
    rater_id: str,
    *,
    simulated: bool,
    kind: str = "person",
) -> Iterator[HumanAnswer]:
    """Yield a rater's answers to an item (`answers_by_record`: by pair id), without unanswered questions.

    A ranking without a yes to its first question is an abstention; a yes without a ranking is left out.
    """
    row: dict[str, object] = {"task": task.task, "subset": item.subset, "item": item.item, "rater_id": rater_id}
    row |= {"rater_kind": kind, "simulated": simulated}
    if apart(task):
        seconds = [answers_by_record[record].seconds for record in item.records if record in answers_by_record]
        total = sum(seconds) if len(seconds) == len(item.records) else math.nan
        for record in item.records:
            if record in answers_by_record:
                name = item.candidates[item.records.index(record)]
                values = _one(task, answers_by_record[record].answers.get(task.task, ""))
                position = (answers_by_record[record].order or (0,))[0]
                position = position if position <= len(item.candidates) else 0
                yield HumanAnswer.model_validate(
                    {**row, **values, "candidate": name, "place": position, "seconds": total}
                )
        return
    if item.pair_id not in answers_by_record:
        return
    rater_answers = answers_by_record[item.pair_id]
    row |= {"seconds": rater_answers.seconds}
    if task.asked == "ranked":
        yield from _ranked(task, item, rater_answers, row)
    elif item.shown and task.asked != "choice":
        for asking in questions_of(task)[: len(item.shown)]:
            values = _one(task, rater_answers.answers.get(asking.name, ""))
            name = item.shown[asking.position - 1]
            position = rater_answers.place(asking.position, len(item.shown))
            yield HumanAnswer.model_validate({**row, **values, "candidate": name, "place": position})
    else:
        values = _one(task, rater_answers.answers.get(task.task, ""), item.shown)
        chosen = (
            {"place": rater_answers.place(int(str(values["place"])), len(item.shown))} if values.get("place") else {}
        )
        yield HumanAnswer.model_validate({**row, **values, **chosen})


def _ranked(
    task: HumanTask, item: HumanItem, rater_answers: RaterAnswers, row: Mapping[str, object]
) -> Iterator[HumanAnswer]:
    tells = rater_answers.answers.get(task.task) == YES
    ranks = ranks_of(rater_answers.answers.get(f"{task.task}-order", "")) if tells else {}
    if tells and any(f"d{position}" not in ranks for position in range(1, len(item.shown) + 1)):
        return
    for position, name in enumerate(item.shown, 1):
        value = float(len(item.shown) + 1 - ranks[f"d{position}"]) if tells else math.nan
        values = {
            "candidate": name,
            "place": rater_answers.place(position, len(item.shown)),
            "value": value,
            "abstained": not tells,
        }
        yield HumanAnswer.model_validate({**row, **values})


def _one(task: HumanTask, answer: str, shown: Sequence[str] = ()) -> dict[str, object]:
    """Return one stored answer as fields of `HumanAnswer`."""
    named = labels_of(answer)
    if not named or CANNOT_TELL in named:
        return {"abstained": True}
    if task.asked == "labels":
        return {
            "label": json.dumps(
                [task.labels[int(label[1:]) - 1] for label in named if label != NONE], ensure_ascii=False
            )
        }
    (label,) = named
    if task.asked == "choice":
        position = int(label[1:])
        return {"label": shown[position - 1], "place": position}
    if task.asked in ("same", "binary"):
        return {"value": float(label == YES)}
    number = int(label[1:])
    if task.asked in ("score", "graded"):
        return {"value": float(number)}
    return {"label": str(number) if task.asked == "cluster" else task.labels[number - 1]}


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
    (`human.asking.answers_of`).
    """
    by_task = {task.task: task for task in tasks}
    collected, left_out = list[HumanAnswer](), {task.task: Counter[str]() for task in tasks}
    answers_by_task: dict[str, dict[str, dict[str, RaterAnswers]]] = {}  # by task, rater and pair
    simulated = dict[str, bool]()
    columns = ["pair_id", "rater_id", "question", "answer", "seconds", "simulated", "order"]
    for name, frame in ratings.items():
        counting = that_count(frame)
        whole = counting if "order" in counting else counting.assign(order="")
        raters = answers_by_task.setdefault(name, {})
        for (pair_id, rater), group in whole[columns].groupby(["pair_id", "rater_id"], sort=True, observed=True):
            answers = dict(zip(group["question"].astype(str), group["answer"].astype(str), strict=True))
            raters.setdefault(str(rater), {})[str(pair_id)] = RaterAnswers(
                answers, float(group["seconds"].iloc[0]), order_of(str(group["order"].iloc[0]))
            )
            simulated[str(rater)] = bool(group["simulated"].iloc[0])
    for item in items:
        for rater, records in answers_by_task.get(item.task, {}).items():
            rows = list(answers_of(by_task[item.task], item, records, rater, simulated=simulated[rater]))
            answered_any = any(record in records for record in (item.records or (item.pair_id,)))
            if answered_any and not rows:
                left_out[item.task]["orders that do not rank all candidates"] += 1
            collected += rows
    return TaskAnswers(collected, left_out)


def order_of(order: str) -> tuple[int, ...] | None:
    """Parse an order as ratings keep it (`Rating.order`)."""
    return None if order == UNKNOWN else tuple(map(int, order.split()))


def lines_of(
    tasks: Sequence[HumanTask], answers: Sequence[HumanAnswer], left_out: Mapping[str, Counter[str]]
) -> list[str]:
    """Return a line for each task: its counting items, raters and answers, its abstentions, its uncounted answers."""
    lines = []
    for task in tasks:
        of_task = [answer for answer in answers if answer.task == task.task]
        units = {(answer.item, answer.rater_id) for answer in of_task}
        full = Counter(item for item, _ in units)
        enough = sum(number >= task.raters for number in full.values())
        abstentions = sum(answer.abstained for answer in of_task)
        raters = count(len({rater for _, rater in units}), "rater")
        simulated = ", simulated" if any(answer.simulated for answer in of_task) else ""
        line = (
            f"{task.task} ({task.task_type}): {enough} of {task.n_items} items {'has' if enough == 1 else 'have'}"
            f" {task.raters} or more raters, {len(full)} {'has' if len(full) == 1 else 'have'} at least one rater;"
            f" {raters}{simulated}; {abstentions} of {len(of_task)} answers"
            f" {'is' if abstentions == 1 else 'are'} 'cannot tell'"
        )
        out = ", ".join(f"{reason} {number}" for reason, number in left_out.get(task.task, {}).items() if number)
        lines.append(line + (f"; not counted: {out}" if out else ""))
    return lines
