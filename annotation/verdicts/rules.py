"""The rule of a study's `acceptance`: from means and their intervals to a decision with its reasons."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from annotation.records import Summary
from annotation.statistics.intervals import Floats
from plumbline.study.campaign import AcceptanceSpec

_ROUNDING = 1e-9


def outcomes(mean: Floats, low: Floats, high: Floats, rule: AcceptanceSpec) -> NDArray[np.str_]:
    """The rule on one question, of one campaign or many: accepted, rejected or undecided; NaN never passes.

    By `mean` the mean decides. By `lower_bound` the lower end of the interval must reach the threshold; rejected is
    what has even its upper end below, and what lies between is undecided.
    """
    ends = (mean, mean) if rule.rule == "mean" else (low, high)
    reached = [end >= rule.threshold for end in ends]
    missed = [end < rule.threshold for end in ends]
    return np.select([reached[0] & reached[1], missed[0] & missed[1]], ["accepted", "rejected"], "undecided")


def decide(summaries: Sequence[Summary], n_pairs: int, rule: AcceptanceSpec) -> tuple[str, tuple[str, ...]]:
    """(decision, reasons) of one group of ratings: too few is undecided, whatever the means say.

    Accepted is what every question accepts, rejected what any rejects. What is not a number never passes. Raises
    RuntimeError for an interval that does not hold its own mean: no decision rests on numbers that contradict.
    """
    for summary in summaries:
        if summary.low > summary.mean + _ROUNDING or summary.high < summary.mean - _ROUNDING:
            raise RuntimeError(  # a bug: both are of the same ratings
                f"the interval of {summary.question} ({summary.low:.2f} to {summary.high:.2f}) does not hold its own"
                f" mean {summary.mean:.2f}"
            )
    if lacking := tuple(_lacking(summaries, n_pairs, rule)):
        return "undecided", lacking
    by_question = [str(outcomes(np.array(s.mean), np.array(s.low), np.array(s.high), rule)) for s in summaries]
    for decision in ("rejected", "undecided"):
        if decision in by_question:
            of_it = [s for s, outcome in zip(summaries, by_question, strict=True) if outcome == decision]
            return decision, tuple(_reason(summary, decision, rule) for summary in of_it)
    return "accepted", (_accepted(summaries, rule),)


def _lacking(summaries: Sequence[Summary], n_pairs: int, rule: AcceptanceSpec) -> list[str]:
    """What is missing for any decision."""
    if n_pairs < rule.min_pairs:
        which = "that count in the sequence" if rule.stop == "anytime" else f"with at least {rule.min_raters} raters"
        return [f"pairs {which}: {n_pairs}, of at least {rule.min_pairs} that are needed"]
    few = [s for s in summaries if s.n_ratings < rule.min_ratings]
    if few:
        return [f"ratings of {s.question}: {s.n_ratings}, of at least {rule.min_ratings} that are needed" for s in few]
    if unknown := [s.question for s in summaries if math.isnan(s.mean)]:
        return [f"no mean {question}" for question in unknown]
    if rule.min_ac2 is None:
        return []
    low = [s for s in summaries if not s.ac2.value >= rule.min_ac2]
    return [
        f"AC2 of {s.question} is "
        + (f"undefined ({s.ac2.reason})" if math.isnan(s.ac2.value) else f"{s.ac2.value:.2f}")
        + f", at least {rule.min_ac2:g} is needed"
        for s in low
    ]


def _reason(summary: Summary, decision: str, rule: AcceptanceSpec) -> str:
    """Why one question is not accepted."""
    if decision == "rejected" and rule.rule == "mean":
        return f"mean {summary.question} {summary.mean:.2f} is below {rule.threshold:g}"
    if decision == "rejected":
        return (
            f"upper end of {summary.question} {summary.high:.2f} (mean {summary.mean:.2f}) is below {rule.threshold:g}"
        )
    if math.isnan(summary.low):
        return f"no interval of {summary.question} (mean {summary.mean:.2f}): {summary.interval_reason}"
    ends = f"{summary.low:.2f} to {summary.high:.2f}"
    return f"interval of {summary.question} {ends} (mean {summary.mean:.2f}) does not decide about {rule.threshold:g}"


def _accepted(summaries: Sequence[Summary], rule: AcceptanceSpec) -> str:
    """Why all questions are."""
    if rule.rule == "mean":
        return f"mean {', '.join(f'{s.question} {s.mean:.2f}' for s in summaries)}: at least {rule.threshold:g}"
    ends = ", ".join(f"{s.question} {s.low:.2f} (mean {s.mean:.2f})" for s in summaries)
    return f"lower end of {ends}: at least {rule.threshold:g}"
