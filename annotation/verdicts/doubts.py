"""Doubts about a study's verdicts, printed wherever the verdicts are.

Nothing here decides anything. A verdict may follow from its rule to the letter and rest on raters who failed every
control, which the verdict itself does not show.
"""

from __future__ import annotations

import functools
import math
import typing
from collections import Counter
from collections.abc import Iterator, Sequence

from annotation.campaign.counting import stays
from annotation.ratings.signs import COMMENTS, controls_missed
from annotation.records import Decision, Sign, Verdict
from annotation.sampling.queues import SCOPES
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.held import look_lines
from annotation.verdicts.rules import told_from
from annotation.verdicts.systems import if_counted
from annotation.verdicts.tables import display, rated, scoped, wrong
from plumbline.study import Study
from plumbline.study.subject import Subject
from plumbline.words import count, printable_line

FEW_PAIRS = 20  # below, an accepted transformation is called thin (HTEB rates 100; `min_pairs` is 20 by default)
CLOSE = 0.95  # a mean on its side of the threshold with less probability than this is close
LOW_ALPHA, FAIR_AC2 = 0.2, 0.4  # bands of agreement: "poor" alpha beside at least "moderate" AC2
MANY_FAILED = 0.05  # of the outputs; with more, the sample is biased towards outputs that went well
LOOKED_FOR = (
    "Checked: the time at which rules were fixed, signs of carelessness, controls, exclusions, withdrawals,"
    " missing answers, thin samples, close means, agreement, failed outputs."
)
LOOKED_FOR_IN_ITEMS = LOOKED_FOR.replace("means", "means and shares").replace("failed outputs", "rows without a text")
_LOOKED_FOR_SO_FAR = (
    "Only signs of carelessness and controls were checked; the rest is checked once there are verdicts."
)
_NAMED = 5  # verdicts or raters that a line names


def doubts_of(evidence: Evidence, verdicts: Sequence[Verdict], signs: Sequence[Sign]) -> tuple[str, ...]:
    """Return a line for each doubt; () without any. `verdicts` are the valid ones, () before there are any.

    `signs` are those of `annotation.ratings.signs.find_signs`.
    """
    return (
        *_exclusions(evidence, verdicts),
        *_inattention(evidence, verdicts),
        *filter(None, [evidence.rules_fixed[1]]),
        *look_lines(evidence.study.command, verdicts),
        *_signs(evidence, signs),
        *_controls(evidence),
        *_withdrawals(evidence, verdicts),
        *_open(evidence, verdicts),
        *_thin(evidence, verdicts),
        *_close(evidence.study, verdicts),
        *_agreement(verdicts),
        *_supply(evidence, verdicts),
        *_extended(evidence),
    )


def looked_for(judging: Subject) -> str:
    """Return a sentence on the doubts that were looked for."""
    return LOOKED_FOR if judging.transforms else LOOKED_FOR_IN_ITEMS


def doubts_text(doubts: Sequence[str], judging: Subject, *, judged: bool) -> str:
    """Return the doubts for a terminal, one per line; `judged` is whether there are verdicts."""
    if not doubts:
        return f"Doubtful: nothing. {looked_for(judging)}" if judged else f"Doubtful: nothing yet. {_LOOKED_FOR_SO_FAR}"
    return "\n".join(["Doubtful:", *(f"- {line}" for line in doubts)])


def _inattention(evidence: Evidence, verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield a line on verdicts whose raters answered no control; people's tasks have none."""
    collected = evidence.collected
    if not verdicts or evidence.study.judging.does_tasks:
        return
    _, answers = controls_missed(collected.known, collected.pairs, evidence.rubric.quality, evidence.rubric.expected)
    if not answers:
        yield "whether raters paid attention could not be looked at, because they answered no controls"


def _signs(evidence: Evidence, signs: Sequence[Sign]) -> Iterator[str]:
    """Yield a line on raters with signs whose answers count, with their share of the counting answers."""
    sampled = evidence.collected.of_sample
    counting = (sampled["status"] == "submitted") & (sampled["excluded"] == "") & stays(sampled) & ~sampled["surplus"]
    by_rater = sampled.loc[counting, "rater_id"].value_counts()
    counts = {str(rater): int(ratings) for rater, ratings in by_rater.items() if ratings}
    counting_signs = [sign for sign in signs if sign.rule != COMMENTS and sign.rater_id in counts]
    raters = list(dict.fromkeys(sign.rater_id for sign in counting_signs))
    if not raters:
        return
    rules = ", ".join(f"{rule}: {n}" for rule, n in Counter(sign.rule for sign in counting_signs).most_common())
    share = sum(counts[rater] for rater in raters) / sum(counts.values())
    decided = {decision.rater_id for decision in evidence.decisions} & set(raters)
    undecided = len(raters) - len(decided)
    whom = "them" if undecided == len(raters) else f"{undecided} of them"
    unsettled = f"; nobody has decided about {whom} (`{evidence.study.command('review')}`)" if undecided else ""
    show = "shows" if len(raters) == 1 else "show"
    yield (
        f"{len(raters):,} of {count(len(counts), 'rater')} whose answers count {show} signs of careless answers"
        f" ({rules}); {share:.0%} of the ratings that count are theirs{unsettled}"
    )


def _controls(evidence: Evidence) -> Iterator[str]:
    study, collected = evidence.study, evidence.collected
    rated = collected.known[collected.known["excluded"] == ""]
    missed, answers = controls_missed(rated, collected.pairs, evidence.rubric.quality, evidence.rubric.expected)
    if missed:
        off = wrong(evidence.rubric.quality, evidence.rubric.asked())
        yield f"{missed:,} of {count(answers, 'answer')} to {study.called.known} are {off} (excluded raters left out)"


def _exclusions(evidence: Evidence, verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield lines on verdicts and comparisons of systems that exclusions changed."""
    last = {decision.rater_id: decision for decision in evidence.decisions}
    excluded = [decision.decided_at for decision in last.values() if decision.exclude]
    seen = any(look.at <= at for look in evidence.looks for at in excluded)
    excluding = f"excluding raters{' after verdicts had been seen' if seen else ''} changed"
    turned = [
        f"{_name(verdict)} is {verdict.by_rule} instead of {verdict.review.with_excluded}"
        for verdict in verdicts
        if verdict.review.with_excluded not in (None, verdict.by_rule)
    ]
    if turned:
        alone = "by the rule alone, without a review of raters"
        yield f"{excluding} {count(len(turned), 'verdict')} ({alone}): {_some(turned)}"
    if verdicts and evidence.if_counted:
        rated_by_all, chosen_by_all = evidence.if_counted
        lines = [
            *if_counted(evidence.side_by_side, rated_by_all, functools.partial(display, pooled=False)),
            *if_counted(evidence.preferred, chosen_by_all, printable_line),
        ]
        if lines:
            yield f"{excluding} {count(len(lines), 'comparison')} of systems: {_some(lines)}"


def withdrawn_lines(evidence: Evidence) -> list[str]:
    """Return how many pairs are withdrawn, a line for each reason."""
    last = {decision.pair_id: decision for decision in evidence.withdrawals}
    reasons = Counter(decision.reason for decision in last.values() if decision.exclude)
    return [
        f"Withdrawn from the sample: {count(number, evidence.study.called.item)} ({reason})."
        for reason, number in reasons.items()
    ]


def after_ratings(evidence: Evidence) -> list[Decision]:
    """Return the decisions about pairs that hold and were made after ratings of these pairs had come in."""
    last = {decision.pair_id: decision for decision in evidence.withdrawals}
    ratings = evidence.collected.of_sample
    submitted = ratings[(ratings["status"] == "submitted") & ratings["pair_id"].isin(list(last))]
    first = {str(pair): at for pair, at in submitted.groupby("pair_id", observed=True)["submitted_at"].min().items()}
    return [
        decision
        for decision in last.values()
        if decision.pair_id in first and first[decision.pair_id] <= decision.decided_at
    ]


def _withdrawals(evidence: Evidence, verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield lines on pairs that people withdrew, or made to count again, after these had been rated."""
    late_decisions, item = after_ratings(evidence) if evidence.withdrawals else [], evidence.study.called.item
    for withdrawn, done in ((True, "withdrawn"), (False, "made to count again")):
        decisions = [decision for decision in late_decisions if decision.exclude is withdrawn]
        if not decisions:
            continue
        looks = sum(any(look.at <= decision.decided_at for look in evidence.looks) for decision in decisions)
        after_verdicts = f" ({looks} of them after verdicts had been seen)" if looks else ""
        were = "was" if len(decisions) == 1 else "were"
        line = f"{count(len(decisions), item)} {were} {done} after ratings had come in{after_verdicts}"
        if not withdrawn:
            yield f"{line}: choosing {item}s by their ratings can steer the verdict"
            continue
        turned = [
            f"{_name(verdict)} would be {verdict.review.with_withdrawn} instead of {verdict.by_rule}"
            for verdict in verdicts
            if verdict.review.with_withdrawn not in (None, verdict.by_rule)
        ]
        stayed = f"if the withdrawn {item}{'' if len(decisions) == 1 else 's'} had stayed"
        outcome = f"{stayed}, {_some(turned) or 'no verdict would change'}" if verdicts else "there is no verdict yet"
        yield f"{line}; {outcome}"


def _open(evidence: Evidence, verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield a line on answers that verdicts did not wait for; none if all ratings were given elsewhere."""
    if not verdicts or not evidence.offered:
        return
    answers = evidence.answers_by_pair
    open_answers, wanted = int(answers["open"].sum()), int(answers["wanted"].sum())
    if open_answers:
        yield f"{open_answers:,} of the {count(wanted, 'answer')} that the sample needs are still open"


def _thin(evidence: Evidence, verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield lines on decisions from few pairs, or from less than half of those drawn."""
    drawn: Counter[tuple[str, ...]] = Counter()
    groups = evidence.collected.sample.groupby(["pool", "language", "task_type"], observed=True).size()
    for names, pairs in groups.items():
        for length in range(1, 4):
            drawn[tuple(map(str, typing.cast("tuple[str, ...]", names)))[:length]] += pairs
    few = []
    for verdict in verdicts:
        of = drawn[tuple(getattr(verdict, name) for name in SCOPES[evidence.study.acceptance.scope])]
        half = 0 if verdict.result.blocks else of / 2  # blocks are made to decide on few of those drawn
        if verdict.decision != "undecided" and (verdict.n_pairs < FEW_PAIRS or verdict.n_pairs < half):
            few.append(f"{_name(verdict)}, {verdict.n_pairs} of the {of} drawn")
    if few:
        limit = f"fewer than {FEW_PAIRS}, or less than half of the sample"
        yield f"verdicts that rest on few {evidence.study.called.item}s ({limit}): {_some(few)}"


def _close(study: Study, verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield a line on verdicts whose mean or share could easily be on the other side with others of the sample."""
    near = []
    for verdict in verdicts:
        probability = verdict.probability
        if math.isnan(probability) and verdict.decision == "accepted":  # of the other rules each alone can turn it
            probability = min(
                (p for rule in verdict.result.probabilities if not math.isnan(p := rule.probability)), default=math.nan
            )
        sure = probability if verdict.decision == "accepted" else 1 - probability
        if verdict.decision != "undecided" and sure < CLOSE:
            limit = CLOSE if verdict.decision == "accepted" else 1 - CLOSE
            near.append(f"{_name(verdict)} ({verdict.decision}, P {told_from(probability, limit)})")
    if near:
        over_raters = study.acceptance.interval == "pairs_and_raters" and not study.raters.blocks
        others = f"{study.called.item}s{' or raters' if over_raters else ''}"
        yield f"other {others} could easily have changed {count(len(near), 'verdict')}: {_some(near)}"


def _agreement(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Warn if AC2 looks fair and alpha does not: raters agree on the frequent answer, but hardly distinguish pairs."""
    places: dict[str, None] = {}
    for verdict in verdicts:
        for summary in rated(verdict.questions):
            if summary.alpha.value < LOW_ALPHA and summary.ac2.value >= FAIR_AC2:
                label = f"{display(verdict.pool)} ({verdict.language}) {summary.question}"
                label += f" alpha {told_from(summary.alpha.value, LOW_ALPHA)}"
                places[f"{label}, AC2 {told_from(summary.ac2.value, FAIR_AC2)}"] = None
    if places:
        bands = f"alpha below {LOW_ALPHA:g}, although AC2 is {FAIR_AC2:g} or more"
        yield f"raters agree on the usual answer, but hardly tell pairs apart ({bands}): {_some(list(places))}"


def _supply(evidence: Evidence, verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield a line on outputs that failed and that nobody rated."""
    judged = {(verdict.transformation, verdict.language) for verdict in verdicts if verdict.decision != "undecided"}
    failed = [
        f"{scoped(unit.transformation, unit.language)} {unit.failed_share:.0%}"
        for unit in evidence.supply
        if (unit.transformation, unit.language) in judged and unit.failed_share > MANY_FAILED
    ]
    if failed:
        yield f"nobody rated the {evidence.study.judging.failed}: {_some(failed)}"


def _extended(evidence: Evidence) -> Iterator[str]:
    """Yield lines on extensions of the sample that the rule does not allow, such as one after its look at the end."""
    item = evidence.study.called.item
    for wave in evidence.waves:
        looks = sum(look.at <= wave.at for look in evidence.looks)
        if looks and not evidence.study.raters.blocks:
            yield (
                f"wave {wave.number} of the sample ({count(wave.pairs, item)}, {wave.at:%Y-%m-%d}: {wave.reason}) was"
                f" added after {count(looks, 'look')} at verdicts, and the rule allows one look: adding {item}s until"
                " a verdict pleases makes wrong acceptances more frequent than the rule says"
            )


def _name(verdict: Verdict) -> str:
    return scoped(verdict.transformation, verdict.language, verdict.task_type)


def _some(parts: Sequence[str]) -> str:
    return (
        "; ".join(parts) if len(parts) <= _NAMED + 1 else f"{'; '.join(parts[:_NAMED])}; and {len(parts) - _NAMED} more"
    )
