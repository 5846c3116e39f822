"""Records of judges: one judgement by one judge of one output, on one question."""

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


class JudgedPair(Pair):
    """A pair that judges rate (`judgements/judged.parquet`): from the sample, or drawn in the same way."""

    stratum: str = Field(
        description="the stratum it was drawn from: language, task, data set, output language, third by length, number"
        " of near-duplicates"
    )
    place: int = Field(
        description="its rank among its transformation's judged pairs, from 1; the sample's pairs come first"
    )


class PromptedAnswer(Record):
    """One answer of a language model to one prompt."""

    KEY = ("key",)
    key: str = Field(description="identity: hash of model, prompt and what it is about")
    text: str = Field(description="the answer as received; for a judge's `expected` its first token")
    status: Literal["ok", "failed", "unanswered"] = Field(
        description="failed: the answer cannot be read; unanswered: no answer was received, and the next run asks again"
    )
    reason: str = Field(description="why the answer cannot be read, or was not received; empty otherwise")
    attempts: int = Field(description="number of answers received")
    model: str = Field(description="the language model")
    kind: str = Field(description="the model's kind; `recorded` models were not asked")
    prompt_hash: str = Field(description="hash of the prompt without the texts")
    finished_at: datetime = Field(description="when the answer was received, UTC")


class Judgement(PromptedAnswer):
    """One answer of one judge to one question on one pair (`judgements/<judge>.parquet`)."""

    pair_id: str = Field(description="id of the pair, as in `pairs.parquet`")
    question: str = Field(description="name of the question, such as quality or similarity")
    score: Number = Field(description="the score, on the question's scale; NaN if there is none")
    mode: Literal["expected", "text"] = Field(
        description="expected: mean of the points, weighted by their probabilities; text: the number in the answer"
    )
    label_mass: Number = Field(
        default=math.nan, description="for `expected`: probability that the first token is a point; NaN otherwise"
    )
    judge_hash: str = Field(description="hash of the judge's model, revision, sampling and way of reading answers")


class ModelAnswer(PromptedAnswer):
    """One answer of a language model that does people's tasks (`human/models/<model>.parquet`)."""

    task: str = Field(description="the task's name in the study")
    pair_ids: tuple[str, ...] = Field(
        description="ids of the items that the model was shown, as in `pairs.parquet`; for clustering all items"
    )
    answers: str = Field(description="JSON: the answers by pair id and question; empty if the reply cannot be read")
    annotator_hash: str = Field(description="hash of the model, its revision, sampling and seed")


class SelectedFrom(Record):
    """A generator that `judge select` could choose."""

    generator: str = Field(description="the generator's name in all tables")
    model: str = Field(description="the generator's model")
    revision: str = Field(description="the model's revision; empty where the study names none")
    kind: str = Field(description="the generator's kind; `recorded` generators were not asked")
    outputs_sha256: str = Field(description="hash of the folder of its outputs, as in the manifest")
    error_rate: Number = Field(description="error rate of first attempts, mean over transformations, from 0 to 1")
    judged: bool = Field(description="whether it is one of the `best` generators with the lowest error rates")
    judged_outputs: str = Field(description="hash of its judged outputs; empty if there are none")
    mean: Number = Field(default=math.nan, description="mean score; NaN if the generator was not compared")
    low: Number = Field(default=math.nan, description="lower end of its 95% interval over source samples")
    high: Number = Field(default=math.nan, description="upper end of that interval")
    letters: str = Field(default="", description="generators that share a letter do not differ significantly")
    n: int = Field(default=0, description="number of source samples in the mean")


class SelectedBy(Record):
    """A judge whose scores `judge select` used."""

    judge: str = Field(description="the judge's name in the study")
    model: str = Field(description="the judge's model")
    kind: str = Field(description="the judge's kind; `recorded` judges were not asked")
    judge_hash: str = Field(description="hash of its model, revision, sampling and way of reading answers")
    prompt_sha256: str = Field(description="hash of the prompt's file")
    n: int = Field(description="number of its judgements with a score on the question")
    judgements: str = Field(description="hash of those judgements' identities and scores; empty if there are none")


class SelectedPair(Record):
    """A comparison of two generators."""

    first: str = Field(description="the generator with the higher mean")
    second: str = Field(description="the generator with the lower mean")
    low: Number = Field(description="lower end of its 95% interval")
    high: Number = Field(description="upper end of that interval")
    p: Number = Field(description="p of the paired bootstrap")
    p_holm: Number = Field(description="p after Holm's correction over all pairs")


class Selection(Record):
    """The choice of `judge select`, with its candidates (`judge_select/selection.json`)."""

    question: str = Field(description="the question whose scores decide")
    chosen: str = Field(description="the generator with the highest mean; empty if none can be chosen")
    why_none: str = Field(description="why no generator can be chosen; empty if one is")
    doubts: tuple[str, ...] = Field(description="reasons to doubt the choice, besides that no person has confirmed it")
    missing: tuple[str, ...] = Field(
        description="missing outputs and judgements, each with the command that produces it"
    )
    resamples: int = Field(description="resamples of each interval and comparison; 0 if there are none")
    compared: int = Field(
        description="number of judgements per generator in the means: only those that every compared generator has"
    )
    left_out: int = Field(description="number of judgements left out because a generator lacks them")
    generators: tuple[SelectedFrom, ...] = Field(description="all generators with outputs, lowest error rate first")
    judges: tuple[SelectedBy, ...] = Field(description="the study's judges")
    comparisons: tuple[SelectedPair, ...] = Field(description="pairwise comparisons of the generators")
    study_sha256: str = Field(description="hash of the study's file")
    versions: dict[str, str] = Field(description="versions of Python and of the packages that computed the numbers")


KEY = ("judge", "question", "pair_id")
STATUSES = ("ok", "failed", "unanswered")


def checked(judgements: pd.DataFrame, more: Sequence[str] = ()) -> pd.DataFrame:
    """Return the judgements with their scores as numbers; `more` are further required columns.

    Raises ValueError for missing columns, a repeated judgement, an unknown status, an ok judgement without a finite
    score, and any other judgement with a score.
    """
    filled(judgements, (*KEY, "status", *more), "judgements")
    need(judgements, ("score",), "judgements")
    once(judgements, KEY, "judgements")
    unknown = judgements.loc[~judgements["status"].isin(STATUSES), "status"]
    if len(unknown):
        raise ValueError(f"judgements: unknown status {unknown.iloc[0]!r}; it must be one of {', '.join(STATUSES)}")
    scores, ok = numbers(judgements["score"], "judgements"), (judgements["status"] == "ok").to_numpy()
    if (ok & ~np.isfinite(scores)).any():
        raise ValueError("judgements: a row with status ok has no score; an unreadable answer has status failed")
    if (~ok & ~np.isnan(scores)).any():
        raise ValueError("judgements: a row whose status is not ok has a score; set that score to NaN")
    return judgements.assign(score=scores)


def on_scale(judgements: pd.DataFrame, scale: Sequence[float]) -> None:
    """Raise ValueError for scores beyond the ends of the scale."""
    scores = judgements["score"].to_numpy(np.float64)
    off = (scores < scale[0] - 1e-9) | (scores > scale[-1] + 1e-9)
    if off.any():
        row = judgements.iloc[int(off.argmax())]
        raise ValueError(
            f"judgements: score {row['score']:g} of {row['judge']} is outside the scale from {scale[0]:g}"
            f" to {scale[-1]:g} (scores outside: {off.sum()} of {len(off)}); such an answer must have status failed"
        )


def together(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the mean of all judges' scores for each question and output; NaN if one of them is missing.

    `scores` are those of `checked`. Columns: question, pair_id, score.
    """
    wide = scores.pivot(index=["question", "pair_id"], columns="judge", values="score")
    return wide.mean(axis=1, skipna=False).rename("score").reset_index()
