"""A question as a rubric's file has it, with its words in all languages, and the words of pools and fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from annotation.questions.question import KINDS, Question
from plumbline.errors import nearest
from plumbline.fields import PAIR
from plumbline.fields import Kind as FieldKind
from plumbline.languages import language_code
from plumbline.scales import Point, Scale
from plumbline.study.base import StudyPart
from plumbline.words import trim

ENGLISH = "en"  # stands in for languages that a rubric has no words in
#: What an import writes where nobody knows what raters read: a source, and wordings to replace before others are asked.
IMPORTED = "imported; the wording that raters saw is not known"
ASKED_UNKNOWN, TOLD_UNKNOWN = "What was asked for is not known.", "What else they were told is not known."
_LABEL = re.compile("[a-z][a-z0-9_-]{0,63}")


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


def wordings(node: Any, path: str) -> Iterator[tuple[str, str]]:
    """Each wording of a rubric, with its place."""
    parts = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, (list, tuple)) else ()
    for name, part in parts:
        yield from wordings(part, f"{path}.{name}".lstrip("."))
    if isinstance(node, str):
        yield path, node


def _known_kind(value: str) -> str:
    if value not in KINDS:
        raise ValueError(f"there is no kind of question {value!r}; {nearest(value, list(KINDS))}")
    return value


class RubricQuestion(StudyPart):
    """A question in a rubric's file; the defaults make it a required rating."""

    name: str = Field(description="name in records and tables, such as quality, fluency or similarity")
    title: Words = Field(description="the question to the rater")
    points: dict[Point, Words] = Field(
        default={}, description="meanings of a rating scale's points: both ends, and points between where needed"
    )
    kind: Annotated[str, AfterValidator(_known_kind)] = Field(
        default="rating", description="kind of answer: a point, a label, several labels, an order, or a text"
    )
    scale: Scale = Field(
        default=(), description="a rating's scale, if it is not the rubric's: its points, or {from, to} and a step"
    )
    start: Point | None = Field(default=None, description="position of a slider until it is moved; by default none")
    tolerance: float | None = Field(
        default=None,
        ge=0,
        description="points by which an answer to a control or a repeat may be off; by default a quarter of the scale",
    )
    labels: dict[str, Words] = Field(
        default={}, description="the labels to choose or rank, with their wordings, in order"
    )
    required: bool | None = Field(
        default=None, description="whether an answer is required; by default yes, except for texts"
    )
    pools: tuple[str, ...] = Field(default=(), description="the pools for which the question is asked; by default all")
    # Not in the identity of a rubric that does not set them.
    lower_is_better: bool | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="whether fewer points are better or, of a label, whether it names the worst output; by default what"
        " the study's rules say",
    )
    worst_of: str = Field(
        default="",
        exclude_if=lambda value: not value,
        description="the question for the best output, if this one asks for the worst by the same standard: their"
        " choices make one order of systems",
    )

    @model_validator(mode="after")
    def _fits_its_kind(self) -> RubricQuestion:
        kind = KINDS[self.kind]
        if not kind.has_points and (self.points or self.scale or self.tolerance is not None):
            raise ValueError(f"question {self.name!r} is a {self.kind}, which has no points, no scale and no tolerance")
        if not kind.has_labels and self.labels:
            raise ValueError(f"question {self.name!r} is a {self.kind}, which has no labels")
        if kind.has_labels and len(self.labels) < 2:
            raise ValueError(f"question {self.name!r} needs two labels or more")
        if label := next((name for name in self.labels if not _LABEL.fullmatch(name)), ""):
            raise ValueError(f"question {self.name!r}, label {label!r}: a name begins with a lower-case letter and has"
                             " only lower-case letters, digits, - and _; its wordings are free")  # fmt: skip
        if not kind.picks_one and (self.worst_of or (self.lower_is_better is not None and not kind.has_points)):
            raise ValueError(f"question {self.name!r} is a {self.kind}; only a label can ask for the worst output")
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

    def label_names(self) -> dict[str, str]:
        """Return its labels by their names and by their words in any language, folded."""
        names = {name: name for name in self.labels}
        for name, words in self.labels.items():
            names |= {trim(wording).casefold(): name for wording in words.values()}
        return names

    def asked(self, scale: tuple[float, ...]) -> Question:
        """Return the question as raters answer it; `scale` is the rubric's."""
        asked = KINDS[self.kind].of(self.name, self.scale or scale, tuple(self.labels), self.required, self.pools)
        return replace(asked, lower_is_better=bool(self.worst_of) or self.lower_is_better, worst_of=self.worst_of)


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
