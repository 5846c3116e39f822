"""What a campaign concludes: summaries of ratings, and verdicts (`agreement.json`, `verdicts.json`)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from generation.records import Number, Record


class Summary(Record):
    """The ratings of one question within one group, as HTEB's Table 2 reports them. NaN is null in the file."""

    question: str = Field(description="quality or fluency")
    n_pairs: int = Field(description="pairs with at least one rating that counts")
    n_ratings: int = Field(description="ratings that count")
    mean: Number = Field(description="mean over single ratings")
    sd: Number = Field(description="sample standard deviation over single ratings")
    low: Number = Field(description="lower end of the mean's 95% interval, over pairs")
    high: Number = Field(description="upper end")
    interval_reason: str = Field(description="why there is no interval; empty where there is one")
    ac2: Number = Field(description="Gwet's AC2 with ordinal weights")
    ac2_low: Number = Field(description="lower end of its 95% interval")
    ac2_high: Number = Field(description="upper end")
    ac2_reason: str = Field(description="why there is no AC2, or no interval of it; empty where there are both")


class Group(Record):
    """One row of Table 2: a pool of transformations, an axis, or all (`agreement.json`)."""

    level: Literal["pool", "axis", "overall"] = Field(description="what the row sums up")
    name: str = Field(description="the pool, the axis, or 'overall'")
    axis: str = Field(description="the axis that it belongs to; empty for 'overall'")
    transformations: tuple[str, ...] = Field(description="whose ratings are in it")
    simulated: bool = Field(description="true if any of its ratings is simulated")
    questions: tuple[Summary, ...] = Field(description="one for each question")


class Verdict(Record):
    """Whether a transformation may be used in a language, and what that rests on (`verdicts.json`)."""

    transformation: str = Field(description="one of the eight")
    axis: str = Field(description="its axis")
    pool: str = Field(description="whose ratings decide: translation and cross_translation are rated as one")
    language: str = Field(description="language of the originals that were rated")
    output_languages: tuple[str, ...] = Field(description="languages of the transformed texts that were rated")
    decision: Literal["accepted", "rejected", "undecided"] = Field(description="only accepted ones are evaluated")
    reasons: tuple[str, ...] = Field(description="one line each")
    n_pairs: int = Field(description="pairs with enough raters")
    n_ratings: int = Field(description="ratings that count, over all questions")
    questions: tuple[Summary, ...] = Field(description="one for each question")
    threshold: float = Field(description="the least mean that is accepted")
    simulated: bool = Field(description="true if any of the ratings is simulated")
    model: str = Field(description="the generator's model")
    generator_hash: str = Field(description="hash of model, revision and sampling")
    prompt_hash: str = Field(description="hash of the prompts' texts")
    pairs_sha256: str = Field(description="hash of the sample that was rated (pairs.parquet)")
    rule_id: str = Field(description="hash of the rule that it follows (acceptance, raters.per_pair)")
    ratings_sha256: str = Field(description="hash of the ratings that it rests on (ratings.parquet)")
