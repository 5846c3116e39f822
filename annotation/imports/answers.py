"""Raters' answers, question by question: their scale, their labels, and cells that are not answers."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from annotation.campaign.rubric import TAKEN
from annotation.imports.columns import by_name
from annotation.imports.tables import AND_ALSO
from annotation.imports.word_scales import ENOUGH, Scale, folded, plain, points_by_word, scale_of, usual_scales
from annotation.questions.question import AND, KINDS, Question, labels_of
from annotation.questions.ranking import ranked, ranks_of
from annotation.questions.wordings import packaged
from plumbline.errors import DataError, StudyError
from plumbline.scales import MOST_POINTS, Continuous, as_number, is_whole
from plumbline.words import trim

_WORDS = packaged("imports/words.yaml")
_NUMBERS = {plain(word): number for number, words in enumerate(_WORDS["numbers"]) for word in words.split()}
_LESS = {plain(word) for word in _WORDS["less_is_better"].split()}
_NO_POINT = {plain(word) for words in _WORDS["no_point"] for word in words.split(" / ")}
_DASHES = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"), "-")
_NUMBER = (
    r"(?P<number>[+-]?\d{1,9}(?:[.,]\d{1,20})?)"
    r"(?:\s*(?:/|\b(?:out of|of|von|sur|de|su)\b)\s*(?P<top>\d{1,4})\b|\s*(?P<percent>%))?"
)
_LEADING = re.compile(
    rf"[\[(]?{_NUMBER}[\])]?(?:\s*[-:.)=,(]\s*(?P<words>(?![-+]?\d|$)(?!\W*$).*?)\)?|\s+(?P<more>[^\W\d].*))?"
)  # 4, 4/5, 4 - good, [4] good, 4 = good, 4 (good), 4 stars
_TRAILING = re.compile(rf"(?P<words>[^\W\d].*?)(?:\s*[(\[=]\s*|\s+-\s*|\s*:\s+){_NUMBER}[\])]?")  # good (4), good - 4
_IN_TITLE = re.compile(r"[(\[]\s*(?P<low>[01]|-\d{1,3})\s*(?:-|\.\.|/|to|bis|à|a)\s*\+?(?P<high>\d{1,3})\s*[)\]]", re.I)
_STARS = re.compile(r"(?P<given>[★⭐*]{1,10})(?P<rest>☆{0,10})")
_ORDER = re.compile(r"\w[\w-]*( *[>=] *\w[\w-]*)+")
_RARE, _FAR = 0.1, 4.0  # answers this rare, and this far or a scale's length from all others, may be slips
# Codes of statistics programs for a missing answer, and the highest point of a scale that has none such.
_CODES = {9: 7, **dict.fromkeys((77, 88, 98, 99), 11), **dict.fromkeys((777, 888, 998, 999, 9999), 100)}
_MOST_LABELS = 40
_MOST_WORDED = 11  # points from the least to the most, of a scale with words
_MOST_WORDS = 200  # characters of a label
_LONGEST = 2_000  # characters of a number with words; the patterns take long for more


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
    faults: Mapping[str, str] = field(default_factory=dict)  #: why a cell's text is not an answer
    is_preference: bool = False  #: whether answers choose between two outputs

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
        alone = " (a choice between two outputs: it has shares and no mean)" if self.is_preference else ""
        return f"{', '.join(self.labels)}{alone}" if self.labels else "words"

    @property
    def asked(self) -> Question:
        """The question that raters answered, as if all of them had to."""
        return KINDS[self.kind].of(self.name, self.points, tuple(self.labels), True, ())


def slug(text: str, usual: str, *, letter: bool = False) -> str:
    """Return a title as a name of small letters, digits, - and _."""
    letters = "".join(sign for sign in unicodedata.normalize("NFKD", text) if not unicodedata.combining(sign))
    name = re.sub(r"[^a-z0-9_]+", "-", letters.casefold()).strip("-_")[:60].rstrip("-_")
    name = name or usual
    return f"{usual}-{name}"[:64].rstrip("-") if letter and not name[0].isalpha() else name


def distinct(names: Sequence[str]) -> list[str]:
    """Return the names, with numbers added to repeated ones."""
    used, listed = set[str](), []
    for name in names:
        number, unique = 2, name
        while unique in used:
            unique, number = f"{name[:58]}-{number}", number + 1
        used.add(unique)
        listed.append(unique)
    return listed


def question_name(title: str) -> str:
    """Return the name of a question in records."""
    name = slug(title, "rating")
    return f"{name}-rating" if name in TAKEN else name


def read_question(
    title: str,
    name: str,
    cells: pd.Series,
    scale: AskedScale | None,
    others: Collection[str] = (),
    *,
    falls: bool = False,
) -> ImportedQuestion:
    """Infer a question from its answers (a category for each distinct one).

    `scale` is the user's; `others` are the answers to another question, if they include all of this one's. The file's
    form shows that less is better if the question `falls`.
    """
    counts = cells.value_counts()
    texts = {str(text): int(number) for text, number in counts[counts > 0].items()}
    named = set(map(folded, (*(scale.words if scale else ()), *_listed_in(title))))
    empty = {
        text: "no answer" for text in texts if text.casefold() in _WORDS["no_answer"] and folded(text) not in named
    }
    texts = {text: number for text, number in texts.items() if text not in empty}
    question = ImportedQuestion(name, title, "text", values={text: text for text in texts}, faults=empty)
    if not (scale and scale.words) and (ranking := _ranking(question, texts, scale)):
        return ranking
    rated = {text: number for text, number in texts.items() if plain(text) not in _NO_POINT or folded(text) in named}
    without = replace(question, faults={**empty, **{text: "no answer" for text in texts if text not in rated}})
    return (
        _worded(without, rated, scale, others)
        or _numbered(without, rated, scale, falls=falls)
        or _labelled(question, texts, is_asked=bool(scale and scale.labels))
        or question
    )


def _refuse_unknown_direction(question: ImportedQuestion, *, falls: bool) -> None:
    """Raise DataError if a title names something of which less is usually better, and nothing shows that it `falls`."""
    words = sorted({*plain(question.title).split()} & _LESS)
    if words and not falls and not question.words:
        low, high, option = question.points[0], question.points[-1], f"--scale {question.name}="
        raise DataError(
            f"question {question.name!r}: less {words[0]} may be better; add {option}{high:g}..{low:g} if it is, or"
            f" {option}{low:g}..{high:g}"
        )


def _listed_in(title: str) -> list[str]:
    """Return the answers that a question's title lists, `Errors (None/Minor/Severe)`."""
    return [word for listed in re.findall(r"[(\[]([^()\[\]]*/[^()\[\]]*)[)\]]", title) for word in listed.split("/")]


def _worded(
    text: ImportedQuestion, texts: Mapping[str, int], scale: AskedScale | None, others: Collection[str]
) -> ImportedQuestion | None:
    """Return a rating whose points are the words of a scale, the user's or a usual one."""
    if scale:
        words, places = scale.words, {folded(word): rank for rank, word in enumerate(scale.words)}
        ranks = {answer: places[folded(answer)] for answer in texts if folded(answer) in places}
    else:
        usual = scale_of(text.name, texts, [answer for answer in others if plain(answer) not in _NO_POINT])
        words, ranks = (tuple(usual.words), dict(usual.ranks)) if usual else ((), {})
    if not words:
        return None
    numbers = {answer: (rank + 1.0, words[rank]) for answer, rank in ranks.items() if answer in texts}
    rating = _rating(text, texts, numbers, (1, len(words)))
    return replace(rating, words=dict(enumerate(words, 1)))


def _ranking(text: ImportedQuestion, texts: Mapping[str, int], scale: AskedScale | None) -> ImportedQuestion | None:
    """Return a question of rankings such as `b > a = c`; incomplete rankings are listed as wrong."""
    orders = sum(_ORDER.fullmatch(answer) is not None for answer in texts)
    if (scale and scale.labels) or not any(">" in answer for answer in texts) or orders < 0.9 * len(texts):
        return None  # `5 = good` is a point
    every = sorted({label for answer in texts for label in labels_of(answer)})
    ranks = {answer: ranks_of(answer) for answer in texts}
    values = {a: ranked(ranks[a]) for a in texts if len(ranks[a]) == len(every) == len(labels_of(a))}
    partial = f"does not rank each of the {len(every)} labels exactly once"
    faults = {**text.faults, **{answer: partial for answer in texts if answer not in values}}
    return replace(text, kind="ranking", labels={label: label for label in every}, values=values, faults=faults)


def _numbered(
    text: ImportedQuestion, texts: Mapping[str, int], scale: AskedScale | None, *, falls: bool
) -> ImportedQuestion | None:
    """Return a rating of numbers. Raises DataError if two answers are one point, or words contradict their order."""
    forms = {answer: form for answer in texts if (form := _form_of(answer)) is not None}
    none = {answer for answer, form in forms.items() if plain(form.words) in _NO_POINT}
    trailing = [form for form in forms.values() if form.trails]
    are_numbers = not trailing or _are_points(trailing)  # else they are words that end with a number
    forms = {a: form for a, form in forms.items() if a not in none and (are_numbers or not form.trails)}
    texts = {answer: number for answer, number in texts.items() if answer not in none}
    text = replace(text, faults={**text.faults, **dict.fromkeys(none, "no answer")})
    numbers = {answer: (form.number, form.words) for answer, form in forms.items()}
    if scale is not None:
        return None if scale.labels else _rating(text, texts, numbers, (scale.low, scale.high))
    if not texts or not _is_numeric(texts, {answer: number for answer, (number, _) in numbers.items()}):
        return None
    _refuse_lists(text, forms)
    _refuse_one_point(text, forms)
    ends = _ends_in_title(text.title, texts, forms) or _ends_in_words(forms.values())
    question = _rating(text, texts, numbers, ends)
    _refuse_reversed(question)
    _refuse_unknown_direction(question, falls=falls)
    return question


@dataclass(frozen=True)
class _NumberForm:
    """An answer as a number, the words beside it, and the scale's last point if it names that: `4 of 5`, `80 %`."""

    number: float
    words: str = ""
    top: float = 0
    trails: bool = False  #: whether the number follows the words

    def on_scale(self, wording: Scale) -> tuple[float, int] | None:
        """Return its number and its words' point on a scale, if that has them."""
        rank = points_by_word(wording).get(plain(self.words))
        return None if rank is None else (self.number, rank)


def _form_of(text: str) -> _NumberForm | None:
    """Return a number with the words beside it: `4`, `4.0`, `four`, `4/5`, `80 %`, `4 - good`, `good (4)`, `★★★★`."""
    if len(text) > _LONGEST:
        return None
    written = text.translate(_DASHES).replace("\ufe0f", "")
    if stars := _STARS.fullmatch(written):
        return _NumberForm(len(stars["given"]), top=len(stars[0]) if stars["rest"] else 0)
    if plain(text) in _NUMBERS:
        return _NumberForm(_NUMBERS[plain(text)])
    leading, trailing = _LEADING.fullmatch(written), _TRAILING.fullmatch(written)
    match = leading or trailing
    if not match:
        return None
    words = match["words"] or (match["more"] if leading else "") or ""
    top = 100.0 if match["percent"] else float(match["top"] or 0)
    return _NumberForm(float(match["number"].replace(",", ".")), trim(words), top, trails=leading is None)


def _are_points(forms: Collection[_NumberForm]) -> bool:
    """Return whether numbers behind words are points: each has its own words, and they are close together."""
    numbers = [form.number for form in forms]
    pairs = {(form.number, plain(form.words)) for form in forms}
    close = max(numbers) - min(numbers) < _MOST_WORDED and len(set(numbers)) > 1
    words = {words for _, words in pairs}
    one_each = len(pairs) == len({number for number, _ in pairs}) == len(words)
    return close and (one_each or {by_name(text) for text in words} == {"answer"})


def _refuse_lists(question: ImportedQuestion, answers: Collection[str]) -> None:
    """Raise DataError if each answer with a comma, such as `1,3`, may be a list of others; halves all end in 5."""
    lists = {answer: answer.split(",") for answer in answers if "," in answer}
    sets = (sorted({*parts} & {*answers}, key=lambda part: (len(part), part)) for parts in lists.values())
    if len({parts[-1] for parts in lists.values()}) > 1 and [*lists.values()] == [*sets]:
        raise DataError(
            f"question {question.name!r}: {min(lists)!r} may be a number or several labels; add"
            f" --scale {question.name}=labels if it is labels, or --scale {question.name}=1..5, with its ends"
        )


def _refuse_one_point(question: ImportedQuestion, forms: Mapping[str, _NumberForm]) -> None:
    """Raise DataError if equal numbers have different words, or are of scales with different ends."""
    name, first = question.name, dict[float, tuple[str, _NumberForm]]()
    tops = {form.top: answer for answer, form in forms.items() if form.top}
    if len(tops) > 1:
        several = " and ".join(map(repr, [*tops.values()][:2]))
        raise DataError(f"question {name!r}: {several} are on different scales; write all answers on one scale")
    for answer, form in forms.items():
        before, earlier = first.setdefault(form.number, (answer, form)) if form.words else (answer, form)
        if plain(earlier.words) != plain(form.words):
            raise DataError(
                f"question {name!r}: {before!r} and {answer!r} would be one point; add --scale {name}=1..5, with its"
                f" ends, if the words are only remarks, or --scale {name}=labels"
            )


def _ends_in_title(
    title: str, texts: Mapping[str, int], forms: Mapping[str, _NumberForm]
) -> tuple[float, float] | None:
    """Return a scale's ends as the question names them, `Helpfulness (1-5)`, if nearly all answers are between them."""
    match = _IN_TITLE.search(title.translate(_DASHES))
    low, high = (float(match["low"]), float(match["high"])) if match else (0, 0)
    between = sum(texts[answer] for answer, form in forms.items() if low <= form.number <= high)
    return (low, high) if low < high and between >= ENOUGH * sum(map(texts.__getitem__, forms)) else None


def _ends_in_words(forms: Collection[_NumberForm]) -> tuple[float, float] | None:
    """Return a scale's ends as its answers name them: the last point, or words of a usual scale with equal numbers."""
    numbers = [form.number for form in forms]
    low, high, top = min(numbers), max(numbers), max(form.top for form in forms)
    if top >= high:
        return (1 if low >= 1 and (top <= _MOST_WORDED or low == 1) else min(low, 0), top)
    ends = _ends_of_words([form for form in forms if form.words])
    ends = {(first, last) for first, last in ends if first == 1} or ends
    first, last = ends.pop() if len(ends) == 1 else (low, low)
    return (first, last) if first <= low and high <= last and first < last else None


def _ends_of_words(worded: Sequence[_NumberForm]) -> set[tuple[float, float]]:
    """Return the ends of each usual scale that has the words of all points, in the order of their numbers."""
    ends = set[tuple[float, float]]()
    for wording in usual_scales():
        points = [point for form in worded if (point := form.on_scale(wording))]
        starts = {number - rank for number, rank in points}
        if len(points) == len(worded) > 1 and len(starts) == 1:
            ends.add((min(starts), min(starts) + len(wording) - 1))
    return ends


def _refuse_reversed(question: ImportedQuestion) -> None:
    """Raise DataError if the words beside a question's numbers do not rise with the numbers."""
    low, high = question.points[0], question.points[-1]
    worded = [[(number, text, points_by_word(wording)[plain(text)]) for number, text in sorted(question.words.items())
              if plain(text) in points_by_word(wording)] for wording in usual_scales()]  # fmt: skip
    most = max(map(len, worded))
    orders = [points for points in worded if len(points) == most > 1]
    if not orders or any(sorted(order) == order for points in orders if (order := [rank for *_, rank in points])):
        return
    points = orders[0]
    raise DataError(
        f"question {question.name!r}: {points[0][0]} is {points[0][1]!r} and {points[-1][0]} is"
        f" {points[-1][1]!r}; add --scale {question.name}={high:g}..{low:g} if less is better, or --scale"
        f" {question.name}={low:g}..{high:g}"
    )


def _is_numeric(texts: Mapping[str, int], numbers: Mapping[str, float]) -> bool:
    """Return whether answers are numbers, except for a few, or for one or two wordings such as "not applicable"."""
    share = sum(texts[text] for text in numbers) / sum(texts.values())
    if len(numbers) == len(texts) and set(numbers.values()) == {0.0, 1.0}:
        return False
    return share >= ENOUGH or (share >= 0.5 and len(texts) - len(numbers) <= 2 < len(numbers))


def _rating(
    text: ImportedQuestion,
    texts: Mapping[str, int],
    numbers: Mapping[str, tuple[float, str]],
    scale: tuple[float, float] | None,
) -> ImportedQuestion:
    if not numbers:
        raise StudyError(f"question {text.title!r}: no answer is on its --scale; leave that out")
    counts = Counter[float]()
    for answer, (number, _) in numbers.items():
        counts[as_number(number)] += texts[answer]
    low, high = scale or _ends(sorted(counts))
    if scale is None:
        _refuse_code(text, counts, low, high)
    points = _points([number for number in counts if low <= number <= high], low, high)
    values = {answer: as_number(number) for answer, (number, _) in numbers.items() if number in points}
    faults = {
        **text.faults,
        **{answer: f"{answer[:40]!r} is not a point of the scale" for answer in texts if answer not in numbers},
    }
    faults |= {
        answer: f"{number:g} is outside the scale {low:g} to {high:g}"
        for answer, (number, _) in numbers.items()
        if answer not in values
    }
    worded = {(as_number(number), words) for number, words in numbers.values() if words and number in points}
    return replace(text, kind="rating", points=points, words=_own_words(worded), values=values, faults=faults)


def _refuse_code(question: ImportedQuestion, counts: Mapping[float, int], low: float, high: float) -> None:
    """Raise DataError if an answer from `low` to `high` is apart from all others: a code such as 99 or -1, a slip."""
    points = sorted(point for point in counts if low <= point <= high)
    codes = [point for point in points if -point in (1, 9, 98, 99, 999, 9999) or point in _CODES]
    usual = [point for point in points if point not in codes]
    if len(usual) < 2:
        return
    first, last = usual[0], usual[-1]
    below = [code for code in codes if code < min(0, 8 * first) and (first > 0 or last > 4 or -code > last)]
    above = [code for code in codes if code > last + 1 and last <= _CODES.get(int(code), 0)]
    if apart := below + above or _far(points, counts):
        code, others = apart[0], [point for point in points if point not in apart]
        ends, option = _ends(others), f"--scale {question.name}="
        raise DataError(
            f"question {question.name!r}: {counts[code]:,} of {sum(counts.values()):,} answers are {code:g}, apart"
            f" from the others ({others[0]:g} to {others[-1]:g}); add {option}{ends[0]:g}..{ends[1]:g} if it is a"
            f" code or a slip, or {option}{min(low, code):g}..{max(high, code):g}"
        )


def _own_words(worded: Collection[tuple[float, str]]) -> Mapping[float, str]:
    """Return the words of points, if no two points share them (as in `4 stars`) and no point has several."""
    words = dict(sorted(worded))
    same = {(number, plain(text)) for number, text in worded}
    return words if len(same) == len(words) == len(set(map(plain, words.values()))) > 1 else {}


def _points(numbers: Sequence[float], low: float, high: float) -> tuple[float, ...]:
    """Return a scale's points: whole numbers, halves or quarters; a continuous scale if no such step fits."""
    for step in (1, 0.5, 0.25):
        steps = (high - low) / step
        if steps.is_integer() and steps < MOST_POINTS and all(((n - low) / step).is_integer() for n in numbers):
            return tuple(as_number(low + index * step) for index in range(int(steps) + 1))
    return Continuous((low, high))


def _far(points: Sequence[float], counts: Mapping[float, int]) -> Sequence[float]:
    """Return the rare lowest or highest points without which the scale is another, far from all others."""
    for split in range(1, len(points)):
        rare, usual = sorted((points[:split], points[split:]), key=lambda side: sum(counts[point] for point in side))
        few = sum(counts[point] for point in rare) <= _RARE * sum(counts.values())
        far = points[split] - points[split - 1] > max(usual[-1] - usual[0], _FAR)
        if few and far and _ends(usual) != _ends(points):
            return rare
    return ()


def _ends(points: Sequence[float]) -> tuple[float, float]:
    """Return usual ends of a scale that include these, in order: symmetric about 0, from 0 or 1, or up to 100."""
    low, high = points[0], points[-1]
    if low < 0 and not all(float(2 * point).is_integer() for point in points):
        return math.floor(low), math.ceil(high) if high > math.floor(low) else 0
    if low < 0:
        edge = 100 if 20 < max(-low, high) <= 100 else max(-low, high)
        return (-edge, edge) if high >= 0 else (low, high)
    if 20 < high <= 100:
        return (1 if low == 1 else 0, 100)
    if low >= 0 and high <= 1:
        return 0, 1
    low = 1 if low > 1 and high <= 10 else math.floor(low)
    return (low, math.ceil(high)) if low < high else (low - 1, math.ceil(high))


def _labelled(text: ImportedQuestion, texts: Mapping[str, int], *, is_asked: bool) -> ImportedQuestion | None:
    """Return a question of one label or several; None where they are too long, or too many that nobody asked for."""
    mark = _mark(texts)
    parts = {answer: _parts(answer, mark) if mark else [folded(answer)] for answer in texts}
    words: dict[str, str] = {}
    for answer in sorted(texts, key=lambda answer: (-texts[answer], answer)):
        words |= {part: part if mark else words.get(part, answer) for part in parts[answer]}
    if (len(words) > _MOST_LABELS and not is_asked) or any(len(part) > _MOST_WORDS for part in words):
        return None
    order = sorted(words, key=lambda part: (part not in _WORDS["affirmative"], part))  # yes first
    names = dict(zip(order, distinct([slug(words[part], "label", letter=True) for part in order]), strict=True))
    labels = {names[part]: words[part] for part in order}
    if len(labels) < 2:
        labels |= {"not-chosen": "not chosen"}
    values = {answer: AND.join(names[part] for part in order if part in parts[answer]) for answer in texts}
    return replace(text, kind="multi_label" if mark else "label", labels=labels, values=values)


def _mark(texts: Iterable[str]) -> str:
    """Return the separator of several labels in a cell that gives the fewest distinct labels; empty if none does."""
    marks = (AND_ALSO, ";", "|", ", ", ",")
    several = {mark: {part for text in texts for part in _parts(text, mark)} for mark in marks}
    number = len(set(texts))
    return next(
        (m for m, parts in several.items() if any(m in t for t in texts) and (m == AND_ALSO or len(parts) < number)), ""
    )


def _parts(text: str, mark: str) -> list[str]:
    return list(dict.fromkeys(part for part in map(folded, map(trim, text.split(mark))) if part))


def affirmative(question: ImportedQuestion) -> str:
    """Return the label that is known to mean yes; empty if there is none."""
    affirmatives = () if question.is_preference else _WORDS["affirmative"]
    return next((name for name, words in question.labels.items() if words.casefold() in affirmatives), "")
