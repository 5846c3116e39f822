"""Make the output of a job: attempts, error types, and the study's retry policy."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from generation.flags import clean, find_flags
from generation.generators import GenerationOutcome, Generator
from generation.jobs import Job, Plan
from plumbline.error_types import Flag
from plumbline.models.chat import Attempt, ask_until
from plumbline.records import TransformedText
from plumbline.study.transformations import Transformation
from plumbline.words import count

#: Error types that lead to another attempt. The language of a short text is sometimes detected wrongly, and some texts
#: have no paraphrase, so `wrong_language` and `identical` do not.
_AGAIN: tuple[Flag, ...] = (
    *("empty", "ellipsis", "json_fragment", "reasoning_leak", "prefix_leak", "runaway", "truncated"),
)


async def make_output(plan: Plan, generator: Generator, job: Job) -> TransformedText:
    """Ask until an output is good or the attempts are used up; return the record, with the reason.

    Raises ServiceError if no text can succeed.
    """
    results: list[tuple[GenerationOutcome, tuple[Flag, ...], list[Flag]]] = []

    def is_bad(outcome: GenerationOutcome) -> bool:
        flags = _flags(plan, job, outcome, by_language=False)  # identifying a language is slow
        faults = [flag for flag in flags if flag in _AGAIN]
        if faults:  # an error type that the original has too is not the output's fault
            of_original = find_flags(job.text, job.text, plan.kinds[job.transformation], language=job.source_language)
            faults = [flag for flag in faults if flag not in of_original]
        results.append((outcome, flags, faults))
        return bool(faults) or outcome.cut_off

    first = Attempt(1, job.seed, plan.study.generator.sampling)
    ended = await ask_until(functools.partial(generator.transform, job), is_bad, first)
    again = ended.status or len(results) > 1
    first_flags = _flags(plan, job, results[0][0], by_language=True) if results and again else ()
    if ended.status:
        return _record(
            plan, job, status=ended.status, reason=ended.reason, first_flags=first_flags, attempts=ended.attempts
        )
    outcome, flags, faults = results[-1]
    reason = _reason(faults, outcome, ended.last, plan.study.generator.length_key)
    return _record(
        plan,
        job,
        intermediate=outcome.intermediate,
        output="" if reason else outcome.output,
        raw=outcome.raw if reason or outcome.raw != outcome.output else None,
        status="failed" if reason else "ok",
        reason=reason,
        flags=flags,
        first_flags=first_flags if again else flags,
        attempts=ended.attempts,
    )


def with_language(output: TransformedText, kind: Transformation) -> TransformedText:
    """Return an output with `wrong_language` flagged too, which `make_output` leaves for later.

    `kind` is the output's transformation.
    """
    answer = output.output if output.raw is None else clean(output.raw) if kind.calls else output.raw
    if output.status != "ok" and output.raw is None:
        return output  # there was no last answer
    language = kind.output_language(output.source_language, output.language)
    flags = find_flags(output.text, answer, kind, language=language)
    return output.model_copy(
        update={"flags": flags, "first_flags": flags if output.attempts == 1 else output.first_flags}
    )


def _flags(plan: Plan, job: Job, outcome: GenerationOutcome, *, by_language: bool) -> tuple[Flag, ...]:
    """Return the error types of an answer (of its part if it was cut off), with wrong language if `by_language`."""
    output = clean(outcome.raw) if outcome.cut_off else outcome.output
    return find_flags(
        job.text, output, plan.kinds[job.transformation], language=job.languages[-1] if by_language else None
    )


def _reason(flags: Sequence[Flag], outcome: GenerationOutcome, attempt: Attempt, length_key: str) -> str:
    """Return the reason for a missing output, in one line; empty if there is an output."""
    tries = f"after {count(attempt.number, 'attempt')}"
    if outcome.cut_off:
        return f"cut off by max_tokens ({attempt.sampling.max_tokens}) {tries}; raise generator.{length_key}"
    if flags:
        return f"{', '.join(flags)} {tries}".replace("_", " ")
    return "" if outcome.output else f"empty {tries}"


def _record(plan: Plan, job: Job, **fields: Any) -> TransformedText:
    nothing = {"intermediate": None, "output": "", "raw": None, "flags": ()}
    return TransformedText(
        key=job.key,
        text_id=job.text_id,
        text=job.text,
        source_language=job.source_language,
        transformation=job.transformation,
        seed=job.seed,
        language=job.language,
        **{**nothing, **fields},
        model=plan.makers[job.transformation].model,
        generator_hash=plan.makers[job.transformation].hash,
        prompt_hash=plan.prompt_hashes[job.transformation],
        finished_at=datetime.now(UTC),
    )
