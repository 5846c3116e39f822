"""People's means with the judges' help, for each question and each group that gets a verdict of its own.

The outputs that judges score are drawn as the sample is, and the sample's pairs are the first of them: given their
stratum, the rated ones are a random part. Where that does not hold, judges are refused with the reason, and
people's own numbers stand alone. An output that a judge gave no score stays in.

`savings` computes, before anyone is paid, how many ratings a judge would save, from its correlation with people.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from annotation.judges.records import UNDRAWN, checked, on_scale, over_orders, together
from annotation.planning import Pricing
from annotation.sampling.queues import SCOPES
from annotation.statistics.summaries import Design
from annotation.verdicts.counted import Basis
from plumbline import cli
from plumbline.frames import filled as need_filled
from plumbline.frames import once
from plumbline.statistics.agreement import Answers
from plumbline.statistics.intervals import bounded, effective_raters
from plumbline.statistics.prediction_powered import (
    FEWEST_RATED,
    Pool,
    PoweredMean,
    RatedPairs,
    effective_pairs,
    filled,
    needed_pairs,
    powered,
    unlike,
)
from plumbline.study.campaign import AcceptanceSpec
from plumbline.words import count

_ASKED = ["judge", "order", "transformation", "language", "output_language"]  # these determine the prompt
COLUMNS = ["question", "judges", "n_rated", "n_judged", "n_failed", "people_mean", "people_low", "people_high"]
COLUMNS += ["lean_low", "lean_high", "mean", "low", "high", "slope", "rho", "worth", "reason"]
_UNLIKE = 2.58  # standard errors, exceeded by chance in 1%: the rated pairs are no random part of the judged ones
LEAN = 0.8  # one-sided confidence that people's ratings alone must reach where judges help to decide


@dataclass(frozen=True)
class Judging:
    """The outputs given to judges, and their judgements."""

    judged: pd.DataFrame  #: a row per output: pair_id, transformation, pool, language, task_type, stratum, wave
    judgements: pd.DataFrame  #: `annotation.judges.records`
    judges: tuple[str, ...]  #: whose scores count together: their mean, of outputs that all of them scored
    sample: Collection[str]  #: ids of the sample's pairs, rated or not
    withdrawn: Collection[str] = ()  #: ids of pairs that people withdrew
    targeted: Collection[str] = ()  #: ids of pairs that people saw out of turn; their ratings do not count
    refused: str = ""  #: why no number may rest on these judges, such as a judge that saw ratings


def powered_means(basis: Basis, judging: Judging, design: Design) -> pd.DataFrame:
    """Return a row for each group of the rule's scope and each rated question: people's mean, and that with judges.

    Columns: those of the scope (pool, language, task_type), question, judges (comma-separated), n_rated (pairs that
    count), n_judged (outputs beyond these that judges have seen and a sample could have), n_failed (of both: without a
    score of all judges), people_mean, people_low, people_high, lean_low, lean_high (what people's own mean is above,
    and below, with 80% each by the t distribution of their ratings; NaN without spread), mean, low, high (with the
    judges; NaN where they are refused), slope, rho, worth (rated pairs that would be as precise alone), reason
    (why the judges are refused; empty otherwise).

    The means are those of `plumbline.statistics.prediction_powered.powered`, the intervals the rule's: over pairs,
    or over pairs and raters. Raises ValueError for frames that lack columns, scores off a question's scale, and judges
    that are not there.
    """
    outputs, scores = _prepared(judging, design)
    targeted = basis.ratings["pair_id"].isin(judging.targeted)
    ratings = basis.ratings[~targeted]
    scope = SCOPES[design.rule.scope]
    rows = []
    for key, members in outputs.groupby(scope, sort=False):
        of_group = _of_group(ratings, members, key, scope, design)
        for question in design.questions:
            if design.asked(question).kind != "rating":
                continue
            answered = of_group[of_group["question"] == question]
            by_pair = scores[scores["question"] == question].set_index("pair_id")["score"]
            if len(answered) and len(by_pair):
                part = _Part(question, answered, members, by_pair, judging, design)
                rows.append((*key, question, *_row(part)))
    return pd.DataFrame(rows, columns=[*scope, *COLUMNS])


@dataclass(frozen=True)
class _Part:
    """One question of one group."""

    question: str
    answered: pd.DataFrame  #: the ratings that count
    outputs: pd.DataFrame  #: all that judges were given
    scores: pd.Series  #: of the judges together, by pair_id
    judging: Judging
    design: Design


def _prepared(judging: Judging, design: Design) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return outputs with strata, and joint scores of the judges. Raises ValueError for malformed frames."""
    need_filled(judging.judged, ("pair_id", "transformation", "pool", "language", "task_type", "stratum"), "judged")
    once(judging.judged, ("pair_id",), "judged")
    judgements = checked(judging.judgements)
    judgements = judgements[judgements["judge"].isin(judging.judges)]
    for question, of_question in judgements.groupby("question"):
        if question in design.questions and design.asked(str(question)).kind == "rating":
            on_scale(of_question, design.asked(str(question)).scale)
    gone = judging.judged["pair_id"].isin(judging.withdrawn) | (judging.judged["stratum"] == UNDRAWN)
    outputs = judging.judged[~gone]
    strata = outputs["transformation"].astype(str) + "\n" + outputs["stratum"].astype(str)
    return outputs.assign(stratum=strata), together(over_orders(judgements), judging.judges)


def _of_group(
    ratings: pd.DataFrame, outputs: pd.DataFrame, key: tuple[object, ...], scope: Sequence[str], design: Design
) -> pd.DataFrame:
    """Return the group's ratings: of its outputs, and of pairs that its outputs should contain."""
    of_key = ratings["transformation"].astype(str).map(design.pool_of) == key[0]
    if "language" in scope:
        of_key &= ratings["language"].astype(str) == key[1]
    judged = ratings["pair_id"].isin(outputs["pair_id"])
    return ratings[judged | of_key] if "task_type" not in scope else ratings[judged]


def _row(part: _Part) -> tuple[object, ...]:
    rated_ids = pd.factorize(part.answered["pair_id"])[1]
    beyond = part.outputs[~part.outputs["pair_id"].isin(rated_ids)]["pair_id"]
    failed = int(part.scores.reindex(part.outputs["pair_id"]).isna().sum())
    strata = pd.Series(pd.factorize(part.outputs["stratum"])[0], index=part.outputs["pair_id"])
    whole = Answers.of(part.answered, part.design.asked(part.question).scale)
    # Where a pair has no stratum, the row is refused.
    stratum_of = strata.reindex(rated_ids).fillna(0).to_numpy(np.int64)
    rated = RatedPairs(*whole.totals(whole.pair), part.scores.reindex(rated_ids).to_numpy(np.float64), stratum_of)
    pool = Pool(part.scores.reindex(beyond).to_numpy(np.float64), strata.loc[beyond].to_numpy(np.int64))
    rule = part.design.rule
    over_raters = rule.stop == "fixed" and rule.interval == "pairs_and_raters"
    estimate = powered(*filled(rated, pool), whole.totals(whole.rater) if over_raters else None)
    estimate = _bounded(estimate, rated, part.design.asked(part.question).scale, whole, over_raters)
    people, mean = _ends(estimate)
    reason = "; ".join([*_refusals(part, rated_ids, len(beyond)), *_apart(unlike(*filled(rated, pool)))])
    with_judges = (math.nan,) * 6 if reason else (*mean, estimate.slope, estimate.rho, estimate.worth)
    numbers = len(rated_ids), len(beyond), failed
    low, high = estimate.people.ends(LEAN)
    return (", ".join(part.judging.judges), *numbers, *people, float(low), float(high), *with_judges, reason)


def _bounded(
    estimate: PoweredMean, rated: RatedPairs, scale: Sequence[float], whole: Answers, over_raters: bool
) -> PoweredMean:
    """Return the means with bounded intervals where most pairs have one mean, so that a t interval is too short."""
    raters = effective_raters(whole.totals(whole.rater)[1]) if over_raters else math.inf
    people, mean = (
        bounded(mean, rated.sums, rated.counts, (float(scale[0]), float(scale[-1])), raters)
        for mean in (estimate.people, estimate.mean)
    )
    return replace(estimate, people=people, mean=mean)


def _refusals(part: _Part, rated_ids: pd.Index, beyond: int) -> Iterator[str]:
    """Yield each reason why no number of this group and question may rest on the judges."""
    outputs, judging = part.outputs, part.judging
    if judging.refused:
        yield judging.refused
    if missing := int((~rated_ids.isin(outputs["pair_id"])).sum()):
        yield f"rated pairs must be a random sample of the judges' outputs, but {missing} are not among these"
    if len(rated_ids) < FEWEST_RATED:
        yield f"{count(len(rated_ids), 'rated pair')}; means with judges need at least {FEWEST_RATED}"
    if not beyond:
        yield "judges were given no output beyond the rated pairs"
    judgements = judging.judgements
    judgements = judgements[(judgements["question"] == part.question) & judgements["judge"].isin(judging.judges)]
    judgements = judgements[judgements["pair_id"].isin(outputs["pair_id"]) & (judgements["status"] != "unanswered")]
    for judge in judging.judges:
        lacking = len(outputs) - judgements.loc[judgements["judge"] == judge, "pair_id"].nunique()
        if lacking:
            yield f"{judge} has not judged {lacking} of {len(outputs)} outputs; the others may not be a random sample"
    columns = [name for name in _ASKED if name in judgements]
    if "prompt_hash" in judgements and (judgements.groupby(columns)["prompt_hash"].nunique() > 1).any():
        yield "a judge got different prompts for the same question"
    if part.scores.reindex(outputs["pair_id"]).isna().all():
        yield "no output has a score from every judge"
    if part.design.rule.stop == "blocks":
        yield "the rule takes looks after blocks of pairs, and its error rates cover people's ratings alone"


def _apart(distance: float) -> Iterator[str]:
    if abs(distance) > _UNLIKE:
        yield (
            f"judges' scores of the rated pairs are {distance:+.1f} standard errors from those of the other outputs in"
            " their strata: the rated pairs do not represent the others"
        )


_Ends = tuple[float, float, float]  # value, low, high


def _ends(estimate: PoweredMean) -> tuple[_Ends, _Ends]:
    people, mean = ((float(mean.value), float(mean.low), float(mean.high)) for mean in (estimate.people, estimate.mean))
    return people, mean


SAVED_COLUMNS = ["pairs", "raters", "judged", "worth", "needed", "ratings", "ratings_saved", "dollars_saved", "share"]


def savings(
    pricing: Pricing, judge_pool: int | Literal["all"], correlation: float, sizes: Sequence[tuple[int, int]]
) -> pd.DataFrame:
    """Return the worth of a judge with this correlation, for each size (pairs of a transformation, raters).

    `correlation` is Pearson's r of its scores with the mean rating of a pair, over such pairs, from -1 to 1; it rises
    with raters per pair. Columns: pairs, raters, judged (outputs of a transformation that the judge scores:
    `judge_pool`, infinite where all are), worth (rated pairs that would be as precise alone), needed (rated pairs
    that with the judge give the same width, at least 30 and half of `pairs`), ratings (of the whole study without it),
    ratings_saved, dollars_saved, share (of the ratings). The judge's own cost is not in it, nor a platform's fees.

    Source: `plumbline.statistics.prediction_powered`, whose intervals over pairs these are; over raters nothing is
    saved.
    """
    if not -1 <= correlation <= 1:
        raise ValueError(f"a correlation must be from -1 to 1, not {correlation:g}")
    rows = []
    for pairs, raters in dict.fromkeys(sizes):
        judged = math.inf if judge_pool == "all" else float(max(judge_pool, pairs))
        fewer = needed_pairs(pairs, correlation, judged) if judged > pairs else float(pairs)
        whole = pricing.price(pairs, raters)
        less = pricing.price(round(fewer), raters)
        worth = effective_pairs(pairs, correlation, judged - pairs) if pairs >= FEWEST_RATED else float(pairs)
        saved = whole.ratings - less.ratings
        of_all = whole.ratings, saved, whole.dollars - less.dollars, saved / whole.ratings
        rows.append((pairs, raters, judged, worth, round(fewer), *of_all))
    return pd.DataFrame(rows, columns=SAVED_COLUMNS)


def _by_rule(rule: AcceptanceSpec) -> list[str]:
    """Return lines on the effect of the study's rule on the savings."""
    if rule.rule == "mean" and not any(bound.by == "interval" for bound in rule.rules):
        return [
            "The study's rule uses the mean and no interval: judges that decide with people can only make decided",
            "verdicts undecided. Judges narrow intervals, but this rule needs none, so they save no ratings.",
        ]
    return []


def savings_text(table: pd.DataFrame, correlation: float, rule: AcceptanceSpec) -> str:
    """Return `savings` in words, with the assumptions."""
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
            "Judged: outputs of each transformation that the judge scores, rated ones included (judge_pool).",
            "Worth: how many rated pairs would be as precise without a judge. Pairs needed: how many rated pairs with",
            f"the judge give as narrow an interval as Pairs without it; at least {FEWEST_RATED} and half of Pairs.",
            "Computed by formula, for intervals over pairs with the same raters, without the judge's own cost.",
            "Six models reached correlations of 0.10 to 0.64 with real people (docs/judges.md); only ratings can",
            "show what yours reaches.",
            *_by_rule(rule),
        ]
    )
