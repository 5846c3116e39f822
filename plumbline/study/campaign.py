"""How a study asks people: which pairs, who rates, when a transformation is accepted, what counts as careless."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from plumbline.error_types import Flag, known_flags
from plumbline.study.base import Name, Part, Seed, refuse_duplicates


class ControlsSpec(Part):
    """Pairs whose answers are known beforehand, so many in each batch of each queue (PTEB, appendix B: one of each)."""

    positive: int = Field(default=1, ge=0, le=1000, description="almost identical texts")
    negative: int = Field(default=1, ge=0, le=1000, description="unrelated texts")


class SampleSpec(Part):
    """Which pairs people rate (HTEB, section 2.4: 100 a transformation), and what tells about the raters."""

    pairs: int = Field(default=100, ge=1, le=10**7, description="pairs for each transformation")
    seed: Seed = Field(default=1337, description="decides which")
    controls: ControlsSpec = ControlsSpec()
    repeats: int = Field(default=1, ge=0, le=1000, description="pairs of each batch that are shown a second time")
    batch: int = Field(
        default=50, ge=1, le=10**7, description="pairs of a queue that so many controls and repeats go with"
    )
    without: tuple[Flag, ...] = Field(
        default=(), description="error types whose outputs nobody is shown; no verdict covers them then"
    )

    @field_validator("without", mode="before")
    @classmethod
    def _known(cls, value: Any) -> Any:
        return known_flags(value)


class SimulatedRater(Part):
    """A made-up rater: the author's own rating, plus this bias, plus normal noise, rounded to the scale."""

    name: Name
    bias: float = Field(default=0.0, ge=-1000, le=1000)
    noise: float = Field(default=0.5, ge=0, le=1000)


class RatersSpec(Part):
    """Who rates, and how many for each pair (HTEB, section 2.4: three)."""

    per_pair: int = Field(default=3, ge=1, le=1000, description="ratings a pair gets; the first ones by time count")
    simulated: tuple[SimulatedRater, ...] = Field(default=(), description="raters for rehearsals; empty in real life")
    simulation_seed: Seed = 1337

    @field_validator("simulated")
    @classmethod
    def _distinct(cls, value: tuple[SimulatedRater, ...]) -> tuple[SimulatedRater, ...]:
        refuse_duplicates([rater.name for rater in value], "simulated rater")
        return value


class AcceptanceSpec(Part):
    """When a transformation is accepted (HTEB, section 2.4: mean rating of at least 3 on the scale 1 to 5)."""

    threshold: float = Field(
        default=3.0, description="what the mean must reach, on each question; to be said where the rubric has no own"
    )
    rule: Literal["mean", "lower_bound"] = Field(
        default="mean", description="the mean itself must reach it, or the lower end of its 95% interval"
    )
    interval: Literal["pairs", "pairs_and_raters"] = Field(
        default="pairs", description="of what the ratings are a sample: of pairs alone, or of raters too"
    )
    stop: Literal["fixed", "anytime"] = Field(
        default="fixed", description="judged once, at the end; or by an interval that allows to look after every rating"
    )
    scope: Literal["transformation", "language", "task"] = Field(
        default="language", description="judged on the ratings of all languages, of each, or of each and each task"
    )
    min_pairs: int = Field(default=20, ge=1, description="fewer rated pairs leave the verdict undecided")
    min_raters: int = Field(default=2, ge=1, description="a pair counts as rated from so many ratings on")
    min_ratings: int = Field(default=1, ge=1, description="fewer ratings on any question leave it undecided")
    min_ac2: float | None = Field(
        default=None, ge=-1, le=1, description="less agreement (Gwet's AC2) on any question leaves it undecided"
    )

    @model_validator(mode="after")
    def _has_an_interval(self) -> AcceptanceSpec:
        if self.stop == "anytime" and (self.rule, self.interval) != ("lower_bound", "pairs"):
            raise ValueError("stop 'anytime' goes by an interval over pairs: it needs rule lower_bound, interval pairs")
        return self


class QualitySpec(Part):
    """When a rater's answers are put before a person (PTEB, appendix B), fixed before the first rating."""

    within: int = Field(default=1, ge=0, description="how far answers to controls and repeats may be off")
    least_answers: int = Field(default=20, ge=2, description="pairs that a rater needs before habits are looked at")
    same_answer: float = Field(default=0.95, gt=0, le=1, description="share of pairs with one and the same answer")
    words_a_second: float = Field(default=10.0, gt=0, description="nobody reads faster: 600 words a minute")
    too_fast: float = Field(default=0.25, ge=0, lt=1, description="share of pairs that may be answered faster")
    apart: float = Field(default=1.0, gt=0, description="mean distance from the other raters' mean")
    least_rho: float = Field(default=0.1, ge=-1, le=1, description="least rank correlation with the others' mean")
    low: float = Field(default=2.0, description="pairs with a mean up to this are listed for review")
