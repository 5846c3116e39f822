"""How much of the concurrency that a study asks for the generator `openai` keeps in flight."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import yaml

from benchmarks.registry import Measurement, benchmark
from generation.run import generate
from generation.study import ROOT, Study, load_study

LATENCY = 0.05  # seconds; a chat model takes ten times as long and more, which makes it easier
ROUNDS = 60  # jobs for each request in flight, so that start and end weigh little


@benchmark
def http_share_of_concurrency() -> Iterator[Measurement]:
    """Jobs a second over concurrency / latency, which is all that so many requests in flight can give."""
    with _server() as url:
        _share(url, concurrency=8, jobs=80)  # imports and first connections are not what is measured
        # One process makes about a thousand requests a second; a limit above 16 in flight waits for a leaner transport.
        yield Measurement("generation.http_share_of_concurrency.16", _share(url, 16, 16 * ROUNDS), "ratio", 0.80)
        yield Measurement("generation.http_share_of_concurrency.64", _share(url, 64, 64 * ROUNDS), "ratio")
        yield Measurement("generation.http_share_of_concurrency.256", _share(url, 256, 64 * ROUNDS), "ratio")


def _share(url: str, concurrency: int, jobs: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        study = _study(Path(folder), url, concurrency, jobs)
        start = time.perf_counter()
        counts = generate(study)
        seconds = time.perf_counter() - start
    if counts["ok"] != jobs:
        raise RuntimeError(f"{counts['ok']} of {jobs} jobs succeeded: nothing was measured")
    return jobs / seconds / (concurrency / LATENCY)


def _study(folder: Path, url: str, concurrency: int, jobs: int) -> Study:
    rows = "".join(f"request number {number} of a person who waits,a\n" for number in range(jobs))
    (folder / "texts.csv").write_text("text,label\n" + rows, encoding="utf-8")
    generator = {"kind": "openai", "model": "stub", "base_url": url, "concurrency": concurrency}
    study = {
        "name": "benchmark",
        "datasets": [{"name": "texts", "task": "clustering", "path": "texts.csv", "language": "en"}],
        "transformations": ["paraphrasing"],
        "seeds": [1],
        "generator": generator,
        "evaluation": {"models": [{"name": "none"}]},
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    return load_study(folder / "study.yaml", folder / "exports")


@contextlib.contextmanager
def _server() -> Iterator[str]:
    """The tests' chat server, in a process of its own so that it does not take the generator's time."""
    command = [sys.executable, "-m", "tests.stubs", "--seconds", str(LATENCY)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            address = process.stdout.readline().strip() if process.stdout else ""
            if not address:
                raise RuntimeError("the chat server of the tests did not start")
            yield address
        finally:
            process.kill()
