"""Questions, scale, guidelines and expected answers as data: `prompts/rubrics/<name>.yaml`.

What raters read stands there in several languages; English, which is always there, stands in for the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import langcodes
from pydantic import AfterValidator, Field, ValidationError, field_validator, model_validator

from annotation.wordings import ENGLISH, rubric_file, rubric_folders, with_wordings
from plumbline.errors import DataError, StudyError
from plumbline.identity import identity
from plumbline.languages import language_code
from plumbline.reading import read_yaml
from plumbline.study import Study
from plumbline.study.base import Part, first_complaint
from plumbline.study.campaign import AcceptanceSpec, QualitySpec
from plumbline.study.transformations import EIGHT
from plumbline.words import trim

CONTROLS = ("positive", "negative")
# HTEB's and PTEB's, for which the defaults of `quality` were made.
_PAPERS_SCALES = ((1, 2, 3, 4, 5), (0, 1, 2, 3, 4, 5))
TAKEN = ("pair", "rater", "time", "comment")  # what else `collect --csv` maps columns to, and Argilla's free comment
_NAME = re.compile("[a-z0-9][a-z0-9_-]{0,63}")
LIMIT = 1000  # characters of a question's description that Argilla takes


def _worded(value: dict[str, str]) -> dict[str, str]:
    if ENGLISH not in value:
        raise ValueError("the English wording is missing, which stands in for languages that have none; add `en`")
    unknown = [code for code in value if language_code(code) != code]
    if unknown:
        raise ValueError(f"languages are named by their code: {unknown[0]!r} should be {language_code(unknown[0])!r}")
    return value


Words = Annotated[dict[str, str], AfterValidator(_worded)]  # a wording by language code


def said(words: dict[str, str], language: str) -> str:
    """A wording in a language, or in English where it has none."""
    return words.get(language, words[ENGLISH])


class Question(Part):
    """One question, answered with a point on the rubric's scale."""

    name: str = Field(description="quality, fluency or similarity, in records and tables")
    title: Words = Field(description="what the rater is asked")
    points: dict[int, Words] = Field(description="what each point of the scale means")


class Sense(Part):
    """What a question means for one pool."""

    hint: Words | None = Field(default=None, description="what to judge; shown before the points")
    points: dict[int, Words] = Field(default={}, description="meanings of points that differ in this pool")


class PoolText(Part):
    """How a pool of transformations is explained to raters."""

    title: Words
    asked: Words = Field(description="what the program was asked to do")
    questions: dict[str, Sense] = Field(default={}, description="wordings of this pool's own, by question")
    expected: dict[str, dict[str, int]] = Field(
        default={}, description="right answers by kind of control and question; a control without any is not used"
    )


class FieldTitles(Part):
    """What the two texts are called."""

    original: Words
    transformed: Words


class Rubric(Part):
    """What raters are asked, and how it is explained to them."""

    name: str
    source: str
    scale: tuple[int, ...] = Field(min_length=2)
    threshold: float | None = Field(
        default=None, description="the mean that the rubric's source accepts; used if the study sets none"
    )
    fields: FieldTitles
    comment: Words = Field(description="title of the free comment")
    questions: tuple[Question, ...] = Field(min_length=1)
    guidelines: Words
    pools: dict[str, PoolText]

    @field_validator("scale")
    @classmethod
    def _ascending(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if list(value) != sorted(set(value)):
            raise ValueError("the scale's points must ascend")
        return value

    @model_validator(mode="after")
    def _whole(self) -> Rubric:
        for question in self.questions:
            if sorted(question.points) != list(self.scale):
                raise ValueError(f"question {question.name!r} must describe every point of the scale, and no other")
        for name, pool in self.pools.items():
            if unknown := sorted(set(pool.expected) - set(CONTROLS)):
                raise ValueError(f"pool {name!r}: no control is called {unknown[0]!r}; use {' or '.join(CONTROLS)}")
            named = {*pool.questions, *(question for answers in pool.expected.values() for question in answers)}
            if unknown := sorted(named - set(self.question_names())):
                raise ValueError(f"pool {name!r} names a question {unknown[0]!r} that the rubric does not have")
            points = [point for sense in pool.questions.values() for point in sense.points]
            points += [answer for answers in pool.expected.values() for answer in answers.values()]
            off = [point for point in points if point not in self.scale]
            if off:
                raise ValueError(f"pool {name!r} has a point {off[0]} that is not on the scale")
            for language in self.guidelines:
                for question in self.questions:
                    if len(self.description(name, question, language)) > LIMIT:
                        raise ValueError(f"pool {name!r}, {question.name!r} in {language!r}: hint and points together"
                                         f" are longer than the {LIMIT} characters that Argilla takes")  # fmt: skip
        return self

    def question_names(self) -> list[str]:
        """The questions' names, in order."""
        return [question.name for question in self.questions]

    def pool(self, name: str) -> PoolText:
        """How one pool is explained. Raises StudyError if the rubric does not know it."""
        if name not in self.pools:
            raise StudyError(
                f"rubric {self.name!r} explains no pool {name!r}; add it under `pools`, or `raters` to a"
                " transformation of your own"
            )
        return self.pools[name]

    def expected(self, pool: str, control: str) -> dict[str, int]:
        """The answers that a control of a pool (`positive` or `negative`) should get, by question; {} where none is."""
        return self.pool(pool).expected.get(control, {})

    def description(self, pool: str, question: Question, language: str) -> str:
        """What to judge in a pool, and what each point means there."""
        hint, points = self.meaning(pool, question, language)
        return f"{hint} {'; '.join(f'{point} = {meaning}' for point, meaning in points.items())}.".lstrip()

    def guidelines_for(self, pool: str, language: str) -> str:
        """The guidelines of one campaign, as Argilla shows them (Markdown, the rubric's own text alone)."""
        text = self.pool(pool)
        parts = [f"## {said(text.title, language)}", said(text.asked, language), said(self.guidelines, language)]
        for question in self.questions:
            hint, points = self.meaning(pool, question, language)
            lines = "\n".join(f"- **{point}** {meaning}" for point, meaning in points.items())
            parts.append(f"**{said(question.title, language)}** {hint}\n\n{lines}")
        return "\n\n".join(parts) + "\n"

    def meaning(self, pool: str, question: Question, language: str) -> tuple[str, dict[int, str]]:
        """What a question means in a pool: the hint (or nothing), and each point of the scale."""
        sense = self.pool(pool).questions.get(question.name, Sense())
        points = {**question.points, **sense.points}
        hint = said(sense.hint, language) if sense.hint else ""
        return hint, {point: said(points[point], language) for point in self.scale}

    def field_titles(self, language: str, original: str, transformed: str) -> tuple[str, str]:
        """What the two texts are called; with their languages (codes) where these differ."""
        names = said(self.fields.original, language), said(self.fields.transformed, language)
        if original == transformed:
            return names
        in_words = [langcodes.Language.get(code).display_name(language) for code in (original, transformed)]
        return f"{names[0]} ({in_words[0]})", f"{names[1]} ({in_words[1]})"

    def identity(self) -> str:
        """Hash of its whole content: questions, scale, every wording, expected answers."""
        return identity("rubric-v1", self.model_dump(mode="json"))

    def language_for(self, language: str, output_language: str) -> str:
        """The language to address raters in: that of the texts that they judge, or English if there is no wording."""
        return next((code for code in (output_language, language) if code in self.guidelines), ENGLISH)


def load_rubric(study: Study, folder: Path | None = None) -> Rubric:
    """The study's rubric. Raises StudyError where it is missing, malformed, or not of the rules' scale."""
    path = rubric_file(study, folder)
    try:
        written = with_wordings(read_yaml(path), path, study.wordings)
        rubric = Rubric.model_validate(_with_words(written, study))
    except FileNotFoundError:
        folders = rubric_folders(folder)
        known = ", ".join(sorted(file.stem for one in folders for file in one.glob("*.yaml")))
        places = " or ".join(map(str, folders))
        raise StudyError(f"{study.file}: no rubric {study.rubric!r} in {places}; known are: {known}") from None
    except DataError as error:
        raise StudyError(str(error)) from None
    except StudyError as error:
        raise StudyError(f"{path}: {error}") from None
    except ValidationError as error:
        raise StudyError(f"{path}: {first_complaint(error)}") from None
    if wrong := next(_unusable(rubric), ""):
        raise StudyError(f"{path}: {wrong}")
    _refuse_rules_of_another_scale(study, rubric)
    return rubric


def _with_words(rubric: Any, study: Study) -> Any:
    """What a rubric's file says, with the words of the study's own transformations for pools that it does not have."""
    if not isinstance(rubric, dict) or not isinstance(rubric.get("pools"), dict):
        return rubric
    own = {}
    for name, kind in study.kinds.items():
        if kind.raters and kind.pool == name and name not in EIGHT and name not in rubric["pools"]:
            title = {"title": {ENGLISH: name.replace("_", " ").capitalize()}}
            try:
                PoolText.model_validate({**title, **kind.raters})
            except ValidationError as error:
                wrong = f"transformation {name!r}: raters.{first_complaint(error)}"
                raise DataError(f"{study.file}: {wrong}") from None
            own[name] = {**title, **kind.raters}
    return {**rubric, "pools": {**rubric["pools"], **own}}


def _unusable(rubric: Rubric) -> Iterator[str]:
    """What a rubric cannot be used with. What was fixed with the rules of a study is not looked at again."""
    names = rubric.question_names()
    for name in names:
        if not _NAME.fullmatch(name):
            yield f"question {name!r}: a name has small letters, digits, - and _ alone, and at most 64 of them"
        if name in TAKEN:
            yield f"question {name!r}: this name stands for something else in files of ratings; give it another"
    if twice := sorted({name for name in names if names.count(name) > 1}):
        yield f"question {twice[0]!r} appears twice; give each question its own name"
    if rubric.threshold is not None and not rubric.scale[0] <= rubric.threshold <= rubric.scale[-1]:
        yield f"threshold {rubric.threshold:g} is outside the scale {rubric.scale[0]} to {rubric.scale[-1]}"
    for place, wording in _wordings(rubric.model_dump(), ""):
        if not trim(wording):
            yield f"{place} is empty; give it a wording"


def _wordings(node: Any, place: str) -> Iterator[tuple[str, str]]:
    """Each wording of a rubric, with its place."""
    parts = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, (list, tuple)) else ()
    for name, part in parts:
        yield from _wordings(part, f"{place}.{name}".lstrip("."))
    if isinstance(node, str):
        yield place, node


def _refuse_rules_of_another_scale(study: Study, rubric: Rubric) -> None:
    """Refuse rules in points that the scale cannot hold, and defaults that were meant for another scale."""
    low, high, rules = rubric.scale[0], rubric.scale[-1], study.acceptance
    missing = []
    if "threshold" not in rules.model_fields_set and rules.threshold != _usual_threshold(rubric):
        own = "" if rubric.threshold is None else f"; the rubric's own is {rubric.threshold:g}"
        missing.append(f"acceptance.threshold (which mean is accepted there{own})")
    if rubric.scale not in _PAPERS_SCALES:
        missing += [
            f"quality.{name} (its default of {getattr(study.quality, name):g} is meant for 1 to 5)"
            for name in ("within", "apart", "low")
            if name not in study.quality.model_fields_set
        ]
    if missing:
        which = f"rubric {rubric.name!r} has the scale {low} to {high}, for which the study must say"
        raise StudyError(f"{study.file}: {which} {', '.join(missing)}; add {'it' if len(missing) == 1 else 'them'}")
    if not low <= rules.threshold <= high:
        raise StudyError(f"{study.file}: acceptance.threshold {rules.threshold:g} is outside the scale {low} to {high}")
    if wrong := next(_without_effect(study.quality, low, high), ""):
        raise StudyError(f"{study.file}: on the scale {low} to {high} {wrong}")


def _without_effect(quality: QualitySpec, low: int, high: int) -> Iterator[str]:
    """Which rules of `quality` would tell nothing on this scale, as they hold for every answer or for none."""
    most = high - low  # points between any two answers
    if quality.within >= most:
        yield f"quality.within {quality.within} makes every answer to a control right; give less than {most}"
    if quality.apart > most:
        yield f"quality.apart {quality.apart:g} is a sign against nobody; give at most {most}"
    if quality.low < low:
        yield f"quality.low {quality.low:g} lists no pair for review; give at least {low}"
    if quality.low >= high:
        yield f"quality.low {quality.low:g} lists every pair for review; give less than {high}"


def _usual_threshold(rubric: Rubric) -> float | None:
    """What an unsaid threshold is: the rubric's own; where it has none, HTEB's on HTEB's scale (section 2.4)."""
    if rubric.threshold is None and rubric.scale == _PAPERS_SCALES[0]:
        return float(AcceptanceSpec.model_fields["threshold"].default)
    return rubric.threshold
