"""Attempts and the retry policy, with a generator whose answers are a script."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from generation.flags import clean
from generation.generators import GenerationOutcome
from generation.jobs import Job, Plan
from generation.output import make_output, with_language
from plumbline.errors import TextFailedError, TextUnansweredError
from plumbline.models.chat import Attempt
from plumbline.records import TransformedText
from plumbline.study.transformations import EIGHT
from tests.generation.helpers import server, small_study, text

PARAPHRASING = EIGHT["paraphrasing"]
ORIGINAL = "the quick brown fox jumps over the lazy dog"
GOOD = "a fast brown fox leaps over a dog that is lazy"
SHORT = "fox"  # 1 of 9 words: under 20%, truncated


@dataclass
class Scripted:
    """Answers in the order of the script: texts, errors, or outcomes."""

    script: Sequence[str | Exception | GenerationOutcome]
    repeatable: bool = True
    concurrency: int = 1
    attempts: list[Attempt] = field(default_factory=list)

    async def transform(self, job: Job, attempt: Attempt) -> GenerationOutcome:
        self.attempts.append(attempt)
        answer = self.script[attempt.number - 1]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, GenerationOutcome):
            return answer
        return GenerationOutcome(clean(answer), None, answer, repeatable=self.repeatable)

    async def close(self) -> None: ...


def made(
    folder: Path, script: Sequence[str | Exception | GenerationOutcome], original: str = ORIGINAL, **changes: Any
) -> tuple[TransformedText, list[Attempt]]:
    generator = Scripted(script, repeatable=changes.pop("repeatable", True))
    sampling = {"temperature": 0.0, "top_p": 0.9, "max_tokens": 100}
    study = small_study(folder, generator=server("http://127.0.0.1:1/v1", sampling=sampling), **changes)
    plan = Plan(study)
    job = plan.job(text(original), "paraphrasing", 1)
    return asyncio.run(make_output(plan, generator, job)), generator.attempts


def test_a_good_first_answer_is_taken_as_the_method_prescribes(tmp_path: Path) -> None:
    output, attempts = made(tmp_path, [f' "{GOOD}" '])
    assert (output.output, output.raw, output.status, output.attempts) == (GOOD, f' "{GOOD}" ', "ok", 1)
    assert (output.flags, output.first_flags) == ((), ())
    (only,) = attempts
    assert (only.seed, only.sampling.temperature, only.sampling.top_p, only.sampling.max_tokens) == (1, 0.0, 0.9, 100)


def test_a_flagged_answer_is_asked_again_with_another_seed_and_temperature(tmp_path: Path) -> None:
    output, attempts = made(tmp_path, [SHORT, "...", GOOD])
    assert (output.output, output.status, output.attempts) == (GOOD, "ok", 3)
    assert (output.flags, output.first_flags) == ((), ("truncated",))
    assert [attempt.sampling.temperature for attempt in attempts] == [0.0, 0.7, 0.7]
    assert len({attempt.seed for attempt in attempts}) == 3
    assert {attempt.sampling.max_tokens for attempt in attempts} == {100}


def test_attempts_are_the_same_in_every_run(tmp_path: Path) -> None:
    runs = [[attempt.seed for attempt in made(tmp_path, [SHORT, SHORT, GOOD])[1]] for _ in range(2)]
    assert runs[0] == runs[1]


def test_what_still_fails_is_failed_with_its_reason_and_has_no_output(tmp_path: Path) -> None:
    output, attempts = made(tmp_path, [SHORT, SHORT, "..."])
    assert len(attempts) == 3
    assert (output.status, output.output, output.raw) == ("failed", "", "...")
    assert output.reason == "ellipsis, truncated after 3 attempts"
    assert (output.first_flags, output.flags) == (("truncated",), ("ellipsis", "truncated"))


def test_a_flag_that_the_policy_does_not_name_is_kept_and_the_output_too(tmp_path: Path) -> None:
    output, attempts = made(tmp_path, [ORIGINAL.upper()])
    assert (output.status, output.output, output.flags) == ("ok", ORIGINAL.upper(), ("identical",))
    assert len(attempts) == 1


GERMAN = "ein schneller brauner Fuchs springt über den faulen Hund"


def test_the_language_is_told_at_the_end(tmp_path: Path) -> None:
    output, _ = made(tmp_path, [GERMAN])
    assert (output.status, output.flags) == ("ok", ())
    told = with_language(output, PARAPHRASING)
    assert (told.flags, told.first_flags) == (("wrong_language",), ("wrong_language",))


def test_the_first_attempts_flags_stay_when_the_language_of_the_last_is_told(tmp_path: Path) -> None:
    output, _ = made(tmp_path, [f"Paraphrase: {GERMAN}", GOOD])
    assert output.first_flags == ("prefix_leak", "wrong_language")
    assert with_language(output, PARAPHRASING) == output
    failed, _ = made(tmp_path, [f"Paraphrase: {GERMAN}"] * 3)
    assert (failed.status, with_language(failed, PARAPHRASING).flags) == ("failed", ("prefix_leak", "wrong_language"))
    refused, _ = made(tmp_path, [f"Paraphrase: {GERMAN}", TextFailedError("too long")])
    assert with_language(refused, PARAPHRASING) == refused


def test_an_error_type_that_the_original_shows_itself_is_not_the_outputs_fault(tmp_path: Path) -> None:
    output, attempts = made(tmp_path, ["[Laughter] what a day it was"], original="[laughs] what a day that was")
    assert (output.status, output.flags, len(attempts)) == ("ok", ("json_fragment",), 1)


def test_an_answer_that_was_cut_off_gets_more_room(tmp_path: Path) -> None:
    cut = GenerationOutcome("", None, GOOD[:20], cut_off=True)
    output, attempts = made(tmp_path, [cut, cut, GOOD])
    assert [attempt.sampling.max_tokens for attempt in attempts] == [100, 200, 400]
    assert (output.output, output.status) == (GOOD, "ok")
    output, attempts = made(tmp_path, [cut] * 3)
    assert (output.status, output.raw) == ("failed", GOOD[:20])
    assert output.reason == "cut off by max_tokens (400) after 3 attempts; raise generator.sampling.max_tokens"


def test_no_answer_is_unanswered_and_a_refusal_is_failed(tmp_path: Path) -> None:
    output, attempts = made(tmp_path, [TextUnansweredError("status 503")])
    assert (output.status, output.reason, output.attempts, len(attempts)) == ("unanswered", "status 503", 0, 1)
    output, _ = made(tmp_path, [SHORT, TextFailedError("too long")])
    assert (output.status, output.reason, output.attempts) == ("failed", "too long", 1)
    assert (output.first_flags, output.flags) == (("truncated",), ())


def test_a_generator_that_always_says_the_same_is_asked_once(tmp_path: Path) -> None:
    output, attempts = made(tmp_path, [SHORT], repeatable=False)
    assert (output.status, len(attempts)) == ("failed", 1)
