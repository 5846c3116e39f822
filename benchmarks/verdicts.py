"""How long agreement, intervals and verdicts take."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np
import pandas as pd

from annotation.campaign.counting import counting_ratings
from annotation.statistics.summaries import Design, table_two
from annotation.verdicts.counted import with_enough
from annotation.verdicts.verdicts import judged_sample, pair_means
from benchmarks.memory import memory
from benchmarks.registry import Measurement, benchmark
from plumbline.identity import identity
from plumbline.records import Pair
from plumbline.study.campaign import AcceptanceSpec
from plumbline.study.transformations import EIGHT

RATINGS = 1_000_000
LANGUAGES = ("am", "ar", "de", "en", "es", "fr", "ha", "hi", "ja", "sw")
RATERS = 12  # in each language; any three of them rate a pair
DESIGN = Design(("quality", "fluency"), (1, 2, 3, 4, 5), 3, AcceptanceSpec(rule="lower_bound", scope="task"))


@benchmark
def seconds_1m() -> Iterator[Measurement]:
    """Seconds and peak memory for 1,000,000 ratings: which count, Table 2 with 1,000 resamples, verdicts, pairs' means.

    Eight transformations, ten languages, twelve raters in each, three task types. A process of its own, of
    which making the ratings up is not counted in the time, but is in the memory.
    """
    done = subprocess.run(
        [sys.executable, "-c", "import benchmarks.verdicts as b; b.measure()"],
        capture_output=True,
        text=True,
        check=True,
    )
    measured = json.loads(done.stdout.splitlines()[-1])
    if measured["verdicts"] != len(EIGHT) * len(LANGUAGES) * 3 or measured["ratings"] != RATINGS:
        raise RuntimeError(f"{measured}: nothing was measured")
    yield Measurement("annotation.verdicts_seconds_1m", measured["seconds"], "s", at_most=20)
    yield Measurement("annotation.verdicts_gigabytes_1m", measured["gigabytes"], "GB", at_most=2)


def measure() -> None:
    """Make ratings up, judge them, and print what it took as JSON."""
    pairs, ratings = made_up(np.random.default_rng(1337))
    sample = pd.DataFrame(map(dict, pairs))
    start = time.perf_counter()
    found, counting = judged_sample(sample, ratings, DESIGN, 1337), counting_ratings(ratings, DESIGN.per_pair)
    groups, means = table_two(with_enough(counting, DESIGN), DESIGN, 1337), pair_means(counting, DESIGN)
    seconds = time.perf_counter() - start
    if sum(one.n_ratings for one in groups[-1].questions) != RATINGS or len(means) != 2 * len(pairs):
        raise RuntimeError("not all ratings were judged")
    gigabytes = memory("VmHWM") * 2**20 / 1e9
    numbers = {"seconds": seconds, "gigabytes": gigabytes, "verdicts": len(found), "ratings": len(ratings)}
    print(json.dumps(numbers))


def made_up(generator: np.random.Generator) -> tuple[list[Pair], pd.DataFrame]:
    """Pairs, and three ratings of each on two questions; the last pair has fewer, so that the number is round."""
    number = -(-RATINGS // 6)
    names = list(EIGHT)
    pairs = [
        _pair(i, names[i % 8], LANGUAGES[i // 8 % 10], ("sts", "retrieval", "clustering")[i // 80 % 3])
        for i in range(number)
    ]
    who = generator.permuted(np.tile(np.arange(RATERS), (number, 1)), axis=1)[:, :3]
    felt = generator.normal(4, 0.8, (number, 1, 1)) + generator.normal(0, 1, (number, 3, 2))
    place = np.repeat(np.arange(number), 6)
    one = np.array([pair.pair_id for pair in pairs], dtype=object)[place]
    rater = np.array([f"{language}-{i}" for language in LANGUAGES for i in range(RATERS)], dtype=object)
    minutes = generator.integers(0, 100_000, (number, 3))
    frame = pd.DataFrame(
        {
            "pair_id": one,
            "transformation": np.array([pair.transformation for pair in pairs], dtype=object)[place],
            "language": np.array([pair.language for pair in pairs], dtype=object)[place],
            "rater_id": rater[(np.arange(number) // 8 % 10)[:, None] * RATERS + who].repeat(2, axis=1).ravel(),
            "question": np.tile(np.array(["quality", "fluency"], dtype=object), 3 * number),
            "value": np.clip(np.round(felt), 1, 5).ravel(),
            "status": "submitted",
            "submitted_at": pd.Timestamp("2026-01-01", tz="UTC")
            + pd.to_timedelta(minutes.repeat(2, axis=1).ravel(), "min"),
            "excluded": "",
            "simulated": True,
        }
    )
    return pairs, frame.iloc[:RATINGS]


def _pair(number: int, transformation: str, language: str, task: str) -> Pair:
    return Pair(
        pair_id=identity("pair", number),
        key=str(number),
        transformation=transformation,
        axis=EIGHT[transformation].axis,
        pool=EIGHT[transformation].pool,
        dataset=task,
        task_type=task,
        language=language,
        output_language=language,
        seed=1337,
        original="a",
        transformed="b",
        model="made up",
        generator_hash="g",
        prompt_hash="p",
    )
