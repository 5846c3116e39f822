"""The score of a table of rows, with which tasks of mteb and sampled tasks of the same rows are compared."""

from __future__ import annotations

from typing import Any

import pandas as pd

from evaluation.models.encoder import Encoder
from evaluation.tasks import scoring
from generation.datasets.local import TableDataset
from plumbline.study.datasets import TaskType
from tests.evaluation.conftest import FakeModel


def score_of(task: TaskType, rows: Any, train: Any = None, **more: Any) -> float:
    """`test_scoring` computes the scores of tables by hand."""
    splits = {"test": pd.DataFrame(rows)} | ({"train": pd.DataFrame(train)} if train is not None else {})
    dataset = TableDataset("own", task, "en", "1", splits, **more)
    return scoring.evaluate(dataset, Encoder(FakeModel(), "fake", "1"), "paper", 8)
