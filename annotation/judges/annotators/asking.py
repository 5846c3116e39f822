"""What language models that do people's tasks are asked: what raters read of an item, rendered as a message.

Guidelines, what is asked, questions, answers and texts are those of the study's rubric, in the language in which raters
read them. A message is of one record (`pairs.parquet`); of clustering it has all texts of a language at once, since
nobody can number groups without having seen what there is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from annotation.human.asking import GRADES, apart, questions_of
from annotation.human.records import HumanItem, HumanTask
from annotation.questions import Question, said
from annotation.rubric import Rubric
from plumbline.fields import fields_of
from plumbline.identity import identity
from plumbline.prompts import PROMPTS, Prompt, read_prompt
from plumbline.records import Pair
from plumbline.study.annotators import AnnotatorSpec
from plumbline.study.human import CANNOT_TELL

PROMPT = PROMPTS / "annotators" / "tasks.yaml"
_POINTS = ("score", "graded")  # ways of asking whose answers have numbers
_NUMBERED = {"cluster": "c", "choice": "d"}  # and those whose answers are numbers of groups or candidates
_DOTS = "●○ "  # that stand for a point without words on a button


class AnnotatorPrompt(Prompt):
    """The prompt for language models that do people's tasks, with what it says of the form of an answer."""

    forms: dict[str, str] = Field(description="by what is answered: one, several, each of many, order")
    text_title: str = Field(description="stands above one of many texts; {n} is its number")


@dataclass(frozen=True)
class Form:
    """What an answer must be: each option's name by what may be written for it, and how many are numbered."""

    kind: str  #: one, several, each or order
    options: Mapping[str, str]
    n: int = 1  #: candidates or texts that are answered, of `each` and `order`


@dataclass(frozen=True)
class Asking:
    """A message about one record, or of clustering about all; `prompt_hash` is of all that is said but the texts."""

    task: HumanTask
    pairs: tuple[Pair, ...]
    items: tuple[str, ...]  #: the items that they are of, as `human/items.parquet` has them
    candidates: tuple[str, ...]  #: of one record the candidates that it shows, in their order
    form: Form
    prompt_hash: str
    said: Callable[[], str]

    @property
    def message(self) -> str:
        """What the model reads; made when it is asked."""
        return self.said()


def as_asked(task: HumanTask, spec: AnnotatorSpec) -> HumanTask:
    """A task as a model is asked: as people are, but for the relevance that the study names for the model."""
    searched = task.asked in ("graded", "binary", "ranked")
    if not searched or not does(spec, task) or spec.relevance in (None, task.asked):
        return task
    return task.model_copy(update={"asked": spec.relevance, "scale": GRADES if spec.relevance == "graded" else ()})


def does(spec: AnnotatorSpec, task: HumanTask) -> bool:
    """Whether a model does a task."""
    return not spec.tasks or task.task in spec.tasks


class Instructions:
    """What the models of a study are told; `rubric` is that of the tasks as they are asked."""

    def __init__(self, rubric: Rubric, path: Path = PROMPT) -> None:
        self._rubric, self._prompt = rubric, read_prompt(path, AnnotatorPrompt)
        self._hashes: dict[tuple[object, ...], str] = {}

    def askings(self, task: HumanTask, items: Sequence[HumanItem], pairs: Mapping[str, Pair]) -> Iterator[Asking]:
        """Everything that is asked of a task's items; `pairs` by id are what raters were sent."""
        own = [item for item in items if item.task == task.task]
        if task.asked == "cluster":
            by_language: dict[tuple[str, str], list[HumanItem]] = {}
            for item in sorted(own, key=lambda one: one.pair_id):  # a hash: data sets may have labels in order
                by_language.setdefault((item.subset, item.language), []).append(item)
            for every in by_language.values():
                yield self._asking(task, every, tuple(pairs[item.pair_id] for item in every), ())
            return
        for item in own:
            if apart(task):
                for record, name in zip(item.records, item.candidates, strict=True):
                    yield self._asking(task, [item], (pairs[record],), (name,))
            else:
                yield self._asking(task, [item], (pairs[item.pair_id],), item.shown)

    def _asking(
        self, task: HumanTask, items: Sequence[HumanItem], pairs: tuple[Pair, ...], candidates: tuple[str, ...]
    ) -> Asking:
        language = self._rubric.language_for(pairs[0].language, pairs[0].output_language)
        number = len(pairs) if task.asked == "cluster" else len(candidates)
        asked = self._questions(task, number)
        form = self._form(task, asked, language, number)
        place = (task.task, language, pairs[0].language, pairs[0].output_language, number)
        if place not in self._hashes:
            message = self._message(task, pairs, asked, form, language, texts=False)
            self._hashes[place] = identity("annotator-prompt-v1", message)
        render = functools.partial(self._message, task, pairs, asked, form, language)
        return Asking(task, pairs, tuple(one.item for one in items), candidates, form, self._hashes[place], render)

    def _questions(self, task: HumanTask, number: int) -> list[Question]:
        """The questions about an item; of candidates so many as there are."""
        names = [one.name for one in questions_of(task)]
        if task.asked in ("graded", "binary") and not apart(task):
            names = names[:number]
        by_name = {one.name: one for one in self._rubric.asked_questions(task.task)}
        return [by_name[name] for name in names]

    def _form(self, task: HumanTask, asked: Sequence[Question], language: str, number: int) -> Form:
        labels = {name: said(words, language) for name, words in asked[0].labels.items()}
        if task.asked == "ranked":
            return Form("order", spellings(task, {CANNOT_TELL: labels[CANNOT_TELL]}), number)
        if task.asked == "choice":  # an item may have fewer candidates than others
            labels = {name: word for name, word in labels.items() if name[0] != "d" or int(name[1:]) <= number}
        every = task.asked == "cluster" or (task.asked in ("graded", "binary") and not apart(task))
        kind = "each" if every else "several" if task.asked == "labels" else "one"
        return Form(kind, spellings(task, labels), number if every else 1)

    def _message(
        self, task: HumanTask, pairs: Sequence[Pair], asked: Sequence[Question], form: Form, language: str, *,
        texts: bool = True,
    ) -> str:  # fmt: skip
        pool = self._rubric.pool(task.task)
        hint, _ = self._rubric.meaning(task.task, asked[0], language)
        labels = {name: said(words, language) for name, words in asked[0].labels.items()}
        lines = [line for name, line in lines_of(task, labels).items() if name in form.options.values()]
        titles = self._rubric.field_titles(task.task, language, pairs[0].language, pairs[0].output_language)
        shown = []
        for number, pair in enumerate(pairs, 1):
            for one in fields_of(pair):
                title = titles.get(one.name, one.name)
                if len(pairs) > 1:
                    title = self._prompt.text_title.replace("{n}", str(number))
                shown.append(f"{title}:\n{one.text if texts else ''}")
        values = {
            "guidelines": said(self._rubric.guidelines, language),
            "asked": said(pool.asked, language),
            "questions": "\n".join(filter(None, [*(said(one.title, language) for one in asked), hint])),
            "answers": "\n".join(f"- {line}" for line in lines),
            "form": self._prompt.forms[form.kind].replace("{n}", str(form.n)),
            "texts": "\n\n".join(shown),
        }
        return self._prompt.render(values)


def lines_of(task: HumanTask, labels: Mapping[str, str]) -> dict[str, str]:
    """Answers as a model reads them, by name: a point of a scale has its number before what it means."""
    found = {}
    for name, words in labels.items():
        number = _number(task, name)
        meaning = words.lstrip(_DOTS) if number is not None else words
        if number is not None and task.asked in _POINTS:
            meaning = meaning.removeprefix(number).strip()
            meaning = f"{number} = {meaning}" if meaning else number
        found[name] = meaning
    return found


def spellings(task: HumanTask, labels: Mapping[str, str]) -> dict[str, str]:
    """What may be written for each answer: its words, and its number where it has one; nothing that means two."""
    lines, found, twice = lines_of(task, labels), dict[str, str](), set[str]()
    for name, words in labels.items():
        for one in dict.fromkeys(filter(None, (words, lines[name], _number(task, name)))):
            if found.setdefault(one, name) != name:
                twice.add(one)
    return {one: name for one, name in found.items() if one not in twice}


def _number(task: HumanTask, name: str) -> str | None:
    kind = {"score": "p", "graded": "g", **_NUMBERED}.get(task.asked)
    return name[1:] if kind and name[0] == kind and name[1:].lstrip("-").isdigit() else None
