"""Frames of scores for tests, made from numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from plumbline.records import Score
from plumbline.study.transformations import EIGHT

PRINTED = Path(__file__).parent / "printed"


def score_row(model: str, dataset: str, transformation: str, score: float, **changes: Any) -> dict[str, Any]:
    """A row as `plumbline.records.Score` has it."""
    kind = EIGHT.get(transformation)
    row: dict[str, Any] = {"model": model, "dataset": dataset, "transformation": transformation, "score": score}
    row |= {"axis": kind.axis if kind else "original", "seed": 1 if kind else 0, "status": "evaluated", "reason": ""}
    row |= {"task_type": "sts", "language": "en", "metric": "cosine_spearman", "n": 10}
    return Score.model_validate(row | changes).model_dump()


def made_scores(numbers: Mapping[str, Mapping[str, Mapping[str, float]]], **changes: Any) -> pd.DataFrame:
    """Scores by model, data set and transformation."""
    return pd.DataFrame(
        [
            score_row(model, dataset, transformation, score, **changes)
            for model, datasets in numbers.items()
            for dataset, scores in datasets.items()
            for transformation, score in scores.items()
        ]
    )


def printed(name: str, setting: str = "") -> pd.DataFrame:
    """A table of the paper, scores as shares."""
    frame = pd.read_csv(PRINTED / f"{name}.csv", keep_default_na=False)
    return frame[frame["setting"] == setting] if setting else frame
