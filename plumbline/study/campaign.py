"""A study's settings for people: the pairs, the raters, the acceptance rule; and the limits of careless answers.

Some answers about an evaluation only people can give: they are asked once in the study file, and open until answered.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from plumbline.error_types import Flags
from plumbline.errors import nearest
from plumbline.study.base import Contradiction, Line, Name, Seed, StudyPart, Words, distinct, refuse_duplicates

_ACCOUNT = re.compile(r"[^\W_](?:[\w.@+ -]{0,62}\w)?")
_SIGNS = "1 to 64 letters, digits, spaces and . _ - + @, and begins and ends with a letter or digit"
_RESERVED = re.compile(r"owner|(simulated|worker)-.*")
_FEWEST = 8  # pairs of the smallest block; a test keeps it equal to `plumbline.statistics.group_sequential.FEWEST`


class SampleSpec(StudyPart):
    """The pairs that people rate (HTEB, section 2.4: 100 a transformation), and those that check the raters."""

    pairs: int = Field(default=100, ge=1, le=10**7, description="pairs per transformation")
    seed: Seed = Field(default=1337, description="seed of the random draw")
    controls: int = Field(
        default=1,
        ge=0,
        le=1000,
        description="pairs per batch that check raters, of each kind: nearly identical texts and unrelated ones, or"
        " items with a known right answer (PTEB, appendix B: one of each)",
    )
    repeats: int = Field(default=1, ge=0, le=1000, description="pairs per batch that each rater sees twice")
    batch: int = Field(
        default=50, ge=1, le=10**7, description="pairs per batch; controls and repeats are added to each batch"
    )
    without: Flags = Field(
        default=(), description="outputs with these error types are not drawn, and no verdict covers them"
    )
    together: bool = Field(
        default=False,
        description="whether raters see all outputs of an original on one page, in an order drawn for each page and"
        " rater, and rate each; for transformations that share a queue",
    )


class SimulatedRater(StudyPart):
    """A simulated rater: the author's own rating, plus this bias, plus normal noise, rounded to the scale.

    Both are points of a scale from 1 to 5; on a longer or shorter one they are in proportion to its range.
    """

    name: Name = Field(description="its name in records, after `simulated-`")
    bias: float = Field(default=0.0, ge=-1000, le=1000, description="points added to the right answer")
    noise: float = Field(default=0.5, ge=0, le=1000, description="standard deviation of the random error, in points")


class RatersSpec(StudyPart):
    """The raters, and their number for each pair (HTEB, section 2.4: three)."""

    per_pair: int = Field(
        default=3, ge=1, le=1000, description="raters per pair; if more raters answer, the earliest answers count"
    )
    people: tuple[Line, ...] | None = Field(
        default=None,
        min_length=1,
        description=(
            "annotators' user names: only these people can sign in to the campaign, and only their answers count;"
            " default: all annotators of the server"
        ),
    )
    former: tuple[Line, ...] = Field(
        default=(),
        description=(
            "user names of people who have stopped rating: they get no more pairs, and their answers still count"
        ),
    )
    simulated: Annotated[tuple[SimulatedRater, ...], distinct("simulated rater", attrgetter("name"))] = Field(
        default=(), description="simulated raters for rehearsals; leave out in a real campaign"
    )
    simulation_seed: ClassVar[int] = 1337  #: of the simulated raters' answers
    blocks: tuple[Annotated[int, Field(ge=_FEWEST, le=10**7)], ...] = Field(
        default=(),
        description=(
            "rising numbers of pairs after which the rule checks each verdict, such as [20, 40, 60, 80, 100]; raters"
            " get one block after another until the verdict is decided; default: the rule decides once, at the end"
        ),
    )

    contact: str = Field(
        default="",
        max_length=200,
        description="e-mail or web address for questions of annotators and crowd workers; shown to them",
    )

    @field_validator("blocks")
    @classmethod
    def _rising(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if any(later <= earlier for earlier, later in itertools.pairwise(value)):
            raise ValueError(
                f"{list(value)} is not ascending; write the total of pairs after each block, such as [20, 40, 60]"
            )
        return value

    @field_validator("people")
    @classmethod
    def _accounts(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for name in value or ():
            if _RESERVED.fullmatch(name):
                raise ValueError(f"{name!r} is reserved for the platform; give the annotator another name")
            if not _ACCOUNT.fullmatch(name):
                raise ValueError(f"{name[:64]!r} is not a valid account name, which has {_SIGNS}")
        return value

    @model_validator(mode="after")
    def _named_once(self) -> RatersSpec:
        if self.former and self.people is None:
            raise ValueError("`former` needs `people`, the list of current raters; add `people`")
        refuse_duplicates([*(self.people or ()), *self.former], "annotator")
        return self


class RuleSpec(StudyPart):
    """One rule on one question; a rule that names pools takes precedence over a general one on the same question."""

    question: Name = Field(description="the question of the rubric that the rule applies to")
    label: str = Field(
        default="", description="the share of answers with this label is judged; default: the mean of single ratings"
    )
    at_least: float | None = Field(default=None, description="the smallest accepted value")
    at_most: float | None = Field(default=None, description="the largest accepted value, for instance for a negation")
    pools: tuple[Name, ...] = Field(default=(), description="the pools that the rule applies to; default: all")

    @model_validator(mode="after")
    def _whole(self) -> RuleSpec:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError(f"the rule on {self.question!r} needs at_least or at_most, not both")
        if self.label and not 0 <= self.limit <= 1:
            raise ValueError(f"the rule on {self.question!r}: a share must be from 0 to 1, not {self.limit:g}")
        return self

    @property
    def statistic(self) -> str:
        """The number that is judged: a mean, or with a label a share."""
        return "share" if self.label else "mean"

    @property
    def limit(self) -> float:
        """The limit that must be reached, or not exceeded."""
        return float(self.at_least if self.at_least is not None else self.at_most or 0.0)


class AcceptanceSpec(StudyPart):
    """The rule that accepts a transformation (HTEB, section 2.4: mean rating of at least 3 on the scale 1 to 5).

    `threshold` is the short form of `rules`: one rule on the mean of each question that is rated on the scale.
    """

    min_ratings: ClassVar[int] = 1  #: on each question; with fewer there is no verdict

    protocol: Literal["checked", "paper"] = Field(
        default="checked",
        description=(
            "checked: a verdict stays undecided while raters miss controls or distinguish pairs no better than chance,"
            " until a person has reviewed them; paper: the ratings alone decide, as in HTEB and PTEB"
        ),
    )
    threshold: float = Field(
        default=3.0,
        description=(
            "the smallest accepted mean on each question; without `rules`, it must be set unless the rubric's own"
            " threshold is 3, or the rubric has none and its scale is 1 to 5"
        ),
    )
    rule: Literal["mean", "lower_bound"] = Field(
        default="mean",
        description=(
            "what is compared with the threshold and the limits of `rules`: the mean, or share, itself; or the end of"
            " its 95% interval that is nearer to the limit (the lower end, for `at_most` the upper end)"
        ),
    )
    interval: Literal["pairs", "pairs_and_raters"] = Field(
        default="pairs",
        description="the sampling error that the interval covers: that of pairs alone, or of pairs and raters",
    )
    scope: Literal["transformation", "language", "task"] = Field(
        default="language",
        description="one verdict for all languages together, for each language, or for each language and task",
    )
    min_pairs: int = Field(default=20, ge=1, description="a verdict on fewer rated pairs of its own is undecided")
    min_raters: int = Field(default=2, ge=1, description="a pair with fewer ratings does not count as rated")
    min_ac2: float | None = Field(
        default=None, ge=-1, le=1, description="a verdict with less agreement (Gwet's AC2) on any question is undecided"
    )

    rules: tuple[RuleSpec, ...] = Field(
        default=(), description="a rule for each question, instead of one threshold; all must be met"
    )

    @model_validator(mode="after")
    def _rules_fit_together(self) -> AcceptanceSpec:
        if not self.rules:
            return self
        if "threshold" in self.model_fields_set:
            raise ValueError("threshold and rules cannot both be given; leave threshold out")
        same = [(rule.question, rule.label, rule.at_least is None, rule.pools) for rule in self.rules]
        if twice := next((rule for rule in same if same.count(rule) > 1), None):
            raise ValueError(f"two rules limit the {'share' if twice[1] else 'mean'} of {twice[0]!r}; keep one of them")
        return self

    @property
    def by_interval(self) -> bool:
        """Whether the ends of 95% intervals are compared with the limits, not the numbers themselves."""
        return self.rule == "lower_bound"

    @property
    def speaks_for(self) -> str:
        """The raters for whom a verdict speaks: the error that the rule controls is about them."""
        return "raters like these" if self.by_interval and self.interval == "pairs_and_raters" else "these raters"

    def refuse_blocks(self) -> None:
        """Raise ValueError if the rule cannot look after blocks: looks need an interval over pairs."""
        if not self.by_interval or self.interval != "pairs":
            raise ValueError(
                "blocks are decided by an interval over pairs; set `rule: lower_bound` and `interval: pairs` under"
                " `acceptance` (such verdicts speak for these raters), or for a verdict on raters like these take"
                " `raters.blocks` out and have each pair rated by 5 or more"
            )


#: HTEB's and PTEB's, for which the defaults of `Tolerance` were made.
PAPERS_SCALES: tuple[tuple[float, ...], ...] = ((1, 2, 3, 4, 5), (0, 1, 2, 3, 4, 5))


@dataclass(frozen=True)
class Tolerance:
    """How far is far on a question's scale: about a quarter of it; the defaults are for 1 to 5 (PTEB, appendix B)."""

    within: float = 1  #: points by which an answer to a control may be off, or the two answers to a repeat may differ
    apart: float = 1.0  #: sign: ratings that are on average this many points above or below the other raters' mean
    low: float = 2.0  #: pairs with this mean or a lower one are listed for review

    @classmethod
    def of(cls, scale: Sequence[float], within: float | None = None) -> Tolerance:
        """Return the tolerance on a scale; `within` as the rubric sets it."""
        quarter = (scale[-1] - scale[0]) / 4
        usual = cls() if tuple(scale) in PAPERS_SCALES else cls(int(quarter) or quarter, quarter, scale[0] + quarter)
        return usual if within is None else replace(usual, within=within)


@dataclass(frozen=True)
class QualityLimits:
    """Limits for signs of careless answers that a person reviews (PTEB, appendix B)."""

    questions: Mapping[str, Tolerance] = field(default_factory=dict)  #: of ratings, by question; others have no scale
    least_answers: ClassVar[int] = 20  #: pairs that a rater must have rated before signs are looked for
    same_answer: ClassVar[float] = 0.95  #: sign: this share of the pairs has one and the same answer
    words_a_second: ClassVar[float] = 10.0  #: reading speed that nobody exceeds: 600 words a minute
    too_fast: ClassVar[float] = (
        0.25  #: sign: more than this share of the pairs is answered faster than they can be read
    )
    least_rho: ClassVar[float] = 0.1  #: sign: rank correlation with the other raters' mean below this
    attentive: ClassVar[float] = 0.2  #: share of the controls that an attentive rater may miss; more is failing
    failing: ClassVar[float] = 0.1  #: share of its ratings by failing raters above which a verdict waits

    def of(self, question: str) -> Tolerance:
        """Return a question's tolerance; that of 1 to 5 for one without a scale of its own."""
        return self.questions.get(question) or Tolerance()

    def each(self, name: str) -> list[float]:
        """Return the different values of a field of the questions' tolerances, in order."""
        return sorted({getattr(tolerance, name) for tolerance in self.questions.values()} or {getattr(Tolerance, name)})


def undecidable(rule: AcceptanceSpec, raters: RatersSpec, *, crowd: bool) -> Iterator[Contradiction]:
    """Yield why no campaign of this size could meet the rules; `crowd` is whether crowd workers rate."""
    if raters.blocks:
        try:
            rule.refuse_blocks()
        except ValueError as error:
            yield ("raters.blocks", "acceptance.rule", "acceptance.interval"), str(error)
    if raters.blocks and raters.blocks[-1] < rule.min_pairs:
        fault = (
            f"`acceptance.min_pairs: {rule.min_pairs}` is more than the last of `raters.blocks`, {raters.blocks[-1]},"
            " so no verdict could be decided; lower `min_pairs` or raise the last block"
        )
        yield ("raters.blocks", "acceptance.min_pairs"), fault
    if rule.min_raters > raters.per_pair:
        fault = (
            f"`acceptance.min_raters: {rule.min_raters}` is more than `raters.per_pair: {raters.per_pair}`, so no pair"
            " would ever count; lower `min_raters` or raise `per_pair`"
        )
        yield ("acceptance.min_raters", "raters.per_pair"), fault
    if rule.min_ac2 is not None and raters.per_pair < 2:
        fault = "`acceptance.min_ac2` needs two ratings per pair, but `raters.per_pair` is 1; change one of them"
        yield ("acceptance.min_ac2", "raters.per_pair"), fault
    everybody = [*(raters.people or ()), *raters.former, *(rater.name for rater in raters.simulated)]
    if raters.people is not None and not crowd and len(everybody) < rule.min_raters:
        unsaid = "" if "min_raters" in rule.model_fields_set else " (the default, as the study does not set it)"
        fault = (
            f"`acceptance.min_raters: {rule.min_raters}`{unsaid} is more than the number of raters whose answers count,"
            f" {len(everybody)}, so no pair would ever count; add people to `raters.people`, or write"
            f" `acceptance: {{min_raters: {len(everybody)}}}`"
        )
        keys = "raters.people", "raters.former", "raters.simulated", "crowd", "acceptance.min_raters"
        yield keys, fault


#: The questions by key, as sheets and the reference ask them. YES_NO begin with `yes` or `no`, or with `n/a` and why.
QUESTIONS = {
    "committee": "which research ethics committee approved the evaluation, or why none was asked",
    "personal_data": (
        "whether texts or answers contain personal data (GDPR, article 4): no, or yes and how it is handled"
    ),
    "special_category": (
        "whether texts or answers contain data of special categories (GDPR, article 9): no, or yes and how it is"
        " handled"
    ),
    "impact": "which impact assessment was carried out, with its address, or that none was",
    "consent": "how raters consented, and what they were told about the use of their answers",
    "recruitment": "how raters were recruited",
    "payment": "whether raters were paid: no, or yes, how much, and how adequate that is where they live",
    "experts": "whether raters are experts of the domain: no, or yes and of what",
    "acquainted": "whether the authors knew raters before: yes or no",
    "researchers": "whether researchers who run the evaluation are among the raters: yes or no",
    "characteristics": "what is known about raters (places, ages, genders, education, first languages), with numbers",
    "conditions": "where raters work: `own place`, or how conditions are controlled",
}
YES_NO = frozenset({"personal_data", "special_category", "payment", "experts", "acquainted", "researchers"})
_BEGINNINGS = ("yes", "no", "n/a")


def _answers(value: object) -> object:
    """Return the answers. Raises ValueError for an unknown question, and an answer without a required beginning."""
    if not isinstance(value, dict):
        return value
    answers = {}
    for key, answer in value.items():
        if key not in QUESTIONS:
            raise ValueError(f"unknown key {str(key)[:60]!r}; {nearest(str(key), list(QUESTIONS))}")
        answers[key] = {True: "yes", False: "no"}[answer] if isinstance(answer, bool) else answer
        if key in YES_NO and not begins(answers[key]):
            raise ValueError(f"{key}: begin with `yes`, `no` or `n/a`, then add the details")
    return answers


def begins(answer: object) -> str:
    """Return the first word of an answer to one of YES_NO: yes, no or n/a; empty for another beginning.

    >>> begins("No, nobody is named.")
    'no'
    """
    words = str(answer).strip().lower().split(maxsplit=1)
    first = words[0].rstrip(".,;:") if words else ""
    return first if first in _BEGINNINGS else ""


Ethics = Annotated[dict[str, Words], BeforeValidator(_answers)]
