"""The generator `recorded`: outputs that stand in JSONL files, one object a line.

Keys: text, transformation, language (the drawn one, or null), intermediate (the first call's output, or
null), output; and, for rehearsals, the author's own rating of the output: quality and fluency.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError

from generation.exceptions import DataError, StudyError, TextFailedError
from generation.generators import Outcome
from generation.jobs import Job
from generation.records import Record, nfc
from generation.study import RecordedGenerator, Study, first_complaint

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
    """Serves recordings; a text that has none fails, with that reason."""

    recordings: Mapping[Place, Recording]
    concurrency: int = 1

    @classmethod
    def of(cls, study: Study) -> Recorded:
        """The recordings that a study names. Raises StudyError if its generator is of another kind."""
        if not isinstance(study.generator, RecordedGenerator):
            raise StudyError(f"{study.file}: generator.kind is not 'recorded'; only recordings carry authors' ratings")
        return cls(load_recordings(study.resolve(study.generator.path)))

    def find(self, transformation: str, language: str | None, text: str) -> Recording | None:
        """The recording of a text (in NFC), if there is one."""
        return self.recordings.get((transformation, language, text))

    async def transform(self, job: Job) -> Outcome:
        """The recorded outcome. Raises TextFailedError where nothing was recorded."""
        found = self.find(job.transformation, job.language, job.text)
        if found is None:
            into = f" into {job.language!r}" if job.language else ""
            raise TextFailedError(f"nothing recorded for {job.transformation}{into}")
        return Outcome(found.output, found.intermediate)

    async def close(self) -> None:
        """Nothing to let go of."""


def load_recordings(path: Path) -> dict[Place, Recording]:
    """All recordings of a file, or of a folder's `.jsonl` files. Raises DataError with file and line."""
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    if not files or not files[0].exists():
        raise DataError(f"no recorded outputs at {path}; correct generator.path in the study")
    recordings: dict[Place, Recording] = {}
    for file in files:
        try:
            lines = file.read_text(encoding="utf-8").split("\n")  # not splitlines: texts may hold U+2028
        except UnicodeDecodeError as error:
            raise DataError(f"{file}: not UTF-8: {error}") from None
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                recording = Recording.model_validate(json.loads(line))
            except ValidationError as error:
                raise DataError(f"{file}: line {number}: {first_complaint(error)}") from None
            except json.JSONDecodeError as error:
                raise DataError(f"{file}: line {number} is not JSON: {error}") from None
            place = (recording.transformation, recording.language, nfc(recording.text))
            if place in recordings:
                raise DataError(f"{file}: line {number}: a second output for {place}; keep one")
            recordings[place] = recording
    return recordings
