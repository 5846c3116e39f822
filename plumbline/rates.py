"""Keep each run's speed in `rates/`, so that the next run's duration can be forecast in hours.

Each run writes its own file, because several may end at once; a killed run writes none. All rates are measured; none is
assumed.
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
from plumbline.store import as_models, clear_left, is_remote, read_json, write_json

Work = Literal["generation", "encoding"]


class Rate(BaseModel):
    """The measured speed of one run at one kind of work."""

    model_config = ConfigDict(frozen=True)

    work: Work
    what: str = Field(description="the transformation, or the embedding model")
    model: str
    identity: str = Field(description="identity of what determines the speed: generator and prompts, or the model")
    texts: int = Field(ge=1)
    characters: int = Field(ge=1, description="characters of the original texts")
    seconds: float = Field(gt=0, description="seconds that the run spent on them")
    gpu_seconds: float = Field(ge=0, description="seconds times GPUs in use; 0 without a GPU, or if a server has it")
    gpu: str = Field(description="kind of GPU; empty if the run used none")
    finished_at: AwareDatetime


class Stopwatch:
    """Measure a run's time and GPU time by kind of work: elapsed time goes to the next work noted.

    `gpus` is the number held now; update it on every change.
    """

    def __init__(self, gpus: int = 0, gpu: str = "") -> None:
        self.gpus, self.gpu = gpus, gpu
        self._last = time.monotonic()
        self._texts: Counter[str] = Counter()
        self._characters: Counter[str] = Counter()
        self._seconds: dict[str, float] = {}
        self._gpu_seconds: dict[str, float] = {}

    def start(self) -> None:
        """Start counting now."""
        self._last = time.monotonic()

    def note(self, what: str, texts: int, characters: int) -> None:
        """Note that texts are done."""
        now = time.monotonic()
        passed, self._last = now - self._last, now
        self.add(what, texts, characters, passed)

    def add(self, what: str, texts: int, characters: int, seconds: float) -> None:
        """Add texts done in this many seconds, in any process."""
        self._texts[what] += texts
        self._characters[what] += characters
        self._seconds[what] = self._seconds.get(what, 0.0) + seconds
        self._gpu_seconds[what] = self._gpu_seconds.get(what, 0.0) + seconds * self.gpus

    def rate(self, work: Work, what: str, model: str, identity: str) -> Rate | None:
        """Return the measured rate of a kind of work; None if nothing was done."""
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
    """Write a run's rates to a new file in a study's folder; without disk space, silently skip it."""
    measured = [rate for rate in rates if rate]
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}.json"
    with contextlib.suppress(OSError, ServiceError):  # no record rests on rates, so a run must not fail for them
        # Killed runs leave files whose names no later run takes again.
        for leftover in () if is_remote(folder) else (folder / "rates").glob(".*.tmp"):
            clear_left(leftover.with_name(leftover.name.removeprefix(".").rsplit(".", 2)[0]))
        if measured:
            write_json(folder / "rates" / name, measured)


def read_rates(folder: Path) -> list[Rate]:
    """Return the rates of a study's runs, and of studies whose records are beside it.

    A damaged file is left out, with a line on standard error: no record rests on it.
    """
    folders = [folder] if is_remote(folder) else folder.parent.glob("*")
    rates: list[Rate] = []
    for file in (file for folder in folders for file in sorted((folder / "rates").glob("*.json"))):
        try:
            rates += as_models(read_json(file, "", "delete it"), file, Rate, "delete it")
        except DataError as error:
            print(f"forecasts ignore a file: {error}", file=sys.stderr)
    return rates


def hours(
    rates: Collection[Rate], remaining: Mapping[str, tuple[str, int]]
) -> tuple[dict[str, float], float, list[str]]:
    """Forecast what is left: GPU hours by kind of GPU, hours without a GPU, and what was never measured.

    `remaining` maps each work's name to its identity and the characters of the texts left. Time is proportional to
    characters; of several kinds of GPU measured, the last one counts.
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
    """Say in words what `hours` returned."""
    by_gpu, alone, unmeasured = hours(rates, remaining)
    parts = [f"{_amount(number)} GPU hours ({gpu})" for gpu, number in by_gpu.items()]
    if alone:
        parts.append(f"{_amount(alone)} hours without this machine's GPUs")
    if unmeasured:
        parts.append(f"not measured yet: {', '.join(unmeasured)}")
    return f"by the rates of earlier runs: {'; '.join(parts)}"


def _amount(number: float) -> str:
    return f"about {number:.3g}" if number >= 0.01 else "less than 0.01"
