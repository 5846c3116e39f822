"""A model that another process runs: the same scores as where it stands beside, and none of its weights."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from evaluation.instructions.run import PromptedEncoder
from evaluation.models import workers
from evaluation.models.encoder import Encoder, ModelHost
from evaluation.models.workers import ClusterModel, ClusterPromptingModel, EncodingWorker, ModelIdentity
from evaluation.tasks import scoring
from plumbline.errors import ServiceError, StudyError
from plumbline.study import Study
from plumbline.study.evaluation import ModelSpec
from tests.evaluation.conftest import write_study

from .test_registered import _encoder, _search, _sts, pytestmark, registry  # noqa: F401 (fixtures)
from .test_server import Stub, good, stub  # noqa: F401 (a fixture)


def worker_of(study: Study, spec: ModelSpec, **others: Any) -> EncodingWorker:
    """A worker; `others` differ on the machine that runs the command."""
    expected = replace(ModelIdentity.of(ModelHost.of(study), spec), **others)
    return EncodingWorker(ModelHost.of(study), spec, expected, lambda *_: contextlib.nullcontext())


def over_the_wire(what: Any) -> Any:
    return pickle.loads(pickle.dumps(what))  # noqa: S301 (our own)


def distant(study: Study, spec: ModelSpec) -> tuple[Encoder, set[str]]:
    """The encoder of a model that one worker answers for and another encodes with; and the methods that were called."""
    asked, encoding, called = worker_of(study, spec), worker_of(study, spec), set[str]()
    facts = over_the_wire(asked.prepare())
    encoding.prepare()

    async def call(method: str, *values: Any) -> Any:
        called.add(values[0] if method == "answer" else method)
        if method == "encode":
            assert len(set(values[0])) == len(values[0])
        worker = asked if method == "answer" else encoding
        return over_the_wire(getattr(worker, method)(*over_the_wire(values)))

    pool: Any = SimpleNamespace(facts=facts, slots=[None, None], call=call)
    kind = ClusterPromptingModel if facts.picks else ClusterModel
    return Encoder(kind(pool, asyncio.Runner(), 8), spec.name, facts.revision, 8), called


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("name", ["prompted", "instructed", "derived"])
def test_a_model_that_picks_its_prompts_is_asked_which(name: str, tmp_path: Path) -> None:
    own = {"batch_size": 8, "models": [{"name": f"made/{name}", "kind": "mteb"}]}
    study = write_study(tmp_path, evaluation=own)

    def scores(encoder: Encoder) -> list[float]:
        under = PromptedEncoder(encoder, "Find {what}") if not encoder.model.refuses() else encoder
        made = [scoring.evaluate(_sts(), encoder, "paper", 8), scoring.evaluate(_search(), encoder, "paper", 8)]
        return [*made, scoring.evaluate(_search(), cast("Encoder", under), "paper", 8)]

    encoder, called = distant(study, study.evaluation.models[0])
    here = _encoder(f"made/{name}")
    here._batch_size = 8
    assert scores(encoder) == pytest.approx(scores(here), abs=1e-6)
    assert {"encode", "way", "refuses"} <= called <= {"encode", "way", "refuses", "prompt_under", "before"}


def test_a_failed_request_of_a_node_loses_at_most_what_is_in_flight(
    stub: Stub,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two slots with two requests of one text each: the eight texts before the one that fails are stored."""
    served = {"name": "served", "kind": "openai", "base_url": stub.url, "settings": {"concurrency": 2}}
    study = write_study(tmp_path, evaluation={"batch_size": 1, "models": [served]})
    spec, texts = study.evaluation.models[0], [f"a cat {n}" for n in range(10)]

    class Pool:
        def __init__(self, _: Any, slots: Any, *__: Any) -> None:
            self.slots, self._worker = slots, worker_of(study, spec)

        async def open(self) -> Any:
            self.facts = self._worker.prepare()
            return self

        async def call(self, method: str, *values: Any) -> Any:
            return getattr(self._worker, method)(*values)

    stub.script = lambda asked, number: (400, {}, {}) if asked["input"] == texts[9:] else good(asked, number)
    monkeypatch.setattr(workers, "WorkerPool", Pool)
    ray: Any = SimpleNamespace(remote=lambda actor: actor)
    slots: Any = [None, None]
    encoder = ClusterModel.open(ray, slots, ModelHost.of(study), spec, lambda *_: contextlib.nullcontext(), print)
    with pytest.raises(ServiceError, match="status 400"):
        encoder.embed(texts)
    asked = len(stub.asked)
    encoder.embed(texts[:8])
    assert len(stub.asked) == asked


def test_a_node_with_other_files_or_versions_than_the_commands_machine_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    study = write_study(tmp_path, evaluation={"models": [{"name": "own", "path": "model"}]})
    spec = study.evaluation.models[0]
    versions = ModelIdentity.of(ModelHost.of(study), spec).versions
    assert set(versions) == {"sentence-transformers", "transformers", "torch"}
    assert not any("+" in version for version in versions.values())  # a build for CPUs is of the same version
    with pytest.raises(StudyError, match="differ from those on the machine that runs the command"):
        worker_of(study, spec, model_id="another").prepare()
    with pytest.raises(StudyError, match=rf"^torch is {versions['torch']} there, but 0.1 on the machine"):
        worker_of(study, spec, versions={**versions, "torch": "0.1"}).prepare()
