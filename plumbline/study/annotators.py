"""How a study names language models that do people's tasks: `human.models`; `annotation.judges` asks them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from plumbline.study.base import Line, Name, Part, refuse_duplicates
from plumbline.study.generator import OpenAIGenerator, Sampling, VllmGenerator

Relevance = Literal["graded", "binary", "ranked"]


class _Annotator(Part):
    name: Name = Field(description="what records and tables call it")
    model: Line = Field(description="the model's name on the hub, on the server, or (vllm) a local folder")
    revision: str = Field(default="", description="the model's revision")
    sampling: Sampling = Field(default=Sampling(), description="how it picks tokens; temperature 0 unless set")
    tasks: tuple[Name, ...] = Field(default=(), description="the study's tasks that it does; all if unset")
    relevance: Relevance | None = Field(
        default=None, description="of searches how it is asked, where that is not as people are"
    )
    attempts: int = Field(default=3, ge=1, le=20, description="times that an answer is asked for that cannot be read")
    temperature: float = Field(
        default=0.7, ge=0, le=2, description="temperature from the second attempt on: at 0 a new seed changes nothing"
    )
    seed: int = Field(default=1337, ge=0, le=2**31 - 1, description="seed of the first attempt")

    @model_validator(mode="after")
    def _each_once(self) -> _Annotator:
        refuse_duplicates(list(self.tasks), "task")
        return self

    @property
    def called(self) -> str:
        """What tables of answers and scores call it."""
        return self.name


class RecordedAnnotator(_Annotator):
    """Answers that stand in a file, of a model that was asked elsewhere or made by a rule."""

    kind: Literal["recorded"]
    path: Line = Field(description="a JSONL file: task, item, where there are several candidate, and answer")

    @property
    def called(self) -> str:
        """Its name, and that it is a recording."""
        return f"{self.name} (recorded)"

    def identity(self) -> list[Any]:
        """What of it changes its answers."""
        return ["recorded", self.model, self.revision]


class OpenAIAnnotator(_Annotator, OpenAIGenerator):
    """A model behind an OpenAI-compatible chat server."""


class VllmAnnotator(_Annotator, VllmGenerator):
    """A model in vLLM, in this process."""


AnnotatorSpec = Annotated[RecordedAnnotator | OpenAIAnnotator | VllmAnnotator, Field(discriminator="kind")]
