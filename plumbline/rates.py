"""`rates/`: how fast runs of a study were, so that the next one can be told in hours before it begins.

Each run leaves a file of its own, because several may end at once; what `kill -9` ends leaves none, and the next run
measures. What stands there was measured; nothing is assumed.
"""

from __future__ import annotations

import contextlib
import secrets
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from plumbline.errors import DataError, ServiceError
from plumbline.store import as_models, is_remote, read_json, write_json

Work = Literal["generation", "encoding"]


class Rate(BaseModel):
    """What one run measured of one kind of work."""

    model_config = ConfigDict(frozen=True)

    work: Work
    what: str = Field(description="the transformation, or the model that encodes")
    model: str
    identity: str = Field(description="of what makes the work as long as it is: generator and prompts, or the model")
    texts: int = Field(ge=1)
    characters: int = Field(ge=1, description="of the original texts")
    seconds: float = Field(gt=0, description="that the run spent on them")
    gpu_seconds: float = Field(
        ge=0, description="the same for each GPU that was held; 0 without, or where a server has it"
    )
    gpu: str = Field(description="what kind of GPU; empty where none was held")
    finished_at: AwareDatetime


class Stopwatch:
    """Time and GPU time of a run, kind of work by kind of work: what passes is of whatever is noted next.

    `gpus` is how many are held now; change it when that changes.
    """

    def __init__(self, gpus: int = 0, gpu: str = "") -> None:
        self.gpus, self.gpu = gpus, gpu
        self._last = time.monotonic()
        self._texts: Counter[str] = Counter()
        self._characters: Counter[str] = Counter()
        self._seconds: dict[str, float] = {}
        self._gpu_seconds: dict[str, float] = {}

    def start(self) -> None:
        """Count from now on."""
        self._last = time.monotonic()

    def note(self, what: str, texts: int, characters: int) -> None:
        """So many texts are done."""
        now = time.monotonic()
        passed, self._last = now - self._last, now
        self.add(what, texts, characters, passed)

    def add(self, what: str, texts: int, characters: int, seconds: float) -> None:
        """So many texts were done in so many seconds, wherever that was."""
        self._texts[what] += texts
        self._characters[what] += characters
        self._seconds[what] = self._seconds.get(what, 0.0) + seconds
        self._gpu_seconds[what] = self._gpu_seconds.get(what, 0.0) + seconds * self.gpus

    def rate(self, work: Work, what: str, model: str, identity: str) -> Rate | None:
        """What was measured of a kind of work; None where nothing was done."""
        if not self._characters[what] or not self._seconds[what]:
            return None
        return Rate(
            work=work,
            what=what,
            model=model,
            identity=identity,
            texts=self._texts[what],
            characters=self._characters[what],
            seconds=self._seconds[what],
            gpu_seconds=self._gpu_seconds[what],
            gpu=self.gpu,
            finished_at=datetime.now(UTC),
        )


def keep_rates(folder: Path, rates: Iterable[Rate | None]) -> None:
    """Write what a run measured to a file of its own in a study's folder; without room for it, nothing is said."""
    measured = [rate for rate in rates if rate]
    if measured:
        name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}.json"
        with contextlib.suppress(OSError, ServiceError):  # no record rests on it, and a run does not fail for it
            write_json(folder / "rates" / name, measured)


def read_rates(folder: Path) -> list[Rate]:
    """What runs of the study of a folder have measured, and those of others whose records are beside it.

    A damaged file is left out, with a line on standard error: no record rests on it.
    """
    folders = [folder] if is_remote(folder) else folder.parent.glob("*")
    rates: list[Rate] = []
    for file in (file for folder in folders for file in sorted((folder / "rates").glob("*.json"))):
        try:
            rates += as_models(read_json(file, "", "delete it"), file, Rate, "delete it")
        except DataError as error:
            print(f"left out: {error}", file=sys.stderr)
    return rates


def hours(
    rates: Collection[Rate], remaining: Mapping[str, tuple[str, int]]
) -> tuple[dict[str, float], float, list[str]]:
    """What is left, by measured rates: GPU hours by kind of GPU, hours without a GPU of ours, and what is not measured.

    `remaining` are for each work, by the name that it is told by, its identity and the characters of the texts that are
    left. Time goes by characters, whatever the texts' lengths; of several kinds of GPU that were measured the last one
    counts.
    """
    by_gpu: dict[str, float] = {}
    alone, unmeasured = 0.0, []
    for name, (identity, characters) in remaining.items():
        same = [rate for rate in rates if rate.identity == identity]
        last = max(same, key=lambda rate: rate.finished_at, default=None)
        alike = [rate for rate in same if last and rate.gpu == last.gpu]
        measured = sum(rate.characters for rate in alike)
        if last is None:
            unmeasured.append(name)
        elif last.gpu:
            seconds = sum(rate.gpu_seconds for rate in alike) / measured * characters
            by_gpu[last.gpu] = by_gpu.get(last.gpu, 0.0) + seconds / 3600
        else:
            alone += sum(rate.seconds for rate in alike) / measured * characters / 3600
    return by_gpu, alone, unmeasured


def in_words(rates: Collection[Rate], remaining: Mapping[str, tuple[str, int]]) -> str:
    """What `hours` says of what is left."""
    by_gpu, alone, unmeasured = hours(rates, remaining)
    parts = [f"{_amount(number)} GPU hours ({gpu})" for gpu, number in by_gpu.items()]
    if alone:
        parts.append(f"{_amount(alone)} hours with no GPU of this machine")
    if unmeasured:
        parts.append(f"not measured yet: {', '.join(unmeasured)}")
    return f"by the rates of earlier runs: {'; '.join(parts)}"


def _amount(number: float) -> str:
    return f"about {number:.3g}" if number >= 0.01 else "less than 0.01"
