"""The generator `recorded`: outputs that stand in files (`generation.recordings`)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from generation.cleaning import clean
from generation.generators import Attempt, GenerationOutcome
from generation.jobs import Job
from generation.recordings.hteb import HtebOutputs, Recordings, is_published
from generation.recordings.own import Place, Recording, load_outputs, load_recordings, recordings_path
from plumbline.errors import TextFailedError, TextUnansweredError
from plumbline.study import Study
from plumbline.study.transformations import Transformation
from plumbline.words import shows


@dataclass(frozen=True)
class RecordedOutputs:
    """Serves recordings, our own or `published` ones; a text that has none stays without an answer."""

    recordings: Mapping[Place, Recording]
    published: HtebOutputs | None = None
    _units: dict[tuple[str, int], Recordings] = field(default_factory=dict, repr=False)  #: the unit read last
    concurrency: int = 1

    @classmethod
    def of(cls, study: Study) -> RecordedOutputs:
        """The recordings that a study names. Raises StudyError if its generator is of another kind."""
        path = recordings_path(study)
        if is_published(path):
            return cls({}, HtebOutputs(path, study))
        return cls(load_recordings(path))

    def find(self, transformation: str, language: str | None, text: str) -> Recording | None:
        """Our own recording of a text (in NFC), if there is one."""
        return self.recordings.get((transformation, language, text))

    async def transform(self, job: Job, attempt: Attempt) -> GenerationOutcome:
        """The recorded outcome. Raises TextUnansweredError where nothing was recorded."""
        if self.published is not None:
            output = (await self._unit(self.published, job)).output(job.text, job.source_language, job.language)
            return GenerationOutcome(clean(output), None, output, repeatable=False)
        recording = self.find(job.transformation, job.language, job.text)
        if recording is None:
            into = f" into {job.language!r}" if job.language else ""
            raise TextUnansweredError(f"nothing recorded for {job.transformation}{into}")
        return GenerationOutcome(clean(recording.output), recording.intermediate, recording.output, repeatable=False)

    async def _unit(self, published: HtebOutputs, job: Job) -> Recordings:
        """The recordings of the job's transformation and seed; they are kept until a job of another one comes."""
        of = job.transformation, job.seed
        if of not in self._units:
            self._units.clear()
            self._units[of] = await asyncio.to_thread(published.read, *of)
        return self._units[of]

    async def close(self) -> None:
        """Nothing to let go of."""


class OutputsFiles:
    """Serves each transformation's outputs: a text that its file lacks has failed, for nothing will bring it."""

    concurrency = 1

    def __init__(self, outputs: Mapping[str, Mapping[str, str]]) -> None:
        self._outputs = outputs

    @classmethod
    def of(cls, kinds: Mapping[str, Transformation]) -> OutputsFiles:
        """Those of some transformations. Raises DataError for a file that cannot be used."""
        return cls({name: load_outputs(kind) for name, kind in kinds.items()})

    async def transform(self, job: Job, attempt: Attempt) -> GenerationOutcome:
        """What the file has. Raises TextFailedError where it has nothing."""
        output = self._outputs[job.transformation].get(job.text)
        if output is None or not shows(output):
            what = "does not have this text" if output is None else "has an empty output for it"
            raise TextFailedError(f"the file of outputs {what}")
        return GenerationOutcome(output, None, output, repeatable=False)

    async def close(self) -> None:
        """Nothing to let go of."""
