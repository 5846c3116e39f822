"""`python -m annotation plan`: its options, and the text that it prints of `annotation.planning.plan`."""

from __future__ import annotations

import argparse
import contextlib
import math
from collections.abc import Sequence

import pandas as pd

from annotation.planning import PAIRS, RATERS, Assumed, around, pay_of, plan
from annotation.rubric import load_rubric
from annotation.statistics.summaries import Design
from plumbline import cli
from plumbline.study import Study
from plumbline.study.campaign import AcceptanceSpec


def plan_text(study: Study, options: argparse.Namespace) -> str:
    """What `python -m annotation plan` prints: assumptions, a row for each size, and how to read it."""
    if study.acceptance.rules:
        plan(study)  # says why not
    design = Design.of(study, load_rubric(study))
    rule, assumed = design.rule, Assumed(options.spread, options.bias, options.noise)
    sizes = [(pairs, raters) for pairs in options.pairs for raters in options.raters]
    seed = study.sample.seed if options.seed is None else options.seed
    means = options.means or around(design)
    found = plan(study, sizes, means, assumed, options.campaigns, seed)
    parts = [rule.rule, f"interval {rule.interval}", f"stop {rule.stop}", f"threshold {rule.threshold:g}"]
    return "\n".join(
        [
            f"Plan of study {study.name}: rule {', '.join(parts)}",
            f"{options.campaigns} simulated campaigns for each size and true mean, seed {seed}",
            f"Assumed standard deviations, in points: pairs {assumed.spread:g}, raters' bias {assumed.bias:g},"
            f" noise {assumed.noise:g}",
            "",
            _table(found, rule),
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
    parser.add_argument(
        "--pairs", type=cli.count, nargs="+", default=PAIRS, metavar="N", help="pairs of a transformation"
    )
    parser.add_argument("--raters", type=cli.count, nargs="+", default=RATERS, metavar="N", help="raters of each pair")
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
    parser.add_argument(
        "--campaigns", type=cli.count, default=1000, metavar="N", help="simulated for each number (1000)"
    )
    parser.add_argument("--seed", type=_seed, metavar="N", help="of the simulation (default: the sample's)")


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


def _table(found: pd.DataFrame, rule: AcceptanceSpec) -> str:
    """A row for each size: shares of right verdicts by true mean, width of the interval, pairs used, and the price.

    `found` is a frame of `plan`. At the threshold itself the share accepted is shown.
    """
    early = rule.stop == "anytime"
    means = found["mean"].drop_duplicates()
    header = ["Pairs", "Raters", *(f"at {mean:g}" for mean in means), "Width", *(["Pairs used"] if early else [])]
    rows = []
    for (pairs, raters), own in found.groupby(["pairs", "raters"], sort=False):
        shares = own["accepted"].where(own["mean"] == rule.threshold, own["right"])
        last = own.iloc[-1]
        rows.append(
            [
                str(pairs),
                str(raters),
                *(f"{share:.1%}" for share in shares),
                f"{last['width']:.2f}",
                *([f"{own['used'].min():.0f} to {own['used'].max():.0f}"] if early else []),
                f"{last['ratings']:,.0f}",
                f"{last['hours']:.1f}",
                f"{last['dollars']:,.0f}",
            ]
        )
    return cli.columns([*header, "Ratings", "Hours", "Dollars"], rows)
