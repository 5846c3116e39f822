"""A question of a rubric, of any kind, and the one form in which its answers are kept.

An answer is a point of the scale (`rating`), or a line of text: the name of a label (`label`), of several in the
question's order (`multi_label`: `irrelevant, unnatural`), of all from the first to the last (`ranking`: `b > a = c`),
or what was written (`text`). Names of labels have no commas and no spaces, so that each line is one answer alone.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from plumbline.fields import PAIR
from plumbline.fields import Kind as FieldKind
from plumbline.languages import language_code
from plumbline.scales import DECIMAL, Point, Scale, as_number, is_fine
from plumbline.study.base import StudyPart
from plumbline.words import trim

ENGLISH = "en"  # stands in for languages that a rubric has no words in
Kind = Literal["rating", "label", "multi_label", "ranking", "text"]
KINDS: tuple[Kind, ...] = typing.get_args(Kind)
LABELLED = ("label", "multi_label", "ranking")  # the kinds that have labels
Value = float | str | None  # an answer in its stored form; None if there is none
AND, BEFORE, EQUAL = ", ", " > ", " = "
_NAME = "[a-z][a-z0-9_-]{0,63}"
MOST_RATED = 10  # the highest point of a rating on Argilla's page
_LABEL = re.compile(_NAME)
_ORDER = re.compile(rf"{_NAME}(\s*[>=]\s*{_NAME})*")


def _worded(value: dict[str, str]) -> dict[str, str]:
    if ENGLISH not in value:
        raise ValueError("the English wording, on which other languages fall back, is missing; add `en`")
    unknown = [code for code in value if language_code(code) != code]
    if unknown:
        raise ValueError(f"languages are named by their code: {unknown[0]!r} should be {language_code(unknown[0])!r}")
    return value


Words = Annotated[dict[str, str], AfterValidator(_worded)]  # a wording by language code


def worded(words: Mapping[str, str], language: str) -> str:
    """Return a wording in a language, or in English if it has none."""
    return words.get(language, words[ENGLISH])


@dataclass(frozen=True)
class QuestionScale:
    """A question's kind, scale and labels, for statistics."""

    name: str
    kind: Kind = "rating"
    scale: tuple[float, ...] = ()  #: of a rating (`plumbline.scales`)
    labels: tuple[str, ...] = ()  #: of the kinds that have some, in their order
    required: bool = True
    pools: tuple[str, ...] = ()  #: that it is asked about; empty for all

    def asked_in(self, pool: str) -> bool:
        """Return whether a pool is asked the question."""
        return not self.pools or pool in self.pools

    @property
    def has_buttons(self) -> bool:
        """Whether Argilla shows its points as labels: Argilla's own ratings are whole numbers from 0 to 10."""
        return not all(isinstance(point, int) and 0 <= point <= MOST_RATED for point in self.scale)

    def wrong(self, value: Value, *, whole: bool = True) -> str:
        """Return why a value is no answer; empty if it is one. A draft (not `whole`) need not rank all labels."""
        if self.kind == "rating":
            scale = f"the scale {self.scale[0]} to {self.scale[-1]}"
            shown = value[:60] if isinstance(value, str) else value
            return "" if value in self.scale else f"the answer {shown!r} is not on {scale}"
        if not isinstance(value, str) or not value:
            return f"the answer {value!r} is not a {self.kind.replace('multi_label', 'list of labels')}"
        return "" if self.kind == "text" else self._wrong_labels(value, whole=whole)

    def _wrong_labels(self, value: str, *, whole: bool) -> str:
        if self.kind == "ranking" and not _ORDER.fullmatch(value):
            return f"the answer {value[:60]!r} is not a ranking of labels, such as {BEFORE.join(self.labels[:3])}"
        named = labels_of(value)
        if unknown := [name for name in named if name not in self.labels]:
            return f"the question has no label {unknown[0][:60]!r}; its labels are {', '.join(self.labels)}"
        if self.kind == "label" and len(named) != 1:
            return f"the answer {value[:60]!r} has {len(named)} labels, but the question takes one"
        if len(set(named)) < len(named):
            return f"the answer {value[:60]!r} names a label twice"
        if self.kind == "ranking" and whole and len(named) < len(self.labels):
            return f"the answer {value[:60]!r} does not rank all of {', '.join(self.labels)}"
        return ""

    def kept(self, value: Any) -> Value:
        """Return an answer from Argilla or from our files in its stored form; text if it is malformed."""
        if value is None:
            return None
        if isinstance(value, (int, float)):
            return int(value) if isinstance(value, int) or value.is_integer() else value
        if isinstance(value, str):
            text = trim(value)
            if self.kind == "rating" and DECIMAL.fullmatch(text):
                return as_number(text)
            is_order = self.kind == "ranking" and not self.wrong(text, whole=False)
            return (ranked(ranks_of(text)) if is_order else text) or None
        try:
            if self.kind == "ranking":  # of a draft some may have no rank yet
                named = ranked({str(entry["value"]): int(entry["rank"]) for entry in value if entry.get("rank")})
            else:
                named = self._in_order([str(label) for label in value])
        except (AttributeError, KeyError, TypeError, ValueError):
            named = str(value)
        return named or None

    def given(self, value: Value) -> Any:
        """A kept answer as Argilla takes it."""
        if self.kind == "rating" and (self.has_buttons or is_fine(self.scale)):  # labels, or a slider's text
            return str(value)
        if self.kind == "multi_label":
            return labels_of(str(value))
        if self.kind == "ranking":
            return [{"value": name, "rank": rank} for name, rank in ranks_of(str(value)).items()]
        return value

    def _in_order(self, named: Sequence[str]) -> str:
        in_order = [label for label in self.labels if label in named]
        return AND.join([*in_order, *(name for name in named if name not in in_order)])


def labels_of(answer: str) -> list[str]:
    """The labels that a kept answer names, in its order."""
    return [name for name in re.split(r"[,>=\s]+", answer) if name]


def has_label(kind: Kind, answer: str, label: str) -> bool:
    """Return whether an answer names a label, or for a ranking puts it first, alone or tied."""
    return ranks_of(answer).get(label) == 1 if kind == "ranking" else label in labels_of(answer)


def ranks_of(answer: str) -> dict[str, int]:
    """Return the rank of each label in a stored ranking; ties share the lowest of their ranks (1, 2, 2, 4)."""
    ranks: dict[str, int] = {}
    for group in answer.split(BEFORE.strip()):
        rank = len(ranks) + 1
        ranks |= dict.fromkeys(labels_of(group), rank)
    return ranks


def ranked(ranks: Mapping[str, int]) -> str:
    """Labels by their ranks as a kept ranking: `b > a = c`."""
    groups = [[name for name in sorted(ranks) if ranks[name] == rank] for rank in sorted(set(ranks.values()))]
    return BEFORE.join(EQUAL.join(group) for group in groups)


def wordings(node: Any, path: str) -> Iterator[tuple[str, str]]:
    """Each wording of a rubric, with its place."""
    parts = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, (list, tuple)) else ()
    for name, part in parts:
        yield from wordings(part, f"{path}.{name}".lstrip("."))
    if isinstance(node, str):
        yield path, node


class Question(StudyPart):
    """A question about a pair; the defaults make it a required rating."""

    name: str = Field(description="name in records and tables, such as quality, fluency or similarity")
    title: Words = Field(description="the question to the rater")
    points: dict[Point, Words] = Field(
        default={}, description="meanings of a rating scale's points: both ends, and points between where needed"
    )
    kind: Kind = Field(
        default="rating", description="kind of answer: a point, a label, several labels, an order, or a text"
    )
    scale: Scale = Field(
        default=(), description="a rating's scale, if it is not the rubric's: its points, or {from, to} and a step"
    )
    start: Point | None = Field(default=None, description="position of a slider until it is moved; by default none")
    labels: dict[str, Words] = Field(
        default={}, description="the labels to choose or rank, with their wordings, in order"
    )
    required: bool | None = Field(
        default=None, description="whether an answer is required; by default yes, except for texts"
    )
    pools: tuple[str, ...] = Field(default=(), description="the pools for which the question is asked; by default all")

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Question:
        rating, labelled = self.kind == "rating", self.kind in LABELLED
        if not rating and (self.points or self.scale):
            raise ValueError(f"question {self.name!r} is a {self.kind}, which has no points and no scale")
        if not labelled and self.labels:
            raise ValueError(f"question {self.name!r} is a {self.kind}, which has no labels")
        if labelled and len(self.labels) < 2:
            raise ValueError(f"question {self.name!r} needs two labels or more")
        if wrong := next((name for name in self.labels if not _LABEL.fullmatch(name)), ""):
            raise ValueError(f"question {self.name!r}, label {wrong!r}: a name begins with a lower-case letter and has"
                             " only lower-case letters, digits, - and _; its wordings are free")  # fmt: skip
        if self.scale and list(self.scale) != sorted(set(self.scale)):
            raise ValueError(f"question {self.name!r}: the scale's points must ascend")
        return self

    def called_alike(self) -> Iterator[str]:
        """Labels that raters, or a file that names them by their words in any language, cannot tell apart."""
        names: dict[str, str] = {}
        for name, words in self.labels.items():
            for wording in (name, *words.values()):
                first = names.setdefault(" ".join(trim(wording).casefold().split()), name)
                if first != name:
                    yield (f"question {self.name!r}: the labels {first!r} and {name!r} are both called"
                           f" {wording[:60]!r}; reword one of them")  # fmt: skip

    def asked(self, scale: tuple[float, ...]) -> QuestionScale:
        """Return the question as statistics need it; `scale` is the rubric's."""
        points = (self.scale or scale) if self.kind == "rating" else ()
        needed = self.kind != "text" if self.required is None else self.required
        return QuestionScale(self.name, self.kind, points, tuple(self.labels), needed, self.pools)


# A right answer: a point, a label, or several labels. A number in quotes is a number, as it always was.
Right = Annotated[int | float | str | tuple[str, ...], Field(union_mode="left_to_right")]


class Sense(StudyPart):
    """A question's meaning for one pool."""

    hint: Words | None = Field(default=None, description="advice on what to judge; shown before the points")
    points: dict[Point, Words] = Field(default={}, description="meanings of points that differ in this pool")


class PoolText(StudyPart):
    """A pool's explanation for raters."""

    title: Words
    asked: Words = Field(description="the request to the program")
    questions: dict[str, Sense] = Field(default={}, description="this pool's own wordings, by question")
    expected: dict[str, dict[str, Right]] = Field(
        default={}, description="right answers by kind of control and question; a control without any is not used"
    )


class ShownField(StudyPart):
    """A field that raters read: a text of a pair, or a field of another subject's items."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")] = Field(
        description="the field's name in the subject"
    )
    title: Words
    kind: FieldKind = Field(default="text", description="a text, a chat (role and content), or a list of texts")
    pools: tuple[str, ...] = Field(default=(), description="the pools that have the field; by default all")


class FieldTitles(StudyPart):
    """Titles of the two texts of a pair and of the request to the program, or of another subject's fields."""

    original: Words = Field(default={}, description="title of a pair's original")
    transformed: Words = Field(default={}, description="title of a pair's transformed text")
    asked: Words = Field(
        default={
            "en": "What was asked",
            "de": "Was verlangt war",
            "fr": "Ce qui était demandé",
            "es": "Lo que se pedía",
            "ar": "المطلوب من البرنامج",
            "ha": "Abin da aka nema",
            "ru": "О чём просили программу",
            "sw": "Kilichoombwa",
            "tr": "İstenen",
            "ur": "کیا کہا گیا تھا",
        },
        description="title above the pool's `asked`",
    )
    shown: tuple[ShownField, ...] = Field(
        default=(),
        description="the fields that raters see if the study's items are not pairs of original and transformed text, in"
        " order",
    )

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, data: Any) -> Any:
        if isinstance(data, list):
            return {"shown": data}
        # A set of rules has empty titles of pairs beside the fields of other items.
        return {name: value for name, value in data.items() if value != {}} if isinstance(data, dict) else data

    @model_validator(mode="after")
    def _of_one_subject(self) -> FieldTitles:
        names = [field.name for field in self.shown]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"field {twice[0]!r} appears twice; give each field its own name")
        if not self.shown and not (self.original and self.transformed):
            raise ValueError("give titles for both `original` and `transformed`, or list the fields of other items")
        if self.shown and (self.original or self.transformed):
            raise ValueError("original and transformed belong to pairs; leave them out if you list other fields")
        return self

    def of(self, pool: str) -> list[ShownField]:
        """The fields of a pool's pairs, in order."""
        if self.shown:
            return [field for field in self.shown if not field.pools or pool in field.pools]
        return [ShownField(name=name, title=getattr(self, name)) for name in PAIR]
