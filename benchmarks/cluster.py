"""How much faster several workers of a Ray cluster are than one: nodes on this machine, and services that only wait.

A node has a CPU of its own in name alone, so what is measured is what handing out and taking back cost, and what
workers wait for each other.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml

from benchmarks.generation import chat_server, server_stats, write_study
from benchmarks.registry import Measurement, benchmark
from plumbline.errors import StudyError
from plumbline.study import ROOT
from tests.ray_cluster import ENGINE, running

EMBEDDING = 0.05  # seconds of an answer of embeddings, likewise
BATCH = 8  # texts of a request
REQUESTS = 600  # for each worker, one after the other
LATENCY = 0.2  # seconds of an answer, up to a third more or less
IN_FLIGHT = 8  # of each worker
ROUNDS = 150  # texts for each request in flight, so that start and end weigh little
WORKERS = 4


@benchmark
def generation() -> Iterator[Measurement]:
    """Texts a second of four workers as so many times those of one: one transformation, one seed.

    The server measures it, from the first request that it saw to the last answer that it gave. All but the starting of
    Ray and planning is in that: workers that start later than the first, and those that end before the last.
    """
    if not ENGINE.exists():
        raise StudyError("the benchmark of the cluster needs the environment with Ray; run `make engine`")
    one, all_of_them = (texts_a_second(workers) for workers in (1, WORKERS))
    yield Measurement("cluster.generation_speedup_4", all_of_them / one, "times", at_least=3.6)


@benchmark
def evaluation() -> Iterator[Measurement]:
    """Texts a second of one model that four workers embed, as so many times those of one; measured in the same way."""
    if not ENGINE.exists():
        raise StudyError("the benchmark of the cluster needs the environment with Ray; run `make engine`")
    one, all_of_them = (embedded_a_second(workers) for workers in (1, WORKERS))
    yield Measurement("cluster.evaluation_speedup_4", all_of_them / one, "times", at_least=3.4)


def embedded_a_second(workers: int) -> float:
    """What so many workers embed of a data set of pairs, each with as much to do."""
    requests = workers * REQUESTS
    with tempfile.TemporaryDirectory() as folder, chat_server(EMBEDDING) as url, running(workers) as nodes:
        write_pairs(Path(folder), url, requests * BATCH // 2)
        command = [
            sys.executable,
            "-m",
            "plumbline",
            "evaluate",
            "--study",
            str(Path(folder, "study.yaml")),
            "--ray",
            "auto",
        ]
        command += ["--exports", str(Path(folder) / "exports"), "--include-rejected"]
        nothing = subprocess.DEVNULL
        subprocess.run(command, cwd=ROOT, env=nodes.environment, check=True, stdout=nothing, stderr=nothing)
        stats = server_stats(url)
    if stats["answered"] != requests:
        raise RuntimeError(f"{requests} requests expected, {stats['answered']} answered: something else was measured")
    return float(requests / stats["seconds"])


def write_pairs(folder: Path, url: str, pairs: int) -> None:
    """A study of one model behind a server and one data set of pairs, of which no text is there twice."""
    lines = [f"a person who waits {n},somebody who waits {n},{n % 6}\n" for n in range(pairs)]
    (folder / "pairs.csv").write_text("sentence1,sentence2,score\n" + "".join(lines), encoding="utf-8")
    model = {"name": "stub", "kind": "openai", "base_url": url, "settings": {"concurrency": 1}}
    study = {
        "name": "benchmark",
        "datasets": [{"name": "pairs", "task": "sts", "path": "pairs.csv", "language": "en"}],
        "transformations": ["paraphrasing"],
        "seeds": [1],
        "generator": {"kind": "recorded", "model": "none", "path": "none"},
        "evaluation": {"models": [model], "batch_size": BATCH},
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")


def texts_a_second(workers: int) -> float:
    """What so many workers of a cluster make of a study, each with as much to do."""
    jobs = workers * IN_FLIGHT * ROUNDS
    with tempfile.TemporaryDirectory() as folder, chat_server(LATENCY) as url, running(workers) as nodes:
        study = write_study(Path(folder), url, IN_FLIGHT, jobs)
        command = [sys.executable, "-m", "plumbline", "generate", "--study", str(study), "--ray", "auto"]
        command += ["--exports", str(Path(folder) / "exports")]
        nothing = subprocess.DEVNULL
        subprocess.run(command, cwd=ROOT, env=nodes.environment, check=True, stdout=nothing, stderr=nothing)
        stats = server_stats(url)
    if stats["answered"] != jobs:
        raise RuntimeError(f"{jobs} requests expected, {stats['answered']} answered: something else was measured")
    return float(jobs / stats["seconds"])
