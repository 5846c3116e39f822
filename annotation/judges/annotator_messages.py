"""Messages to language models that do people's tasks: an item as raters read it.

Guidelines, what is asked, questions, answers and texts are those of the study's rubric, in the language in which raters
read them. A message is about one record (`pairs.parquet`). For clustering it has all texts of a language at once,
since nobody can number groups without having seen every text.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from annotation.campaign.rubric import Rubric
from annotation.human.forms import TaskForm, form_of
from annotation.human.records import HumanItem, HumanTask
from annotation.human.types import NONE
from annotation.judges.prompts import shown, spoken
from annotation.questions.entries import RubricQuestion, worded
from annotation.questions.question import AND
from annotation.questions.ranking import YES, ranked
from plumbline.fields import fields_of
from plumbline.identity import identity
from plumbline.models.chat import Completion
from plumbline.prompts import PROMPTS, Prompt, read_prompt
from plumbline.reading import MalformedError, parse_json
from plumbline.records import Pair
from plumbline.study.engines import AnnotatorSpec
from plumbline.study.human import CANNOT_TELL
from plumbline.words import count

PROMPT = PROMPTS / "annotators" / "tasks.yaml"
_DOTS = "●○ "  # signs of a point without words on a button


class AnnotatorPrompt(Prompt):
    """The prompt for language models that do people's tasks, with instructions on the form of an answer."""

    forms: dict[str, str] = Field(description="instructions by form of answer: one, several, each, order")
    text_title: str = Field(description="title above each of several texts; {n} is the text's number")


Answers = dict[str, dict[str, str]]  # by pair and question


class _NoAnswerError(ValueError):
    """A reply that is not an answer; the message says why."""


@dataclass(frozen=True)
class AnswerForm:
    """The permitted answers to one question: each option's name by its spellings."""

    NAME: ClassVar[str] = "one"  #: its instructions in the prompt
    NUMBERED: ClassVar[bool] = False  #: whether there is something for each candidate or text, by its number

    options: Mapping[str, str]
    n: int = 1  #: candidates or texts that are answered

    def read(self, value: Any, names: Sequence[str], pairs: Sequence[Pair]) -> Answers:
        """Return the answers by pair and question (`names`). Raises _NoAnswerError for a value that is none."""
        return {pairs[0].pair_id: self._of_pair(value, names)}

    def _of_pair(self, value: Any, names: Sequence[str]) -> dict[str, str]:
        return {names[0]: self._option(value)}

    def _option(self, value: Any) -> str:
        """Return the name of the answer that a value spells, exactly or, if that is unambiguous, in another case."""
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise _NoAnswerError(f"expected one answer, found {shown(_plain(value))}")
        text = " ".join(str(value).split())
        if text in self.options:
            return self.options[text]
        folded = text.casefold().rstrip(".")
        names = {name for words, name in self.options.items() if words.casefold().rstrip(".") == folded}
        if len(names) != 1:
            raise _NoAnswerError(f"not among the answers: {shown(text)}")
        return names.pop()


class SeveralForm(AnswerForm):
    """Several of the options."""

    NAME: ClassVar[str] = "several"

    def _of_pair(self, value: Any, names: Sequence[str]) -> dict[str, str]:
        listed = value if isinstance(value, list) else [value]
        options = list(dict.fromkeys(self._option(option) for option in listed))
        if not options:
            raise _NoAnswerError("an empty list; if no label fits, the option for none must be chosen")
        if (exclusive := [name for name in options if name in (NONE, CANNOT_TELL)]) and len(options) > 1:
            raise _NoAnswerError(f"{exclusive[0].replace('_', ' ')} together with labels: {shown(_plain(value))}")
        order = list(dict.fromkeys(self.options.values()))
        return {names[0]: AND.join(sorted(options, key=order.index))}


class OrderForm(AnswerForm):
    """The order of candidates, or that there is none."""

    NAME, NUMBERED = "order", True

    def _of_pair(self, value: Any, names: Sequence[str]) -> dict[str, str]:
        if isinstance(value, str):
            return {names[0]: self._option(value)}
        groups = [group if isinstance(group, list) else [group] for group in value] if isinstance(value, list) else []
        numbers = [str(number) for group in groups for number in group]
        if sorted(numbers) != sorted(str(number) for number in range(1, self.n + 1)):
            raise _NoAnswerError(f"not an order of the numbers 1 to {self.n}: {shown(_plain(value))}")
        ranks = {f"d{number}": rank for rank, group in enumerate(groups, 1) for number in group}
        return {names[0]: YES, names[1]: ranked(ranks)}


class EachForm(AnswerForm):
    """An option for each candidate."""

    NAME, NUMBERED = "each", True

    def _of_pair(self, value: Any, names: Sequence[str]) -> dict[str, str]:
        return dict(zip(names, self._each(value), strict=False))

    def _each(self, value: Any) -> list[str]:
        """Return an answer for each number, in order; a list answers by position, cannot_tell alone answers all."""
        if isinstance(value, str) and self.options.get(value) == CANNOT_TELL:
            return [CANNOT_TELL] * self.n
        if isinstance(value, list):
            value = {str(number): option for number, option in enumerate(value, 1)}
        wanted = [str(number) for number in range(1, self.n + 1)]
        if not isinstance(value, dict):
            raise _NoAnswerError(f"expected {count(self.n, 'answer')}, found {shown(_plain(value))}")
        if mismatched := [name for name in (*wanted, *value) if (name in value) != (name in wanted)]:
            fault = "no answer for" if mismatched[0] in wanted else "an answer for unknown"
            raise _NoAnswerError(f"{fault} number {shown(str(mismatched[0]))}")
        return [self._option(value[name]) for name in wanted]


class GroupsForm(EachForm):
    """A group for each of the texts, which are pairs of their own."""

    def read(self, value: Any, names: Sequence[str], pairs: Sequence[Pair]) -> Answers:
        """Return the group of each pair."""
        return {pair.pair_id: {names[0]: group} for pair, group in zip(pairs, self._each(value), strict=True)}


#: The forms by name, as `annotation.human.forms.TaskForm.reply` calls them.
_REPLIES = {"one": AnswerForm, "several": SeveralForm, "order": OrderForm, "each": EachForm, "groups": GroupsForm}


@dataclass(frozen=True)
class AnnotatorMessage:
    """A message about one record, or for clustering about all; `prompt_hash` covers everything except the texts."""

    task: HumanTask
    pairs: tuple[Pair, ...]
    items: tuple[str, ...]  #: the records' items, as in `human/items.parquet`
    candidates: tuple[str, ...]  #: the candidates that one record shows, in their order
    form: AnswerForm
    prompt_hash: str
    render: Callable[[], str]
    labels: ClassVar[Sequence[str]] = ()  #: answers are text

    @property
    def message(self) -> str:
        """The message's text, rendered on demand."""
        return self.render()


def does(spec: AnnotatorSpec, task: HumanTask) -> bool:
    """Return whether a model does a task."""
    return not spec.questions or task.task in spec.questions


class Instructions:
    """The instructions of a study's models; `rubric` is that of the tasks."""

    def __init__(self, rubric: Rubric, path: Path = PROMPT) -> None:
        self._rubric, self._prompt = rubric, read_prompt(path, AnnotatorPrompt)
        self._hashes: dict[tuple[object, ...], str] = {}

    def askings(
        self, task: HumanTask, items: Sequence[HumanItem], pairs: Mapping[str, Pair]
    ) -> Iterator[AnnotatorMessage]:
        """Yield the messages about a task's items; `pairs` are the records that raters were sent, by id."""
        of_task = [item for item in items if item.task == task.task]
        for message_items, records, candidates in form_of(task).messages(of_task):
            yield self._asking(task, message_items, tuple(pairs[record] for record in records), candidates)

    def _asking(
        self, task: HumanTask, items: Sequence[HumanItem], pairs: tuple[Pair, ...], candidates: tuple[str, ...]
    ) -> AnnotatorMessage:
        language = self._rubric.language_for(pairs[0].language, pairs[0].output_language)
        number, form = len(candidates) or len(pairs), form_of(task)
        by_name = {question.name: question for question, _ in self._rubric.asked_questions(task.task)}
        questions = [by_name[question.name] for question in form.questions() if question.position <= number]
        labels = {name: worded(words, language) for name, words in questions[0].labels.items()}
        reply = _REPLIES[form.reply]
        answer_form = reply(spellings(form, form.labels_in_reply(labels, number)), number if reply.NUMBERED else 1)
        key = (task.task, language, pairs[0].language, pairs[0].output_language, number)
        if key not in self._hashes:
            message = self._message(task, pairs, questions, answer_form, language, texts=False)
            self._hashes[key] = identity("annotator-prompt-v1", message)
        render = functools.partial(self._message, task, pairs, questions, answer_form, language)
        return AnnotatorMessage(
            task, pairs, tuple(item.item for item in items), candidates, answer_form, self._hashes[key], render
        )

    def _message(
        self, task: HumanTask, pairs: Sequence[Pair], questions: Sequence[RubricQuestion], form: AnswerForm,
        language: str, *, texts: bool = True,
    ) -> str:  # fmt: skip
        pool = self._rubric.pool(task.task)
        hint, _ = self._rubric.meaning(task.task, questions[0], language)
        labels = {name: worded(words, language) for name, words in questions[0].labels.items()}
        lines = [line for name, line in lines_of(form_of(task), labels).items() if name in form.options.values()]
        titles = self._rubric.field_titles(task.task, language, pairs[0].language, pairs[0].output_language)
        blocks = []
        for number, pair in enumerate(pairs, 1):
            for field in fields_of(pair):
                title = titles.get(field.name, field.name)
                if len(pairs) > 1:
                    title = self._prompt.text_title.replace("{n}", str(number))
                blocks.append(f"{title}:\n{field.text if texts else ''}")
        values = {
            "guidelines": worded(self._rubric.guidelines, language),
            "asked": worded(pool.asked, language),
            "questions": "\n".join(filter(None, [*(worded(question.title, language) for question in questions), hint])),
            "answers": "\n".join(f"- {line}" for line in lines),
            "form": self._prompt.forms[form.NAME].replace("{n}", str(form.n)),
            "texts": "\n\n".join(blocks),
        }
        return self._prompt.render(values)


def lines_of(form: TaskForm, labels: Mapping[str, str]) -> dict[str, str]:
    """Return answers as lines for a model, by name; a scale's point has its number before its meaning."""
    lines = {}
    for name, words in labels.items():
        number = _number(form, name)
        meaning = words.lstrip(_DOTS) if number else words
        if number and form.on_scale:
            meaning = meaning.removeprefix(number).strip()
            meaning = f"{number} = {meaning}" if meaning else number
        lines[name] = meaning
    return lines


def spellings(form: TaskForm, labels: Mapping[str, str]) -> dict[str, str]:
    """Return the spellings of each answer: its words, and its number if it has one.

    A spelling that could mean two answers is left out.
    """
    lines, names_by_words, twice = lines_of(form, labels), dict[str, str](), set[str]()
    for name, words in labels.items():
        for spelling in dict.fromkeys(filter(None, (words, lines[name], _number(form, name)))):
            if names_by_words.setdefault(spelling, name) != name:
                twice.add(spelling)
    return {spelling: name for spelling, name in names_by_words.items() if spelling not in twice}


def _number(form: TaskForm, name: str) -> str:
    """Return the number by which a model may give an answer; empty without one."""
    return name[1:] if form.numbered_replies and form.number(name) is not None else ""


_FENCE = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL)


def read_answer(answer: Completion, asking: AnnotatorMessage) -> tuple[Answers, str]:
    """Read a reply; return the answers, and the reason if there are none.

    A reply is a JSON object with `answer`, its value alone, or one answer in words. Anything beside that makes it
    unreadable.
    """
    text, reason = spoken(answer)
    if reason:
        return {}, reason
    fenced = _FENCE.fullmatch(text)
    text = fenced[1] if fenced else text
    try:
        value = parse_json(text)
    except MalformedError:
        value = text
    if value is None or isinstance(value, bool):  # these may be words of a label
        value = text
    if isinstance(value, dict) and set(value) == {"answer"}:
        value = value["answer"]
    try:
        names = [question.name for question in form_of(asking.task).questions()]
        return asking.form.read(value, names, asking.pairs), ""
    except _NoAnswerError as error:
        return {}, str(error)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
