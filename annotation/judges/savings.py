"""What a judge would save of a study's ratings, before anyone is paid: arithmetic from its correlation with people."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from annotation.planning import Pricing
from annotation.rubric import load_rubric
from annotation.statistics.summaries import Design
from plumbline import cli
from plumbline.statistics.prediction_powered import FEWEST_RATED, effective_pairs, needed_pairs
from plumbline.study import Study
from plumbline.study.campaign import AcceptanceSpec

COLUMNS = ["pairs", "raters", "judged", "worth", "needed", "ratings", "ratings_saved", "dollars_saved", "share"]


def savings(study: Study, correlation: float, sizes: Sequence[tuple[int, int]]) -> pd.DataFrame:
    """What a judge that correlates with people would be worth, for each size (pairs of a transformation, raters).

    `correlation` is Pearson's r of its scores with the mean rating of a pair, over such pairs, from -1 to 1; it rises
    with raters per pair. Columns: pairs, raters, judged (outputs of a transformation that the judge scores:
    `judge_pool`, infinite where all are), worth (rated pairs by themselves that would be as sure), needed (rated pairs
    that with the judge have the same width, at least 30 and half of them), ratings (of the whole study without it),
    ratings_saved, dollars_saved, share (of the ratings). The judge's own cost is not in it, nor a platform's fees.

    Source: `plumbline.statistics.prediction_powered`, whose intervals over pairs these are; over raters nothing is
    saved, and with `stop: anytime` another number of pairs.
    """
    if not -1 <= correlation <= 1:
        raise ValueError(f"a correlation lies between -1 and 1; {correlation:g} does not")
    rubric = load_rubric(study)
    pricing = Pricing.of(study, rubric, Design.of(study, rubric))
    rows = []
    for pairs, raters in dict.fromkeys(sizes):
        judged = math.inf if study.judge_pool == "all" else float(max(study.judge_pool, pairs))
        fewer = needed_pairs(pairs, correlation, judged) if judged > pairs else float(pairs)
        whole = pricing.price(pairs, raters)
        less = pricing.price(round(fewer), raters)
        worth = effective_pairs(pairs, correlation, judged - pairs) if pairs >= FEWEST_RATED else float(pairs)
        saved = whole.ratings - less.ratings
        of_all = whole.ratings, saved, whole.dollars - less.dollars, saved / whole.ratings
        rows.append((pairs, raters, judged, worth, round(fewer), *of_all))
    return pd.DataFrame(rows, columns=COLUMNS)


def _by_rule(rule: AcceptanceSpec) -> list[str]:
    """What the study's rule makes of it."""
    if rule.stop == "anytime":
        return [
            "With stop: anytime half of the bets are people's alone, and less is saved: decisions that took 96, 90 and",
            "90 pairs took 88, 78 and 72 with correlations of 0.51, 0.73 and 0.85 (docs/judges_simulated.md).",
        ]
    if rule.rule == "mean" and not any(bound.by == "interval" for bound in rule.rules):
        return [
            "The study's rule goes by the mean alone: where judges decide with people, they take acceptances away and",
            "give none, so that they save ratings of an interval, and none that this rule would need.",
        ]
    return []


def savings_text(table: pd.DataFrame, correlation: float, rule: AcceptanceSpec) -> str:
    """`savings` in words, with what they rest on."""
    rows = [
        [
            str(row["pairs"]),
            str(row["raters"]),
            "all" if math.isinf(row["judged"]) else f"{row['judged']:,.0f}",
            "any" if math.isinf(row["worth"]) else f"{row['worth']:,.0f}",
            str(row["needed"]),
            f"{row['ratings_saved']:,.0f}",
            f"{row['share']:.0%}",
            f"{row['dollars_saved']:,.0f}",
        ]
        for row in table.to_dict("records")
    ]
    header = ["Pairs", "Raters", "Judged", "Worth", "Pairs needed", "Ratings saved", "Share", "Dollars saved"]
    return "\n".join(
        [
            f"With a judge whose scores correlate {correlation:g} with a pair's mean rating:",
            "",
            cli.columns(header, rows),
            "",
            "Judged: outputs of each transformation, the rated ones among them (judge_pool). Worth: as many rated",
            "pairs would be as sure by themselves. Pairs needed: rated, for an interval as wide as that of the first",
            f"column without a judge, at least {FEWEST_RATED} and half of them. By formula, for intervals over pairs",
            "with the raters as they are; the judge's own cost is not in it. Judges of today reach 0.5 to 0.65; what",
            "yours reaches, ratings alone tell.",
            *_by_rule(rule),
        ]
    )
