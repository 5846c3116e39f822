"""Questions, scale and guidelines as data: `prompts/rubrics/<name>.yaml`."""

from __future__ import annotations

from pathlib import Path

import yaml
from pydantic import Field, ValidationError, field_validator

from generation.exceptions import StudyError
from generation.prompts import PROMPTS
from generation.study import Part, Study, first_complaint


class Question(Part):
    """One question, answered with a point on the rubric's scale."""

    name: str = Field(description="quality or fluency, in records and tables")
    title: str = Field(description="what the rater is asked")
    description: str = Field(description="what each point means")


class PoolText(Part):
    """How a pool of transformations is explained to raters."""

    title: str
    asked: str = Field(description="what the program was asked to do")
    quality: str = Field(description="what quality means here")


class Rubric(Part):
    """What raters are asked, and how it is explained to them."""

    name: str
    source: str
    language: str
    scale: tuple[int, ...] = Field(min_length=2)
    questions: tuple[Question, ...] = Field(min_length=1)
    guidelines: str
    pools: dict[str, PoolText]

    @field_validator("scale")
    @classmethod
    def _ascending(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if list(value) != sorted(set(value)):
            raise ValueError("the scale's points must ascend")
        return value

    def question_names(self) -> list[str]:
        """The questions' names, in order."""
        return [question.name for question in self.questions]

    def pool(self, name: str) -> PoolText:
        """How one pool is explained. Raises StudyError if the rubric does not know it."""
        if name not in self.pools:
            raise StudyError(f"rubric {self.name!r} explains no pool {name!r}; add it under `pools`")
        return self.pools[name]

    def guidelines_for(self, pool: str) -> str:
        """The guidelines of one campaign, as Argilla shows them (Markdown, the rubric's own text alone)."""
        text = self.pool(pool)
        points = "\n".join(f"- **{question.title}** {question.description}" for question in self.questions)
        return f"## {text.title}\n\n{text.asked}\n\n{text.quality}\n\n{self.guidelines}\n\n{points}\n"


def load_rubric(study: Study, folder: Path = PROMPTS / "rubrics") -> Rubric:
    """The study's rubric. Raises StudyError where it is missing or malformed, or cannot hold the threshold."""
    path = folder / f"{study.rubric}.yaml"
    try:
        rubric = Rubric.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        known = ", ".join(sorted(file.stem for file in folder.glob("*.yaml")))
        raise StudyError(f"{study.file}: no rubric {study.rubric!r} in {folder}; known are: {known}") from None
    except yaml.YAMLError as error:
        raise StudyError(f"{path}: not valid YAML: {error}") from None
    except ValidationError as error:
        raise StudyError(f"{path}: {first_complaint(error)}") from None
    low, high = rubric.scale[0], rubric.scale[-1]
    if not low <= study.acceptance.threshold <= high:
        raise StudyError(
            f"{study.file}: acceptance.threshold {study.acceptance.threshold:g} is outside the scale {low} to {high}"
        )
    return rubric
