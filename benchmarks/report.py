"""How long the reports of a large study take, and how much memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.dashboard import large_study
from benchmarks.memory import wait
from benchmarks.registry import Measurement, benchmark

PAIRS, MODELS = 100_000, 11
_MB = 1 << 20
LIMITS = {"scores": (60, 2.5), "ratings": (40, 2.0)}  #: most seconds and gigabytes


@benchmark
def seconds_100k() -> Iterator[Measurement]:
    """Seconds and peak memory of both commands, with their start: 100,000 pairs, 600,000 ratings, 11 models."""
    with tempfile.TemporaryDirectory() as folder:
        study = large_study(Path(folder), pairs=PAIRS, models=MODELS)
        for name, (most_seconds, most_gigabytes) in LIMITS.items():
            command = [sys.executable, "-m", "plumbline", f"{name}-report", "--study", str(study.file)]
            start = time.perf_counter()
            process = subprocess.Popen([*command, "--exports", str(study.folder.parent)], stdout=subprocess.DEVNULL)
            status, megabytes = wait(process)
            seconds = time.perf_counter() - start
            if status:
                raise RuntimeError(f"{name}-report failed: nothing was measured")
            yield Measurement(f"report.{name}_seconds_100k", seconds, "s", at_most=most_seconds)
            yield Measurement(f"report.{name}_gigabytes_100k", megabytes * _MB / 1e9, "GB", at_most=most_gigabytes)
