"""What the generator `openai` makes of the requests that it may have in flight, and how much memory a run takes.

Each run is a process of its own (`python -m benchmarks.generation STUDY`), as a person's is. So is the tests' chat
server, which must not take the generator's time.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from benchmarks.memory import forget_peak, memory
from benchmarks.registry import Measurement, benchmark
from generation.production import generate
from plumbline.study import ROOT, load_study

#: Requests in flight, and seconds that each takes: a chat model takes as long and more, which makes it easier.
LATENCIES = {16: 0.5, 64: 0.5, 256: 0.5, 1024: 2.0}
ROUNDS = 30  # jobs for each request in flight, so that start and end weigh little
RUNS = 3  # the median counts


@benchmark
def http_share_of_concurrency() -> Iterator[Measurement]:
    """How many requests the server had in flight on the mean, as a share of those that may be in flight.

    The server measures it, from the first request that it saw to the last answer that it gave: planning before that
    and tables after it take time too, but no requests could be in flight then.
    """
    for concurrency, latency in LATENCIES.items():
        with chat_server(latency) as url:
            shares = [_share(url, concurrency) for _ in range(RUNS)]
        name = f"generation.http_share_of_concurrency.{concurrency}"
        yield Measurement(name, statistics.median(shares), "ratio", at_least=0.95)


@benchmark
def http_memory() -> Iterator[Measurement]:
    """The most memory that a run takes above what it has at its start, for 100,000 texts, and for twice as many."""
    with chat_server(0.0) as url:
        small, large = (_run(url, concurrency=256, jobs=jobs)["mb"] for jobs in (100_000, 200_000))
    yield Measurement("generation.http_memory_mb_100k", small, "MB", at_most=400)
    yield Measurement("generation.http_memory_growth_200k", large / small, "ratio", at_most=1.1)


def _share(url: str, concurrency: int) -> float:
    jobs = concurrency * ROUNDS
    server_stats(url)  # forgets what was before
    _run(url, concurrency, jobs)
    stats = server_stats(url)
    if stats["answered"] != jobs:
        raise RuntimeError(f"{jobs} requests expected, {stats['answered']} answered: something else was measured")
    return float(stats["worked"] / stats["seconds"] / concurrency)


def _run(url: str, concurrency: int, jobs: int) -> dict[str, Any]:
    """Generate a study of so many jobs in a process of its own; what it tells of itself."""
    with tempfile.TemporaryDirectory() as folder:
        study = write_study(Path(folder), url, concurrency, jobs)
        command = [sys.executable, "-m", "benchmarks.generation", str(study)]
        told: dict[str, Any] = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    if told["ok"] != jobs:
        raise RuntimeError(f"{told['ok']} of {jobs} jobs succeeded: nothing was measured")
    return told


def write_study(folder: Path, url: str, concurrency: int, jobs: int) -> Path:
    rows = "".join(f"request number {number} of a person who waits,a\n" for number in range(jobs))
    (folder / "texts.csv").write_text("text,label\n" + rows, encoding="utf-8")
    study = {
        "name": "benchmark",
        "datasets": [{"name": "texts", "task": "clustering", "path": "texts.csv", "language": "en"}],
        "transformations": ["paraphrasing"],
        "seeds": [1],
        "generator": {"kind": "openai", "model": "stub", "base_url": url, "settings": {"concurrency": concurrency}},
        "evaluation": {"models": [{"name": "none"}]},
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    return folder / "study.yaml"


@contextlib.contextmanager
def chat_server(seconds: float) -> Iterator[str]:
    """The tests' chat server, which takes about so long for an answer; its address."""
    command = [sys.executable, "-m", "tests.stubs", "--seconds", str(seconds)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            address = process.stdout.readline().strip() if process.stdout else ""
            if not address:
                raise RuntimeError("the chat server of the tests did not start")
            yield address
        finally:
            process.kill()


def server_stats(url: str) -> dict[str, Any]:
    """What the chat server did since this was last called."""
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{url}/stats") as page:
        stats: dict[str, Any] = json.load(page)
    return stats


def _tell(path: Path) -> None:
    """Generate a study, and print how many texts succeeded and how much memory that took at most, in MB."""
    study = load_study(path, path.parent / "exports")
    forget_peak()
    before = memory("VmRSS")
    counts = generate(study)
    print(json.dumps({"ok": counts["ok"], "mb": memory("VmHWM") - before}))


if __name__ == "__main__":
    _tell(Path(sys.argv[1]))
