"""What the members of a bundle are called, and the rows that no other record has."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from plumbline.records import Number, Record

STUDY, TRANSFORMATIONS, RUBRIC = "study.json", "transformations.json", "rubric.json"
PAIRS, RATINGS, SCORES = "pairs.parquet", "ratings.parquet", "scores.parquet"
CONTROLS, CONTROL_RATINGS, MEANS = "controls.parquet", "control_ratings.parquet", "pair_means.parquet"
JUDGED, JUDGEMENTS, REFUSED = "judged.parquet", "judgements.parquet", "judges.json"
VERDICTS, AGREEMENT = "verdicts.json", "agreement.json"
REPORTS = {"report/ratings.html": "report/index.html", "report/scores.html": "report_evaluation/index.html"}


def outputs_of(transformation: str, seed: int) -> str:
    """The member with a unit's outputs."""
    return f"outputs/{transformation}/{seed}.parquet"


def texts_of(dataset: str) -> str:
    """The member with the places and hashes of a data set's texts, and their words where they may be handed on."""
    return f"texts/{dataset}.parquet"


class BundledOutput(Record):
    """What stands in a text's place (`outputs/<transformation>/<seed>.parquet`)."""

    KEY = ("key",)
    key: str = Field(description="identity: hash of everything that changes the output, as in pairs.parquet")
    text_id: str = Field(description="the original's hash")
    datasets: tuple[str, ...] = Field(description="data sets in which it stands for that text")
    source_language: str = Field(description="the original's language")
    language: str = Field(description="the language that the output should be in")
    output: str = Field(description="the transformed text; empty where there is none, and where it is `copy_of` a text")
    status: Literal["ok", "failed"] = Field(description="whether there is one")
    reason: str = Field(description="why there is none, without what a server or a function said; empty otherwise")
    flags: tuple[str, ...] = Field(description="error types found on the last attempt")
    first_flags: tuple[str, ...] = Field(description="error types found on the first attempt")
    attempts: int = Field(description="answers received")
    copy_of: str = Field(
        default="",
        description="the hash of a text that may not be handed on, of which the output is a copy word for word",
    )


class BundledJudged(Record):
    """An output that judges rate (`judged.parquet`), where they decide with people; its texts are elsewhere."""

    KEY = ("pair_id",)
    pair_id: str = Field(description="as in pairs.parquet, where the output was rated by people too")
    key: str = Field(description="the output's")
    transformation: str = Field(description="its transformation")
    pool: str = Field(description="transformations rated together")
    dataset: str = Field(description="first data set that holds the original")
    task_type: str = Field(description="that data set's task")
    language: str = Field(description="language of the original")
    output_language: str = Field(description="language that the output should be in")
    seed: int = Field(description="transformation seed")
    wave: int = Field(description="wave of the sample in which it was drawn")
    stratum: str = Field(description="where it was drawn")
    place: int = Field(description="its place among the judged of its transformation, from 1; the sample's come first")


class BundledJudgement(Record):
    """One answer of one judge to one question on one output (`judgements.parquet`), without its words."""

    KEY = ("key",)
    key: str = Field(description="identity: hash of judge, prompt, question, order and pair")
    pair_id: str = Field(description="which output, as in judged.parquet")
    judge: str = Field(description="the judge's name")
    question: str = Field(description="the question")
    order: Literal["up", "down"] = Field(description="the scale's points from the lowest (up) or the highest (down)")
    score: Number = Field(description="the judgement, on the question's scale; NaN where there is none")
    status: Literal["ok", "failed", "unanswered"] = Field(description="whether there is one")
    kind: Literal["vllm", "openai", "recorded"] = Field(description="the judge's kind; recorded ones were not asked")
    judge_hash: str = Field(description="hash of the judge's model, revision, sampling and way of reading")
    prompt_hash: str = Field(description="hash of what it was asked, but the texts")
    text: str = Field(default="", description="its answer as it came; empty where free words do not travel")
    finished_at: datetime = Field(description="when the answer was received, UTC")


class BundledPrompt(BaseModel):
    """A prompt, word for word."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    source: str
    language: str
    text: str


class BundledTransformation(BaseModel):
    """How a transformation was made (`transformations.json`)."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    definition: dict[str, Any] = Field(description="the transformation as its file has it")
    prompts: tuple[BundledPrompt, ...] = Field(description="its calls' prompts, in order")
    prompt_hash: str = Field(description="of these; empty without prompts")
    kind: str = Field(description="what made it: the generator's kind, function or outputs")
    model: str = Field(description="the generator's model, the function, or the file of outputs")
    generator_hash: str = Field(description="identity of what made it")
