"""How a study names its LLM judges; `annotation.judges` asks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from plumbline.study.base import Line, Name, StudyPart, refuse_duplicates
from plumbline.study.campaign import AcceptanceSpec, RatersSpec, SampleSpec
from plumbline.study.generator import OpenAIGenerator, Sampling, VllmGenerator

Order = Literal["up", "down"]
Reading = Literal["expected", "text"]
_SHORT = Sampling(max_tokens=16)  # an answer is one number


class _Judge(StudyPart):
    name: Name = Field(description="what records and tables call it")
    model: Line = Field(description="the model's name on the hub, on the server, or (vllm) a local folder")
    revision: str = Field(default="", description="the model's revision")
    sampling: Sampling = Field(default=_SHORT, description="how it picks tokens; temperature 0 unless set")
    prompt: Line = Field(
        default="rubric", description="a prompt in prompts/judges/ (rubric, pteb_sts, pteb_paraphrase), or a YAML file"
    )
    gold_prompt: Line = Field(
        default="pteb_sts", description="the prompt with which it is held against gold scores of two texts"
    )
    questions: tuple[Name, ...] = Field(default=(), description="the rubric's ratings that it gives; all if unset")
    orders: tuple[Order, ...] = Field(
        default=("up",), min_length=1, description="points from the lowest (up) or the highest (down), or both"
    )
    score: Reading | None = Field(
        default=None,
        description="expected: the mean of the points by their probabilities; text: the number that it writes;"
        " unset: expected where the points are whole numbers",
    )
    least_mass: float = Field(
        default=0.5, ge=0, le=1, description="of `expected`: less probability on the points is no judgement"
    )
    attempts: int = Field(
        default=3, ge=1, le=20, description="of `text`: times that an answer is asked for that cannot be read"
    )
    temperature: float = Field(
        default=0.7, ge=0, le=2, description="temperature from the second attempt on: at 0 a new seed changes nothing"
    )
    seed: int = Field(default=1337, ge=0, le=2**31 - 1, description="seed of the first attempt")

    @model_validator(mode="after")
    def _each_once(self) -> _Judge:
        refuse_duplicates(list(self.questions), "question")
        refuse_duplicates(list(self.orders), "order")
        return self


class RecordedJudge(_Judge):
    """Judgements that stand in a file, made elsewhere or by a rule (`annotation.judges.replies`)."""

    kind: Literal["recorded"]
    path: Line = Field(description="a JSONL file: original, transformed, question, order, and text or probabilities")
    saw_ratings: bool = Field(
        default=False, description="whether this judge was shown people's ratings: then no number may rest on it"
    )

    def identity(self) -> list[Any]:
        """What of it changes its judgements."""
        return ["recorded", self.model, self.revision]


class OpenAIJudge(_Judge, OpenAIGenerator):
    """A model behind an OpenAI-compatible chat server."""


class VllmJudge(_Judge, VllmGenerator):
    """A model in vLLM, in this process."""


JudgeSpec = Annotated[RecordedJudge | OpenAIJudge | VllmJudge, Field(discriminator="kind")]


def refuse_unfit_judges(
    judges: Sequence[_Judge], pool: int | Literal["all"], sample: SampleSpec, raters: RatersSpec, rule: AcceptanceSpec
) -> None:
    """Raise ValueError for judges that share a name, or have a rater's, too small a pool, and if none can decide."""
    refuse_duplicates([one.name for one in judges], "judge")
    people = {*(raters.people or ()), *raters.former, *(one.name for one in raters.simulated)}
    for one in judges:
        if one.name == "judged":
            raise ValueError("judges: 'judged' is the file of the pairs that are judged; give the judge another name")
        if one.name in people:
            raise ValueError(f"judges: {one.name!r} is the name of a rater too; give the judge another one")
    if judges and pool != "all" and pool < sample.pairs:
        raise ValueError(
            f"judge_pool {pool} is less than sample.pairs {sample.pairs}: the pairs that people rate are among the"
            " judged; raise it, or write all"
        )
    if rule.judges.use != "decide":
        return
    if not judges:
        raise ValueError("acceptance.judges decide, and the study names no judges; add them, or write use: report")
    if shown := [one.name for one in judges if isinstance(one, RecordedJudge) and one.saw_ratings]:
        raise ValueError(f"acceptance.judges decide, and {shown[0]!r} saw people's ratings; take it out")
