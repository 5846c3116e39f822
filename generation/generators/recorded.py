"""The generator `recorded`: outputs that stand in files.

Our own are JSONL files, one object a line. Keys: text, transformation, language (the drawn one, or null), intermediate
(the first call's output, or null), output; and, for rehearsals, the author's own rating of the output: quality and
fluency. The folders that HTEB's authors publish are read by `generation.generators.published`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError

from generation.cleaning import clean
from generation.exceptions import DataError, StudyError, TextUnansweredError
from generation.generator_specs import RecordedGenerator
from generation.generators import Attempt, Outcome
from generation.generators.published import Published, is_published
from generation.jobs import Job
from generation.parts import first_complaint
from generation.reading import MalformedError, parse_json, read_text
from generation.records import Record, Text, nfc
from generation.study import Study

Place = tuple[str, str | None, str]  # transformation, drawn language, text


class Recording(Record):
    """One recorded output."""

    text: str = Field(min_length=1)
    transformation: str
    language: str | None
    intermediate: str | None
    output: str
    quality: int | None = Field(default=None, ge=1, le=5, description="the author's own rating; not a measurement")
    fluency: int | None = Field(default=None, ge=1, le=5, description="the author's own rating; not a measurement")


@dataclass(frozen=True)
class Recorded:
    """Serves recordings, our own or `published` ones; a text that has none stays without an answer."""

    recordings: Mapping[Place, Recording]
    published: Published | None = None
    concurrency: int = 1
    repeatable: bool = False

    @classmethod
    def of(cls, study: Study) -> Recorded:
        """The recordings that a study names. Raises StudyError if its generator is of another kind."""
        path = _path(study)
        if is_published(path):
            return cls({}, Published(path, study))
        return cls(load_recordings(path))

    def find(self, transformation: str, language: str | None, text: str) -> Recording | None:
        """Our own recording of a text (in NFC), if there is one."""
        return self.recordings.get((transformation, language, text))

    async def transform(self, job: Job, attempt: Attempt) -> Outcome:
        """The recorded outcome. Raises TextUnansweredError where nothing was recorded."""
        if self.published is not None:
            return await self.published.outcome(job)
        found = self.find(job.transformation, job.language, job.text)
        if found is None:
            into = f" into {job.language!r}" if job.language else ""
            raise TextUnansweredError(f"nothing recorded for {job.transformation}{into}")
        return Outcome(clean(found.output), found.intermediate, found.output)

    async def close(self) -> None:
        """Nothing to let go of."""


def recorded_languages(study: Study) -> Callable[[Text, str, int], str | None]:
    """The language of the recording of a text, transformation and seed; None where there is none, or it is the text's.

    Of published recordings a unit is read when it is first asked for. Raises DataError for files that cannot be used,
    StudyError for files of ours with several languages for a text.
    """
    path = _path(study)
    if is_published(path):
        unit = functools.cache(Published(path, study).read)
        return lambda text, transformation, seed: unit(transformation, seed).language(text)
    languages: dict[tuple[str, str], str | None] = {}
    for transformation, language, text in load_recordings(path):
        first = languages.setdefault((transformation, text), language)
        if first != language:
            raise StudyError(
                f"{study.file}: generator.languages cannot be 'recorded': {path} has {transformation} of one text in"
                f" {first!r} and {language!r}; keep one, or write 'drawn'"
            )

    def language_of(text: Text, transformation: str, _seed: int) -> str | None:
        language = languages.get((transformation, text.text))
        return None if language == text.language else language

    return language_of


def _path(study: Study) -> Path:
    """Where the recordings are that a study names."""
    if not isinstance(study.generator, RecordedGenerator):
        raise StudyError(f"{study.file}: generator.kind is not 'recorded'; only recordings carry authors' ratings")
    return study.resolve(study.generator.path)


def load_recordings(path: Path) -> dict[Place, Recording]:
    """All recordings of a file, or of a folder's `.jsonl` files. Raises DataError with file and line."""
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    if not files or not files[0].exists():
        raise DataError(f"no recorded outputs at {path}; correct generator.path in the study")
    recordings: dict[Place, Recording] = {}
    for file in files:
        lines = read_text(file).split("\n")  # not splitlines: texts may hold U+2028
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                recording = Recording.model_validate(parse_json(line))
            except ValidationError as error:
                raise DataError(f"{file}: line {number}: {first_complaint(error)}") from None
            except MalformedError as error:
                raise DataError(f"{file}: line {number} is not JSON: {error}") from None
            place = (recording.transformation, recording.language, nfc(recording.text))
            if place in recordings:
                raise DataError(f"{file}: line {number}: a second output for {place}; keep one")
            recordings[place] = recording
    return recordings
