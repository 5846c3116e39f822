"""How many pairs and raters a study needs, what they cost, and how sure it will be: simulated campaigns.

A made-up campaign is judged by the very functions that judge a real one (`annotation.statistics.intervals`,
`annotation.verdicts.rules`), so that what is planned is what will be done.
"""

from __future__ import annotations

import argparse
import contextlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats

from annotation.crowd import pay
from annotation.rubric import load_rubric
from annotation.sampling.controls import number_of_batches
from annotation.statistics.intervals import (
    Floats,
    confidence_sequence,
    holding,
    log_wealth,
    needed_wealth,
    over_pairs,
    over_pairs_and_raters,
)
from annotation.statistics.summaries import POOLS, Design
from annotation.verdicts.rules import outcomes
from plumbline import cli
from plumbline.errors import StudyError
from plumbline.study import Study
from plumbline.study.campaign import AcceptanceSpec
from plumbline.study.crowd import PaySpec

PAIRS, RATERS = (30, 50, 100, 200), (2, 3, 5)
AWAY = (-0.5, -0.25, 0.0, 0.25, 0.5)  # true means to try, from the threshold


@dataclass(frozen=True)
class Assumed:
    """How ratings vary, as standard deviations in points of the scale before they are rounded to it.

    At a mean of 4.09 these give the standard deviation (1.04) and the AC2 (0.69; there 0.68) of HTEB's Table 2, quality
    overall; how much of it is the raters' bias the paper does not say.
    """

    spread: float = 0.8  # of the pairs' true quality
    bias: float = 0.25  # of the raters' habits
    noise: float = 1.1  # of single ratings

    @property
    def total(self) -> float:
        """Of a rating of any pair by any rater."""
        return math.sqrt(self.spread**2 + self.bias**2 + self.noise**2)


@dataclass(frozen=True)
class Outlook:
    """What campaigns of one size conclude on one question, if its true mean is `mean`: shares and averages of many."""

    pairs: int
    raters: int
    mean: float
    accepted: float
    rejected: float
    undecided: float
    width: float  # of the interval, in points; NaN where there is none
    used: float  # pairs complete by the decision; all of them unless the rule stops early

    def right(self, threshold: float) -> float:
        """The share of right verdicts: accepted at a true mean of at least the threshold, not accepted below."""
        return self.accepted if self.mean >= threshold else 1 - self.accepted


@dataclass(frozen=True)
class Price:
    """What a whole study asks of its raters."""

    pairs: int  # that are shown, controls and repeats among them; each by every rater of the pair
    ratings: int
    hours: float
    dollars: float


def outlook(
    design: Design, assumed: Assumed, size: tuple[int, int], mean: float, campaigns: int, generator: np.random.Generator
) -> Outlook:
    """Simulate campaigns of `size` (pairs, raters of each pair), whose mean over all pairs and all raters is `mean`.

    In each campaign pairs and raters are drawn anew. `min_ac2` is left out.
    """
    values = simulated(assumed, size, mean, design.scale, campaigns, generator)
    low, high, used = _ends(values, design, generator)
    decisions = outcomes(values.mean(axis=(1, 2)), low, high, design.rule)
    rule = design.rule
    if size[0] < rule.min_pairs or size[1] < rule.min_raters or size[0] * size[1] < rule.min_ratings:
        decisions = np.full(campaigns, "undecided")
    shares = [float((decisions == name).mean()) for name in ("accepted", "rejected", "undecided")]
    known = ~np.isnan(high - low)
    width = float((high - low)[known].mean()) if known.any() else math.nan
    accepted, rejected, undecided = shares
    return Outlook(size[0], size[1], mean, accepted, rejected, undecided, width, float(used.mean()))


def _ends(values: Floats, design: Design, generator: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """(lower ends, upper ends, pairs used) of the rule's interval, a campaign each.

    By `anytime` the pairs stand in the order of the sequence, and become complete in another one that has nothing to do
    with it, as those of raters with shuffles of their own do: so many are complete when all that decide are.
    """
    sums, counts = values.sum(axis=2), np.full(values.shape[:2], float(values.shape[2]))
    every = np.full(len(values), float(values.shape[1]))
    if design.rule.stop == "anytime":
        bottom, top = design.scale[0], design.scale[-1]
        means = sums / counts
        low, high = holding(confidence_sequence(means, (bottom, top)), means.mean(axis=1))
        shares, limit = (means - bottom) / (top - bottom), (design.rule.threshold - bottom) / (top - bottom)
        decided = np.maximum(log_wealth(shares, limit), log_wealth(1 - shares, 1 - limit)) >= needed_wealth()
        first = np.where(decided.any(axis=1), decided.argmax(axis=1) + 1, len(means.T))
        needed = np.minimum(np.maximum(first, design.rule.min_pairs), len(means.T))
        finished = generator.permuted(np.tile(np.arange(1.0, len(means.T) + 1), (len(means), 1)), axis=1)
        return low, high, np.maximum.accumulate(finished, axis=1)[np.arange(len(means)), needed - 1]
    if design.rule.interval == "pairs":
        found = over_pairs(sums, counts)
    else:
        found = over_pairs_and_raters(sums, counts, values.sum(axis=1), counts.sum(axis=1)[:, None] / values.shape[2:])
    return found.low, found.high, every


def simulated(
    assumed: Assumed,
    size: tuple[int, int],
    mean: float,
    scale: Sequence[int],
    campaigns: int,
    generator: np.random.Generator,
) -> Floats:
    """Ratings, campaigns by pairs by raters: the pair's quality, the rater's habit and noise, rounded to the scale."""
    pairs, raters = size
    felt = generator.normal(latent_mean(mean, assumed.total, scale), assumed.spread, (campaigns, pairs, 1))
    felt = felt + generator.normal(0, assumed.bias, (campaigns, 1, raters))
    felt = felt + generator.normal(0, assumed.noise, (campaigns, pairs, raters))
    return np.clip(np.round(felt), scale[0], scale[-1])


def rated_mean(latent: float, deviation: float, scale: Sequence[int]) -> float:
    """The mean of normal values that were rounded to whole points and kept on the scale."""
    steps = np.arange(scale[0], scale[-1])  # a rating is the lowest point plus the steps that the value is above
    return float(scale[0] + stats.norm.cdf((latent - steps - 0.5) / deviation).sum())


def latent_mean(mean: float, deviation: float, scale: Sequence[int]) -> float:
    """The inverse of `rated_mean`. Raises StudyError for a mean that ratings on the scale cannot have."""
    if deviation <= 0 or not scale[0] < mean < scale[-1]:
        raise StudyError(f"ratings that vary cannot have a mean of {mean:g} on a scale from {scale[0]} to {scale[-1]}")
    reach = 20 * deviation
    return float(optimize.brentq(lambda m: rated_mean(m, deviation, scale) - mean, scale[0] - reach, scale[-1] + reach))


def price(study: Study, questions: int, size: tuple[int, int]) -> Price:
    """The cost of a study with `size` (pairs of each transformation, raters of each pair), without a platform's fees.

    Paid as `crowd.pay` says, or by its defaults (HTEB, Ethical Considerations) where the study asks no crowd; where
    people turn out to need longer, a bonus makes up the difference. Each batch of a pool brings the study's controls
    and repeats, paid like its pairs; a pool in several languages has a few more.
    """
    pairs, raters = size
    controls, pools = study.sample.controls, Counter(POOLS[name] for name in study.transformations)
    beside = controls.positive + controls.negative + study.sample.repeats
    shown = Counter(dict.fromkeys(study.transformations, pairs))
    for pool, members in pools.items():
        first = next(name for name in study.transformations if POOLS[name] == pool)
        shown[first] += number_of_batches(study, pairs * members) * beside
    names, spec = list(shown.elements()), pay_of(study)
    hours = raters * pay.assumed_hours(names, spec)
    return Price(len(names), len(names) * raters * questions, hours, raters * pay.reward(names, spec) / 100)


def pay_of(study: Study) -> PaySpec:
    """What the study's raters are paid."""
    return study.crowd.pay if study.crowd else PaySpec()


def plan(study: Study, options: argparse.Namespace) -> str:
    """What `python -m annotation plan` prints: assumptions, a row for each size, and how to read it."""
    design = Design.of(study, load_rubric(study))
    rule, assumed = design.rule, Assumed(options.spread, options.bias, options.noise)
    low, high = design.scale[0], design.scale[-1]
    means = options.means or [mean for away in AWAY if low < (mean := rule.threshold + away) < high]
    sizes = [(pairs, raters) for pairs in options.pairs for raters in options.raters]
    seed = study.sample.seed if options.seed is None else options.seed
    generator = np.random.default_rng(seed)
    found = [outlook(design, assumed, size, mean, options.campaigns, generator) for size in sizes for mean in means]
    prices = [price(study, len(design.questions), size) for size in sizes]
    parts = [rule.rule, f"interval {rule.interval}", f"stop {rule.stop}", f"threshold {rule.threshold:g}"]
    return "\n".join(
        [
            f"Plan of study {study.name}: rule {', '.join(parts)}",
            f"{options.campaigns} simulated campaigns for each size and true mean, seed {seed}",
            f"Assumed standard deviations, in points: pairs {assumed.spread:g}, raters' bias {assumed.bias:g},"
            f" noise {assumed.noise:g}",
            "",
            plan_text(found, prices, design),
            "",
            *_notes(rule, means, study),
        ]
    )


def _notes(rule: AcceptanceSpec, means: Sequence[float], study: Study) -> list[str]:
    border = f" At {rule.threshold:g} itself: the share accepted." if rule.threshold in means else ""
    paid = pay_of(study)
    longer = ", ".join(f"{share:.0%} more for {name.replace('_', ' ')}" for name, share in paid.extra.items() if share)
    used = "Pairs used: complete when the rule decides, where raters have orders of their own, as here they have."
    fixed = "The interval takes the raters as they are: it knows nothing of what other raters would say (raters' bias)."
    return [
        *([fixed] if rule.rule == "lower_bound" and rule.interval == "pairs" else []),
        "at M: share of right verdicts on a question whose mean over all pairs and all raters is M, accepted at",
        f"{rule.threshold:g} or above and not accepted below.{border}",
        "Width: of the 95% interval, in points. Pairs: of one verdict (the two translations share theirs).",
        *([used] if rule.stop == "anytime" else []),
        f"Ratings, hours, dollars: of all {len(study.transformations)} transformations, with controls and repeats;",
        f"{paid.hourly:g} dollars an hour at {paid.seconds:g} s a pair{', ' + longer if longer else ''},",
        "a bonus where people need longer, and a platform's fees on top.",
    ]


def add_plan_options(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m annotation plan`."""
    usual = Assumed()
    parser.add_argument("--pairs", type=_count, nargs="+", default=PAIRS, metavar="N", help="pairs of a transformation")
    parser.add_argument("--raters", type=_count, nargs="+", default=RATERS, metavar="N", help="raters of each pair")
    parser.add_argument(
        "--means", type=_mean, nargs="+", metavar="M", help="true means to try (default: around the threshold)"
    )
    for name, what in (("spread", "the pairs' quality"), ("bias", "the raters' habits"), ("noise", "single ratings")):
        parser.add_argument(
            f"--{name}",
            type=_deviation,
            default=getattr(usual, name),
            metavar="SD",
            help=f"standard deviation of {what} in points (default: {getattr(usual, name):g})",
        )
    parser.add_argument("--campaigns", type=_count, default=1000, metavar="N", help="simulated for each number (1000)")
    parser.add_argument("--seed", type=_seed, metavar="N", help="of the simulation (default: the sample's)")


def _count(value: str) -> int:
    if value.isdecimal() and 1 <= int(value) <= 100_000:
        return int(value)
    raise argparse.ArgumentTypeError(f"{value!r} is not a whole number from 1 to 100000")


def _seed(value: str) -> int:
    if value.isascii() and value.isdecimal() and len(value) <= 18:
        return int(value)
    raise argparse.ArgumentTypeError(f"{value!r} is not a whole number from 0 on, of at most 18 digits")


def _mean(value: str) -> float:
    with contextlib.suppress(ValueError):
        if math.isfinite(number := float(value)):
            return number
    raise argparse.ArgumentTypeError(f"{value!r} is no number")


def _deviation(value: str) -> float:
    return 0.0 if value in ("0", "0.0") else cli.positive(value)


def plan_text(outlooks: Sequence[Outlook], prices: Sequence[Price], design: Design) -> str:
    """A row for each size: shares of right verdicts by true mean, width of the interval, pairs used, and the price.

    `outlooks` are those of each size one after another, in the order of `prices`.
    """
    threshold = design.rule.threshold
    each = len(outlooks) // len(prices)
    means = [one.mean for one in outlooks[:each]]
    early = design.rule.stop == "anytime"
    header = ["Pairs", "Raters", *(f"at {mean:g}" for mean in means), "Width", *(["Pairs used"] if early else [])]
    rows = []
    for place, cost in enumerate(prices):
        own = outlooks[place * each : (place + 1) * each]
        shares = [one.accepted if one.mean == threshold else one.right(threshold) for one in own]
        rows.append(
            [
                str(own[0].pairs),
                str(own[0].raters),
                *(f"{share:.1%}" for share in shares),
                f"{own[-1].width:.2f}",
                *([f"{min(one.used for one in own):.0f} to {max(one.used for one in own):.0f}"] if early else []),
                f"{cost.ratings:,}",
                f"{cost.hours:.1f}",
                f"{cost.dollars:,.0f}",
            ]
        )
    return cli.columns([*header, "Ratings", "Hours", "Dollars"], rows)
