"""How much processor time the reports of a large study take, and how much memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.dashboard import large_study
from benchmarks.memory import command
from benchmarks.registry import Measurement, benchmark

PAIRS, MODELS = 100_000, 11
LIMITS = {"scores": (60, 2.5), "ratings": (40, 2.0)}  #: most seconds and gigabytes


@benchmark
def seconds_100k() -> Iterator[Measurement]:
    """Processor time and peak memory of both commands, with their start: 100,000 pairs, 600,000 ratings, 11 models."""
    with tempfile.TemporaryDirectory() as folder:
        study = large_study(Path(folder), pairs=PAIRS, models=MODELS)
        for name, (most_seconds, most_gigabytes) in LIMITS.items():
            seconds, gigabytes = command(study, f"{name}-report")
            yield Measurement(f"report.{name}_seconds_100k", seconds, "s", at_most=most_seconds)
            yield Measurement(f"report.{name}_gigabytes_100k", gigabytes, "GB", at_most=most_gigabytes)
