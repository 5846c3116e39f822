"""Planning by simulated campaigns: the pairs and raters that a study needs, their cost, and the certainty they give.

The functions that judge a real campaign judge a simulated one (`plumbline.statistics.group_sequential`,
`annotation.verdicts.rules`), so the plan follows the rules that will apply.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotation.campaign.rubric import Rubric, load_rubric
from annotation.campaign.subjects import read_items
from annotation.crowd import pay
from annotation.questions.summary import MeanOfAnswers
from annotation.sampling.controls import ControlDesign
from annotation.sampling.queues import ends_of
from annotation.statistics.summaries import Design
from annotation.variation import RatingVariation, StudyVariations, latent_mean, rated
from annotation.verdicts.looks import criterion_of
from annotation.verdicts.rules import in_words, outcomes
from generation.datasets.loading import texts_in
from plumbline.errors import PlumblineError
from plumbline.statistics.agreement import Answers
from plumbline.statistics.estimates import Floats, over_pairs_and_raters, stream
from plumbline.statistics.group_sequential import ALPHA, FEWEST, Blocks, first, repeated_interval
from plumbline.statistics.group_sequential import outcomes as decided_at
from plumbline.study import Study
from plumbline.study.campaign import RuleSpec
from plumbline.study.crowd import PaySpec
from plumbline.study.datasets import Text, Texts
from plumbline.study.reach import known_texts, refuse_unreachable, verdict_sizes
from plumbline.study.subject import VerdictUnit

_WIDTHS = 20  # campaigns over whose looks the width is averaged


@dataclass(frozen=True)
class Price:
    """A whole study's number of ratings, hours and dollars."""

    pairs: int  # that are shown, controls and repeats among them; each by every rater of the pair
    ratings: int
    hours: float
    dollars: float


def judged_texts(study: Study, rubric: Rubric) -> tuple[Texts, str]:
    """Return the languages and tasks of the judged texts, and why they came from the study's file alone (empty if not).

    Raises StudyError where a verdict could never be reached.
    """
    why_not = ""
    texts: Texts = {}
    try:
        if study.judging.transforms:
            every = set[Text]().union(*(texts_in(dataset, study.file.parent) for dataset in study.datasets))
            texts = dict.fromkeys(study.kinds, tuple(every))
        elif any(dataset.mteb for dataset in study.datasets) or not study.judging.has_size:
            texts = known_texts(study)
        else:
            by_group = defaultdict[str, set[Text]](set)
            for item in read_items(study, rubric)[0]:
                by_group[item.group].add((item.language, item.task_type))
            texts = by_group
    except PlumblineError as error:
        texts, why_not = known_texts(study), str(error).replace("\n", "; ")
    refuse_unreachable(study, texts, f"{study.file}: ")
    return texts, why_not


@dataclass(frozen=True)
class Pricing:
    """A study's questions and pay, from which prices follow."""

    kinds: Mapping[str, VerdictUnit]
    controls: ControlDesign
    design: Design
    pay: PaySpec

    @classmethod
    def of(cls, study: Study, rubric: Rubric, design: Design) -> Pricing:
        """Return a study's pricing by `crowd.pay`, or by its defaults (HTEB, Ethical Considerations)."""
        return cls(study.kinds, ControlDesign.of(study, rubric), design, study.crowd.pay if study.crowd else PaySpec())

    def offered(self, pairs: int, of_verdict: int) -> int:
        """Return how many of the pairs of each transformation, `of_verdict` for a verdict, come before a last block."""
        last = self.design.blocks[-1] if self.design.blocks else of_verdict
        return math.ceil(pairs * last / of_verdict) if of_verdict > last else pairs

    def price(self, pairs: int, raters: int) -> Price:
        """The cost of `pairs` of each transformation by `raters` for each pair, without a platform's fees.

        Where people turn out to need longer, a bonus makes up the difference. Each batch of a queue brings the controls
        whose answers are known and the repeats, paid like its pairs; a queue in several languages has a few more. A
        rating is one answer to one of the questions that must be answered about the pair.
        """
        n_pairs = Counter(dict.fromkeys(self.kinds, pairs))
        queues: dict[str, list[str]] = {}
        for name, kind in self.kinds.items():
            queues.setdefault(kind.queue or kind.pool, []).append(name)
        for members in queues.values():
            each = self.controls.beside(self.kinds[members[0]].pool)
            n_pairs[members[0]] += self.controls.batches(pairs * len(members)) * each
        names, design = list(n_pairs.elements()), self.design
        hours = raters * pay.assumed_hours(names, self.pay)
        ratings = raters * sum(number * len(design.needed(design.pool_of(name))) for name, number in n_pairs.items())
        return Price(len(names), ratings, hours, raters * pay.reward(names, self.pay) / 100)


PAIRS, RATERS = (30, 50, 100, 200), (2, 3, 5)
SIZES = tuple(itertools.product(PAIRS, RATERS))
COLUMNS = ["rule", "pairs", "raters", "verdict_pairs", "mean", "accepted", "rejected", "undecided", "right", "width"]
COLUMNS += ["used", "ratings", "hours", "dollars"]


@dataclass(frozen=True)
class Outlook:
    """Results of many campaigns of one size by one rule, if the truth is `mean`: shares and averages."""

    pairs: int
    raters: int
    mean: float
    accepted: float
    rejected: float
    undecided: float
    width: float  # of the interval, in points, or as a share; NaN where there is none
    used: float  # pairs complete by the decision; all of them unless the rule stops early

    @classmethod
    def never(cls, size: tuple[int, int], mean: float) -> Outlook:
        """Return the outlook for a size with which nothing is ever decided."""
        return cls(*size, mean, 0.0, 0.0, 1.0, math.nan, float(size[0]))

    def right(self, rule: RuleSpec) -> float:
        """The share of right verdicts: accepted where the truth keeps to the rule's limit, not accepted where not.

        NaN where nothing is ever decided, which is neither right nor wrong.
        """
        if math.isnan(self.width) and self.undecided == 1:
            return math.nan
        keeps = self.mean >= rule.limit if rule.at_least is not None else self.mean <= rule.limit
        return self.accepted if keeps else 1 - self.accepted


def outlook(
    design: Design,
    assumed: RatingVariation,
    size: tuple[int, int],
    mean: float,
    campaigns: int,
    generator: np.random.Generator,
) -> Outlook:
    """Simulate campaigns of `size` (pairs, raters of each pair), whose mean over all pairs and all raters is `mean`.

    The design has one rule: its threshold, or one of `rules` on a mean or on a label's share, which then is `mean`. In
    each campaign pairs and raters are drawn anew. `min_ac2` is left out.
    """
    least = design.rule
    if size[0] < least.min_pairs or size[1] < least.min_raters:
        return Outlook.never(size, mean)
    (judged, *_) = planned_rules(design)
    scale = design.asked(judged.question).judged_scale
    values = simulated(assumed, size, mean, scale, campaigns, generator)
    if design.blocks:
        return _by_blocks(values.mean(axis=2), design, judged, scale, Outlook.never(size, mean))
    decisions = _at_once(values, design, judged, scale)
    accepted, rejected, undecided = (
        float((decisions == name).mean()) for name in ("accepted", "rejected", "undecided")
    )
    few = (MeanOfAnswers(Answers.of_table(table, scale), least.interval).estimate() for table in values[:_WIDTHS])
    widths = [estimate.high - estimate.low for estimate in few if not math.isnan(estimate.low)]
    width = float(np.mean(widths)) if widths else math.nan
    return Outlook(size[0], size[1], mean, accepted, rejected, undecided, width, float(size[0]))


def _at_once(values: Floats, design: Design, rule: RuleSpec, scale: Sequence[float]) -> NDArray[np.str_]:
    """Return each campaign's decision by a single look at all pairs."""
    pairs, value, by_interval = values.mean(axis=2), values.mean(axis=(1, 2)), design.rule.by_interval
    if not by_interval:
        return outcomes(value, value, value, rule, by_interval=False)
    if pairs.shape[1] < FEWEST:
        return np.full(len(pairs), "undecided")
    if scale[0] < rule.limit < scale[-1]:
        looked = decided_at([[pairs]], np.array([ALPHA]), [criterion_of(rule, design)])[:, 0]
        decisions: NDArray[np.str_] = np.array(["undecided", "accepted", "rejected"])[looked]
    else:  # what differs from an end decides about it
        low, high = (np.where(value == rule.limit, end, value) for end in (scale[0], scale[-1]))
        decisions = outcomes(value, low, high, rule, by_interval=True)
    if design.rule.interval == "pairs":
        return decisions
    sums, counts = values.sum(axis=2), np.full(pairs.shape, float(values.shape[2]))
    of_raters = values.sum(axis=1), np.full((len(values), values.shape[2]), float(values.shape[1]))
    both = over_pairs_and_raters(sums, counts, *of_raters)
    low, high = (np.clip(end, scale[0], scale[-1]) for end in (both.low, both.high))
    return np.where(outcomes(value, low, high, rule, by_interval=True) == decisions, decisions, "undecided")


def _by_blocks(pairs: Floats, design: Design, rule: RuleSpec, scale: Sequence[float], never: Outlook) -> Outlook:
    """Return the outlook with looks after the design's blocks.

    The width is that at the last look of the first campaigns.
    """
    ends = ends_of(design.blocks, pairs.shape[1])
    if ends[0] < FEWEST:
        return never
    criterion = criterion_of(rule, design)
    blocks = Blocks(ends, criteria={rule.question: criterion})
    by_look = [[pairs[:, :end]] for end in ends]
    may = np.array(ends) >= design.rule.min_pairs  # a look at fewer pairs decides nothing
    decision, look = first(decided_at(by_look, blocks.levels(len(ends)), [criterion]) * may)
    limits, used = blocks.levels(len(ends)), np.array(ends)[look]
    few = zip(pairs[:_WIDTHS], used, limits[look], strict=False)
    widths = [np.diff(repeated_interval(means[:end], criterion.scale, level))[0] for means, end, level in few]
    accepted, rejected, undecided = (float((decision == number).mean()) for number in (1, -1, 0))
    return replace(
        never, accepted=accepted, rejected=rejected, undecided=undecided,
        width=float(np.mean(widths)), used=float(used.mean()),
    )  # fmt: skip


def simulated(
    assumed: RatingVariation,
    size: tuple[int, int],
    mean: float,
    scale: Sequence[float],
    campaigns: int,
    generator: np.random.Generator,
) -> Floats:
    """Ratings, campaigns by pairs by raters: the pair's quality, the rater's habit and noise, rounded to the scale."""
    pairs, raters = size
    felt = generator.normal(latent_mean(mean, assumed.total, scale), assumed.spread, (campaigns, pairs, 1))
    felt = felt + generator.normal(0, assumed.bias, (campaigns, 1, raters))
    return rated(felt + generator.normal(0, assumed.noise, (campaigns, pairs, raters)), scale)


def plan(
    study: Study,
    sizes: Sequence[tuple[int, int]] = SIZES,
    means: Sequence[float] = (),
    assumed: Mapping[str, float] = MappingProxyType({}),
    campaigns: int = 1000,
    seed: int | None = None,
) -> pd.DataFrame:
    """Simulate campaigns of each size; return how often they decide rightly, and what they cost.

    `sizes` are (pairs of each transformation, raters of each pair), `means` true means to try (of rules on labels true
    shares; each is taken by the rules on whose scale it lies; default: around the limits), `assumed` the standard
    deviations `spread` (of the pairs), `bias` (of the raters' habits) and `noise` (of single ratings), in points of
    the question's scale (default: of the ratings that the study has, or else HTEB's on 1 to 5, in proportion to the
    scale), `campaigns` how many are simulated for
    each row; equal seeds (default: the sample's) give equal numbers, whatever other rows are asked for.
    The frame has a row for each rule, size and mean: rule (in words; one threshold is one rule, for each question),
    pairs, raters, verdict_pairs (of the smallest verdict, as pairs are split over languages by `acceptance.scope`),
    mean (of a rule on a share: the share); of that verdict accepted, rejected, undecided (shares of the campaigns, by
    this rule alone) and right (the share of right verdicts: accepted where the mean keeps to the limit, not accepted
    where it does not; NaN where it has too few pairs or ratings for any); width (of the 95% interval, in points of the
    scale or as a share; NaN where there is none); used (pairs complete by the decision); ratings, hours and dollars (of
    the whole study, without a platform's fees).
    Raises StudyError where a verdict of the study could never be reached, and for a mean
    that ratings on the study's scale cannot have, ValueError for sizes that are none and campaigns below 1.

    Source: the prices are HTEB's (Ethical Considerations); the simulation is ours (docs/method.md).

    >>> from annotation import plan
    >>> from plumbline import load_study
    >>> found = plan(load_study("studies/demo.yaml"), sizes=[(30, 3), (100, 3)], means=[3.4], campaigns=200)
    >>> print(found[["pairs", "raters", "mean", "right", "ratings"]].to_string(index=False))
     pairs  raters  mean  right  ratings
        30       3   3.4  0.955     1572
       100       3   3.4  0.995     5064
    """
    sizes, means = _sizes(sizes), tuple(dict.fromkeys(means))
    if campaigns < 1:
        raise ValueError(f"a plan needs at least 1 campaign, not {campaigns}")
    rubric = load_rubric(study)
    design = Design.of(study, rubric)
    rules, pricing = planned_rules(design), Pricing.of(study, rubric, design)
    variations = StudyVariations(study, design, assumed)
    tried = [_tried(means, design, rule) for rule in rules]
    if beyond := [mean for mean in means if mean not in itertools.chain.from_iterable(tried)]:
        latent_mean(beyond[0], 1.0, design.asked(rules[0].question).judged_scale)  # says why not
    seed = study.sample.seed if seed is None else seed
    texts = judged_texts(study, rubric)[0]
    verdicts = {pairs: verdict_sizes(study, texts, pairs) for pairs, _ in sizes}
    rows = []
    for (rule, of_rule), (pairs, raters) in itertools.product(zip(rules, tried, strict=True), dict.fromkeys(sizes)):
        of_verdict = min(size.pairs for size in verdicts[pairs] if not rule.pools or size.pool in rule.pools)
        cost = pricing.price(pricing.offered(pairs, of_verdict), raters)
        words, in_stream = in_words(rule), [in_words(rule)] if study.acceptance.rules else []
        rule_design = replace(design, rule=design.rule.model_copy(update={"rules": (rule,)})) if in_stream else design
        variation = variations.of(rule.question, rule.label).deviations
        for mean in of_rule:
            generator = stream(seed, "plan", str(pairs), str(raters), f"{mean:g}", *in_stream)
            prospect = outlook(rule_design, variation, (of_verdict, raters), mean, campaigns, generator)
            costs = {"ratings": cost.ratings, "hours": cost.hours, "dollars": cost.dollars}
            size = {"pairs": pairs, "verdict_pairs": of_verdict}
            rows.append({"rule": words, **asdict(prospect), **size, "right": prospect.right(rule), **costs})
    return pd.DataFrame(rows, columns=COLUMNS)


def planned_rules(design: Design) -> Sequence[RuleSpec]:
    """The rules that a plan is about: a study's own, or its one threshold."""
    if design.rule.rules:
        return design.rule.rules
    name = design.rated[0]
    return design.asked(name).threshold_rules(name, design.rule)


def _sizes(sizes: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The sizes. Raises ValueError for one that is not two whole numbers from 1 on."""
    pairs_and_raters = list(sizes)
    for size in pairs_and_raters:
        if np.shape(size) != (2,) or not all(isinstance(number, int | np.integer) and number > 0 for number in size):
            raise ValueError(
                f"a size is (pairs of each transformation, raters of each pair), each 1 or more, not {size!r}"
            )
    return [(int(pairs), int(raters)) for pairs, raters in pairs_and_raters]


def _tried(means: Sequence[float], design: Design, rule: RuleSpec) -> list[float]:
    """Return the means to try for a rule: those on its scale, or else those around its limit."""
    question = design.asked(rule.question)
    low, *_, high = question.judged_scale
    step = max(int((high - low) / 4), 1)  # on a wide scale the usual ones would all be alike
    near = [round(rule.limit + step * away, 10) for away in question.away]
    return [mean for mean in means if low < mean < high] or [mean for mean in near if low < mean < high]
