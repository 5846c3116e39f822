"""Records of a campaign's conclusions: summaries of ratings, verdicts, means of pairs (`agreement.json` and others)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import AwareDatetime, Field

from annotation.questions.summary import Chance, Summary
from plumbline.records import Number, Record
from plumbline.study.campaign import RuleSpec
from plumbline.study.subject import Subject
from plumbline.words import count

Outcome = Literal["accepted", "rejected", "undecided"]
NO_REASON = '"no reason was given"'  # for a proposed command: the reason until a person writes another
Fixed = Literal["", "late", "unknown"]  # whether rules were fixed after the first rating; empty: before it


class Group(Record):
    """One row of Table 2: a pool of transformations, an axis, a language, or all (`agreement.json`)."""

    level: Literal["pool", "axis", "language", "overall"] = Field(description="kind of group that the row summarises")
    name: str = Field(description="the pool, the axis, the language of the originals, or 'overall'")
    axis: str = Field(description="the axis that it belongs to; empty for a language and 'overall'")
    transformations: tuple[str, ...] = Field(description="the transformations whose ratings the row includes")
    simulated: bool = Field(description="true if any of its ratings is simulated")
    questions: tuple[Summary, ...] = Field(description="one summary for each question")


#: The definition of P in tables, reports, pages and documents.
P_IS = (
    "P is 1 minus the p-value of the hypothesis that the mean, or share, misses its limit. A P of 0.975 or more is"
    " evidence that it meets the limit, a P of 0.025 or less that it misses it. Of several rules it is the lowest P."
)


class BlockLook(Record):
    """Values at a look after a block of pairs: of one rule, or of the difference of two systems on one question."""

    look: int = Field(description="number of the block after which the rule looked, from 1")
    pairs: int = Field(description="pairs that counted")
    level: Number = Field(description="one-sided level of the look")
    question: str = Field(description="name of the question")
    label: str = Field(default="", description="the label whose share is computed; empty for a mean")
    mean: Number = Field(description="mean of the pairs' means, or shares; or the first system's less the other's")
    low: Number = Field(description="lower end of the interval that is valid at all looks together")
    high: Number = Field(description="upper end of the interval that is valid at all looks together")
    above: Number = Field(description="p-value of the hypothesis that the mean is at most the limit")
    below: Number = Field(description="p-value of the hypothesis that the mean is at least the limit")
    limit: Number = Field(description="the limit that an end of the interval must meet")


class TakenLook(Record):
    """A look after a block (`block_looks.json`), which later changes of ratings do not repeat."""

    group: tuple[str, ...] = Field(
        description="the verdict's pool, language and task, as far as the scope separates them; for two systems their"
        " queue, their names, and the language"
    )
    look: int = Field(description="number of the block after which the rule looked, from 1")
    at: AwareDatetime = Field(description="time of the look, UTC")
    rule_id: str = Field(description="hash of the rule that the look followed")
    values: tuple[BlockLook, ...] = Field(
        description="the values of each rule, in the rules' order; for two systems of each question"
    )
    decision: Outcome = Field(description="the decision at the look; for two systems undecided")


class Supply(Record):
    """The outputs from which a transformation's sample in one language was drawn (`sample.json`)."""

    KEY = ("transformation", "language")
    transformation: str = Field(description="name of the transformation")
    language: str = Field(description="language of the originals")
    ok: int = Field(description="outputs that could be drawn")
    failed: int = Field(description="outputs with a serious error, which nobody rates")
    unanswered: int = Field(description="outputs that have not been generated yet")
    flagged: dict[str, int] = Field(
        default_factory=dict, description="usable outputs with each error type, including those kept out"
    )
    without: tuple[str, ...] = Field(default=(), description="error types that keep an output out (`sample.without`)")
    kept_out: int = Field(default=0, description="usable outputs that these error types kept out")
    known: int = Field(default=0, description="texts that are also known items, which the sample leaves out")
    outputs: dict[str, dict[int, str]] = Field(
        default={}, description="hash of the outputs that could be drawn, by data set and seed"
    )

    @property
    def failed_share(self) -> float:
        """Of all generated outputs; NaN without any."""
        decided = self.ok + self.kept_out + self.failed
        return self.failed / decided if decided else math.nan

    @property
    def kept_out_share(self) -> float:
        """Of the usable outputs."""
        return self.kept_out / (self.ok + self.kept_out) if self.kept_out else 0.0

    def lines(self, judging: Subject) -> Iterator[str]:
        """Yield lines on what was left out of the sample because nobody can rate it, or because it is a known item."""
        group = f"{self.transformation}, {self.language}"
        if self.failed:
            failed = judging.failed.replace(" that", "")
            yield f"{group}: {self.failed_share:.1%} of the {failed} and are rated by nobody"
        if self.known:
            also = "is also a known item, and is" if self.known == 1 else "are also known items, and are"
            yield f"{group}: {count(self.known, judging.names.item)} {also} not in the sample"


class RuleResult(Record):
    """The rule of a verdict, and what it found."""

    rule: Literal["mean", "lower_bound"] = Field(
        default="mean", description="what must meet the limits: the mean or share, or the nearer end of its interval"
    )
    threshold: Number = Field(description="the least mean that is accepted; NaN if `rules` decide instead")
    rules: tuple[RuleSpec, ...] = Field(
        default=(), description="the rules that decided; empty if one threshold decided"
    )
    scope: Literal["transformation", "language", "task"] = Field(
        default="language", description="what one verdict is for (`acceptance.scope`)"
    )
    probabilities: tuple[Chance, ...] = Field(default=(), description="P of each of `rules`, in their order")
    blocks: tuple[int, ...] = Field(
        default=(), description="for a rule by blocks: number of pairs after each block, including withdrawn pairs"
    )
    looks: tuple[BlockLook, ...] = Field(
        default=(), description="for a rule by blocks: the looks so far, up to the one that decided"
    )


class Review(Record):
    """What people's review of raters and pairs changes in a verdict."""

    n_excluded: int = Field(default=0, description="ratings that quality control excluded, over all questions")
    with_excluded: Outcome | None = Field(
        default=None, description="the decision if excluded ratings counted; none if nothing was excluded"
    )
    n_withdrawn: int = Field(
        default=0, description="pairs that people withdrew from the sample, which count in no number"
    )
    with_withdrawn: Outcome | None = Field(
        default=None,
        description="the decision if withdrawn pairs with ratings had stayed; none if no withdrawn pair was rated",
    )
    checked: bool = Field(
        default=False, description="whether the verdict waits for a review of raters who fail the checks"
    )
    unchecked: Outcome | None = Field(
        default=None, description="the rule's decision, if the verdict waits for a review of its raters; else none"
    )
    to_look_at: tuple[str, ...] = Field(
        default=(), description="pseudonyms of the raters whose review the verdict waits for"
    )


class Origin(Record):
    """What made the rated texts."""

    model: str = Field(description="the generator's model")
    generator_kind: str = Field(default="", description="the generator's kind, such as recorded, function or outputs")
    generator_hash: str = Field(description="hash of model, revision and sampling")
    prompt_hash: str = Field(description="hash of the prompts' texts")


class Verdict(Record):
    """The verdict on a transformation in a language, and its basis (`verdicts.json`)."""

    transformation: str = Field(description="name of the transformation")
    axis: str = Field(description="axis of the transformation")
    pool: str = Field(description="the pool whose ratings decide; translation and cross_translation share one")
    language: str = Field(description="language of the originals that were rated")
    output_languages: tuple[str, ...] = Field(description="languages of the transformed texts that were rated")
    task_type: str = Field(default="", description="task of the originals; empty where the verdict is for all tasks")
    decision: Outcome = Field(description="the decision; only accepted transformations are evaluated")
    reasons: tuple[str, ...] = Field(description="the reasons for the decision, one line each")
    n_pairs: int = Field(description="pairs that count; every number of the verdict is computed from them")
    pooled: dict[str, int] = Field(
        default={},
        description="of these pairs those of each transformation of the pool; empty if the pool has only one",
    )
    waves: tuple[int, ...] = Field(
        default=(1,), description="waves of the sample that these pairs belong to; without such pairs, all drawn waves"
    )
    questions: tuple[Summary, ...] = Field(description="one summary for each question")
    result: RuleResult = Field(description="the rule, and what it found")
    review: Review = Field(default=Review(), description="what people's review of raters and pairs changes")
    supply: Supply | None = Field(
        default=None, description="the outputs that the sample was drawn from: no others are evaluated; none if unknown"
    )
    origin: Origin = Field(description="what made the rated texts")
    simulated: bool = Field(description="true if any of the ratings is simulated")
    rules_fixed: Fixed = Field(
        default="",
        description="late: the rules were fixed after the first rating; unknown: imported ratings have no times; empty:"
        " the rules were fixed before the first rating",
    )

    @property
    def n_ratings(self) -> int:
        """The ratings that count, over all questions."""
        return sum(summary.n_ratings for summary in self.questions)

    @property
    def failed_share(self) -> float:
        """The share of outputs that failed and could not be sampled; NaN if unknown."""
        return self.supply.failed_share if self.supply else math.nan

    @property
    def without(self) -> tuple[str, ...]:
        """The error types whose outputs were kept out of the sample: the verdict does not cover them."""
        return self.supply.without if self.supply else ()

    @property
    def probability(self) -> float:
        """The verdict's P (`P_IS`); NaN if a rule's P is NaN."""
        values = [chance.probability for chance in self.result.probabilities]
        values = values or [summary.probability for summary in self.questions if summary.kind == "rating"]
        if not values or any(map(math.isnan, values)):
            return math.nan
        return min(values)

    @property
    def by_rule(self) -> Outcome:
        """The rule's decision before raters are checked."""
        return self.review.unchecked or self.decision

    def reviewed(self, **changes: Any) -> Verdict:
        """Return the verdict with these fields of its review."""
        return self.model_copy(update={"review": self.review.model_copy(update=changes)})

    @property
    def unit(self) -> tuple[str, str, str]:
        """Its transformation, language and task."""
        return self.transformation, self.language, self.task_type


class PairMean(Record):
    """One pair's own mean on one question (`pair_means.parquet`), to score accepted pairs alone."""

    KEY = ("pair_id", "question")
    pair_id: str = Field(description="id of the pair")
    transformation: str = Field(description="transformation of the pair")
    language: str = Field(description="language of the pair's original")
    question: str = Field(description="name of the question, such as quality or fluency")
    n_ratings: int = Field(description="the pair's ratings that count")
    mean: float = Field(description="mean of these ratings; NaN for labels")
    decision: Outcome = Field(
        description="whether the mean reaches the threshold; undecided with too few raters. With `acceptance.rules`,"
        " whether the pair's own ratings meet the rules"
    )


class Sign(Record):
    """A sign of a rater's careless answers (`annotation.ratings.signs`); it decides nothing."""

    rater_id: str = Field(description="pseudonym")
    rule: str = Field(description="the study's rule that raised the sign")
    evidence: str = Field(description="the finding, in one line")
    n: int = Field(description="number of answers, pairs or comments that the rule checked")


class Decision(Record):
    """A person's decision about a rater or a pair (`decisions.json`); later ones override earlier ones."""

    rater_id: str = Field(description="pseudonym of the rater; empty for a decision about a pair")
    pair_id: str = Field(
        default="", description="id of the pair that is withdrawn or restored; empty for a decision about a rater"
    )
    exclude: bool = Field(description="whether the rater's answers, or those to the pair, stop counting")
    reason: str = Field(description="the reason, in the person's words")
    decided_at: AwareDatetime = Field(description="time of the decision, UTC")
    signs: tuple[str, ...] = Field(description="the signs at that time: each rule, with its evidence")
    answers_hash: str = Field(default="", description="hash of the rater's answers until then; empty without any")


class OfferedAgain(Record):
    """An answer of an excluded rater whose pair was offered again (`offered_again.json`); the answer stays."""

    rater_id: str = Field(description="pseudonym")
    pair_id: str = Field(description="id of the pair")
    at: AwareDatetime = Field(description="time when the pair was offered again, UTC")


class RuleSet(Record):
    """The rules that a study's ratings are judged by, as they were fixed (`rules.json`; `preregistration.binding`)."""

    fixed_at: AwareDatetime = Field(description="time when the rules were fixed, UTC")
    rules: dict[str, Any] = Field(
        description="the study's acceptance, quality, raters.per_pair and raters.blocks, and its whole rubric"
    )
    reason: str = Field(default="", description="the reason for a change after the first rating")


class Offering(Record):
    """One time that the sample began to be offered to raters (`offered.json`), noted before the first request."""

    at: AwareDatetime = Field(description="time of the offer, UTC")
    to: str = Field(description="place of the offer: argilla, or mode and platform of a crowd, such as live mturk")
    pairs_sha256: str = Field(description="hash of pairs.parquet")
    controls_sha256: str = Field(description="hash of controls.parquet; empty if there was none")
    rubric_hash: str = Field(description="hash of the rubric that raters saw")


class Wave(Record):
    """An extension of a sample that raters may have seen (`waves.json`); wave 1 is the sample as first drawn."""

    number: int = Field(description="number of the wave, as in `Pair.wave`; the first extension is wave 2")
    at: AwareDatetime = Field(description="time of the extension, UTC")
    reason: str = Field(description="the reason, in the person's words")
    pairs: int = Field(description="number of pairs that the wave added to the sample")
    settings: dict[str, Any] = Field(description="the sample settings of the study at that time")
    pairs_before: str = Field(description="hash of pairs.parquet before the extension")
    pairs_sha256: str = Field(description="hash of pairs.parquet with the wave")
    controls_before: str = Field(description="hash of controls.parquet before the extension; empty if there was none")
    controls_sha256: str = Field(description="hash of controls.parquet with the wave's own controls")


class Member(Record):
    """An annotator of a dataset when answers were last collected (`members.json`)."""

    KEY = ("rater_id", "dataset")
    rater_id: str = Field(description="pseudonym")
    dataset: str = Field(description="the dataset's name in Argilla")
    simulated: bool = Field(description="true for a simulated rater")


class Look(Record):
    """One time that verdicts were reached (`looks.json`): results had been seen from then on."""

    at: AwareDatetime = Field(description="time of the verdicts, UTC")
    n_ratings: int = Field(description="ratings that counted, over all questions")
    rests_on: dict[str, str] = Field(
        description="hashes of what the verdicts rested on, by name, such as pairs.parquet or rubric"
    )
    decisions: dict[str, int] = Field(description="number of accepted, rejected and undecided verdicts")
