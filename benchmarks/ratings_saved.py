"""What looks after blocks save, and how often they err: simulated campaigns, and 28 systems that people rated."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotation.variation import latent_mean
from benchmarks.registry import Measurement, benchmark
from plumbline.statistics.estimates import Floats, over_pairs
from plumbline.statistics.group_sequential import ALPHA, Blocks, Criterion, Spending, first, outcomes

SCALE = (1, 2, 3, 4, 5)
THREE = Criterion(3.0, (1, 5))
BLOCKS = Blocks((20, 40, 60, 80, 100), 3.0, (1, 5))
SPENDINGS: tuple[Spending, ...] = ("pocock", "quadratic", "obrien_fleming")
CAMPAIGNS = 2000
ORDERS = 1000
#: Means and SDs of single ratings in HTEB's Table 2, quality and fluency; (cross-)translation stands there once.
TABLE_2 = (
    ((4.07, 1.07), (4.04, 0.90)),
    ((4.10, 1.16), (4.40, 0.99)),
    ((3.95, 0.86), (4.52, 0.63)),
    ((4.36, 0.79), (4.82, 0.39)),
    ((3.87, 0.96), (4.20, 0.89)),
    ((3.83, 1.24), (4.97, 0.18)),
    ((4.28, 1.03), (4.20, 1.00)),
    ((4.28, 1.03), (4.20, 1.00)),
)
#: Values of pairs with their shares, of which the mean is exactly 3.
SKEWED = {
    "a third at the bottom": ([4.0, 1.0], [2 / 3, 1 / 3]),
    "a fifth at the bottom": ([3.5, 1.0], [0.8, 0.2]),
    "an eleventh at the bottom": ([3.2, 1.0], [10 / 11, 1 / 11]),
    "few at the bottom, others spread": ([10 / 3, 3.0, 1.0], [0.6, 0.3, 0.1]),
    "few at the top": ([8 / 3, 5.0], [6 / 7, 1 / 7]),
    "both ends": ([5.0, 1.0], [0.5, 0.5]),
}


def people(rng: np.random.Generator, campaigns: int, mean: float, sd: float, alike: float = 0.5) -> Floats:
    """Ratings, campaigns by 100 pairs by three raters; mean and SD are those of single ratings before rounding."""
    shared = math.sqrt(alike) * rng.normal(size=(campaigns, 100, 1))
    felt = mean + sd * (shared + math.sqrt(1 - alike) * rng.normal(size=(campaigns, 100, 3)))
    ratings: Floats = np.clip(np.round(felt), SCALE[0], SCALE[-1])
    return ratings


def before_rounding(mean: float, sd: float) -> tuple[float, float]:
    """Mean and SD before rounding to 1 to 5 for which single ratings have these."""
    from scipy import optimize  # noqa: PLC0415 (half a second)

    def spread(deviation: float) -> float:
        middle, steps = latent_mean(mean, deviation, SCALE), np.array(SCALE[1:]) - 0.5
        shares = -np.diff(
            0.5 * np.array([2, *(math.erfc((step - middle) / deviation / math.sqrt(2)) for step in steps), 0])
        )
        return math.sqrt(float(shares @ (np.array(SCALE) - mean) ** 2)) - sd

    deviation = float(optimize.brentq(spread, 0.05, 5))
    return latent_mean(mean, deviation, SCALE), deviation


@dataclass(frozen=True)
class Campaigns:
    """What simulated campaigns see at each look, of each question, and whether what was seen changed on the way."""

    seen: list[list[Floats]]
    limits: Floats  #: levels of the looks
    cleaned: list[list[Floats]] | None = None  #: the same without what is excluded after a look
    excluded_after: int = 0  #: looks; of those that stopped before, after they stopped


def by_blocks(*questions: Floats, blocks: Blocks = BLOCKS) -> Campaigns:
    """Campaigns whose pairs' means are complete and stay what they are."""
    return Campaigns(
        [[values[:, :end] for values in questions] for end in blocks.ends], blocks.levels(len(blocks.ends))
    )


def decided(
    campaigns: Campaigns, criteria: list[Criterion], blocks: Blocks = BLOCKS
) -> tuple[NDArray[np.int64], Floats]:
    """(1 accepted, -1 rejected, 0 neither; planned pairs up to the look that said so), as `looks` does with `past`."""
    said = outcomes(campaigns.seen, campaigns.limits, criteria)
    if campaigns.cleaned is not None:
        said[:, campaigns.excluded_after :] = 0
        _, stop = first(said)
        stopped = (said != 0).any(axis=1)
        again = outcomes(campaigns.cleaned, campaigns.limits, criteria)  # a look that decided, on what is left
        later = outcomes(campaigns.cleaned, blocks.increments(), criteria)
        looked = np.where(stopped, stop, campaigns.excluded_after - 1)
        places = np.arange(said.shape[1])
        confirmed = np.where(stopped[:, None] & (places == stop[:, None]) & (again == said), again, 0)
        said = np.where(places <= looked[:, None], confirmed, later)
    decision, look = first(said)
    return decision, np.array(blocks.ends, dtype=float)[look]


def ways(rng: np.random.Generator, number: int, blocks: Blocks = BLOCKS) -> Iterator[tuple[str, Campaigns]]:
    """Ways in which ratings come, each with a true mean of exactly the threshold on one question at least."""
    for name, (values, shares) in SKEWED.items():
        yield name, by_blocks(rng.choice(values, size=(number, 100), p=shares), blocks=blocks)
    for alike in (0.0, 0.5, 0.95):
        yield (
            f"ratings of a pair correlate {alike:g}",
            by_blocks(people(rng, number, 3.0, 1.1, alike).mean(axis=2), blocks=blocks),
        )
    quality, fluency = (people(rng, number, mean, sd).mean(axis=2) for mean, sd in ((3.0, 1.1), (4.5, 0.8)))
    yield "two questions, one at the threshold", by_blocks(quality, fluency, blocks=blocks)
    beside = np.clip((quality + people(rng, number, 3.0, 1.1).mean(axis=2)) / 2, 1, 5)
    yield "two questions at the threshold", by_blocks(quality, beside, blocks=blocks)
    yield "a careless rater is excluded after a look", _excluded(rng, number, blocks)
    yield "pairs are withdrawn after a look", _withdrawn(rng, number, blocks)
    yield "pairs are given up, and a rater drops out", _incomplete(rng, number, blocks)


def _excluded(rng: np.random.Generator, number: int, blocks: Blocks) -> Campaigns:
    """The third rater of each pair gives nothing but 4 and 5, and is excluded after two looks, or once stopped."""
    ratings = people(rng, number, 3.0, 1.1)
    clean, ratings[:, :, 2] = ratings[:, :, :2].mean(axis=2), rng.choice([4.0, 5.0], ratings.shape[:2])
    seen, cleaned = by_blocks(ratings.mean(axis=2), blocks=blocks), by_blocks(clean, blocks=blocks)
    return Campaigns(seen.seen, seen.limits, cleaned.seen, 2)


def _withdrawn(rng: np.random.Generator, number: int, blocks: Blocks) -> Campaigns:
    """Half of the first block is withdrawn after the second look, or once stopped."""
    pairs = people(rng, number, 3.0, 1.1).mean(axis=2)
    left = [[pairs[:, 10:end]] for end in blocks.ends]
    return Campaigns(by_blocks(pairs, blocks=blocks).seen, blocks.levels(len(blocks.ends)), left, 2)


def _incomplete(rng: np.random.Generator, number: int, blocks: Blocks) -> Campaigns:
    """A seventh of the pairs stays unrated; of the second half of the others one rater is missing."""
    ratings = people(rng, number, 3.0, 1.1)
    pairs = np.concatenate([ratings[:, :50].mean(axis=2), ratings[:, 50:, :2].mean(axis=2)], axis=1)
    rated = rng.permutation(100) >= 14
    counts = [int(rated[:end].sum()) for end in blocks.ends]
    pairs = pairs[:, rated]
    return Campaigns([[pairs[:, :count]] for count in counts], blocks.levels(len(counts), counts))


def wrongly_accepted(rng: np.random.Generator, number: int, spending: Spending) -> dict[str, float]:
    """The share of campaigns that are accepted, for each way in which ratings come."""
    blocks = Blocks(BLOCKS.ends, 3.0, (1, 5), spending)
    return {
        name: float((decided(campaigns, [THREE] * len(campaigns.seen[0]), blocks)[0] == 1).mean())
        for name, campaigns in ways(rng, number, blocks)
    }


def share_of_ratings(rng: np.random.Generator, number: int, spending: Spending) -> float:
    """The mean share of 4,800 ratings that HTEB's eight transformations need, at Table 2's means and SDs."""
    blocks = Blocks(BLOCKS.ends, 3.0, (1, 5), spending)
    used = []
    for moments in TABLE_2:
        questions = [people(rng, number, *before_rounding(*of_question)).mean(axis=2) for of_question in moments]
        used.append(decided(by_blocks(*questions, blocks=blocks), [THREE, THREE], blocks)[1].mean())
    return float(np.mean(used)) / BLOCKS.ends[-1]


@dataclass(frozen=True)
class Power:
    """Campaigns of people at a true mean."""

    by_looks: float  #: share accepted
    at_once: float  #: share accepted by a single look at 100 pairs, by t
    pairs: float  #: rated by the decision, on average


def power(rng: np.random.Generator, number: int, spending: Spending, mean: float) -> Power:
    """How often campaigns with such a true mean of single ratings (SD 1.05 before rounding) are accepted."""
    blocks = Blocks(BLOCKS.ends, 3.0, (1, 5), spending)
    pairs = people(rng, number, latent_mean(mean, 1.05, SCALE), 1.05).mean(axis=2)
    decision, used = decided(by_blocks(pairs, blocks=blocks), [THREE], blocks)
    single = over_pairs(pairs, np.ones(pairs.shape)).low >= THREE.limit
    return Power(float((decision == 1).mean()), float(single.mean()), float(used.mean()))


def sulem() -> pd.DataFrame:
    """Pairs' means of Sulem's systems: a row a system and question, 70 columns."""
    table = pd.read_csv(Path(__file__).parent / "sulem2018.csv", comment="#").set_index(["system", "question"])
    sums = table["sums"].str.split(expand=True).astype(float)
    return sums / 3


def sulem_orders(rng: np.random.Generator, orders: int, spending: Spending) -> pd.DataFrame:
    """A row a system: least mean, sure (whether all ratings say P > .999 or < .001), same, opposite, share."""
    means, ends = sulem(), tuple(range(10, 71, 10))
    blocks = Blocks(ends, 3.0, (1, 5), spending)
    rows = []
    for system, table in means.groupby(level="system"):
        pairs = table.to_numpy(np.float64)
        shuffled = pairs[:, np.array([rng.permutation(ends[-1]) for _ in range(orders)])]
        decision, used = decided(by_blocks(*shuffled, blocks=blocks), [THREE, THREE], blocks)
        least = float(pairs.mean(axis=1).min())
        every = over_pairs(pairs, np.ones(pairs.shape))
        sure = every.at_least(THREE.limit)
        sure = np.where(np.isnan(sure), pairs.mean(axis=1) >= THREE.limit, sure)  # all pairs alike
        says = 1 if (sure > 0.999).all() else -1 if (sure < 0.001).any() else 0
        opposite = float((decision == (-1 if least >= THREE.limit else 1)).mean())
        rows.append(
            (system, least, says != 0, float((decision == says).mean()), opposite, float(used.mean()) / ends[-1])
        )
    return pd.DataFrame(rows, columns=["system", "least", "sure", "same", "opposite", "share"])


@benchmark
def hteb() -> Iterator[Measurement]:
    """Ratings of HTEB's campaign, wrong acceptances at the threshold, and what power is lost at 3.3."""
    for spending in SPENDINGS:
        held = spending == BLOCKS.spending
        rng = np.random.default_rng(1)
        wrong = wrongly_accepted(rng, CAMPAIGNS, spending)
        noise = 3 * math.sqrt(ALPHA * (1 - ALPHA) / CAMPAIGNS)
        name = f"ratings_saved.{spending}"
        yield Measurement(f"{name}.wrongly_accepted", max(wrong.values()), "share", at_most=ALPHA + noise)
        share = share_of_ratings(rng, CAMPAIGNS, spending)
        yield Measurement(f"{name}.share_of_htebs_ratings", share, "share", at_most=0.35 if held else None)
        at_33 = power(rng, 2 * CAMPAIGNS, spending, 3.3)
        lost = at_33.at_once - at_33.by_looks
        yield Measurement(f"{name}.power_lost_at_3.3", lost, "share", at_most=0.05 if held else None)
        yield Measurement(f"{name}.pairs_at_3.3", at_33.pairs, "pairs")
        yield Measurement(f"{name}.pairs_at_4", power(rng, CAMPAIGNS, spending, 4.0).pairs, "pairs")


@benchmark
def systems() -> Iterator[Measurement]:
    """Sulem's 28 systems in random orders of their pairs, with looks at 10, 20 .. 70 pairs."""
    for spending in SPENDINGS:
        table, name = sulem_orders(np.random.default_rng(1), ORDERS, spending), f"ratings_saved.sulem.{spending}"
        yield Measurement(f"{name}.opposite", float(table["opposite"].mean()), "share")
        sure = float(table[table["sure"]]["opposite"].mean())
        yield Measurement(f"{name}.opposite_where_sure", sure, "share", at_most=0.0)
        yield Measurement(
            f"{name}.same_where_sure", float(table[table["sure"]]["same"].mean()), "share", at_least=0.975
        )
        yield Measurement(f"{name}.share_of_ratings", float(table["share"].mean()), "share")
        high = float(table[table["least"] >= 4]["share"].mean())
        yield Measurement(f"{name}.share_of_ratings_at_4", high, "share")
