"""How much processor time the reports of a large study take, and how much memory; and commands on the sample study."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.dashboard import large_study, sample_study
from benchmarks.memory import command
from benchmarks.registry import Measurement, benchmark

PAIRS, MODELS = 100_000, 11
LIMITS = {"scores": (45, 1.4), "ratings": (18, 1.17)}  #: most seconds and gigabytes
SAMPLE = {"status": 2.2, "ratings-report": 4.5, "scores-report": 7.5}  #: most seconds


@benchmark
def seconds_100k() -> Iterator[Measurement]:
    """Processor time and peak memory of both commands, with their start: 100,000 pairs, 600,000 ratings, 11 models."""
    with tempfile.TemporaryDirectory() as folder:
        study = large_study(Path(folder), pairs=PAIRS, models=MODELS)
        for name, (most_seconds, most_gigabytes) in LIMITS.items():
            seconds, gigabytes = command(study, f"{name}-report")
            yield Measurement(f"report.{name}_seconds_100k", seconds, "s", at_most=most_seconds)
            yield Measurement(f"report.{name}_gigabytes_100k", gigabytes, "GB", at_most=most_gigabytes)


@benchmark
def seconds_sample() -> Iterator[Measurement]:
    """Processor time of commands on the sample study, with their start."""
    with tempfile.TemporaryDirectory() as folder:
        study = sample_study(folder)
        for name, most in SAMPLE.items():
            command(study, name)  # its modules are compiled by then, as an installation has them
            seconds, _ = command(study, name)
            yield Measurement(f"report.{name.replace('-', '_')}_seconds_sample", seconds, "s", at_most=most)
