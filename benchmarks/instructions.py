"""How long a report on wordings takes."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.registry import Measurement, benchmark
from evaluation.instructions.analysis import Settings, analyse
from evaluation.instructions.page import write_report
from evaluation.score_frames import read_scores

MODELS, TASKS, WORDINGS = 50, 100, 15


@benchmark
def report_seconds() -> Iterator[Measurement]:
    """Seconds from a long table to the report: 50 models, 100 tasks, 15 wordings with the default and no prompt."""
    with tempfile.TemporaryDirectory(prefix="plumbline-") as folder:
        table = Path(folder, "scores.parquet")
        _scores().to_parquet(table)
        start = time.perf_counter()
        page = write_report(Path(folder, "report"), analyse(read_scores(table), Settings()), "Wordings")
        seconds = time.perf_counter() - start
        if "In short" not in page.read_text(encoding="utf-8"):
            raise RuntimeError("the report has no answer: it is not whole")
    yield Measurement("instructions.report_seconds", seconds, "s", at_most=10)


def _scores() -> pd.DataFrame:
    """Made scores: a level of each model and task, and noise of wordings around it."""
    rng = np.random.default_rng(1337)
    prompts = ["default", "none", *(f"p{number:02}" for number in range(WORDINGS))]
    scores = rng.uniform(0.3, 0.8, (MODELS, TASKS, 1)) + rng.normal(0, 0.03, (MODELS, TASKS, len(prompts)))
    model, task, prompt = (place.ravel() for place in np.indices(scores.shape))
    made = pd.DataFrame({"model": model, "task": task, "prompt_id": np.array(prompts)[prompt], "score": scores.ravel()})
    worded = prompt > 1
    return made.assign(
        model="made/" + made["model"].astype(str), task="Task" + made["task"].astype(str), split="test", subset="en",
        source=np.where(worded, "machine", ""), label=np.where(worded, "acceptable", ""),
        text=np.where(worded, "Wording " + made["prompt_id"].astype(str), ""),
    )  # fmt: skip
