"""What became of a study whose models were evaluated."""

from __future__ import annotations

import pandas as pd

from evaluation.records import EvaluationRecords
from plumbline.study import Study

from .conftest import write_outputs


def status(study: Study, model: str = "one") -> dict[tuple[str, str], str]:
    scores = EvaluationRecords(study).scores
    mine = scores[scores["model"] == model]
    return {(d, t): s for d, t, s in zip(mine["dataset"], mine["transformation"], mine["status"], strict=True)}


def rows(study: Study, dataset: str) -> pd.DataFrame:
    scores = EvaluationRecords(study).scores
    return scores[scores["dataset"] == dataset].set_index("transformation")


def failing(study: Study, *texts: str) -> None:
    write_outputs(study, lambda text, name: "failed" if text in texts and name == "translation" else "ok")
