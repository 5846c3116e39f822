"""The ratings that a study needs: expected by true mean where looks stop early, precision at n, pairs against raters.

Pure functions but for `needed_text`, which puts them into words for `plumbline plan`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from annotation.planning import Price, Pricing, RatingVariation, first_looks, simulated
from annotation.rubric import Rubric
from annotation.statistics.summaries import Design
from plumbline import cli
from plumbline.frames import filled, numbers, with_names
from plumbline.scales import Continuous
from plumbline.statistics.agreement import Answers, gwet_ac2
from plumbline.statistics.estimates import stream
from plumbline.statistics.group_sequential import Blocks, Criterion
from plumbline.statistics.intervals import quantile
from plumbline.statistics.severity import severity
from plumbline.study import Study
from plumbline.study.campaign import AcceptanceSpec

NEEDED = ["mean", "accepted", "rejected", "undecided", "pairs", "share"]
PRECISION = ["pairs", "ac2", "ac2_reach", "rho_reach"]
DESIGNS = ["raters", "pairs", "error", "ratings", "dollars", "cheapest"]
USUAL = RatingVariation()
_SIMULATED = 40  # campaigns over which AC2's precision is averaged
_BAR = 20  # signs of a whole bar
_LAST = {"value": "; the last look uses the mean alone, unlike in a study with blocks", "interval": ""}


def needed(
    design: Design,
    blocks: Blocks,
    means: Sequence[float],
    assumed: RatingVariation = USUAL,
    campaigns: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the pairs that a verdict needs on average with looks after blocks, for given true means.

    Every rated question has this mean, with pairs, raters and noise of its own, and all must hold. Raters' habits
    shift all pairs alike; the looks take raters as they are.

    Args:
        design: questions, scale and raters of a pair.
        blocks: the rule.
        means: true means to try.
        assumed: how ratings vary.
        campaigns: how many are simulated for each mean.
        seed: of the simulation.

    Returns:
        A row for each mean: accepted, rejected, undecided (shares of campaigns), pairs (rated by the decision, on
        average), share (of the pairs of the last block).

    Raises:
        StudyError: a mean that ratings on the scale cannot have.

    Source: the simulation is ours (docs/method/looks.md).

    >>> from annotation.statistics.summaries import Design
    >>> found = needed(Design(), Blocks((20, 40, 60, 80, 100), 3.0, (1, 5)), [4.0], campaigns=50)
    >>> found[["mean", "accepted", "pairs"]].to_dict("records")
    [{'mean': 4.0, 'accepted': 1.0, 'pairs': 21.2}]
    """
    rated = [name for name in design.questions if design.asked(name).kind == "rating"]
    scales = [design.asked(name).scale for name in rated]
    most, rows = blocks.ends[-1], []
    criteria = [Criterion(blocks.threshold, (float(scale[0]), float(scale[-1])), by=blocks.by) for scale in scales]
    for mean in means:
        rng = stream(seed, "needed", f"{mean:g}")
        pairs = [
            simulated(assumed, (most, design.per_pair), mean, scale, campaigns, rng).mean(axis=2) for scale in scales
        ]
        decision, look = first_looks(pairs, blocks, criteria, design.rule.min_pairs)
        used = float(np.array(blocks.ends)[look].mean())
        shares = [float((decision == number).mean()) for number in (1, -1, 0)]
        rows.append((mean, *shares, used, used / most))
    return pd.DataFrame(rows, columns=NEEDED)


def precision(  # noqa: PLR0913 (a design, and what is assumed of it)
    pairs: Sequence[int],
    scale: Sequence[float],
    raters: int,
    mean: float,
    assumed: RatingVariation = USUAL,
    rho: float = 0.6,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the half widths of 95% intervals of AC2 and of a rank correlation with ratings, by number of pairs.

    Args:
        pairs: numbers of pairs.
        scale: points of the scale.
        raters: of each pair.
        mean: true mean of the ratings.
        assumed: how ratings vary.
        rho: Spearman's correlation, such as of drift with ratings.
        seed: of the simulation.

    Returns:
        A row for each number: pairs, ac2 and ac2_reach (means of 40 simulated campaigns; NaN with one rater, or if the
        scale is continuous), rho_reach (half of the interval by Fisher's z with the variance (1 + rho^2 / 2) / (n - 3);
        NaN below 4 pairs).

    Source: Gwet (2008), Br. J. Math. Stat. Psychol. 61, 29-48; Bonett and Wright (2000), Psychometrika 65, 23-28.

    >>> found = precision([50, 200], (1, 2, 3, 4, 5), 3, 4.0)
    >>> found["rho_reach"].round(2).tolist()
    [0.2, 0.1]
    """
    rows = []
    for n in pairs:
        ac2 = reach = math.nan
        if raters > 1 and not isinstance(scale, Continuous):
            rng = stream(seed, "precision", str(n))
            estimates = [
                gwet_ac2(Answers.of_table(ratings, scale))
                for ratings in simulated(assumed, (n, raters), mean, scale, _SIMULATED, rng)
            ]
            ac2 = float(np.mean([estimate.value for estimate in estimates]))
            reach = float(np.mean([(estimate.high - estimate.low) / 2 for estimate in estimates]))
        rows.append((n, ac2, reach, _reach_of_rho(rho, n)))
    return pd.DataFrame(rows, columns=PRECISION)


def _reach_of_rho(rho: float, pairs: int) -> float:
    if pairs < 4:
        return math.nan
    away = float(quantile(np.array(math.inf))) * math.sqrt((1 + rho**2 / 2) / (pairs - 3))
    middle = math.atanh(rho)
    return (math.tanh(middle + away) - math.tanh(middle - away)) / 2


def measured_variation(
    ratings: pd.DataFrame,
    *,
    pair: str = "pair_id",
    rater: str = "rater_id",
    question: str = "question",
    value: str = "value",
) -> dict[str, RatingVariation]:
    """Return how ratings of a pilot, or of an imported set, vary: standard deviations of pairs, raters and noise.

    Args:
        ratings: a row each: the pair, who rated it, the question and a number.
        pair: the column of pairs.
        rater: the column of raters.
        question: the column of questions.
        value: the column of numbers.

    Returns:
        Of each question the standard deviations of the mixed model, in points of the scale. They are those of ratings
        that were rounded to it, so that the noise has the rounding in it.

    Raises:
        ValueError: a column is missing, or a rater rated a pair twice on a question.

    Source: Patterson and Thompson (1971), Biometrika 58, 545-554 (`severity`).

    >>> import pandas as pd
    >>> rows = [(p, r, "quality", 3 + p % 3 - (r == "b") * (p % 2)) for p in range(12) for r in "abc"]
    >>> parts = measured_variation(pd.DataFrame(rows, columns=["pair_id", "rater_id", "question", "value"]))
    >>> round(parts["quality"].spread, 2)
    0.85
    """
    frame = with_names(ratings, "ratings", pair_id=pair, rater_id=rater, question=question, value=value)
    filled(frame, ["pair_id", "rater_id", "question"], "ratings")
    frame = frame.assign(value=numbers(frame["value"], "ratings"))
    variations = {}
    for name, answers in frame[frame["value"].notna()].groupby("question"):
        parts = severity(answers[["pair_id", "rater_id", "value"]])
        variations[str(name)] = RatingVariation(parts.item_sd, parts.rater_sd, parts.error_sd)
    return variations


def designs(
    pricing: Pricing,
    rule: AcceptanceSpec,
    size: tuple[int, int],
    assumed: RatingVariation,
    raters: Sequence[int] = (1, 2, 3, 4, 5),
) -> pd.DataFrame:
    """Pairs that give the mean of a verdict the error of the study's own size, for numbers of raters of a pair.

    The error over pairs is sqrt((pairs' variance + noise / raters) / pairs): further raters of a pair say less than
    further pairs do, so that the fewest raters that the study's rules allow are the cheapest where pairs cost no more.

    Args:
        pricing: of the study.
        rule: what a verdict needs at least.
        size: (pairs of each transformation, raters of each pair) whose error is to be reached.
        assumed: how ratings vary, as measured in a pilot or assumed.
        raters: numbers to try; those below `acceptance.min_raters` (and 2, where AC2 is wanted) are left out.

    Returns:
        A row for each number of raters: pairs, error (standard error of the mean), ratings and dollars of the whole
        study, cheapest (whether no row costs less).

    Source: Brennan (2001), Generalizability Theory, chapter 2 (decision studies).
    """
    least = max(rule.min_raters, 2 if rule.min_ac2 is not None else 1)
    wanted = (assumed.spread**2 + assumed.noise**2 / size[1]) / size[0]
    rows = []
    for number in sorted({size[1], *raters}):
        if number < least:
            continue
        variance = assumed.spread**2 + assumed.noise**2 / number
        pairs = size[0] if number == size[1] else max(math.ceil(variance / wanted - 1e-9), rule.min_pairs)
        cost = pricing.price(pairs, number)
        rows.append((number, pairs, math.sqrt(variance / pairs), cost.ratings, cost.dollars))
    frame = pd.DataFrame(rows, columns=DESIGNS[:-1])
    return frame.assign(cheapest=frame["dollars"] == frame["dollars"].min())


def needed_text(  # noqa: PLR0913 (a rule, and what is assumed)
    study: Study,
    rubric: Rubric,
    blocks: Blocks,
    means: Sequence[float],
    assumed: RatingVariation,
    *,
    verdicts: int = 1,
    campaigns: int = 1000,
    seed: int = 0,
) -> str:
    """Return how many ratings the study needs, in one line, a chart and two tables.

    Args:
        study: whose design and prices count.
        rubric: what raters are asked.
        blocks: pairs of each verdict after which the rule looks.
        means: true means to try.
        assumed: how ratings vary.
        verdicts: into how many the pairs of a transformation are split, as by language.
        campaigns: how many are simulated for each mean.
        seed: of the simulation.

    Returns:
        Lines to print.

    Raises:
        StudyError: as `needed`.
    """
    design, items, most = Design.of(study, rubric), f"{study.called.item}s", blocks.ends[-1]
    table, pricing = needed(design, blocks, means, assumed, campaigns, seed), Pricing.of(study, rubric, design)

    def cost(pairs: float) -> Price:
        return pricing.price(math.ceil(pairs) * verdicts, design.per_pair)

    costs, whole = [cost(pairs) for pairs in table["pairs"]], cost(most)
    scale = next(design.asked(name).scale for name in design.questions if design.asked(name).kind == "rating")
    at_n = precision(blocks.ends, scale, design.per_pair, (blocks.threshold + scale[-1]) / 2, assumed, seed=seed)
    beside = designs(pricing, design.rule, (most * verdicts, design.per_pair), assumed)
    cheapest = beside[beside["cheapest"]].iloc[0]
    header = ["Mean", "Accepted", "Rejected", "Undecided", items.capitalize(), "Ratings", "Dollars", f"of {most}"]
    reach = [[str(row["pairs"]), *(_number(row[name]) for name in PRECISION[1:])] for row in at_n.to_dict("records")]
    return "\n".join(
        [
            f"How many do I need? All {most} {items} of each verdict need {whole.ratings:,} ratings"
            f" ({whole.dollars:,.0f} dollars); with looks",
            f"after {', '.join(map(str, blocks.ends))}, {_reached(table, costs)}.",
            "",
            f"Expected if every question has this true mean ({campaigns} simulated campaigns each, spending"
            f" {blocks.spending}{_LAST[blocks.by]}):",
            cli.columns(header, _expected(table, costs)),
            "",
            f"Precision with fewer {items}: half widths of the 95% intervals of AC2, and of a rank correlation of 0.6.",
            cli.columns([items.capitalize(), "AC2", "+/-", "rho +/-"], reach),
            "",
            f"Numbers of raters and {items} that give the mean the same standard error without early stopping:",
            cli.columns(["Raters", items.capitalize(), "Ratings", "Dollars"], _designs(beside)),
            f"Cheapest: {cheapest['pairs']} {items} of each {study.called.judged} by {cheapest['raters']} raters.",
        ]
    )


def _expected(table: pd.DataFrame, costs: Sequence[Price]) -> list[list[str]]:
    """Return a row for each true mean: outcomes, pairs, cost, and a bar of the share of pairs."""
    return [
        [
            f"{row['mean']:g}",
            *(f"{row[name]:.0%}" for name in ("accepted", "rejected", "undecided")),
            f"{row['pairs']:.0f}",
            f"{cost.ratings:,}",
            f"{cost.dollars:,.0f}",
            "#" * max(1, round(_BAR * row["share"])),
        ]
        for row, cost in zip(table.to_dict("records"), costs, strict=True)
    ]


def _designs(beside: pd.DataFrame) -> list[list[str]]:
    """Return a row for each number of raters."""
    return [
        [str(row["raters"]), str(row["pairs"]), f"{row['ratings']:,}", f"{row['dollars']:,.0f}"]
        for row in beside.to_dict("records")
    ]


def _reached(table: pd.DataFrame, costs: Sequence[Price]) -> str:
    """Return the ratings and cost at the cheapest and at the dearest true mean."""
    least, most = (int(row) for row in (table["pairs"].argmin(), table["pairs"].argmax()))
    if least == most:
        return "the same: no look can decide earlier"
    low, high = costs[least], costs[most]
    return (
        f"from {low.ratings:,} ({low.dollars:,.0f} dollars) at a true mean of {table['mean'][least]:g}"
        f" to {high.ratings:,} ({high.dollars:,.0f}) at {table['mean'][most]:g}"
    )


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"
