"""What judges leave: one judgement of an output by one judge, on one question, with the scale in one order."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Literal

from pydantic import Field

from plumbline.records import Number, Pair, Record


class JudgedPair(Pair):
    """A pair that judges rate (`judgements/judged.parquet`): of the sample, or drawn as that was."""

    stratum: str = Field(description="language, task, data set, output language, third by length: where it was drawn")
    place: int = Field(description="its place among the judged of its transformation, from 1; the sample's come first")


class Judgement(Record):
    """One answer of one judge to one question on one pair (`judgements/<judge>.parquet`)."""

    KEY = ("key",)
    key: str = Field(description="identity: hash of judge, prompt, question, order and pair")
    pair_id: str = Field(description="which pair, as `pairs.parquet` has it")
    judge: str = Field(description="the judge's name in the study")
    question: str = Field(description="name of the question, such as quality or similarity")
    order: Literal["up", "down"] = Field(description="the scale's points from the lowest (up) or the highest (down)")
    transformation: str = Field(description="its transformation, or group; original for two texts with a gold score")
    pool: str = Field(description="transformations rated together, as `pairs.parquet` has it")
    dataset: str = Field(description="first data set of the study that holds the original")
    task_type: str = Field(description="that data set's task")
    language: str = Field(description="language of the original")
    output_language: str = Field(description="language that the transformed text should be in")
    seed: int = Field(description="transformation seed")
    stratum: str = Field(description="where the pair was drawn from, as `judged.parquet` has it")
    generator: str = Field(description="the model that made the transformed text")
    score: Number = Field(description="the judgement, on the question's scale; NaN where there is none")
    mode: Literal["expected", "text"] = Field(
        description="expected: mean of the points by their probabilities; text: the number that was written"
    )
    label_mass: Number = Field(
        default=math.nan, description="of `expected`: probability that the first token is a point; NaN otherwise"
    )
    entropy: Number = Field(
        default=math.nan, description="of `expected`: entropy of the points' shares of that, in nats; NaN otherwise"
    )
    text: str = Field(description="the answer as it came; of `expected` its first token")
    status: Literal["ok", "failed", "unanswered"] = Field(
        description="failed: cannot be read as a score; unanswered: no answer came, the next run asks again"
    )
    reason: str = Field(description="why there is no score; empty otherwise")
    attempts: int = Field(description="answers received")
    model: str = Field(description="the judge's model")
    kind: Literal["vllm", "openai", "recorded"] = Field(description="the judge's kind; recorded ones were not asked")
    judge_hash: str = Field(description="hash of the judge's model, revision, sampling and way of reading")
    prompt_hash: str = Field(description="hash of what it was asked, but the texts")
    finished_at: datetime = Field(description="when the answer was received, UTC")


class BesideVerdict(Record):
    """One verdict with what the same rule would decide of people and judges (`verdicts_with_judges.json`)."""

    transformation: str = Field(description="the verdict's")
    language: str = Field(description="the verdict's")
    task_type: str = Field(description="the verdict's; empty where tasks share one")
    decision: Literal["accepted", "rejected", "undecided"] = Field(
        description="what people's ratings decide: the verdict, and what the evaluation goes by"
    )
    with_judges: Literal["accepted", "rejected", "undecided", ""] = Field(
        description="what the rule would decide of people and judges, for information; empty where they are refused"
    )
    reasons: tuple[str, ...] = Field(description="of that decision")
    rests_on: str = Field(description="by question: people + judges: 100 rated, 900 judged, worth 179")
    differ: bool = Field(description="whether the two decisions differ")
    why_not: str = Field(description="by question, why judges are refused; empty where they are not")
    judges: tuple[str, ...] = Field(description="the judges, whose mean counts")
    recorded: tuple[str, ...] = Field(description="those of them that were not asked: their answers come from a file")
    simulated: bool = Field(description="whether ratings that count are simulated")
    pairs_sha256: str = Field(description="hash of the sample that the verdict rests on (pairs.parquet)")
    ratings_sha256: str = Field(description="hash of the ratings that it rests on (ratings.parquet)")
    rule_id: str = Field(description="hash of the rule")
    judgements: str = Field(description="hash of what the judges were given and said, as far as it counts")
