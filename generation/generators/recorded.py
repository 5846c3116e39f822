"""The generator `recorded`: outputs that stand in files (`generation.recordings`)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from generation.cleaning import clean
from generation.generators import Attempt, Outcome
from generation.jobs import Job
from generation.recordings.hteb import Published, Recordings, is_published
from generation.recordings.own import Place, Recording, load_recordings, recordings_path
from plumbline.errors import TextUnansweredError
from plumbline.study import Study


@dataclass(frozen=True)
class Recorded:
    """Serves recordings, our own or `published` ones; a text that has none stays without an answer."""

    recordings: Mapping[Place, Recording]
    published: Published | None = None
    _units: dict[tuple[str, int], Recordings] = field(default_factory=dict, repr=False)  #: the unit read last
    concurrency: int = 1

    @classmethod
    def of(cls, study: Study) -> Recorded:
        """The recordings that a study names. Raises StudyError if its generator is of another kind."""
        path = recordings_path(study)
        if is_published(path):
            return cls({}, Published(path, study))
        return cls(load_recordings(path))

    def find(self, transformation: str, language: str | None, text: str) -> Recording | None:
        """Our own recording of a text (in NFC), if there is one."""
        return self.recordings.get((transformation, language, text))

    async def transform(self, job: Job, attempt: Attempt) -> Outcome:
        """The recorded outcome. Raises TextUnansweredError where nothing was recorded."""
        if self.published is not None:
            output = (await self._unit(self.published, job)).output(job.text, job.source_language, job.language)
            return Outcome(clean(output), None, output, repeatable=False)
        found = self.find(job.transformation, job.language, job.text)
        if found is None:
            into = f" into {job.language!r}" if job.language else ""
            raise TextUnansweredError(f"nothing recorded for {job.transformation}{into}")
        return Outcome(clean(found.output), found.intermediate, found.output, repeatable=False)

    async def _unit(self, published: Published, job: Job) -> Recordings:
        """The recordings of the job's transformation and seed; they are kept until a job of another one comes."""
        of = job.transformation, job.seed
        if of not in self._units:
            self._units.clear()
            self._units[of] = await asyncio.to_thread(published.read, *of)
        return self._units[of]

    async def close(self) -> None:
        """Nothing to let go of."""
