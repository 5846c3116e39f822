"""Planning by simulated campaigns: the pairs and raters that a study needs, their cost, and the certainty they give.

The functions that judge a real campaign judge a simulated one (`plumbline.statistics.group_sequential`,
`annotation.verdicts.rules`), so the plan follows the rules that will apply.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotation.campaign.rubric import load_rubric
from annotation.crowd.tally import Tally, counted
from annotation.questions.summary import MeanOfAnswers
from annotation.sampling.expected import ExpectedSample
from annotation.sampling.queues import ends_of
from annotation.sampling.sample import SampleDrawing
from annotation.statistics.summaries import Design
from annotation.variation import RatingVariation, StudyVariations, latent_mean, rated
from annotation.verdicts.looks import criterion_of
from annotation.verdicts.rules import in_words, outcomes
from plumbline.importing import scipy
from plumbline.statistics.agreement import Answers
from plumbline.statistics.estimates import Floats, over_pairs, over_pairs_and_raters, stream
from plumbline.statistics.group_sequential import ALPHA, FEWEST, Blocks, first, repeated_interval
from plumbline.statistics.group_sequential import outcomes as decided_at
from plumbline.study import Study
from plumbline.study.campaign import RuleSpec
from plumbline.study.reach import refuse_unreachable, verdict_sizes

_WIDTHS = 20  # campaigns whose own intervals correct the mean width of quick ones

PAIRS, RATERS = (30, 50, 100, 200), (2, 3, 5)
SIZES = tuple(itertools.product(PAIRS, RATERS))
COLUMNS = ["rule", "pairs", "raters", "verdict_pairs", "mean", "accepted", "rejected", "undecided", "right", "width"]
COLUMNS += ["used", "answers", "ratings", "hours", "dollars"]


@dataclass(frozen=True)
class Outlook:
    """Results of many campaigns of one size by one rule, if the truth is `mean`: shares and averages."""

    pairs: int
    raters: int
    mean: float
    accepted: float
    rejected: float
    undecided: float
    width: float  # of the interval, the mean over campaigns, in points, or as a share; NaN where there is none
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
        return _by_blocks(values.mean(axis=2), design, judged, Outlook.never(size, mean))
    decisions = _at_once(values, design, judged, scale)
    accepted, rejected, undecided = (
        float((decisions == name).mean()) for name in ("accepted", "rejected", "undecided")
    )
    width = _width(simulated(assumed, size, mean, scale, campaigns, generator, even=True), scale, least.interval)
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
    low, high = _t_interval(values, scale, design.rule.interval)
    return np.where(outcomes(value, low, high, rule, by_interval=True) == decisions, decisions, "undecided")


def _t_interval(values: Floats, scale: Sequence[float], interval: str) -> tuple[Floats, Floats]:
    """Return both ends of each campaign's t interval, over pairs or with raters as a sample too."""
    sums, counts = values.sum(axis=2), np.full(values.shape[:2], float(values.shape[2]))
    of_raters = values.sum(axis=1), np.full(values.shape[::2], float(values.shape[1]))
    mean = over_pairs(sums, counts) if interval == "pairs" else over_pairs_and_raters(sums, counts, *of_raters)
    low, high = (np.clip(end, scale[0], scale[-1]) for end in (mean.low, mean.high))
    return low, high


def _width(values: Floats, scale: Sequence[float], interval: str) -> float:
    """Return the mean width of campaigns' intervals: of all t intervals, corrected by the first campaigns' own."""
    low, high = _t_interval(values, scale, interval)
    exact = [MeanOfAnswers(Answers.of_table(table, scale), interval).estimate() for table in values[:_WIDTHS]]
    return _corrected(high - low, [estimate.high - estimate.low for estimate in exact])


def _corrected(quick: Floats, exact: Sequence[float]) -> float:
    """Return the mean of quick numbers, corrected by the first campaigns' exact ones, without NaN (no interval)."""
    return float(pd.Series(quick).mean() + pd.Series(exact - quick[: len(exact)]).mean())


def _by_blocks(pairs: Floats, design: Design, rule: RuleSpec, never: Outlook) -> Outlook:
    """Return the outlook with looks after the design's blocks; the width is that at a campaign's last look."""
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
    spreads = np.array([means[:end].std() / math.sqrt(end) for means, end in zip(pairs, used, strict=True)])
    quick = 2 * spreads * -scipy.special.ndtri(limits[look])
    accepted, rejected, undecided = (float((decision == number).mean()) for number in (1, -1, 0))
    return replace(
        never, accepted=accepted, rejected=rejected, undecided=undecided,
        width=_corrected(quick, widths), used=float(used.mean()),
    )  # fmt: skip


def simulated(  # noqa: PLR0913 (a campaign's size, truth and assumptions)
    assumed: RatingVariation,
    size: tuple[int, int],
    mean: float,
    scale: Sequence[float],
    campaigns: int,
    generator: np.random.Generator,
    *,
    even: bool = False,
) -> Floats:
    """Ratings, campaigns by pairs by raters: the pair's quality, the rater's habit and noise, rounded to the scale.

    With `even`, what raters' habits differ by takes each quantile once, and averages need far fewer campaigns.
    """
    pairs, raters = size
    felt = generator.normal(latent_mean(mean, assumed.total, scale), assumed.spread, (campaigns, pairs, 1))
    if even:
        order = generator.random((campaigns, raters)).argsort(axis=0)
        contrasts, _ = np.linalg.qr(np.column_stack([np.ones(raters), np.eye(raters)[:, 1:]]))
        habits = scipy.special.ndtri((order + 0.5) / campaigns) @ contrasts.T
        felt = felt + assumed.bias * habits[:, None, :]
    else:
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
    scale; for shares of labels only all three together count, by their proportions), `campaigns` how many are simulated
    for each row; equal seeds (default: the sample's) give equal numbers, whatever other rows are asked for.
    The frame has a row for each rule, size and mean: rule (in words; one threshold is one rule, for each question),
    pairs, raters, verdict_pairs (of the smallest verdict, as pairs are split over languages by `acceptance.scope`),
    mean (of a rule on a share: the share); of that verdict accepted, rejected, undecided (shares of the campaigns, by
    this rule alone) and right (the share of right verdicts: accepted where the mean keeps to the limit, not accepted
    where it does not; NaN where it has too few pairs or ratings for any); width (of the 95% interval,
    the mean over campaigns, in points of the scale or as a share; NaN where there is none); used (pairs
    complete by the decision); answers, ratings, hours and
    dollars (of the whole study, controls and repeats included, with a crowd platform's fees and without bonuses; an
    answer is one rater's to one pair, a rating that to one required question; more pairs than the texts give are those
    of further texts).
    Raises StudyError where a verdict of the study could never be reached, and for a mean
    that ratings on the study's scale cannot have, ValueError for sizes that are none and campaigns below 1.

    Source: the prices are HTEB's (Ethical Considerations); the simulation is ours (docs/method.md).

    >>> from annotation import plan
    >>> from plumbline import load_study
    >>> found = plan(load_study("studies/demo.yaml"), sizes=[(30, 3), (100, 3)], means=[3.4], campaigns=200)
    >>> print(found[["pairs", "raters", "mean", "right", "answers"]].to_string(index=False))
     pairs  raters  mean  right  answers
        30       3   3.4  0.955      804
       100       3   3.4  0.995     2550
    """
    return planned(ExpectedSample.of(study, load_rubric(study)), sizes, means, assumed, campaigns, seed)[0]


def planned(
    expected: ExpectedSample,
    sizes: Sequence[tuple[int, int]],
    means: Sequence[float],
    assumed: Mapping[str, float],
    campaigns: int,
    seed: int | None,
) -> tuple[pd.DataFrame, Tally, int]:
    """Return `plan` of a study whose texts are read, what its own size asks for, and the most pairs that texts give.

    Raises as `plan`.
    """
    sizes, means, study = _sizes(sizes), tuple(dict.fromkeys(means)), expected.study
    if campaigns < 1:
        raise ValueError(f"a plan needs at least 1 campaign, not {campaigns}")
    design = Design.of(study, expected.rubric)
    rules, variations = planned_rules(design), StudyVariations(study, design, assumed)
    tried = [_tried(means, design, rule) for rule in rules]
    if beyond := [mean for mean in means if mean not in itertools.chain.from_iterable(tried)]:
        latent_mean(beyond[0], 1.0, design.asked(rules[0].question).judged_scale)  # says why not
    seed = study.sample.seed if seed is None else seed
    refuse_unreachable(study, expected.texts, f"{study.file}: ")
    verdicts = {pairs: verdict_sizes(study, expected.texts, pairs) for pairs, _ in sizes}
    asked_by_size, there_are = tallies(expected, sizes)
    rows = []
    for (rule, of_rule), (pairs, raters) in itertools.product(zip(rules, tried, strict=True), dict.fromkeys(sizes)):
        of_verdict = min(size.pairs for size in verdicts[pairs] if not rule.pools or size.pool in rule.pools)
        words, in_stream = in_words(rule), [in_words(rule)] if study.acceptance.rules else []
        rule_design = replace(design, rule=design.rule.model_copy(update={"rules": (rule,)})) if in_stream else design
        variation = variations.of(rule.question, rule.label).deviations
        for mean in of_rule:
            generator = stream(seed, "plan", str(pairs), str(raters), f"{mean:g}", *in_stream)
            prospect = outlook(rule_design, variation, (of_verdict, raters), mean, campaigns, generator)
            tally = asked_by_size[pairs, raters]
            costs: dict[str, float] = {"answers": tally.answers, "ratings": tally.ratings}
            costs |= {"hours": tally.hours, "dollars": tally.cost / 100}
            size = {"pairs": pairs, "verdict_pairs": of_verdict}
            rows.append({"rule": words, **asdict(prospect), **size, "right": prospect.right(rule), **costs})
    of_study = _asked(expected, expected.draw(study.sample.pairs), study.raters.per_pair)
    return pd.DataFrame(rows, columns=COLUMNS), of_study, there_are


def tallies(expected: ExpectedSample, sizes: Sequence[tuple[int, int]]) -> tuple[dict[tuple[int, int], Tally], int]:
    """Return what samples of these sizes (pairs of each transformation, raters of each pair) ask of people.

    Where the texts give fewer pairs, further ones are supposed. Returns also how many pairs the texts give, of the
    transformation with the fewest, for the largest of the sizes.
    """
    by_size, there_are = dict[tuple[int, int], Tally](), 0
    for pairs in dict.fromkeys(pairs for pairs, _ in sizes):
        drawn = expected.draw(pairs)
        numbers = Counter(pair.transformation for pair in drawn.pairs)
        there_are = max(there_are, fewest := min(numbers[name] for name in expected.study.kinds))
        if fewest < pairs:
            drawn = expected.with_further_texts.draw(pairs)
        by_size |= {(n, raters): _asked(expected, drawn, raters) for n, raters in sizes if n == pairs}
    return by_size, there_are


def _asked(expected: ExpectedSample, drawn: SampleDrawing, raters: int) -> Tally:
    return counted(expected.study, expected.rubric, [*drawn.pairs, *drawn.controls], raters=raters)


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
