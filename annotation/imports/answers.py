"""Raters' answers, question by question: their scale, their labels, and cells that are not answers."""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from annotation.campaign.rubric import TAKEN
from annotation.imports.tables import AND_ALSO
from annotation.questions.question import AND, KINDS, Question, labels_of
from annotation.questions.ranking import ranked, ranks_of
from annotation.questions.wordings import packaged
from plumbline.errors import StudyError
from plumbline.scales import MOST_POINTS, Continuous, as_number, is_whole
from plumbline.words import trim

_WORDS = packaged("imports/words.yaml")
_NUMBER = re.compile(r"(?P<number>[+-]?\d{1,9}([.,]\d{1,20})?)\s*(%|/ ?\d{1,3}|out of \d{1,3}|stars?)?")
_POINT = re.compile(r"(?P<number>[+-]?\d{1,3})\s*(?:[-–—:.)=/(]\s*(?P<words>\D.*)|\s(?P<more>\D.*))")
_ORDER = re.compile(r"\w[\w-]*( *[>=] *\w[\w-]*)+")
_RARE, _FAR = 0.01, 3.0  # an answer this rare that widens the scale this much is off it
_MOST_LABELS = 40
_MOST_WORDS = 200  # characters of a label


@dataclass(frozen=True)
class AskedScale:
    """A question's scale as the user gives it; `text` is the option."""

    text: str
    low: float = 0
    high: float = 0
    words: tuple[str, ...] = ()  #: words of the points from 1 on, if answers are words
    labels: bool = False  #: no scale: the answers are labels
    falls: bool = False  #: less is better


def read_scale(text: str) -> AskedScale:
    """Read `1..5`, `5..1` (less is better), `bad<fair<good` or `labels`. Raises StudyError."""
    if text.strip() == "labels":
        return AskedScale("labels", labels=True)
    if "<" in text:
        words = tuple(word.strip() for word in text.split("<"))
        if not all(words) or len(set(words)) < len(words):
            raise StudyError(f"--scale: {text!r} needs a different word for each point, as in bad<fair<good")
        return AskedScale(text, 1, len(words), words)
    ends = text.split("..")
    try:
        first, last = map(as_number, ends)
    except ValueError:
        raise StudyError(f"--scale: {text!r} is not a scale; write 1..5, 5..1, bad<fair<good or labels") from None
    if first == last:
        raise StudyError(f"--scale: {text!r}: its ends are the same point")
    return AskedScale(text, min(first, last), max(first, last), falls=first > last)


@dataclass(frozen=True)
class ImportedQuestion:
    """A question of the file, and each distinct answer to it as it is stored."""

    name: str
    title: str
    kind: str
    points: tuple[float, ...] = ()
    words: Mapping[float, str] = field(default_factory=dict)  #: words of points, if the file has any
    labels: Mapping[str, str] = field(default_factory=dict)  #: name of a label, and its words
    values: Mapping[str, float | str] = field(default_factory=dict)  #: the stored answer, by the cell's text
    wrong: Mapping[str, str] = field(default_factory=dict)  #: why a cell's text is not an answer

    @property
    def scale(self) -> str:
        """The scale or the labels in words."""
        if self.points:
            low, high = self.points[0], self.points[-1]
            if len(self.words) == len(self.points):
                return f"{low:g} ({self.words[low]}) to {high:g} ({self.words[high]})"
            steps = ", any number in between" if isinstance(self.points, Continuous) else ""
            steps = steps or ("" if is_whole(self.points) else f", {len(self.points)} points")
            return f"{low:g} to {high:g}{steps}"
        return ", ".join(self.labels) if self.labels else "words"

    @property
    def asked(self) -> Question:
        """The question that raters answered, as if all of them had to."""
        return KINDS[self.kind].of(self.name, self.points, tuple(self.labels), True, ())


def slug(text: str, usual: str, *, letter: bool = False) -> str:
    """Return a title as a name of small letters, digits, - and _."""
    letters = "".join(sign for sign in unicodedata.normalize("NFKD", text) if not unicodedata.combining(sign))
    plain = re.sub(r"[^a-z0-9_]+", "-", letters.casefold()).strip("-_")[:60].rstrip("-_")
    plain = plain or usual
    return f"{usual}-{plain}"[:64].rstrip("-") if letter and not plain[0].isalpha() else plain


def distinct(names: Sequence[str]) -> list[str]:
    """Return the names, with numbers added to repeated ones."""
    seen, listed = set[str](), []
    for name in names:
        number, whole = 2, name
        while whole in seen:
            whole, number = f"{name[:58]}-{number}", number + 1
        seen.add(whole)
        listed.append(whole)
    return listed


def question_name(title: str) -> str:
    """Return the name of a question in records."""
    name = slug(title, "rating")
    return f"{name}-rating" if name in TAKEN else name


def read_question(title: str, name: str, cells: pd.Series, scale: AskedScale | None) -> ImportedQuestion:
    """Infer a question from its answers (a category for each distinct one); `scale` is the user's."""
    counts = cells.value_counts()
    texts = {str(text): int(number) for text, number in counts[counts > 0].items()}
    empty = {text: "no answer" for text in texts if text.casefold() in _WORDS["no_answer"]}
    texts = {text: number for text, number in texts.items() if text not in empty}
    question = ImportedQuestion(name, title, "text", values={text: text for text in texts}, wrong=empty)
    readings = (reading(question, texts, scale) for reading in (_worded, _ranking, _numbered, _labelled))
    return next((reading for reading in readings if reading is not None), question)


def _worded(text: ImportedQuestion, texts: Mapping[str, int], scale: AskedScale | None) -> ImportedQuestion | None:
    """Return a rating whose points are the words of a scale, the user's or a usual one."""
    wording = _wording(texts, scale)
    if not wording:
        return None
    points = {word: float(number) for number, words in enumerate(wording, 1) for word in words}
    numbers = {answer: (points[_folded(answer)], answer) for answer in texts if _folded(answer) in points}
    whole = {point: next((t for t in numbers if numbers[t][0] == point), word) for word, point in points.items()}
    return replace(_rating(text, texts, numbers, (1, len(wording))), words=whole)


def _ranking(text: ImportedQuestion, texts: Mapping[str, int], scale: AskedScale | None) -> ImportedQuestion | None:
    """Return a question of rankings such as `b > a = c`; incomplete rankings are listed as wrong."""
    orders = sum(_ORDER.fullmatch(answer) is not None for answer in texts)
    if (scale and scale.labels) or not any(">" in answer for answer in texts) or orders < 0.9 * len(texts):
        return None  # `5 = good` is a point
    every = sorted({label for answer in texts for label in labels_of(answer)})
    ranks = {answer: ranks_of(answer) for answer in texts}
    values = {a: ranked(ranks[a]) for a in texts if len(ranks[a]) == len(every) == len(labels_of(a))}
    partial = f"does not rank each of the {len(every)} labels exactly once"
    wrong = {**text.wrong, **{answer: partial for answer in texts if answer not in values}}
    return replace(text, kind="ranking", labels={label: label for label in every}, values=values, wrong=wrong)


def _numbered(text: ImportedQuestion, texts: Mapping[str, int], scale: AskedScale | None) -> ImportedQuestion | None:
    """Return a rating whose answers are numbers, with or without words beside them."""
    numbers = {answer: number for answer in texts if (number := _as_point(answer)) is not None}
    if scale is not None:
        return None if scale.labels else _rating(text, texts, numbers, (scale.low, scale.high))
    if not texts or not _is_numeric(texts, {answer: number for answer, (number, _) in numbers.items()}):
        return None
    question = _rating(text, texts, numbers, None)
    _refuse_reversed(question)
    return question


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _wording(texts: Iterable[str], scale: AskedScale | None) -> Sequence[Sequence[str]]:
    """Return the words of a scale from least to most: the user's, or those of a usual scale that has all answers.

    Two different answers are never one point. A scale of as many points as answers goes before others.
    """
    if scale:
        return [[_folded(word)] for word in scale.words]
    folded = set(map(_folded, texts))
    fitting = [
        words
        for words in _WORDS["scales"]
        if len(folded) > 2
        and folded <= set(itertools.chain(*words))
        and all(len(folded.intersection(point)) < 2 for point in words)
    ]
    return min(fitting, key=lambda words: len(words) != len(folded), default=())


def _refuse_reversed(question: ImportedQuestion) -> None:
    """Raise StudyError if the words beside a question's numbers fall while the numbers rise."""
    low, high = question.points[0], question.points[-1]
    for wording in _WORDS["scales"]:
        ranks = {word: rank for rank, words in enumerate(wording) for word in words}
        points = [(number, text, ranks[_folded(text)]) for number, text in sorted(question.words.items())
                  if _folded(text) in ranks]  # fmt: skip
        order = [rank for *_, rank in points]
        if len(set(order)) > 1 and order == sorted(order, reverse=True):
            raise StudyError(
                f"question {question.title!r}: {points[0][0]} is {points[0][1]!r} and {points[-1][0]} is"
                f" {points[-1][1]!r}; add --scale {question.name}={high:g}..{low:g} if less is better, or --scale"
                f" {question.name}={low:g}..{high:g}"
            )


def _is_numeric(texts: Mapping[str, int], numbers: Mapping[str, float]) -> bool:
    """Return whether answers are numbers, except for a few, or for one or two wordings such as "not applicable"."""
    share = sum(texts[text] for text in numbers) / sum(texts.values())
    if len(numbers) == len(texts) and set(numbers.values()) == {0.0, 1.0}:
        return False
    return share >= 0.9 or (share >= 0.5 and len(texts) - len(numbers) <= 2 < len(numbers))


def _as_point(text: str) -> tuple[float, str] | None:
    """Return a number with the words beside it: `4`, `4.0`, `four`, `4/5`, `80 %`, `4 - good`."""
    plain = text.replace("\N{MINUS SIGN}", "-")
    if match := _NUMBER.fullmatch(plain):
        return float(match["number"].replace(",", ".")), ""
    if text.casefold() in _WORDS["numbers"]:
        return float(_WORDS["numbers"].index(text.casefold())), ""
    if match := _POINT.fullmatch(plain):
        words = trim((match["words"] or match["more"] or "").rstrip(")"))
        return float(match["number"]), words
    return None


def _rating(
    text: ImportedQuestion,
    texts: Mapping[str, int],
    numbers: Mapping[str, tuple[float, str]],
    scale: tuple[float, float] | None,
) -> ImportedQuestion:
    if not numbers:
        raise StudyError(f"question {text.title!r}: no answer is a number; leave out its --scale")
    counts = Counter[float]()
    for answer, (number, _) in numbers.items():
        counts[as_number(number)] += texts[answer]
    low, high = scale or _ends(counts)
    points = _points([number for number in counts if low <= number <= high], low, high)
    values = {answer: as_number(number) for answer, (number, _) in numbers.items() if number in points}
    wrong = {**text.wrong, **{answer: f"{answer[:40]!r} is not a number" for answer in texts if answer not in numbers}}
    wrong |= {
        answer: f"{number:g} is outside the scale {low:g} to {high:g}"
        for answer, (number, _) in numbers.items()
        if answer not in values
    }
    words = {as_number(number): worded for number, worded in numbers.values() if worded and number in points}
    return replace(text, kind="rating", points=points, words=words, values=values, wrong=wrong)


def _points(numbers: Sequence[float], low: float, high: float) -> tuple[float, ...]:
    """Return a scale's points: whole numbers, halves or quarters; a continuous scale if no such step fits."""
    for step in (1, 0.5, 0.25):
        steps = (high - low) / step
        if steps.is_integer() and steps < MOST_POINTS and all(((n - low) / step).is_integer() for n in numbers):
            return tuple(as_number(low + index * step) for index in range(int(steps) + 1))
    return Continuous((low, high))


def _ends(counts: Mapping[float, int]) -> tuple[float, float]:
    """Return the scale's ends: the lowest and the highest answer, without rare ones far away."""
    points = sorted(counts)
    number, start, end = sum(counts.values()), 0, len(points) - 1
    while end - start > 1:
        span = points[end] - points[start]
        without_high, without_low = points[end - 1] - points[start], points[end] - points[start + 1]
        if counts[points[end]] <= _RARE * number and span > _FAR * max(without_high, 1):
            end -= 1
        elif counts[points[start]] <= _RARE * number and span > _FAR * max(without_low, 1):
            start += 1
        else:
            break
    halves = all(float(2 * point).is_integer() for point in points[start : end + 1])
    return _usual_ends(points[start], points[end], halves=halves)


def _usual_ends(low: float, high: float, *, halves: bool) -> tuple[float, float]:
    """Return usual ends of a scale that include these: symmetric about 0, from 0 or 1, or up to 100."""
    if low < 0 and not halves:
        return math.floor(low), math.ceil(high) if high > math.floor(low) else 0
    if low < 0:
        edge = max(-low, high)
        return (-edge, edge) if high >= 0 else (low, high)
    if 20 < high <= 100:
        return (1 if low == 1 else 0, 100)
    if low >= 0 and high <= 1:
        return 0, 1
    low = 1 if low > 1 and high <= 10 else math.floor(low)
    return (low, math.ceil(high)) if low < high else (low - 1, math.ceil(high))


def _labelled(text: ImportedQuestion, texts: Mapping[str, int], scale: AskedScale | None) -> ImportedQuestion | None:
    """Return a question of one label or several; None where there are too many or too long ones."""
    mark = _mark(texts)
    parts = {answer: _parts(answer, mark) if mark else [_folded(answer)] for answer in texts}
    words: dict[str, str] = {}
    for answer in sorted(texts, key=lambda answer: (-texts[answer], answer)):
        words |= {part: part if mark else words.get(part, answer) for part in parts[answer]}
    if len(words) > _MOST_LABELS or any(len(part) > _MOST_WORDS for part in words):
        return None
    order = sorted(words, key=lambda part: (part not in _WORDS["affirmative"], part))  # yes first
    names = dict(zip(order, distinct([slug(words[part], "label", letter=True) for part in order]), strict=True))
    labels = {names[part]: words[part] for part in order}
    if len(labels) < 2:
        labels |= {"not-chosen": "not chosen"}
    values = {answer: AND.join(names[part] for part in order if part in parts[answer]) for answer in texts}
    return replace(text, kind="multi_label" if mark else "label", labels=labels, values=values)


def _mark(texts: Iterable[str]) -> str:
    """Return the separator of several labels in a cell: the one that gives the fewest distinct labels.

    Empty if no separator does.
    """
    several = {mark: {part for text in texts for part in _parts(text, mark)} for mark in (AND_ALSO, ";", "|", ", ")}
    number = len(set(texts))
    return next(
        (m for m, parts in several.items() if any(m in t for t in texts) and (m == AND_ALSO or len(parts) < number)), ""
    )


def _parts(text: str, mark: str) -> list[str]:
    return list(dict.fromkeys(part for part in map(_folded, map(trim, text.split(mark))) if part))


def affirmative(question: ImportedQuestion) -> str:
    """Return the label that is known to mean yes; empty if there is none."""
    affirmatives = _WORDS["affirmative"]
    return next((name for name, words in question.labels.items() if words.casefold() in affirmatives), "")
