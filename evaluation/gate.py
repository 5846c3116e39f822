"""The gate: only what people accepted is evaluated.

A verdict covers the transformation, the language of the originals, the output languages that were rated, and
the generator (its kind too) and prompts that made the rated texts, as long as these are still its outputs. What no
accepted verdict covers is left out, with the reason and what to do; the user may include it, and then every record of
it says so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from annotation.records import Verdict
from evaluation.records import Status
from generation.jobs import Maker
from plumbline.identity import identity
from plumbline.languages import language_name

_LATER = ("sequence", "without", "kept_out_share", "waves")  # came after the first verdicts: their hash is what it was


class Makers(Protocol):
    """What makes the texts of each transformation now (`generation.jobs.Plan`)."""

    @property
    def makers(self) -> Mapping[str, Maker]:
        """What makes them."""
        ...

    @property
    def prompts(self) -> Mapping[str, Sequence[object]]:
        """The prompts of its calls; none where no generator is asked."""
        ...

    @property
    def prompt_hashes(self) -> Mapping[str, str]:
        """Identities of these."""
        ...


@dataclass(frozen=True)
class GateDecision:
    """What happens to a unit, why if it is not simply evaluated, and the hashes of the verdicts that decided."""

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
    """Whether a unit (a data set, transformation and seed) may be evaluated.

    `languages` has each language of its originals with those that their outputs are in (codes): every one needs its
    verdict. `plan` says what generates now. Verdicts of other tasks than `task_type` are not asked; without one all
    are. `include_rejected` lets through what is refused, with status `included_rejected`.
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
        reason = f"{reason} (and {len(refused) - 1} more of its languages: {_names(refused[1:])})"
    return GateDecision("included_rejected" if include_rejected else "left_out", reason, hashes)


def withdrawn(decision: GateDecision, replaced: Mapping[str, str], *, include_rejected: bool) -> GateDecision:
    """The decision on outputs, by language of the originals, that are not the ones that were rated: never simply yes.

    `replaced` has the languages of the unit where that is so, and what is there instead.
    """
    if decision.status != "evaluated" or not replaced:
        return decision
    reason = replaced[min(replaced)]
    return GateDecision("included_rejected" if include_rejected else "left_out", reason, decision.verdicts)


def verdict_hash(verdict: Verdict) -> str:
    """Identity of a verdict as it stands in `verdicts.json`: another decision, reason or rating is another verdict."""
    later = {name for name in _LATER if getattr(verdict, name) == Verdict.model_fields[name].default}
    return identity("verdict-v1", verdict.model_dump_json(exclude=later))


def _found(
    verdicts: Sequence[Verdict], plan: Makers, transformation: str, language: str, output_languages: Collection[str]
) -> tuple[Verdict | None, str]:
    """The verdict on texts of one language that a generator and prompts in use made, and why it does not let through.

    There may be a reason without a verdict, and with one that does not cover all output languages.
    """
    named = [v for v in verdicts if v.transformation == transformation and v.language == language]
    if not named:
        rated = sorted({v.language for v in verdicts if v.transformation == transformation})
        rated_names = f" (rated in {_names(rated)} only)" if rated else ""
        return (
            None,
            f"no verdict for {transformation} in {language_name(language)}{rated_names}: have a sample of it rated",
        )
    prompted, reason = _made_now(named, plan, transformation)
    if reason:
        return None, reason
    # More than one verdict on one scope: the strictest holds.
    verdict = min(prompted, key=lambda v: ("rejected", "undecided", "accepted").index(v.decision))
    unrated = sorted(set(output_languages) - set(verdict.output_languages))
    if unrated:
        rated_names = _names(verdict.output_languages) or "none"
        reason = (
            f"nobody rated outputs in {_names(unrated)} (rated: {rated_names}): take a larger sample.pairs in a new"
            " study"
        )
        return verdict, reason
    if verdict.decision != "accepted":
        return verdict, f"{verdict.decision}: {'; '.join(verdict.reasons) or 'the verdict gives no reason'}"
    return verdict, ""


def _made_now(named: Sequence[Verdict], plan: Makers, transformation: str) -> tuple[list[Verdict], str]:
    """Those of at least one verdict that are on texts of the generator and prompts in use; why there is none."""
    maker = plan.makers[transformation]
    of_generator = [v for v in named if v.generator_hash == maker.hash]
    if not of_generator:
        rated_generator = f"{named[0].model!r} ({named[0].generator_hash[:8]})"
        now = f"{maker.model!r} ({maker.hash[:8]})"
        what = "generator or sampling" if plan.prompts[transformation] else "function or file of outputs"
        return [], f"the verdict is of another {what}, {rated_generator}, not of {now}: have its outputs rated"
    kind = maker.kind
    alike = [v for v in of_generator if v.generator_kind in ("", kind)]
    if not alike:
        was = f"{of_generator[0].generator_kind} outputs of {of_generator[0].model!r}"
        return [], f"the verdict is of {was}, not of {kind} ones: have these rated, or bring the study's kind back"
    prompted = [v for v in alike if v.prompt_hash == plan.prompt_hashes[transformation]]
    if not prompted:
        was, now = alike[0].prompt_hash[:8], plan.prompt_hashes[transformation][:8]
        return [], f"the verdict is of other prompts ({was}, now {now}): have the new outputs rated"
    return prompted, ""


def _names(codes: Collection[str]) -> str:
    return ", ".join(language_name(code) for code in codes)
