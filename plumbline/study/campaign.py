"""How a study asks people: which pairs, who rates, when a transformation is accepted, what counts as careless."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from plumbline.error_types import Flag, known_flags
from plumbline.study.base import Name, Part, Seed, refuse_duplicates


class ControlsSpec(Part):
    """Control pairs, whose right answers are known, per batch of each queue (PTEB, appendix B: one of each)."""

    positive: int = Field(default=1, ge=0, le=1000, description="controls with nearly identical texts, per batch")
    negative: int = Field(default=1, ge=0, le=1000, description="controls with unrelated texts, per batch")


class SampleSpec(Part):
    """Which pairs people rate (HTEB, section 2.4: 100 a transformation), and which pairs check the raters."""

    pairs: int = Field(default=100, ge=1, le=10**7, description="pairs per transformation")
    seed: Seed = Field(default=1337, description="seed of the random draw")
    controls: ControlsSpec = ControlsSpec()
    repeats: int = Field(
        default=1, ge=0, le=1000, description="pairs per batch that are shown to each rater a second time"
    )
    batch: int = Field(
        default=50, ge=1, le=10**7, description="pairs per batch; each batch gets these controls and repeats"
    )
    without: tuple[Flag, ...] = Field(
        default=(), description="error types whose outputs are not sampled; the verdicts do not cover them"
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

    per_pair: int = Field(
        default=3, ge=1, le=1000, description="raters per pair; if there are more, the earliest count"
    )
    simulated: tuple[SimulatedRater, ...] = Field(
        default=(), description="made-up raters for rehearsals; leave out for a real campaign"
    )
    simulation_seed: Seed = 1337

    @field_validator("simulated")
    @classmethod
    def _distinct(cls, value: tuple[SimulatedRater, ...]) -> tuple[SimulatedRater, ...]:
        refuse_duplicates([rater.name for rater in value], "simulated rater")
        return value


class AcceptanceSpec(Part):
    """When a transformation is accepted (HTEB, section 2.4: mean rating of at least 3 on the scale 1 to 5)."""

    threshold: float = Field(
        default=3.0, description="what the mean must reach on each question; required if the rubric has none"
    )
    rule: Literal["mean", "lower_bound"] = Field(
        default="mean", description="what must reach the threshold: the mean, or the lower end of its 95% interval"
    )
    interval: Literal["pairs", "pairs_and_raters"] = Field(
        default="pairs", description="what the interval treats as a random sample: pairs alone, or pairs and raters"
    )
    stop: Literal["fixed", "anytime"] = Field(
        default="fixed",
        description="judged once, at the end; or with an interval that stays valid if one looks after every rating",
    )
    scope: Literal["transformation", "language", "task"] = Field(
        default="language",
        description="one verdict for all languages together, for each language, or for each language and task",
    )
    min_pairs: int = Field(default=20, ge=1, description="undecided with fewer rated pairs")
    min_raters: int = Field(default=2, ge=1, description="ratings that a pair needs to count as rated")
    min_ratings: int = Field(default=1, ge=1, description="undecided with fewer ratings on any question")
    min_ac2: float | None = Field(
        default=None, ge=-1, le=1, description="undecided with less agreement (Gwet's AC2) on any question"
    )

    @model_validator(mode="after")
    def _has_an_interval(self) -> AcceptanceSpec:
        if self.stop == "anytime" and (self.rule, self.interval) != ("lower_bound", "pairs"):
            raise ValueError("stop 'anytime' goes by an interval over pairs: it needs rule lower_bound, interval pairs")
        return self


class QualitySpec(Part):
    """Signs of careless answers that a person reviews (PTEB, appendix B); fixed before the first rating."""

    within: int = Field(default=1, ge=0, description="points by which answers to controls and repeats may be off")
    least_answers: int = Field(
        default=20, ge=2, description="pairs that a rater must have rated before the rules below apply"
    )
    same_answer: float = Field(
        default=0.95, gt=0, le=1, description="sign: this share of the pairs has one and the same answer"
    )
    words_a_second: float = Field(
        default=10.0, gt=0, description="reading speed that nobody exceeds (10 words/s: 600 a minute)"
    )
    too_fast: float = Field(
        default=0.25,
        ge=0,
        lt=1,
        description="sign: more than this share of the pairs is answered faster than they can be read",
    )
    apart: float = Field(default=1.0, gt=0, description="sign: mean distance from the other raters' mean, in points")
    least_rho: float = Field(
        default=0.1, ge=-1, le=1, description="sign: rank correlation with the other raters' mean below this"
    )
    low: float = Field(default=2.0, description="pairs with a mean up to this are listed for review")
