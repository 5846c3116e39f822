"""The generator of transformations whose outputs stand in files of a user's own."""

from __future__ import annotations

from collections.abc import Mapping

from generation.generators import Attempt, Outcome
from generation.jobs import Job
from generation.recordings.outputs_file import load_outputs
from plumbline.errors import TextFailedError
from plumbline.study.transformations import Transformation
from plumbline.words import shows


class OutputsFiles:
    """Serves each transformation's outputs: a text that its file lacks has failed, for nothing will bring it."""

    concurrency = 1

    def __init__(self, outputs: Mapping[str, Mapping[str, str]]) -> None:
        self._outputs = outputs

    @classmethod
    def of(cls, kinds: Mapping[str, Transformation]) -> OutputsFiles:
        """Those of some transformations. Raises DataError for a file that cannot be used."""
        return cls({name: load_outputs(kind) for name, kind in kinds.items()})

    async def transform(self, job: Job, attempt: Attempt) -> Outcome:
        """What the file has. Raises TextFailedError where it has nothing."""
        output = self._outputs[job.transformation].get(job.text)
        if output is None or not shows(output):
            what = "does not have this text" if output is None else "has an empty output for it"
            raise TextFailedError(f"the file of outputs {what}")
        return Outcome(output, None, output, repeatable=False)

    async def close(self) -> None:
        """Nothing to let go of."""
