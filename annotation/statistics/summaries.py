"""Means, spread and agreement of ratings: pure functions from a frame of ratings to records.

A frame of ratings is `ratings.parquet`: one row for each pair, rater and question.
`annotation.campaign.counting.counting_ratings` alone decides which ratings count; everything else takes its result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from pandas.api.types import is_string_dtype

from annotation.campaign.rubric import Rubric
from annotation.questions.question import Question
from annotation.questions.rating import RatingQuestion
from annotation.questions.summary import Summary
from annotation.records import Group, TakenLook
from plumbline.scales import points_of
from plumbline.statistics.agreement import rater_numbers
from plumbline.study import Study
from plumbline.study.campaign import AcceptanceSpec, RuleSpec
from plumbline.study.transformations import EIGHT, axes_in_order, in_order

HTEB_SCALE = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Design:
    """A study's questions, numbers of raters and rule; HTEB's (section 2.4) by default."""

    questions: tuple[str, ...] = ("quality", "fluency")
    scale: tuple[float, ...] = HTEB_SCALE  #: of questions without their own; empty if there are none
    per_pair: int = 3  #: raters of a pair that count, the first by time
    rule: AcceptanceSpec = field(default_factory=AcceptanceSpec)
    seed: int = 1337  #: the sample's, which fixes the order of pairs in blocks
    extra: Mapping[str, Question] = field(default_factory=dict)  #: questions other than required ratings on `scale`
    pools: Mapping[str, str] = field(default_factory=dict)  #: of transformations beside HTEB's eight
    blocks: tuple[int, ...] = ()  #: numbers of pairs after which a rule by blocks looks
    past_looks: Sequence[TakenLook] = ()  #: looks after blocks that were taken before

    def __post_init__(self) -> None:
        """Check the design. Raises ValueError for an impossible one."""
        none = isinstance(self.scale, tuple) and not self.scale
        if not none or any(not self.asked(name).scale for name in self.rated):
            points_of(self.scale)
        if isinstance(self.questions, str) or not self.questions or len(set(self.questions)) < len(self.questions):
            raise ValueError(
                f"a design's questions must be different names, such as ('quality',), not {self.questions!r}"
            )
        if not isinstance(self.per_pair, int) or self.per_pair < 1:
            raise ValueError(f"per_pair must be a whole number of raters, at least 1, not {self.per_pair!r}")
        if not isinstance(self.rule, AcceptanceSpec):
            raise ValueError(f"a design's rule must be an AcceptanceSpec, not a {type(self.rule).__name__}")
        if self.blocks:
            self.rule.refuse_blocks()

    @classmethod
    def of(cls, study: Study, rubric: Rubric) -> Design:
        """Return the study's design, with its rubric's questions and scale."""
        questions, per_pair = rubric.asked(), study.raters.per_pair
        names = tuple(question.name for question in questions)
        extra = {
            question.name: question for question in questions if question != RatingQuestion(question.name, rubric.scale)
        }
        pools = {name: kind.pool for name, kind in study.kinds.items()}
        blocks = study.raters.blocks
        return cls(names, rubric.scale, per_pair, study.acceptance, study.sample.seed, extra, pools, blocks=blocks)

    def asked(self, question: str) -> Question:
        """Return a question as raters answer it."""
        return self.extra.get(question) or RatingQuestion(question, self.scale)

    @property
    def rated(self) -> tuple[str, ...]:
        """The questions that are answered with a point of a scale."""
        return tuple(name for name in self.questions if self.asked(name).has_points)

    def threshold_rules(self, pool: str) -> tuple[RuleSpec, ...]:
        """Return the rules that a study's one threshold makes for the questions of a pool."""
        questions = [question for question in map(self.asked, self.questions) if question.asked_in(pool)]
        return tuple(rule for question in questions for rule in question.threshold_rules(question.name, self.rule))

    def pair_means(self, ratings: pd.DataFrame, rule: RuleSpec) -> pd.Series:
        """Return the number that a rule judges of each pair with answers: their mean, or the share of a label."""
        of_question = ratings[ratings["question"] == rule.question]
        value = pd.Series(self.asked(rule.question).numbers(of_question, rule.label), dtype=float)
        return value.groupby(of_question["pair_id"].to_numpy()).mean()

    def pool_of(self, transformation: str) -> str:
        """Return the pool of a transformation; by default its own name."""
        kind = EIGHT.get(transformation)
        return self.pools.get(transformation, kind.pool if kind else transformation)

    def needed(self, pool: str) -> tuple[str, ...]:
        """Return the questions that need answers about a pool's pairs; a pair counts with enough answers to each."""
        return tuple(name for name in self.questions if self.asked(name).required and self.asked(name).asked_in(pool))


def coded(ratings: pd.DataFrame) -> pd.DataFrame:
    """Return the ratings with columns of words as categories in their order, so that words compare as numbers."""
    return ratings.astype({name: "category" for name in ratings if is_string_dtype(ratings[name].dtype)})


def compact(ratings: pd.DataFrame) -> pd.DataFrame:
    """Return the columns that statistics need: ids as ordered numbers, other words as categories.

    It takes a tenth of the memory and is quick to split into groups.
    """
    words = [name for name in ("transformation", "language", "question", "pool", "task_type") if name in ratings]
    pair, rater = pd.factorize(ratings["pair_id"], sort=True)[0], rater_numbers(ratings["rater_id"], sort=True)
    unknown = rater < 0
    words += ["answer"] if "answer" in ratings else []
    columns = ratings[[*words, "value", "submitted_at", "simulated"]].astype(dict.fromkeys(words, "category"))
    return columns.assign(pair_id=pair, rater_id=np.where(unknown, math.nan, rater) if unknown.any() else rater)


def summarise(
    ratings: pd.DataFrame, question: str, design: Design, seed: int | None, *, level: float | None = None
) -> Summary:
    """Summarise the counting ratings of one question in the numbers of HTEB's Table 2, and more.

    The mean's interval is the rule's; `level` is the one-sided level of a look after a block, whose P comes from the
    looks (`plumbline.statistics.group_sequential`) and is NaN here. All numbers are of these ratings. `seed` is that of
    resampling pairs, so that equal ratings have equal intervals; None leaves out numbers on which no decision rests.
    """
    return design.asked(question).summary(ratings[ratings["question"] == question], design.rule, seed, level)


def table_two(
    ratings: pd.DataFrame, design: Design, seed: int | None, places: Mapping[str, tuple[str, str]] | None = None
) -> list[Group]:
    """Compute HTEB's Table 2: each axis with its pools below it, then languages if there are several, then the total.

    `places` are axis and pool of each transformation (default: HTEB's); HTEB's axes come first, then others in order.

    Single ratings are pooled, not means. `ratings` are those that count, of pairs with at least `min_raters`
    (`annotation.verdicts.counted.with_enough`). Groups without ratings are left out.
    """
    ratings = compact(ratings)
    axis_and_pool = {name: (kind.axis, kind.pool) for name, kind in EIGHT.items()} | dict(places or {})
    axes, pools = (ratings["transformation"].map(lambda name, end=end: axis_and_pool[name][end]) for end in range(2))
    answering = ratings["question"].isin(design.questions)
    parts: list[tuple[str, str, str, pd.Series]] = []
    for axis in axes_in_order(axis for axis, _ in axis_and_pool.values()):
        parts.append(("axis", axis, axis, axes == axis))
        for pool in dict.fromkeys(pool for of, pool in axis_and_pool.values() if of == axis):
            parts.append(("pool", pool, axis, pools == pool))
    languages = sorted(ratings["language"].unique())
    parts += [("language", name, "", ratings["language"] == name) for name in languages if len(languages) > 1]
    parts.append(("overall", "overall", "", pd.Series(True, index=ratings.index)))
    groups = [
        (level, name, axis, rows.to_numpy(np.bool_)) for level, name, axis, rows in parts if (rows & answering).any()
    ]
    distinct = {rows.tobytes(): rows for *_, rows in groups}  # most axes have one pool
    numbers = {key: _numbers(ratings[rows], design, seed) for key, rows in distinct.items()}
    return [
        Group.model_validate({"level": level, "name": name, "axis": axis, **numbers[rows.tobytes()]})
        for level, name, axis, rows in groups
    ]


def _numbers(ratings: pd.DataFrame, design: Design, seed: int | None) -> dict[str, object]:
    """Return the fields of a group that its ratings say."""
    return {
        "transformations": tuple(in_order(sorted(ratings["transformation"].unique()))),
        "simulated": bool(ratings["simulated"].any()),
        "questions": tuple(
            summarise(ratings, question, design, seed)
            for question in design.questions
            if not design.asked(question).pools or (ratings["question"] == question).any()
        ),
    }
