"""`plumbline plan`: the text that it prints of `annotation.planning.plan`."""

from __future__ import annotations

import argparse
import math

import pandas as pd

from annotation.planning import (
    PAIRS,
    RATERS,
    Pricing,
    RatingVariation,
    judged_texts,
    plan,
    planned_rules,
)
from annotation.rubric import load_rubric
from annotation.statistics.summaries import Design
from annotation.verdicts.rules import in_words
from plumbline import cli
from plumbline.study import Study
from plumbline.study.campaign import AcceptanceSpec, RuleSpec
from plumbline.study.crowd import EXTRA_PAY, PaySpec


def plan_study(options: argparse.Namespace) -> int:
    """Print the plan."""
    study = cli.study_of(options)
    print(plan_text(study, options))
    return 0


def plan_text(study: Study, options: argparse.Namespace) -> str:
    """Return the output of `plumbline plan`: assumptions, a row for each size, and how to read it."""
    study.refuse_unfit("plan")
    rubric = load_rubric(study)
    design = Design.of(study, rubric)
    paid = Pricing.of(study, rubric, design).pay
    rule, assumed = design.rule, RatingVariation(options.spread, options.bias, options.noise)
    by_blocks = bool(study.raters.blocks)
    study_size, item = (study.sample.pairs, study.raters.per_pair), study.called.item
    sizes = sizes_asked(study_size, options, by_blocks=by_blocks)
    seed = study.sample.seed if options.seed is None else options.seed
    rules = planned_rules(design)
    why_not = judged_texts(study, rubric)[1]
    planned = plan(study, sizes, options.means or (), assumed, options.campaigns, seed)
    how = f"rule {rule.rule}, interval {rule.interval}, "
    how += "looks after blocks, " if by_blocks else "one look, "
    how += "all rules" if rule.rules else f"threshold {rule.threshold:g}"
    tables = [_table(planned[planned["rule"] == in_words(part)], part, item, by_blocks=by_blocks) for part in rules]
    titled = (line for part, table in zip(rules, tables, strict=True) for line in (in_words(part), table, ""))
    size = f"The first row has the study's own size: {study_size[0]:,} {item}s and {study_size[1]} raters."
    unread = f"The languages of the texts are unknown ({why_not}); the plan uses those in the study file."
    return "\n".join(
        [
            f"Plan of study {study.name}: {how}",
            f"{options.campaigns} simulated campaigns for each size and true mean, seed {seed}",
            f"Assumed standard deviations, in points: {item}s {assumed.spread:g}, raters' bias {assumed.bias:g},"
            f" noise {assumed.noise:g}",
            *([size] if sizes[0] == study_size else []),
            *([unread] if why_not else []),
            "",
            *(titled if rule.rules else (tables[0], "")),
            *_notes(rule, planned, study, paid),
        ]
    )


def sizes_asked(
    study_size: tuple[int, int], options: argparse.Namespace, *, by_blocks: bool = False
) -> list[tuple[int, int]]:
    """Return (pairs of a transformation, raters) to plan: the command line's, or the study's and usual ones.

    With blocks (`by_blocks`), which say how many pairs are rated, other numbers of pairs are not usual.
    """
    numbers = options.pairs or ([study_size[0]] if by_blocks else PAIRS)
    sizes = [(pairs, raters) for pairs in numbers for raters in options.raters or RATERS]
    return sizes if options.pairs or options.raters else list(dict.fromkeys([study_size, *sizes]))


def _of_rules(rule: AcceptanceSpec, item: str) -> list[str]:
    """Return how to read the rows of several rules."""
    together = "All rules must accept, so a verdict is accepted less often than by its strictest rule."
    return [
        f"A column 'at M' shows the share of right verdicts by the rule alone if the mean, or share, over all {item}s",
        "and all raters is M: it is right to accept if M meets the limit, and not to accept otherwise. The column at",
        "the limit itself shows the share of accepted verdicts.",
        *([together] if len(rule.rules) > 1 else []),
    ]


def _notes(rule: AcceptanceSpec, planned: pd.DataFrame, study: Study, paid: PaySpec) -> list[str]:
    border = f" The column 'at {rule.threshold:g}' shows the share of accepted verdicts."
    border = border if rule.threshold in planned["mean"].tolist() else ""
    judged, item = study.called
    items = f"{item}s".capitalize()
    extra = {name: share for name, share in EXTRA_PAY.items() if name in study.kinds or study.judging.transforms}
    longer = ", ".join(f"{100 * share:g}% more for {name.replace('_', ' ')}" for name, share in extra.items())
    used = [
        f"{items} used are the {item}s of a verdict up to the look that decides (looks are after"
        f" {', '.join(map(str, study.raters.blocks))} {item}s). Ratings, hours and",
        "dollars are for all blocks; an early decision needs fewer.",
    ]
    fixed = [
        "Verdicts speak for these raters, while the means here are over all raters: with three raters whose bias has a",
        "standard deviation of 0.25 points, a mean at the limit is accepted in 10 to 12% of campaigns instead of 2.5%.",
        "`interval: pairs_and_raters`, without blocks, covers raters too.",
    ]
    share = " or as a share" if any(part.label for part in rule.rules) else ""
    every = f"the {judged}" if len(study.kinds) == 1 else f"all {len(study.kinds)} {judged}s"
    together = study.judging.transforms and {"translation", "cross_translation"} <= set(study.kinds)
    shared = " (the two translations share their verdict, which has twice as many)" if together else ""
    never = bool(planned["right"].isna().any())
    short = [
        f"A column 'at M' shows the share of right verdicts on a question whose mean over all {item}s and all raters",
        f"is M: it is right to accept if M is at least {rule.threshold:g}, and not to accept otherwise.{border}",
    ]
    return [
        *(fixed if rule.by_interval and rule.interval == "pairs" else []),
        *(_of_rules(rule, item) if rule.rules else short),
        f"Width is that of the 95% interval, in points{share}. {items} are those of each {judged}. Shares are for one",
        f"verdict, the one with the fewest {item}s{shared}.",
        *(
            [f"'never': too few {item}s or raters for any decision (acceptance.min_pairs, min_raters)."]
            if never
            else []
        ),
        *(used if study.raters.blocks else []),
        f"Ratings, hours and dollars are for {every}, with {study.called.known} and repeats; ratings are",
        "answers to required questions. Pay is",
        f"{paid.hourly:g} dollars an hour at {paid.seconds:g} s {study.called.an_item}"
        f"{', ' + longer if longer else ''},",
        "without bonuses (for people who need longer) and without a platform's fees.",
    ]


def _table(planned: pd.DataFrame, judged: RuleSpec, item: str, *, by_blocks: bool) -> str:
    """A row for each size: shares of right verdicts by true mean, width of the interval, pairs used, and the price.

    `planned` are the rows of `plan` of one rule; `item` is what raters see. At the threshold itself the
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
                *([f"{group['used'].min():.0f} to {group['used'].max():.0f}"] if by_blocks else []),
                f"{last['ratings']:,.0f}",
                f"{last['hours']:.1f}",
                f"{last['dollars']:,.0f}",
            ]
        )
    return cli.columns([*header, "Ratings", "Hours", "Dollars"], rows)
