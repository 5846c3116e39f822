"""`plumbline plan`: the text that it prints of `annotation.planning.plan`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import pandas as pd
from cyclopts import Parameter

from annotation.campaign.rubric import load_rubric
from annotation.options import CampaignOptions
from annotation.planning import (
    PAIRS,
    RATERS,
    Pricing,
    RatingVariation,
    judged_texts,
    least_difference,
    plan,
    planned_rules,
)
from annotation.statistics.summaries import Design
from annotation.verdicts.rules import in_words
from plumbline.cli import Count, Finite, Seed, Several, columns, positive, reads
from plumbline.exhibits import templates
from plumbline.exhibits.table import number
from plumbline.study import Study
from plumbline.study.campaign import RuleSpec
from plumbline.study.crowd import EXTRA_PAY


def _deviation(value: str) -> float:
    return 0.0 if value in ("0", "0.0") else positive(value)


Deviation = Annotated[float, reads(_deviation), Parameter(metavar="SD")]


@Parameter(name="*")
@dataclass(frozen=True)
class PlanOptions:
    """The sizes and assumptions of a plan; the deviations are those of `RatingVariation`.

    Args:
        pairs: Pairs of each transformation (default: 30, 50, 100 and 200; without --raters also the study's number).
        raters: Raters per pair (default: 2, 3 and 5; without --pairs also the study's number).
        means: True means or shares of labels to try (default: around the threshold or the rules' limits).
        spread: Standard deviation of the pairs' quality, in points (default: 0.8 on 1 to 5, else in proportion).
        bias: Standard deviation of the raters' habits, in points (default: 0.25 on 1 to 5, else in proportion).
        noise: Standard deviation of single ratings, in points (default: 1.1 on 1 to 5, else in proportion).
        campaigns: Campaigns to simulate for each number (default: 1000).
        seed: Seed of the simulation (default: the sample's).
    """

    pairs: Annotated[tuple[Count, ...], Several, Parameter(metavar="N...")] = ()
    raters: Annotated[tuple[Count, ...], Several, Parameter(metavar="N...")] = ()
    means: Annotated[tuple[Finite, ...], Several, Parameter(metavar="M...")] = ()
    spread: Deviation | None = None
    bias: Deviation | None = None
    noise: Deviation | None = None
    campaigns: Count = 1000
    seed: Seed | None = None


def plan_study(*, options: CampaignOptions, planning: PlanOptions = PlanOptions()) -> None:
    """Estimate the number of pairs and raters that you need, and their cost.

    Example: plumbline plan --study studies/demo.yaml

    Args:
        options: The study.
        planning: The sizes and assumptions.
    """
    print(plan_text(options.load(), planning))


def plan_text(study: Study, planning: PlanOptions) -> str:
    """Return the output of `plumbline plan`: assumptions, a row for each size, and how to read it."""
    study.refuse_unfit("plan")
    rubric = load_rubric(study)
    design = Design.of(study, rubric)
    rule = design.rule
    deviations = {"spread": planning.spread, "bias": planning.bias, "noise": planning.noise}
    assumed = {name: value for name, value in deviations.items() if value is not None}
    by_blocks = bool(study.raters.blocks)
    study_size, (judged, item) = (study.sample.pairs, study.raters.per_pair), study.called
    sizes = sizes_asked(study_size, planning, by_blocks=by_blocks)
    seed = study.sample.seed if planning.seed is None else planning.seed
    planned = plan(study, sizes, planning.means, assumed, planning.campaigns, seed)
    systems = sum(kind.queue != "" for kind in study.kinds.values()) if study.judging.transforms else 0
    tables = []
    for part in planned_rules(design):
        scale = design.asked(part.question).judged_scale
        variation, of_part = RatingVariation.on(scale, assumed), planned[planned["rule"] == in_words(part)]
        rated = variation.as_rated(scale)
        apart = (
            {size: least_difference(size, systems, rated) for size in sizes} if systems > 1 and not by_blocks else {}
        )
        table = _table(of_part, part, item, apart, by_blocks=by_blocks)
        tables.append({"words": in_words(part), "variation": variation, "ends": (scale[0], scale[-1]), "rows": table})
    facts = {
        "study": study,
        "systems": systems,
        "rule": rule,
        "assumed": assumed,
        "campaigns": planning.campaigns,
        "seed": seed,
        "judged": judged,
        "item": item,
        "of_study": study_size if sizes[0] == study_size else None,
        "unread": judged_texts(study, rubric)[1],
        "tables": tables,
        "means": planned["mean"].tolist(),
        "shares": any(part.label for part in rule.rules),
        "pooled": study.judging.transforms and {"translation", "cross_translation"} <= set(study.kinds),
        "never": bool(planned["right"].isna().any()),
        "paid": Pricing.of(study, rubric, design).pay,
        "extra": {n: share for n, share in EXTRA_PAY.items() if n in study.kinds or study.judging.transforms},
    }
    return templates.text("annotation/plan.jinja", facts)


def sizes_asked(
    study_size: tuple[int, int], planning: PlanOptions, *, by_blocks: bool = False
) -> list[tuple[int, int]]:
    """Return (pairs of a transformation, raters) to plan: the command line's, or the study's and usual ones.

    With blocks (`by_blocks`), which say how many pairs are rated, other numbers of pairs are not usual.
    """
    numbers = planning.pairs or ([study_size[0]] if by_blocks else PAIRS)
    sizes = [(pairs, raters) for pairs in numbers for raters in planning.raters or RATERS]
    return sizes if planning.pairs or planning.raters else list(dict.fromkeys([study_size, *sizes]))


def _table(
    planned: pd.DataFrame, judged: RuleSpec, item: str, apart: Mapping[tuple[int, int], float], *, by_blocks: bool
) -> str:
    """A row for each size: shares of right verdicts by true mean, width of the interval, pairs used, and the price.

    `planned` are the rows of `plan` of one rule; `item` is what raters see, `apart` the difference between systems
    that each size finds. At the threshold itself the
    share accepted is shown.
    """
    means = planned["mean"].drop_duplicates()
    items = f"{item}s".capitalize()
    split = (planned["pairs"] != planned["verdict_pairs"]).any()
    header = [
        items,
        "Raters",
        *(["In a verdict"] if split else []),
        *(f"at {mean:g}" for mean in means),
        "Width",
        *(["Apart"] if apart else []),
        *([f"{items} used"] if by_blocks else []),
    ]
    rows = []
    for (pairs, raters), group in planned.groupby(["pairs", "raters"], sort=False):
        shares = group["accepted"].where((group["mean"] == judged.limit) & group["right"].notna(), group["right"])
        last = group.iloc[-1]
        rows.append(
            [
                str(pairs),
                str(raters),
                *([str(last["verdict_pairs"])] if split else []),
                *("never" if math.isnan(share) else f"{share:.1%}" for share in shares),
                "–" if math.isnan(last["width"]) else f"{last['width']:.2f}",
                *([number(apart[int(last["pairs"]), int(last["raters"])])] if apart else []),
                *([f"{group['used'].min():.0f} to {group['used'].max():.0f}"] if by_blocks else []),
                f"{last['ratings']:,.0f}",
                f"{last['hours']:.1f}",
                f"{last['dollars']:,.0f}",
            ]
        )
    return columns([*header, "Ratings", "Hours", "Dollars"], rows)
