"""Joint decisions of people and judges, where the rules allow them (`acceptance.judges: {use: decide}`).

The rule is the study's own, on means and intervals of people and judges. Their decision stands only if people's ratings
alone lean the same way; if judges are refused, nothing is decided, by people neither.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from annotation.records import JudgedMean, Outcome, Summary, Verdict
from annotation.verdicts.rules import decide, rules_for, unchecked
from annotation.verdicts.tables import scoped
from plumbline.study.campaign import AcceptanceSpec

Unit = tuple[str, str, str]


def unit_of(verdict: Verdict) -> Unit:
    """Return a verdict's transformation, language and task."""
    return verdict.transformation, verdict.language, verdict.task_type


def worth_in_words(n_rated: int, n_judged: int, worth: float) -> str:
    """Return a number's basis for its row: `people + judges: 100 rated, 900 judged, worth 179`."""
    value = "" if math.isnan(worth) else f", worth {worth:,.0f}"
    return f"people + judges: {n_rated:,} rated, {n_judged:,} judged{value}"


def deciders(verdicts: Sequence[Verdict]) -> tuple[str, str]:
    """Return the deciders in words, and a note for readers of the verdicts' numbers."""
    note = unchecked(verdicts)
    if not any(verdict.decision_people for verdict in verdicts):
        return "people", note
    of_people = "means, intervals, AC2 and P are of people's ratings alone, and “People alone” is the decision by these"
    return "people and judges together", f"Decisions are by people and judges together; {of_people}. {note}".rstrip()


def late_judgements(verdicts: Sequence[Verdict]) -> list[str]:
    """Return a line if verdicts of people and judges rest on judgements given after the first rating."""
    late = [(verdict, sum(mean.late for mean in verdict.judged)) for verdict in verdicts if verdict.judged]
    names = [
        f"{scoped(verdict.transformation, verdict.language, verdict.task_type)} {number:,}"
        for verdict, number in late
        if number
    ]
    if not names:
        return []
    return [
        f"some judgements were made or repeated after the first rating ({'; '.join(names)}): once ratings are known,"
        " judges can be asked until a verdict pleases"
    ]


def with_judged(
    verdicts: Sequence[Verdict], judged: Mapping[Unit, Sequence[JudgedMean]], rule: AcceptanceSpec
) -> list[Verdict]:
    """Return the verdicts of people's ratings alone, as people and judges decide them."""
    return [_with(verdict, tuple(judged.get(unit_of(verdict), ())), rule) for verdict in verdicts]


def _with(verdict: Verdict, judged: tuple[JudgedMean, ...], rule: AcceptanceSpec) -> Verdict:
    refused = [mean for mean in judged if mean.reason]
    if refused or not judged:
        decision, reasons = (
            "undecided",
            tuple(f"judges are refused: {mean.question}: {mean.reason}" for mean in refused),
        )
        reasons = reasons or ("judges are refused: they rated none of these outputs",)
    else:
        decision, reasons = together(verdict, judged, rule)
    people = f"people alone: {verdict.decision} ({'; '.join(verdict.reasons)})"
    update = {
        "decision": decision,
        "decision_people": verdict.decision,
        "reasons": (people, *reasons),
        "judged": judged,
    }
    return verdict.model_copy(update=update)


def together(verdict: Verdict, judged: Sequence[JudgedMean], rule: AcceptanceSpec) -> tuple[Outcome, tuple[str, ...]]:
    """Return the decision and reasons of people and judges, from a verdict on people's ratings alone.

    The rule decides by the means and intervals of both; questions without judges keep people's own. If a value decides,
    people's own must meet the limit too, so that nothing is accepted that people would not accept. If an interval
    decides, people's own must meet the limit with 80% (one-sided): too little to decide alone, but enough to overrule
    a judge who moves the mean by chance. If the two differ the verdict is undecided, as it is if the mean of both lies
    beyond people's own interval: then judges hardly rated the same as people.
    """
    helped, leaning = (
        [_numbers(summary, judged, lean=lean) for summary in verdict.questions] for lean in (False, True)
    )
    rules = rules_for(verdict.pool, rule)
    decision, reasons = decide(helped, verdict.n_pairs, rule, rules)
    rests = tuple(f"{mean.question}: {worth_in_words(mean.n_rated, mean.n_judged, mean.worth)}" for mean in judged)
    if doubts := tuple(_beyond(verdict, judged)):
        return "undecided", (*doubts, *rests)
    alone, why = decide(leaning, verdict.n_pairs, rule, rules)
    if decision not in ("undecided", alone):
        line = f"{decision} by people and judges ({'; '.join(reasons)}), but people's ratings alone do not support this"
        return "undecided", (f"{line} ({'; '.join(why)})", *rests)
    return _outcome(decision), (*reasons, *rests)


def _beyond(verdict: Verdict, judged: Sequence[JudgedMean]) -> Iterator[str]:
    """Yield the questions on which the mean of people and judges is beyond the interval of people's ratings."""
    for summary in verdict.questions:
        both = next((mean for mean in judged if mean.question == summary.question), None)
        if both is not None and (both.mean < summary.low or both.mean > summary.high):
            yield (
                "undecided, because people and judges contradict each other: their common mean on"
                f" {summary.question} ({both.mean:.2f}) lies outside the interval of people's ratings alone"
                f" ({summary.low:.2f} to {summary.high:.2f})"
            )


def _outcome(decision: str) -> Outcome:
    return "accepted" if decision == "accepted" else "rejected" if decision == "rejected" else "undecided"


def _numbers(summary: Summary, judged: Sequence[JudgedMean], *, lean: bool) -> Summary:
    """Return a question's summary with the mean of people and judges, or with the ends of their leaning."""
    both = next((mean for mean in judged if mean.question == summary.question), None)
    if both is None:
        return summary
    if lean:
        ends, why = (both.lean_low, both.lean_high), "people's ratings have no spread"
        numbers = {"low": min(ends[0], summary.mean), "high": max(ends[1], summary.mean)}
    else:
        ends, why = (both.low, both.high), "the ratings of people and judges have no spread"
        numbers = {"mean": both.mean, "low": both.low, "high": both.high}
    undefined = {"low": math.nan, "high": math.nan} if math.isnan(ends[0]) else {}
    return summary.model_copy(update={**numbers, **undefined, "interval_reason": why if undefined else ""})
