"""What a study wants from the generator: one job for each distinct output, whatever data sets it serves."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from generation.recordings.own import recorded_languages
from plumbline.identity import identity, identity_from, prefix
from plumbline.prompts import Prompt, prompt_hash, prompts_of
from plumbline.records import Text
from plumbline.study import Study
from plumbline.study.generator import GeneratorSpec, RecordedGenerator
from plumbline.transformations import TRANSFORMATIONS, Transformation


@dataclass(frozen=True)
class Job:
    """One text to be transformed in one way. `key` is the identity of its output."""

    key: str
    text_id: str
    text: str
    source_language: str
    transformation: str
    seed: int
    language: str | None

    @property
    def languages(self) -> tuple[str, ...]:
        """The language that each call is told to answer in (codes)."""
        return TRANSFORMATIONS[self.transformation].call_languages(self.source_language, self.language)


class Plan:
    """The jobs of a study: what stands where is known before anything is generated.

    Reads the prompts once; raises StudyError if one is missing or malformed. Where the study takes the recorded
    languages, the first job that has one reads its unit's recordings, in every command.
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        self.generator_hash = generator_hash(study.generator)
        self.prompts: dict[str, tuple[Prompt, ...]] = {
            name: prompts_of(TRANSFORMATIONS[name], study.prompts) for name in study.transformations
        }
        self._starts: dict[tuple[str, int, tuple[str, ...]], Any] = {}
        self.prompt_hashes = {name: prompt_hash(prompts) for name, prompts in self.prompts.items()}

    def job(self, text: Text, transformation: str, seed: int) -> Job:
        """The job whose output stands for this text of this data set."""
        kind: Transformation = TRANSFORMATIONS[transformation]
        language = kind.language(seed=seed, dataset=text.dataset, text=text.text, source=text.language)
        if language is not None and self._recorded is not None:
            language = self._recorded(text, transformation, seed) or language
        languages = kind.call_languages(text.language, language)
        start = self._starts.get((transformation, seed, languages))
        if start is None:
            start = prefix(
                "transformed-v2",
                self.generator_hash,
                self.prompt_hashes[transformation],
                transformation,
                seed,
                languages,
            )
            self._starts[transformation, seed, languages] = start
        key = identity_from(start, text.text)
        return Job(key, text.text_id, text.text, text.language, transformation, seed, language)

    def jobs(self, texts: Iterable[Text], transformation: str, seed: int) -> Iterator[Job]:
        """The distinct jobs of one unit, in the texts' order: equal texts are transformed once."""
        seen: set[str] = set()
        for text in texts:
            job = self.job(text, transformation, seed)
            if job.key not in seen:
                seen.add(job.key)
                yield job

    @functools.cached_property
    def _recorded(self) -> Callable[[Text, str, int], str | None] | None:
        """The languages of recordings, where the study takes them."""
        spec = self.study.generator
        if not isinstance(spec, RecordedGenerator) or spec.languages == "drawn":
            return None
        return recorded_languages(self.study)


def generator_hash(spec: GeneratorSpec) -> str:
    """Identity of what generates: model, revision and sampling; not its address, retries or concurrency."""
    return identity("generator-v1", *spec.identity())
