"""The generator of transformations that are functions (`generation.functions`): each is called twice for a text."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from generation.functions import Function, load_function
from generation.generators import Attempt, GenerationOutcome
from generation.jobs import Job
from plumbline.errors import TextFailedError
from plumbline.study.transformations import Transformation
from plumbline.words import shows

_MOST = 200  # characters of what an exception says


class Functions:
    """Calls functions in a thread of their own, one at a time, so that none need be safe for threads."""

    concurrency = 1

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self._functions = functions
        self._thread = ThreadPoolExecutor(1)

    @classmethod
    def of(cls, kinds: Mapping[str, Transformation]) -> Functions:
        """Those of some transformations. Importing them runs code; raises StudyError where one cannot be."""
        return cls({name: load_function(kind.function) for name, kind in kinds.items()})

    async def transform(self, job: Job, attempt: Attempt) -> GenerationOutcome:
        """What the function gives. Raises TextFailedError where that is no text, or not twice the same."""
        call = functools.partial(_called, self._functions[job.transformation], job)
        text = await asyncio.get_running_loop().run_in_executor(self._thread, call)
        return GenerationOutcome(text, None, text, repeatable=False)

    async def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def _called(function: Function, job: Job) -> str:
    """The text that a function gives, if it does so twice."""
    first, second = (_once(function, job) for _ in range(2))
    if first != second:
        raise TextFailedError("the function gave another text when it was called again with the same arguments")
    return first


def _once(function: Function, job: Job) -> str:
    try:
        text = function(job.text, language=job.languages[-1], seed=job.seed)
    except (Exception, SystemExit) as error:  # whatever its code raises
        message = " ".join(str(error).split())[:_MOST]
        raise TextFailedError(
            f"the function raised {type(error).__name__}{f': {message}' if message else ''}"
        ) from None
    if not isinstance(text, str):
        raise TextFailedError(f"the function gave {type(text).__name__}, not a text")
    if not shows(text):
        raise TextFailedError("the function gave an empty text")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise TextFailedError("the function gave half a character, which is no text") from None
    if "\0" in text:
        raise TextFailedError("the function gave a null character, which is no text")
    return str(text)
