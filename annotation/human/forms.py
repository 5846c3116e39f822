"""The forms of people's answers to tasks: a class for each, with all that differs between them, in `FORMS`.

Every answer is a label of a question, because a button with words is read at a glance and "cannot tell" can be one of
them. Most labels are a letter and a number: points of a scale are `p0`, `p1`, ..., labels `l1`, `l2`, ... in the order
of `HumanTask.labels`, clusters `c1`, candidates `d1` by their places, grades `g0` to `g3`. The first question of a task
has the task's name. `form_of` gives a task's form; a new one also needs a class in `evaluation.human.questions`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from annotation.human.records import HumanAnswer, HumanItem, HumanTask
from annotation.human.types import NONE
from annotation.questions.entries import ENGLISH
from annotation.questions.question import AND, labels_of
from annotation.questions.ranking import YES, ranked, ranks_of
from generation.datasets.scored import ScoredItem
from plumbline.study.campaign import SimulatedRater
from plumbline.study.human import CANNOT_TELL, TOGETHER
from plumbline.words import count

NO = "no"
Words = Mapping[str, str]  # by language code


@dataclass(frozen=True)
class TaskQuestion:
    """One question of a task."""

    name: str
    kind: str
    labels: tuple[str, ...]  #: the choices, in order
    position: int = 0  #: the place of the candidate that it is about among those shown; 0 for none
    required: bool = True
    title: str = "question"  #: the key of its title in the task's instructions


@dataclass(frozen=True)
class RaterAnswers:
    """One rater's answers to one record, by question."""

    answers: Mapping[str, str]
    seconds: float = math.nan
    #: The candidates' numbers in this rater's order, or the place of a record's only candidate; empty for the order of
    #: `HumanItem.shown`, None if unknown.
    order: tuple[int, ...] | None = ()

    def place(self, number: int, n_shown: int) -> int:
        """Return the place at which this rater saw a candidate, by its number among those shown; 0 if unknown.

        A crowd's form may send any numbers: an order that does not name each of the `n_shown` once is ignored.
        """
        if self.order == ():
            return number
        if self.order is None or sorted(self.order) != list(range(1, n_shown + 1)):
            return 0
        return self.order.index(number) + 1


AnswersByRecord = Mapping[str, RaterAnswers]  # by pair id


@dataclass(frozen=True)
class Skill:
    """How often a simulated rater is right about labels, marks and pairs, and cannot tell."""

    right: float = 0.85
    cannot_tell: float = 0.0


USUAL_SKILL = Skill()


@dataclass(frozen=True)
class SimulatedAnswering:
    """A simulated rater in front of one record; every call of a method draws."""

    rater: SimulatedRater
    skill: Skill
    draw: np.random.Generator
    gold: ScoredItem
    candidates: tuple[str, ...]  #: of the record, in their order
    own_group: Callable[[str], int]  #: the rater's own number for a label's cluster

    def cannot_tell(self) -> bool:
        """Return whether the rater cannot tell."""
        return self.draw.random() < self.skill.cannot_tell

    def noise(self) -> float:
        """Return an error without bias."""
        return float(self.rater.noise * self.draw.normal())

    def chosen(self, right: Sequence[str], labels: Sequence[str]) -> str:
        """Return a right label, or, with the rater's chance of an error, any other with equal probability."""
        wrong_labels = [label for label in labels if label not in (*right, CANNOT_TELL)]
        if self.draw.random() < self.skill.right or not wrong_labels:
            return right[0]
        return str(wrong_labels[self.draw.integers(len(wrong_labels))])


class TaskForm:
    """A form of answers; here one label of one question, and forms override what differs."""

    letter: ClassVar[str] = ""  #: that numbered labels begin with
    kind: ClassVar[str] = "label"  #: of its question
    numbered_replies: ClassVar[bool] = False  #: whether a model may answer by a label's number
    on_scale: ClassVar[bool] = False  #: whether labels are points with meanings
    nominal: ClassVar[bool] = False  #: whether answers are alike or not, so that kappas of the labels mean something
    at_once: ClassVar[bool] = False  #: whether all items are answered together
    combined: ClassVar[str] = "candidates"  #: what the shares of a label are taken over if there are several

    def __init__(self, task: HumanTask) -> None:
        self.task = task

    @property
    def _choices(self) -> tuple[str, ...]:
        """The labels except "cannot tell"."""
        raise NotImplementedError

    @property
    def reply(self) -> str:
        """The form of a model's reply (`annotation.judges.annotator_messages`): one, several, each, groups or order."""
        return "one"

    @property
    def per_candidate(self) -> bool:
        """True if each candidate is a record of its own."""
        return False

    @property
    def also_asked(self) -> str:
        """What else the methods section says about the question."""
        return ""

    def questions(self) -> list[TaskQuestion]:
        """Return the questions of a task, in order."""
        return [TaskQuestion(self.task.task, self.kind, (*self._choices, CANNOT_TELL))]

    def number(self, label: str) -> int | None:
        """Return the number of a numbered label; None for others."""
        letter, digits = label[:1], label[1:]
        return int(digits) if letter == self.letter and digits.removeprefix("-").isdigit() else None

    def meaning(self, label: str) -> str:
        """Return a label's meaning; yes, no, none and cannot_tell are returned as they are."""
        number = self.number(label)
        return label if number is None else self._meaning(number)

    def _meaning(self, number: int) -> str:
        return str(number)

    def pool(self) -> dict[str, Any]:
        """Return the task's title and request to raters, in the form of a rubric's pool."""
        hint = {self.task.task: {"hint": self._words["hint"]}} if "hint" in self._words else {}
        return {"title": self._words["title"], "asked": self._request(), "questions": hint}

    @property
    def _words(self) -> Mapping[str, Any]:
        """The instructions of the task's type."""
        return self.task.words.own

    def _request(self) -> Words:
        words = self._words
        return _joined(words["asked"], words["always"]) if self.task.candidates else words["asked"]

    def words_on(self, label: str) -> Words:
        """Return the words on a label's button."""
        number = self.number(label)
        return dict(self.task.words.general[label]) if number is None else self._numbered_words(number)

    def _numbered_words(self, number: int) -> Words:
        return filled(self.task.words.general["passage"], n=number)

    def answers(
        self, item: HumanItem, answers_by_record: AnswersByRecord, rater_id: str, *, simulated: bool
    ) -> Iterator[HumanAnswer]:
        """Yield a rater's answers to an item, without unanswered questions."""
        row = {"task": self.task.task, "item": item.item, "rater_id": rater_id, "simulated": simulated}
        for values in self._answers(item, answers_by_record):
            yield HumanAnswer.model_validate({**row, **values})

    def _answers(self, item: HumanItem, answers_by_record: AnswersByRecord) -> Iterator[dict[str, object]]:
        """Yield the fields of each `HumanAnswer` that depend on the answers."""
        if (rater_answers := answers_by_record.get(item.pair_id)) is not None:
            answer = rater_answers.answers.get(self.task.task, "")
            yield {**self._read(answer, item, rater_answers), "seconds": rater_answers.seconds}

    def _read(self, answer: str, item: HumanItem, rater_answers: RaterAnswers) -> dict[str, object]:
        """Return the fields of one stored answer."""
        labels = labels_of(answer)
        if not labels or CANNOT_TELL in labels:
            return {"abstained": True}
        return self._value(labels, item, rater_answers)

    def _value(self, labels: Sequence[str], item: HumanItem, rater_answers: RaterAnswers) -> dict[str, object]:
        raise NotImplementedError

    def messages(self, items: Sequence[HumanItem]) -> Iterator[tuple[list[HumanItem], list[str], tuple[str, ...]]]:
        """Yield the items, records and candidates of each message to a language model."""
        for item in items:
            yield [item], [item.pair_id], item.shown

    def labels_in_reply(self, labels: Mapping[str, str], number: int) -> Mapping[str, str]:
        """Return the labels that a model may give in a reply about `number` candidates or texts."""
        del number
        return labels

    def simulated(self, answering: SimulatedAnswering) -> Iterator[tuple[str, str]]:
        """Yield a simulated rater's answers by question."""
        for question in self.questions():
            about = answering.candidates[max(question.position - 1, 0)] if answering.candidates else ""
            yield question.name, CANNOT_TELL if answering.cannot_tell() else self._simulated(answering, about)

    def _simulated(self, answering: SimulatedAnswering, about: str) -> str:
        return answering.chosen(self._right(answering, about), self._choices)

    def _right(self, answering: SimulatedAnswering, about: str) -> list[str]:
        """Return the right labels."""
        raise NotImplementedError


class PointForm(TaskForm):
    """A point of a scale."""

    letter, on_scale, numbered_replies = "p", True, True

    @property
    def _choices(self) -> tuple[str, ...]:
        return tuple(f"{self.letter}{point}" for point in self.task.scale)

    @property
    def _scale_words(self) -> Mapping[str, Words | None]:
        """The words of all points if they have words, otherwise those of the ends."""
        low, *_, high = self.task.scale
        ends = {str(low): self._words.get("low"), str(high): self._words.get("high")}
        words: Mapping[str, Words | None] = self._words.get("scales", {}).get(f"{low} to {high}", ends)
        return words

    def _numbered_words(self, number: int) -> Words:
        """Return the words of a scale's point.

        A button has a number, which is its key. So a point shows its own number only if both are equal; on a scale from
        0, points have words, or a dot for each point below.
        """
        scale, scale_words = self.task.scale, self._scale_words
        words = scale_words.get(str(number)) or {ENGLISH: ""}
        if all(scale_words.get(str(step)) for step in scale):
            return dict(words)
        mark = str(number) if scale[0] == 1 else "●" * scale.index(number) or "○"
        return {code: f"{mark} {text}".strip() for code, text in words.items()}

    def _value(self, labels: Sequence[str], item: HumanItem, rater_answers: RaterAnswers) -> dict[str, object]:
        return {"value": float(labels[0][1:])}

    def _truth(self, gold: ScoredItem, about: str) -> float:
        return gold.score

    def _simulated(self, answering: SimulatedAnswering, about: str) -> str:
        felt = self._truth(answering.gold, about) + answering.rater.bias + answering.noise()
        return f"{self.letter}{int(np.clip(round(felt), self.task.scale[0], self.task.scale[-1]))}"


class LabelForm(TaskForm):
    """One of the data set's labels."""

    letter, nominal = "l", True

    @property
    def _choices(self) -> tuple[str, ...]:
        return tuple(f"l{number}" for number in range(1, len(self.task.labels) + 1))

    def _meaning(self, number: int) -> str:
        label = self.task.labels[number - 1]
        return self.task.label_words.get(label, label)

    def _numbered_words(self, number: int) -> Words:
        return {ENGLISH: self._meaning(number)}

    def _labels(self, names: Iterable[str]) -> list[str]:
        """Return the data set's labels by their names."""
        return [self.task.labels[int(name[1:]) - 1] for name in names if name != NONE]

    def _value(self, labels: Sequence[str], item: HumanItem, rater_answers: RaterAnswers) -> dict[str, object]:
        return {"label": self._labels(labels)[0]}

    def _right(self, answering: SimulatedAnswering, about: str) -> list[str]:
        return [f"l{self.task.labels.index(label) + 1}" for label in answering.gold.labels]


class LabelsForm(LabelForm):
    """Any of the data set's labels, or none."""

    kind, reply, nominal = "multi_label", "several", False
    also_asked = ", several of which may be chosen"

    @property
    def _choices(self) -> tuple[str, ...]:
        return (*super()._choices, NONE)

    def _value(self, labels: Sequence[str], item: HumanItem, rater_answers: RaterAnswers) -> dict[str, object]:
        return {"label": json.dumps(self._labels(labels), ensure_ascii=False)}

    def _simulated(self, answering: SimulatedAnswering, about: str) -> str:
        """Say of each label of the task whether it fits; the rater's errors are shared among the labels."""
        error_rate, right = (1 - answering.skill.right) / max(len(self.task.labels), 1), self._right(answering, "")
        chosen = [name for name in super()._choices if (name in right) != (answering.draw.random() < error_rate)]
        return AND.join(chosen or [NONE])


class SameForm(TaskForm):
    """Yes or no: whether two texts mean the same."""

    _choices, nominal = (YES, NO), True

    def _value(self, labels: Sequence[str], item: HumanItem, rater_answers: RaterAnswers) -> dict[str, object]:
        return {"value": float(labels[0] == YES)}

    def _right(self, answering: SimulatedAnswering, about: str) -> list[str]:
        return [YES if answering.gold.labels == ("1",) else NO]


class ClusterForm(TaskForm):
    """A numbered group; the numbers are each rater's own."""

    letter, reply, numbered_replies, at_once, combined = "c", "groups", True, True, "groups"

    @property
    def _choices(self) -> tuple[str, ...]:
        return tuple(f"c{number}" for number in range(1, self.task.clusters_told + 1))

    def _meaning(self, number: int) -> str:
        return "a group"

    def _request(self) -> Words:
        return _joined(self._words["asked"], filled(self._words["told"], k=self.task.clusters_told))

    def _numbered_words(self, number: int) -> Words:
        return filled(self.task.words.general["cluster"], n=number)

    def _value(self, labels: Sequence[str], item: HumanItem, rater_answers: RaterAnswers) -> dict[str, object]:
        return {"label": labels[0][1:]}

    def messages(self, items: Sequence[HumanItem]) -> Iterator[tuple[list[HumanItem], list[str], tuple[str, ...]]]:
        """Yield all items of a language together, since nobody can number groups without having seen every text."""
        by_language: dict[tuple[str, str], list[HumanItem]] = {}
        for item in sorted(items, key=lambda item: item.pair_id):  # a hash: data sets may have labels in order
            by_language.setdefault((item.subset, item.language), []).append(item)
        for every in by_language.values():
            yield every, [item.pair_id for item in every], ()

    def _right(self, answering: SimulatedAnswering, about: str) -> list[str]:
        return [f"c{answering.own_group(answering.gold.labels[0])}"]


class ChoiceForm(TaskForm):
    """One of the candidates."""

    letter, numbered_replies, nominal = "d", True, True

    @property
    def _choices(self) -> tuple[str, ...]:
        return tuple(f"d{position}" for position in range(1, self.task.candidates + 1))

    def _meaning(self, number: int) -> str:
        return "a candidate"

    def labels_in_reply(self, labels: Mapping[str, str], number: int) -> Mapping[str, str]:
        """Return the labels of the item's candidates: it may have fewer than others."""
        return {name: words for name, words in labels.items() if (self.number(name) or 0) <= number}

    def _value(self, labels: Sequence[str], item: HumanItem, rater_answers: RaterAnswers) -> dict[str, object]:
        position = int(labels[0][1:])
        return {"label": item.shown[position - 1], "place": rater_answers.place(position, len(item.shown))}

    def _right(self, answering: SimulatedAnswering, about: str) -> list[str]:
        return [
            f"d{position}" for position, name in enumerate(answering.candidates, 1) if name in answering.gold.relevant
        ]


class CandidateForm(TaskForm):
    """An answer to each candidate, which up to a number stand in one record."""

    also_asked = ", for each candidate"

    @property
    def per_candidate(self) -> bool:
        """True if there are too many candidates for one record."""
        return self.task.candidates > TOGETHER

    @property
    def reply(self) -> str:
        """The form of a model's reply."""
        return "one" if self.per_candidate else "each"

    def questions(self) -> list[TaskQuestion]:
        """Return a question for each candidate of a record."""
        (question,) = super().questions()
        if self.per_candidate:
            return [replace(question, title="single")]
        names = [question.name, *(f"{question.name}-{number}" for number in range(2, self.task.candidates + 1))]
        return [replace(question, name=name, position=number) for number, name in enumerate(names, 1)]

    def _request(self) -> Words:
        request: Words = self._words["one"] if self.per_candidate else super()._request()
        return request

    def _answers(self, item: HumanItem, answers_by_record: AnswersByRecord) -> Iterator[dict[str, object]]:
        if not self.per_candidate:
            if (rater_answers := answers_by_record.get(item.pair_id)) is not None:
                for question, name in zip(self.questions(), item.shown, strict=False):
                    position = rater_answers.place(question.position, len(item.shown))
                    values = self._read(rater_answers.answers.get(question.name, ""), item, rater_answers)
                    yield {**values, "candidate": name, "place": position, "seconds": rater_answers.seconds}
            return
        records = zip(item.candidates, item.records, strict=True)
        answered = [(name, answers_by_record[record]) for name, record in records if record in answers_by_record]
        seconds = sum(answers.seconds for _, answers in answered) if len(answered) == len(item.records) else math.nan
        for name, answers in answered:
            position = (answers.order or (0,))[0]
            values = self._read(answers.answers.get(self.task.task, ""), item, answers)
            yield {
                **values, "candidate": name, "place": position * (position <= len(item.shown)), "seconds": seconds
            }  # fmt: skip

    def messages(self, items: Sequence[HumanItem]) -> Iterator[tuple[list[HumanItem], list[str], tuple[str, ...]]]:
        """Yield each record."""
        if not self.per_candidate:
            yield from super().messages(items)
            return
        for item in items:
            for record, name in zip(item.records, item.candidates, strict=True):
                yield [item], [record], (name,)


class GradedForm(CandidateForm, PointForm):
    """A grade for each candidate."""

    letter = "g"

    @property
    def _scale_words(self) -> Mapping[str, Words | None]:
        grades: Mapping[str, Words | None] = self._words["grades"]
        return grades

    def _truth(self, gold: ScoredItem, about: str) -> float:
        return float(self.task.scale[-1] * (about in gold.relevant))


class BinaryForm(CandidateForm, SameForm):
    """A mark for each candidate: relevant or not."""

    nominal = False

    def words_on(self, label: str) -> Words:
        """Return the task's own words of a mark, if it has them."""
        return dict(self._words.get(label) or super().words_on(label))

    def _right(self, answering: SimulatedAnswering, about: str) -> list[str]:
        return [YES if about in answering.gold.relevant else NO]


class RankedForm(TaskForm):
    """An order of the candidates, after the question whether the rater can tell.

    A yes without a complete order is no answer.
    """

    letter, reply, _choices = "d", "order", (YES,)

    @property
    def also_asked(self) -> str:
        """The order."""
        return f", and for an order of {count(self.task.candidates, 'candidate')}"

    def questions(self) -> list[TaskQuestion]:
        """Return whether the rater can tell, and the order."""
        (question,) = super().questions()
        places = tuple(f"d{position}" for position in range(1, self.task.candidates + 1))
        order = TaskQuestion(f"{question.name}-order", "ranking", places, required=False, title="order")
        return [replace(question, title="told"), order]

    def _meaning(self, number: int) -> str:
        return "a candidate"

    def labels_in_reply(self, labels: Mapping[str, str], number: int) -> Mapping[str, str]:
        """Return only cannot_tell: an order names no labels."""
        return {CANNOT_TELL: labels[CANNOT_TELL]}

    def _answers(self, item: HumanItem, answers_by_record: AnswersByRecord) -> Iterator[dict[str, object]]:
        if (rater_answers := answers_by_record.get(item.pair_id)) is None:
            return
        number, (first, order) = len(item.shown), self.questions()
        tells = rater_answers.answers.get(first.name) == YES
        ranks = ranks_of(rater_answers.answers.get(order.name, "")) if tells else {}
        if tells and any(f"d{position}" not in ranks for position in range(1, number + 1)):
            return
        for position, name in enumerate(item.shown, 1):
            yield {
                "candidate": name, "place": rater_answers.place(position, number), "abstained": not tells,
                "value": float(number + 1 - ranks[f"d{position}"]) if tells else math.nan,
                "seconds": rater_answers.seconds,
            }  # fmt: skip

    def simulated(self, answering: SimulatedAnswering) -> Iterator[tuple[str, str]]:
        """Yield whether the rater can tell, and an order by relevance and noise."""
        first, order = self.questions()
        cannot = answering.cannot_tell()
        yield first.name, CANNOT_TELL if cannot else YES
        felt = [(name in answering.gold.relevant) + answering.noise() for name in answering.candidates]
        best_first = sorted(range(len(felt)), key=lambda index: -felt[index])
        if not cannot:
            yield order.name, ranked({f"d{index + 1}": rank for rank, index in enumerate(best_first, 1)})


#: The forms by name, as `annotation.human.types` calls them.
FORMS: Mapping[str, type[TaskForm]] = {
    "score": PointForm,
    "label": LabelForm,
    "labels": LabelsForm,
    "same": SameForm,
    "cluster": ClusterForm,
    "graded": GradedForm,
    "binary": BinaryForm,
    "ranked": RankedForm,
    "choice": ChoiceForm,
}


def form_of(task: HumanTask) -> TaskForm:
    """Return the form of a task's answers."""
    return FORMS[task.asked](task)


def _joined(first: Words, second: Words) -> Words:
    return {code: f"{text} {second.get(code, second[ENGLISH])}" for code, text in first.items()}


def filled(words: Words, **numbers: int) -> Words:
    """Return words with numbers in the places `{n}` and `{k}`."""
    replaced = dict(words)
    for name, number in numbers.items():
        replaced = {code: text.replace(f"{{{name}}}", str(number)) for code, text in replaced.items()}
    return replaced
