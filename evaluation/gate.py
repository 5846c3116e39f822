"""The gate: only what people accepted is evaluated.

A verdict covers a transformation, the language of the originals, the rated output languages, and the generator (with
its kind) and prompts of the rated texts, in the data sets and seeds that the sample was drawn from, as long as the
outputs are still those. Units that no accepted verdict covers are left out, with the reason and what to do; the study
may carry verdicts over to other data sets and seeds, and the user may include all units; then their records say so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from annotation.records import Verdict
from evaluation.records import Status
from generation.jobs import Maker
from plumbline.identity import identity
from plumbline.languages import language_name

CARRIED_OVER = "the verdict is carried over: no sample was drawn from these outputs"


class Makers(Protocol):
    """The present source of each transformation's texts (`generation.jobs.Plan`)."""

    @property
    def makers(self) -> Mapping[str, Maker]:
        """The source of each transformation's texts."""

    @property
    def prompts(self) -> Mapping[str, Sequence[object]]:
        """The prompts of each transformation's calls; none without a generator."""

    @property
    def prompt_hashes(self) -> Mapping[str, str]:
        """The identities of the prompts."""


@dataclass(frozen=True)
class GateDecision:
    """The status of a unit, the reason unless it is simply evaluated, and the hashes of the deciding verdicts."""

    status: Status
    reason: str
    verdicts: tuple[str, ...] = ()


def decide(
    verdicts: Sequence[Verdict],
    plan: Makers,
    *,
    transformation: str,
    languages: Mapping[str, Collection[str]],
    task_type: str = "",
    include_rejected: bool = False,
) -> GateDecision:
    """Decide whether a unit (a data set, transformation and seed) may be evaluated.

    `languages` has the output languages (codes) of each language of its originals; each of these needs a verdict.
    `plan` has the present generator and prompts. With a `task_type`, verdicts of other tasks do not count.
    `include_rejected` admits refused units with the status `included_rejected`.
    """
    if task_type:
        verdicts = [verdict for verdict in verdicts if verdict.task_type in ("", task_type)]
    decisions = {code: _found(verdicts, plan, transformation, code, languages[code]) for code in sorted(languages)}
    hashes = tuple(verdict_hash(verdict) for verdict, _ in decisions.values() if verdict is not None)
    refused = [code for code, (_, reason) in decisions.items() if reason]
    if not refused:
        return GateDecision("evaluated", "", hashes)
    reason = decisions[refused[0]][1]
    if len(refused) > 1:
        reason = f"{reason} (and {len(refused) - 1} more of the data set's languages: {_names(refused[1:])})"
    return GateDecision("included_rejected" if include_rejected else "left_out", reason, hashes)


def withdrawn(decision: GateDecision, replaced: Mapping[str, str], *, include_rejected: bool) -> GateDecision:
    """Return the decision, refused if its verdicts are not about these outputs.

    `replaced` has the reason for each language of the originals with other outputs.
    """
    if decision.status != "evaluated" or not replaced:
        return decision
    reason = replaced[min(replaced)]
    return GateDecision("included_rejected" if include_rejected else "left_out", reason, decision.verdicts)


def drawn_from(
    decision: GateDecision,
    verdicts: Sequence[Verdict],
    unit: tuple[str, str, int],
    outputs: Mapping[str, str],
    *,
    include_rejected: bool,
    carry_over: bool,
) -> GateDecision:
    """Return the decision, refused unless the sample of its verdicts was drawn from the unit's outputs.

    `unit` is its data set, transformation and seed; `outputs` has the hash of the outputs of each language of
    the originals. `carry_over` admits data sets and seeds that no sample was drawn from, with that as the reason, but
    no other outputs where one was.
    """
    dataset, transformation, seed = unit
    reasons, carried = dict[str, str](), False
    for language, current in outputs.items():
        supplies = [v.supply for v in verdicts if (v.transformation, v.language) == (transformation, language)]
        pools = [supply.outputs for supply in supplies if supply]
        hashes = {pool[dataset][seed] for pool in pools if seed in pool.get(dataset, {})}
        named = f"outputs of {dataset} in {language_name(language)} with seed {seed}"
        if hashes and current not in hashes:
            reasons[language] = (
                f"the {named} are not those that the sample was drawn from: restore them and the data set, or have the"
                " new outputs rated in a new study"
            )
        elif not hashes and not carry_over:
            reasons[language] = (
                f"no rated sample is from {named}: extend the sample and have it rated, or set evaluation.carry_over"
            )
        carried |= not hashes
    if carried and not reasons and decision.status == "evaluated":
        return replace(decision, reason=CARRIED_OVER)
    return withdrawn(decision, reasons, include_rejected=include_rejected)


def verdict_hash(verdict: Verdict) -> str:
    """Return the identity of a verdict: another decision, reason or number changes it, but not its last digits."""
    numbers = [f"{number:.9g}" for summary in verdict.questions for number in (summary.mean, summary.low, summary.high)]
    ratings = [verdict.n_pairs, *(summary.n_ratings for summary in verdict.questions)]
    return identity("verdict-v1", *verdict.unit, verdict.decision, list(verdict.reasons), ratings, numbers)


def _found(
    verdicts: Sequence[Verdict], plan: Makers, transformation: str, language: str, output_languages: Collection[str]
) -> tuple[Verdict | None, str]:
    """Return one language's verdict on the present generator and prompts, if any, and why it admits no texts, or ''."""
    named = [v for v in verdicts if v.transformation == transformation and v.language == language]
    if not named:
        rated = sorted({v.language for v in verdicts if v.transformation == transformation})
        rated_names = f" (rated in {_names(rated)} only)" if rated else ""
        return (None, f"no verdict for {transformation} in {language_name(language)}{rated_names}: have a sample rated")
    prompted, reason = _made_now(named, plan, transformation)
    if reason:
        return None, reason
    # More than one verdict on one scope: the strictest holds.
    verdict = min(prompted, key=lambda v: ("rejected", "undecided", "accepted").index(v.decision))
    unrated = sorted(set(output_languages) - set(verdict.output_languages))
    if unrated:
        rated_names = _names(verdict.output_languages) or "none"
        reason = (
            f"nobody rated outputs in {_names(unrated)} (rated: {rated_names}): set a larger sample.pairs in a new"
            " study"
        )
        return verdict, reason
    if verdict.decision != "accepted":
        return verdict, f"{verdict.decision}: {'; '.join(verdict.reasons) or 'the verdict gives no reason'}"
    return verdict, ""


def _made_now(named: Sequence[Verdict], plan: Makers, transformation: str) -> tuple[list[Verdict], str]:
    """Return the verdicts on texts of the present generator and prompts, and the reason if there are none."""
    maker = plan.makers[transformation]
    of_generator = [v for v in named if v.origin.generator_hash == maker.hash]
    if not of_generator:
        rated_generator = f"{named[0].origin.model!r} ({named[0].origin.generator_hash[:8]})"
        present = f"{maker.model!r} ({maker.hash[:8]})"
        source = "generator or sampling" if plan.prompts[transformation] else "function or file"
        rated_outputs = f"outputs of another {source}, {rated_generator}"
        return [], f"the verdict covers {rated_outputs}, now {present}: have the new outputs rated"
    kind = maker.kind
    of_kind = [v for v in of_generator if v.origin.generator_kind == kind]
    if not of_kind:
        was = f"{of_generator[0].origin.generator_kind} outputs of {of_generator[0].origin.model!r}"
        return [], f"the verdict covers {was}, now {kind}: have the new outputs rated, or restore the generator's kind"
    prompted = [v for v in of_kind if v.origin.prompt_hash == plan.prompt_hashes[transformation]]
    if not prompted:
        was, present = of_kind[0].origin.prompt_hash[:8], plan.prompt_hashes[transformation][:8]
        return [], f"the verdict covers outputs of other prompts ({was}, now {present}): have the new outputs rated"
    return prompted, ""


def _names(codes: Collection[str]) -> str:
    return ", ".join(language_name(code) for code in codes)
