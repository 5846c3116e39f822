"""A language model's answer as a rater's kept answers, or why it is none: never a guess, never one in the middle."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from annotation.human.asking import NONE, YES, questions_of
from annotation.judges.annotators.asking import Asking, Form
from annotation.judges.reading import shown, spoken
from annotation.questions import AND, ranked
from generation.generators import Completion
from plumbline.reading import MalformedError, parse_json
from plumbline.study.human import CANNOT_TELL

Answers = dict[str, dict[str, str]]  # by pair and question, as `annotation.human.asking.Given` has them
_FENCE = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL)


class _NoAnswerError(ValueError):
    """Why what came is no answer."""


def read_answer(answer: Completion, asking: Asking) -> tuple[Answers, str]:
    """(the answers, why there are none: empty where there are).

    A JSON object with `answer`, its value alone, or one answer in words: whatever else stands beside it makes it none.
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
    if value is None or isinstance(value, bool):  # which may be words of a label
        value = text
    if isinstance(value, dict) and set(value) == {"answer"}:
        value = value["answer"]
    try:
        return _read(value, asking), ""
    except _NoAnswerError as error:
        return {}, str(error)


def _read(value: Any, asking: Asking) -> Answers:
    task, form = asking.task, asking.form
    names = [one.name for one in questions_of(task)]
    if form.kind == "each":
        each = _each(value, form)
        if task.asked == "cluster":
            return {pair.pair_id: {task.task: said} for pair, said in zip(asking.pairs, each, strict=True)}
        said = dict(zip(names, each, strict=False))
    elif form.kind == "order":
        said = _order(value, form, names)
    elif form.kind == "several":
        said = {task.task: _several(value, form)}
    else:
        said = {task.task: _option(value, form.options)}
    return {asking.pairs[0].pair_id: said}


def _option(value: Any, options: Mapping[str, str]) -> str:
    """The name of the answer that a value spells: in its words, or in small letters where that means one alone."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise _NoAnswerError(f"no single answer: {shown(_plain(value))}")
    text = " ".join(str(value).split())
    if text in options:
        return options[text]
    folded = text.casefold().rstrip(".")
    found = {name for words, name in options.items() if words.casefold().rstrip(".") == folded}
    if len(found) != 1:
        raise _NoAnswerError(f"not among the answers: {shown(text)}")
    return found.pop()


def _several(value: Any, form: Form) -> str:
    listed = value if isinstance(value, list) else [value]
    named = list(dict.fromkeys(_option(one, form.options) for one in listed))
    if not named:
        raise _NoAnswerError("an empty list; none of them is an answer of its own")
    if (alone := [name for name in named if name in (NONE, CANNOT_TELL)]) and len(named) > 1:
        raise _NoAnswerError(f"{alone[0].replace('_', ' ')} beside labels: {shown(_plain(value))}")
    order = list(dict.fromkeys(form.options.values()))
    return AND.join(sorted(named, key=order.index))


def _each(value: Any, form: Form) -> list[str]:
    """An answer for each number, in order; of a list by their places. Cannot tell alone is that of all."""
    if isinstance(value, str) and form.options.get(value) == CANNOT_TELL:
        return [CANNOT_TELL] * form.n
    if isinstance(value, list):
        value = {str(number): one for number, one in enumerate(value, 1)}
    wanted = [str(number) for number in range(1, form.n + 1)]
    if not isinstance(value, dict):
        raise _NoAnswerError(f"no answer for each of {form.n}: {shown(_plain(value))}")
    if wrong := [name for name in (*wanted, *value) if (name in value) != (name in wanted)]:
        lacks = "has no answer for" if wrong[0] in wanted else "answers, and was not shown,"
        raise _NoAnswerError(f"{lacks} number {shown(str(wrong[0]))}")
    return [_option(value[name], form.options) for name in wanted]


def _order(value: Any, form: Form, names: list[str]) -> dict[str, str]:
    if isinstance(value, str):
        return {names[0]: _option(value, form.options)}
    groups = [one if isinstance(one, list) else [one] for one in value] if isinstance(value, list) else []
    numbers = [str(one) for group in groups for one in group]
    if sorted(numbers) != sorted(str(number) for number in range(1, form.n + 1)):
        raise _NoAnswerError(f"no order of the numbers 1 to {form.n}: {shown(_plain(value))}")
    ranks = {f"d{one}": rank for rank, group in enumerate(groups, 1) for one in group}
    return {names[0]: YES, names[1]: ranked(ranks)}


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
