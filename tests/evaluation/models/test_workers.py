"""A model that another process runs: the same scores as where it stands beside, and none of its weights."""

from __future__ import annotations

import contextlib
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.instructions.run import PromptedEncoder
from evaluation.models.encoder import Encoder, ModelHost
from evaluation.models.workers import EncodingWorker, GivenUp, ModelResult, Rows, ScoringWorker, due_of
from evaluation.tasks import scoring
from plumbline.errors import DataError, StudyError
from plumbline.study import Study
from plumbline.study.evaluation import ModelSpec
from tests.evaluation.conftest import write_study

from .test_registered import _encoder, _search, _sts, pytestmark, registry  # noqa: F401 (fixtures)


def silent(*_: Any) -> Any:
    return contextlib.nullcontext()


def worker_of(study: Study, spec: ModelSpec, **other: Any) -> EncodingWorker:
    """A worker; what the machine that runs the command has is `other` than what is here."""
    return EncodingWorker(ModelHost.of(study), spec, replace(due_of(ModelHost.of(study), spec), **other), silent)


def over_the_wire(what: Any) -> Any:
    return pickle.loads(pickle.dumps(what))  # noqa: S301 (our own)


def made_by_workers(study: Study, spec: ModelSpec, make: Any) -> tuple[Any, list[str]]:
    """What `make` makes with a model that one worker answers for and another encodes with; what was asked, by kind."""
    scoring = ScoringWorker(ModelHost.of(study), [spec], silent)
    asked, encoding = worker_of(study, spec), worker_of(study, spec)
    facts = over_the_wire(asked.facts())
    encoding.facts()
    ways: dict[str, Any] = {}
    kinds = []
    step = scoring.begin(make, facts, spec.name)
    while not isinstance(step, ModelResult):
        if isinstance(step, Rows):
            kinds.append("rows")
            assert len(set(step.texts)) == len(step.texts)
            answer: Any = encoding.encode(step.texts, step.prompt, step.role, ways.get(step.prompt))[0]
        else:
            kinds.append(step.method)
            answer, way = over_the_wire(asked.answer(over_the_wire(step)))
            if way is not None:
                ways[answer] = way
        step = scoring.go_on(answer)
    return step.result, kinds


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("name", ["prompted", "instructed", "derived"])
def test_a_model_that_picks_its_prompts_is_asked_which(name: str, tmp_path: Path) -> None:
    own = {"device": "cpu", "batch_size": 8, "models": [{"name": f"made/{name}", "kind": "mteb"}]}
    study = write_study(tmp_path, evaluation=own)
    spec = study.evaluation.models[0]

    def scores(encoder: Encoder) -> list[float]:
        under = PromptedEncoder(encoder, "Find {what}") if not encoder.refuses() else encoder
        made = [scoring.evaluate(_sts(), encoder, "paper", 8), scoring.evaluate(_search(), encoder, "paper", 8)]
        return [*made, scoring.evaluate(_search(), under, "paper", 8)]  # type: ignore[arg-type]

    found, kinds = made_by_workers(study, spec, scores)
    here = _encoder(f"made/{name}")
    here._batch_size = 8
    assert found == pytest.approx(scores(here), abs=1e-6)
    assert {"rows", "way", "refuses"} <= set(kinds) <= {"rows", "way", "refuses", "way_under", "before"}


def test_what_is_raised_and_given_up_ends_the_piece(tmp_path: Path) -> None:
    study = write_study(tmp_path, evaluation={"models": [{"name": "letters", "kind": "lexical"}]})
    spec = study.evaluation.models[0]
    vectors, _ = made_by_workers(study, spec, lambda encoder: encoder.embed(["a", "b", "a"]))
    np.testing.assert_array_equal(vectors[0], vectors[2])
    assert (vectors[0] != vectors[1]).any()

    def broken(_: Encoder) -> None:
        raise DataError("not this one")

    with pytest.raises(DataError, match="not this one"):
        made_by_workers(study, spec, broken)
    scoring = ScoringWorker(ModelHost.of(study), [spec], silent)
    assert scoring.begin(lambda encoder: encoder.embed(["a"]), worker_of(study, spec).facts(), "letters") == Rows(
        ["a"], "", ""
    )
    with pytest.raises(GivenUp):
        scoring.go_on(GivenUp())
    with pytest.raises(StudyError, match="differ from those on the machine that runs the command"):
        worker_of(study, spec, model_id="another").facts()


def test_a_node_with_other_versions_than_the_commands_machine_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    study = write_study(tmp_path, evaluation={"models": [{"name": "own", "path": "model"}]})
    spec = study.evaluation.models[0]
    due = due_of(ModelHost.of(study), spec)
    assert set(due.versions) == {"sentence-transformers", "transformers", "torch"}
    assert not any("+" in version for version in due.versions.values())  # a build for CPUs is of the same version
    with pytest.raises(
        StudyError, match=rf"^torch {due.versions['torch']} runs model 'own' there, but 0.1 on the mach"
    ):
        worker_of(study, spec, versions={**due.versions, "torch": "0.1"}).facts()
