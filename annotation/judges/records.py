"""Records of judges: one judgement of an output by one judge, on one question, with the scale in one order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import Field

from plumbline.frames import filled, need, numbers, once
from plumbline.records import Number, Pair, Record

UNDRAWN = "undrawn"  # the stratum of outputs that judges rate and no sample could have


class JudgedPair(Pair):
    """A pair that judges rate (`judgements/judged.parquet`): of the sample, or drawn as that was."""

    stratum: str = Field(
        description="language, task, data set, output language, third by length, and how many near-duplicates it has:"
        " where it was drawn; `undrawn` for what no sample could have"
    )
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


class ModelAnswer(Record):
    """One answer of a language model that does people's tasks (`human/models/<model>.parquet`)."""

    KEY = ("key",)
    key: str = Field(description="identity: hash of model, of all that it was told but the texts, and of the texts")
    annotator: str = Field(description="the model's name in the study")
    task: str = Field(description="the task's name in the study")
    asked: str = Field(
        description="the form of the question, as in `human/tasks.json`; in searches it may differ from people's"
    )
    pair_ids: tuple[str, ...] = Field(
        description="ids of the items that it was shown, as in `pairs.parquet`; for clustering all items"
    )
    answers: str = Field(description="JSON: by id and question what was answered; empty where nothing can be read")
    text: str = Field(description="the answer as it came")
    status: Literal["ok", "failed", "unanswered"] = Field(
        description="failed: cannot be read as an answer; unanswered: none came, the next run asks again"
    )
    reason: str = Field(description="why there is no answer; empty otherwise")
    attempts: int = Field(description="answers received")
    model: str = Field(description="the model")
    kind: Literal["vllm", "openai", "recorded"] = Field(description="its kind; recorded ones were not asked")
    annotator_hash: str = Field(description="hash of the model, its revision, sampling and seed")
    prompt_hash: str = Field(description="hash of what it was told, but the texts")
    finished_at: datetime = Field(description="when the answer was received, UTC")


class SelectedFrom(Record):
    """A generator among which `judge select` chose."""

    generator: str = Field(description="its name in all tables")
    model: str = Field(description="its model")
    revision: str = Field(description="the model's revision; empty where the study names none")
    kind: str = Field(description="its kind; recorded ones were not asked")
    outputs_sha256: str = Field(description="hash of the folder of its outputs, as the manifest has it")
    error_rate: Number = Field(description="errors of first attempts, mean over transformations, from 0 to 1")
    judged: bool = Field(description="whether it is among the `best` with the lowest error rates")
    judged_outputs: str = Field(description="hash of the outputs of it that judges rated; empty without any")
    mean: Number = Field(default=math.nan, description="mean judgement; NaN where it was not compared")
    low: Number = Field(default=math.nan, description="lower end of its 95% interval over source samples")
    high: Number = Field(default=math.nan, description="upper end")
    letters: str = Field(default="", description="generators that share one do not differ significantly")
    n: int = Field(default=0, description="source samples that the mean is of")


class SelectedBy(Record):
    """A judge that `judge select` rests on."""

    judge: str = Field(description="its name in the study")
    model: str = Field(description="its model")
    revision: str = Field(description="the model's revision; empty where the study names none")
    kind: Literal["vllm", "openai", "recorded"] = Field(description="recorded ones were not asked")
    seed: int = Field(description="seed of the first attempt")
    orders: tuple[str, ...] = Field(description="orders of the scale's points")
    reading: Literal["expected", "text"] = Field(description="how its answers are read, where it can be so")
    judge_hash: str = Field(description="hash of its model, revision, sampling and way of reading")
    prompt: str = Field(description="its prompt's name")
    prompt_sha256: str = Field(description="hash of the prompt's file")
    n: int = Field(description="judgements with a score on the question")
    judgements: str = Field(description="hash of these: their identities and scores; empty without any")


class SelectedPair(Record):
    """Two generators beside each other."""

    first: str = Field(description="the one with the higher mean")
    second: str = Field(description="the other")
    difference: Number = Field(description="of their means")
    low: Number = Field(description="lower end of its 95% interval")
    high: Number = Field(description="upper end")
    p: Number = Field(description="of the paired bootstrap")
    p_holm: Number = Field(description="after Holm's correction over all pairs")
    significant: bool = Field(description="whether that is below 0.05")


class Selection(Record):
    """The choice of `judge select`, with its candidates and rule (`judge_select/selection.json`)."""

    study: str = Field(description="the study's name")
    question: str = Field(description="the question by whose answers was chosen")
    chosen: str = Field(description="the generator with the highest mean; empty where none can be chosen")
    why_none: str = Field(description="why none can be; empty where one is chosen")
    not_told_apart: tuple[str, ...] = Field(description="those that share a letter with it")
    doubts: tuple[str, ...] = Field(description="what makes the choice doubtful; beside it, no person has said so")
    missing: tuple[str, ...] = Field(
        description="what the choice had to do without, each with the command that makes it"
    )
    recorded: tuple[str, ...] = Field(description="judges and generators that are recordings")
    rule: str = Field(description="the rule in words")
    best: int = Field(description="how many with the lowest error rates are compared")
    seed: int = Field(description="seed of all resamples (sample.seed)")
    transformation_seeds: tuple[int, ...] = Field(description="seeds of the outputs (seeds)")
    resamples: int = Field(description="resamples of each interval and comparison; 0 without any")
    compared: int = Field(description="judgements of each generator that the means are of: those that all of them have")
    left_out: int = Field(description="judgements that count for none, since a generator lacks them")
    generators: tuple[SelectedFrom, ...] = Field(description="all with outputs, the lowest error rate first")
    judges: tuple[SelectedBy, ...] = Field(description="the study's judges")
    comparisons: tuple[SelectedPair, ...] = Field(description="the compared generators two by two")
    study_sha256: str = Field(description="hash of the study's file")
    texts_sha256: str = Field(description="hash of texts.parquet")
    versions: dict[str, str] = Field(description="of Python and the packages that made the numbers")


class BesideVerdict(Record):
    """A verdict, with the decision of the same rule on people and judges (`verdicts_with_judges.json`)."""

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


KEY = ("judge", "question", "order", "pair_id")
STATUSES = ("ok", "failed", "unanswered")


def checked(judgements: pd.DataFrame, more: Sequence[str] = ()) -> pd.DataFrame:
    """The judgements with their scores as numbers; `more` are further columns that must be there.

    Raises ValueError for a frame without the columns, a judgement twice, an unknown status, one that is ok without a
    finite score, and one that is not ok with a score.
    """
    filled(judgements, (*KEY, "status", *more), "judgements")
    need(judgements, ("score",), "judgements")
    once(judgements, KEY, "judgements")
    strange = judgements.loc[~judgements["status"].isin(STATUSES), "status"]
    if len(strange):
        raise ValueError(f"judgements: unknown status {strange.iloc[0]!r}; it must be one of {', '.join(STATUSES)}")
    scores, ok = numbers(judgements["score"], "judgements"), (judgements["status"] == "ok").to_numpy()
    if (ok & ~np.isfinite(scores)).any():
        raise ValueError("judgements: one that is ok has no score; what cannot be read is failed")
    if (~ok & ~np.isnan(scores)).any():
        raise ValueError("judgements: one that is not ok has a score; it says nothing, so its score is NaN")
    return judgements.assign(score=scores)


def on_scale(judgements: pd.DataFrame, scale: Sequence[float]) -> None:
    """Raise ValueError for scores beyond the ends of the scale."""
    scores = judgements["score"].to_numpy(np.float64)
    off = (scores < scale[0] - 1e-9) | (scores > scale[-1] + 1e-9)
    if off.any():
        row = judgements.iloc[int(off.argmax())]
        raise ValueError(
            f"judgements: {row['score']:g} of {row['judge']} lies off the scale from {scale[0]:g} to {scale[-1]:g}"
            f" ({off.sum()} of {len(off)} do); what is off the scale is failed"
        )


def over_orders(judgements: pd.DataFrame, more: Sequence[str] = ()) -> pd.DataFrame:
    """One row a judge, question and output: the mean over all orders in which the judge read; NaN where one failed.

    A mean over fewer orders than the judge's others would be one of something else. `more` are columns of the output
    to keep. Columns: judge, question, pair_id, score, *more.
    """
    scores = checked(judgements, more)
    keys = ["judge", "question", "pair_id"]
    copied = {name: (name, "first") for name in more}
    means = scores.groupby(keys, sort=False).agg(score=("score", "mean"), n=("score", "count"), **copied)
    orders = scores.groupby(["judge", "question"])["order"].nunique()
    means = means.reset_index()
    wanted = orders.reindex(pd.MultiIndex.from_frame(means[["judge", "question"]])).to_numpy()
    return means.assign(score=means["score"].where(means["n"] == wanted)).drop(columns="n")


def together(scores: pd.DataFrame, judges: Sequence[str]) -> pd.DataFrame:
    """Return the mean of some judges' scores for each question and output; NaN if one of them is missing.

    `scores` are those of `over_orders`. Raises ValueError for a judge that is not there. Columns: question, pair_id,
    score.
    """
    names = list(dict.fromkeys(judges))
    judge_names = set(scores["judge"])
    if missing := [name for name in names if name not in judge_names]:
        raise ValueError(
            f"judgements: there are none of {missing[0]!r}; there are {', '.join(sorted(judge_names)) or 'none'}"
        )
    wide = scores.pivot(index=["question", "pair_id"], columns="judge", values="score")[names]
    return wide.mean(axis=1, skipna=False).rename("score").reset_index()
