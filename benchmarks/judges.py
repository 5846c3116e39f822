"""How long means with judges' help take."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pandas as pd

from annotation.judges.powered import Judging, powered_means
from annotation.statistics.summaries import Design
from annotation.verdicts.counted import basis
from benchmarks.registry import Measurement, benchmark
from plumbline.study.campaign import AcceptanceSpec
from plumbline.study.transformations import EIGHT

JUDGED, RATED = 100_000, 1_000  # outputs of all transformations; the rated ones are among the judged
STRATA = 60  # of each transformation: nineteen data sets in thirds by length


@benchmark
def ppi_seconds() -> Iterator[Measurement]:
    """Seconds for the means with judges of eight transformations: 100,000 outputs judged, 1,000 of them rated."""
    sample, ratings, judging = made_up(np.random.default_rng(1337))
    design = Design(("quality",), (1, 2, 3, 4, 5), 3, AcceptanceSpec(scope="transformation", rule="lower_bound"))
    rests = basis(sample, ratings, design)
    start = time.perf_counter()
    found = powered_means(rests, judging, design)
    seconds = time.perf_counter() - start
    if len(found) != 7 or (found["reason"] != "").any() or found["low"].isna().any():
        raise RuntimeError(f"nothing was measured: {found.to_dict('records')}")
    yield Measurement("judges.ppi_seconds", seconds, "s", at_most=5)


def made_up(draw: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame, Judging]:
    """(the sample, three ratings of each of its pairs, a judge of all outputs that is near people)."""
    names = np.array(list(EIGHT))[np.arange(JUDGED) % 8]
    quality = draw.normal(3.5, 0.8, JUDGED)
    judged = pd.DataFrame(
        {
            "pair_id": [f"pair-{i:06d}" for i in range(JUDGED)],
            "transformation": names,
            "pool": [EIGHT[name].pool for name in names],
            "language": "en",
            "task_type": "sts",
            "stratum": [f"stratum {i // 8 % STRATA}" for i in range(JUDGED)],
        }
    )
    sample = judged.iloc[:RATED]
    rated = sample.loc[sample.index.repeat(3), ["pair_id", "transformation", "language"]].reset_index(drop=True)
    felt = np.repeat(quality[:RATED], 3) + draw.normal(0, 1, 3 * RATED)
    ratings = rated.assign(
        rater_id=np.tile(["a", "b", "c"], RATED), question="quality", value=np.clip(np.round(felt), 1, 5)
    )
    scores = np.clip(quality + 0.4 + draw.normal(0, 0.5, JUDGED), 1, 5)
    said = judged[["pair_id"]].assign(judge="judge", question="quality", score=scores, status="ok", prompt_hash="p")
    return sample, ratings, Judging(judged, said)
