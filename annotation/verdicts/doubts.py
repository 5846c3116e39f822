"""What is doubtful about a study's verdicts, from what is loaded: said wherever the verdicts are.

Nothing here decides anything. A verdict may follow from its rule to the letter and rest on raters who failed every
control: who reads only the verdict would not know.
"""

from __future__ import annotations

import math
import typing
from collections import Counter
from collections.abc import Iterator, Sequence

from annotation.offering import read_reviews
from annotation.ratings.collected import CampaignData
from annotation.ratings.missed import controls_missed
from annotation.ratings.ratings import saw_scores, stays
from annotation.ratings.signs import COMMENTS
from annotation.records import Decision, Sign, Verdict
from annotation.sampling.candidates import Supply
from annotation.verdicts.counted import SCOPES
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.held import look_lines
from annotation.verdicts.judged import late_judgements
from annotation.verdicts.tables import count, display, number, rated, scoped, wrong
from plumbline.study import Study

FEW_PAIRS = 20  # below, an accepted transformation is called thin (HTEB rates 100; `min_pairs` is 20 by default)
CLOSE = 0.95  # a mean on its side of the threshold with less probability than this is close
LOW_ALPHA, FAIR_AC2 = 0.2, 0.4  # bands of agreement (annotation.verdicts.tables): "poor" beside at least "moderate"
MANY_FAILED = 0.05  # of the outputs: more leave the sample one of what went well
LOOKED_FOR = (
    "Looked at: when rules were fixed, signs, controls, exclusions, withdrawals, open answers, thin samples, close"
    " means, agreement, outputs."
)
LOOKED_FOR_IN_ITEMS = LOOKED_FOR.replace("means", "means and shares").replace("outputs", "rows without a text")
_LOOKED_FOR_SO_FAR = "Looked at: signs and controls; the rest once there are verdicts."
_NAMED = 5  # verdicts or raters that a line names


def doubts_of(evidence: Evidence, verdicts: Sequence[Verdict], signs: Sequence[Sign]) -> tuple[str, ...]:
    """A line for each thing that is doubtful; () where nothing is. `verdicts` are those that hold, () before there are.

    `signs` are those of `annotation.ratings.review.signs_of`.
    """
    study, collected = evidence.study, evidence.collected
    return (
        *filter(None, [evidence.rules_fixed[1]]),
        *look_lines(study, verdicts),
        *_signs(study, collected, signs, evidence.decisions),
        *_controls(evidence),
        *_exclusions(verdicts),
        *_withdrawals(evidence, verdicts),
        *_open(study, collected, verdicts),
        *_thin(study, collected, verdicts),
        *_close(study, verdicts),
        *_agreement(verdicts),
        *_judged(verdicts),
        *_supply(study, verdicts, evidence.supply),
        *_extended(evidence),
        *_adjudicators(evidence),
        *dict.fromkeys(line for verdict in verdicts for line in verdict.sequence),
    )


def looked_for(study: Study) -> str:
    """What was looked at, as a sentence."""
    return LOOKED_FOR_IN_ITEMS if study.subject else LOOKED_FOR


def doubts_text(doubts: Sequence[str], study: Study, *, judged: bool) -> str:
    """The doubts for a terminal, a line each; `judged` is whether there are verdicts."""
    if not doubts:
        return f"Doubtful: nothing. {looked_for(study)}" if judged else f"Doubtful: nothing yet. {_LOOKED_FOR_SO_FAR}"
    return "\n".join(["Doubtful:", *(f"- {line}" for line in doubts)])


def _signs(
    study: Study, collected: CampaignData, signs: Sequence[Sign], decisions: Sequence[Decision]
) -> Iterator[str]:
    """Raters with signs whose answers count, and how much of what counts is theirs."""
    sampled = collected.of_sample
    counting = (sampled["status"] == "submitted") & (sampled["excluded"] == "") & stays(sampled) & ~sampled["surplus"]
    by_rater = sampled.loc[counting, "rater_id"].value_counts()
    given = {str(rater): int(ratings) for rater, ratings in by_rater.items() if ratings}
    own = [sign for sign in signs if sign.rule != COMMENTS and sign.rater_id in given]
    raters = list(dict.fromkeys(sign.rater_id for sign in own))
    if not raters:
        return
    rules = ", ".join(f"{rule} {n}" for rule, n in Counter(sign.rule for sign in own).most_common())
    share = sum(given[rater] for rater in raters) / sum(given.values())
    kept = {one.rater_id for one in decisions} & set(raters)
    left = len(raters) - len(kept)
    unsettled = f"; about {left} of them nobody decided (`{study.command('annotation review')}`)" if left else ""
    yield (
        f"{len(raters)} of {count(len(given), 'rater')} whose answers count show signs of careless answers ({rules});"
        f" {share:.0%} of the ratings that count are theirs{unsettled}"
    )


def _controls(evidence: Evidence) -> Iterator[str]:
    study, collected = evidence.study, evidence.collected
    rated = collected.known[collected.known["excluded"] == ""]
    missed, asked = controls_missed(rated, collected.pairs, study.quality, evidence.rubric.expected)
    if missed:
        off = wrong(study.quality.within, {one.kind for one in evidence.rubric.asked()})
        controls = "known items" if study.subject else "controls"
        yield f"{missed} of {count(asked, 'answer')} to {controls} are {off} (excluded raters left out)"


def _exclusions(verdicts: Sequence[Verdict]) -> Iterator[str]:
    turned = [
        f"{_name(one)}: {one.alone}, with them {one.decision_with_excluded}"
        for one in verdicts
        if one.decision_with_excluded not in (None, one.alone)
    ]
    if turned:
        yield f"excluding raters changed {count(len(turned), 'verdict')}: {_some(turned)}"


def withdrawn_lines(evidence: Evidence) -> list[str]:
    """How many pairs are withdrawn, a line for each reason."""
    last = {one.pair_id: one for one in evidence.withdrawals}
    reasons = Counter(one.reason for one in last.values() if one.exclude)
    return [
        f"Withdrawn from the sample: {count(number, evidence.study.called.item)} ({reason})."
        for reason, number in reasons.items()
    ]


def after_ratings(evidence: Evidence) -> list[Decision]:
    """The decisions about pairs that hold and were made when ratings of these pairs had come in already."""
    last = {one.pair_id: one for one in evidence.withdrawals}
    ratings = evidence.collected.of_sample
    own = ratings[(ratings["status"] == "submitted") & ratings["pair_id"].isin(list(last))]
    first = {str(pair): at for pair, at in own.groupby("pair_id", observed=True)["submitted_at"].min().items()}
    return [one for one in last.values() if one.pair_id in first and first[one.pair_id] <= one.decided_at]


def _withdrawals(evidence: Evidence, verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Pairs that people withdrew, or took back, when what raters had said of them could be known."""
    late, item = after_ratings(evidence) if evidence.withdrawals else [], evidence.study.called.item
    for withdrawn, done in ((True, "withdrawn"), (False, "taken back")):
        own = [one for one in late if one.exclude is withdrawn]
        if not own:
            continue
        looks = sum(any(look.at <= one.decided_at for look in evidence.looks) for one in own)
        seen = f" ({looks} of them after verdicts had been seen)" if looks else ""
        line = f"{count(len(own), item)} {'was' if len(own) == 1 else 'were'} {done} after ratings had come in{seen}"
        if not withdrawn:
            yield f"{line}: who chooses {item}s by their ratings chooses the verdict"
            continue
        turned = [
            f"{_name(one)}: {one.alone}, with them {one.decision_with_withdrawn}"
            for one in verdicts
            if one.decision_with_withdrawn not in (None, one.alone)
        ]
        other = _some(turned) if turned else "no verdict would be another" if verdicts else "no verdict yet"
        yield f"{line}; had the withdrawn {item}s stayed: {other}"


def _open(study: Study, collected: CampaignData, verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Answers that verdicts did not wait for."""
    if not verdicts:
        return
    submitted = (collected.of_sample["status"] == "submitted") & stays(collected.of_sample)
    answered = collected.of_sample.loc[submitted, ["pair_id", "rater_id"]]
    got = answered.drop_duplicates()["pair_id"].value_counts()
    staying = collected.sample[~collected.sample["pair_id"].isin(list(collected.withdrawn))]
    wanted = staying["pool"].astype(str).map(study.raters_of)
    left = int((wanted - staying["pair_id"].map(got).fillna(0)).clip(lower=0).sum())
    if left:
        yield f"{left} of the {count(int(wanted.sum()), 'answer')} that the sample wants are still open"


def _thin(study: Study, collected: CampaignData, verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Decided on few pairs, or on less than half of those that were drawn."""
    drawn: Counter[tuple[str, ...]] = Counter()
    groups = collected.sample.groupby(["pool", "language", "task_type"], observed=True).size()
    for names, pairs in groups.items():
        for length in range(1, 4):
            drawn[tuple(map(str, typing.cast("tuple[str, ...]", names)))[:length]] += pairs
    few = []
    for one in verdicts:
        scope = (one.pool, one.language, one.task_type)
        of = drawn[scope[: {"transformation": 1, "language": 2, "task": 3}[one.scope]]]
        if one.decision != "undecided" and (one.n_pairs < FEW_PAIRS or one.n_pairs < of / 2):
            few.append(f"{_name(one)} ({one.n_pairs} of {of})")
    if few:
        items = f"{study.called.item}s"
        yield f"decided on fewer than {FEW_PAIRS} {items}, or on less than half of those drawn: {_some(few)}"


def _close(study: Study, verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Decided by a mean or share that other pairs might well have put on the other side."""
    near = []
    for one in verdicts:
        probability = _probability(one)
        sure = probability if one.decision == "accepted" else 1 - probability
        if one.decision != "undecided" and sure < CLOSE:
            near.append(f"{_name(one)} ({one.decision}, P {number(probability)})")
    if near:
        yield f"other {study.called.item}s might well have turned {count(len(near), 'verdict')}: {_some(near)}"


def _probability(verdict: Verdict) -> float:
    """The verdict's P; where a rule has none, that of the others, as long as any one of them alone would turn it."""
    known = [one.probability for one in verdict.probabilities if not math.isnan(one.probability)]
    if known and math.isnan(verdict.probability):
        if (verdict.decision, verdict.combine) == ("accepted", "all"):
            return min(known)
        if (verdict.decision, verdict.combine) == ("rejected", "any"):
            return max(known)
    return verdict.probability


def _agreement(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Where AC2 looks fair and alpha does not: raters agree on what is frequent, and tell pairs apart hardly or not."""
    found: dict[str, None] = {}
    for one in verdicts:
        for summary in rated(one.questions):
            if summary.alpha.value < LOW_ALPHA and summary.ac2.value >= FAIR_AC2:
                place = f"{display(one.pool)} ({one.language}) {summary.question}"
                found[f"{place} {number(summary.alpha.value)} beside {number(summary.ac2.value)}"] = None
    if found:
        yield f"alpha is below {LOW_ALPHA:g} where AC2 is {FAIR_AC2:g} or more: {_some(list(found))}"


def _judged(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Verdicts that people's ratings alone would not have reached."""
    turned = [f"{_name(one)}: {one.by_rule}, people alone {one.alone}" for one in verdicts if one.by_rule != one.alone]
    if turned:
        yield f"people and judges decide otherwise than people alone: {_some(turned)}"
    yield from late_judgements(verdicts)


def _supply(study: Study, verdicts: Sequence[Verdict], supply: Sequence[Supply]) -> Iterator[str]:
    """Outputs that nobody rated, or that are not in the language that was asked for."""
    judged = {(one.transformation, one.language) for one in verdicts if one.decision != "undecided"}
    failed = [
        f"{scoped(one.transformation, one.language)} {one.failed_share:.0%}"
        for one in supply
        if (one.transformation, one.language) in judged and one.failed_share > MANY_FAILED
    ]
    if failed:
        lost = "rows that lack a text" if study.subject else "outputs that failed"
        yield f"{lost}, so that nobody rated them: {_some(failed)}"


def _extended(evidence: Evidence) -> Iterator[str]:
    """Extensions of the sample that the rule does not allow for.

    A rule for one look at the end allows for none after a look; an anytime rule for those that bring more of the same.
    """
    judged, item = evidence.study.called
    for wave in evidence.waves:
        looks = sum(look.at <= wave.at for look in evidence.looks)
        if looks and evidence.study.acceptance.stop == "fixed":
            yield (
                f"wave {wave.number} of the sample ({count(wave.pairs, item)}, {wave.at:%Y-%m-%d}: {wave.reason}) was"
                f" added after {count(looks, 'look')} at verdicts, and acceptance.stop is fixed: who adds {item}s until"
                " a verdict pleases accepts wrongly more often than the rule says"
            )
        elif evidence.study.acceptance.stop == "anytime" and (others := _of_another_mix(evidence, wave.number)):
            yield (
                f"wave {wave.number} of the sample brings data sets, {judged}s or languages that were not in it"
                f" before ({_some(others)}): the anytime interval is one for {item}s of one kind throughout"
            )


def _of_another_mix(evidence: Evidence, wave: int) -> list[str]:
    """The groups judged apart whose pairs of a wave come from where none came from before."""
    found = []
    for names, own in evidence.collected.sample.groupby(SCOPES[evidence.study.acceptance.scope], observed=True):
        strata = own[["transformation", "language", "output_language", "dataset"]].agg(tuple, axis=1)
        before, new = set(strata[own["wave"] < wave]), set(strata[own["wave"] == wave])
        if before and new - before:
            found.append(" ".join(str(name).replace("_", " ") for name in names))
    return found


def _name(verdict: Verdict) -> str:
    return scoped(verdict.transformation, verdict.language, verdict.task_type)


def _some(said: Sequence[str]) -> str:
    return "; ".join(said) if len(said) <= _NAMED + 1 else f"{'; '.join(said[:_NAMED])}; and {len(said) - _NAMED} more"


def _adjudicators(evidence: Evidence) -> Iterator[str]:
    """Raters who had seen what judges say, be it of other pairs."""
    if evidence.study.raters.suggestions == "half":
        yield "raters saw judges' scores on the other half of the pairs, which may have moved what they say of this one"
    late = saw_scores(read_reviews(evidence.study), evidence.collected.of_sample)
    if late:
        yield f"{count(len(late), 'rater')} rated after having seen judges' scores as adjudicators: {_some(late)}"
