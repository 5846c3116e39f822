"""A model that another process runs: the same scores as where it stands beside, and none of its weights."""

from __future__ import annotations

import contextlib
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.instructions.prompted import Prompted
from evaluation.models.distant import Desk, Finished, GivenUp, Hand, Rows
from evaluation.models.encoder import Encoder, model_id
from evaluation.tasks import scoring
from plumbline.errors import DataError, StudyError
from plumbline.study import Study
from plumbline.study.evaluation import ModelSpec
from tests.evaluation.conftest import write_study

from .test_registered import _encoder, _search, _sts, pytestmark, registry  # noqa: F401 (fixtures)


def silent(*_: Any) -> Any:
    return contextlib.nullcontext()


def hand_of(study: Study, spec: ModelSpec, model: str | None = None) -> Hand:
    return Hand(study, spec, model_id(study, spec) if model is None else model, silent)


def over_the_wire(what: Any) -> Any:
    return pickle.loads(pickle.dumps(what))  # noqa: S301 (our own)


def made_at_a_desk(study: Study, spec: ModelSpec, make: Any) -> tuple[Any, list[str]]:
    """What `make` makes with a model that one hand answers for and another encodes with; what was asked, by kind."""
    desk, asked, encoding = Desk(study, [spec], silent), hand_of(study, spec), hand_of(study, spec)
    facts = over_the_wire(asked.facts())
    encoding.facts()
    ways: dict[str, Any] = {}
    kinds = []
    step = desk.begin(make, facts, spec.name)
    while not isinstance(step, Finished):
        if isinstance(step, Rows):
            kinds.append("rows")
            assert len(set(step.texts)) == len(step.texts)
            answer: Any = encoding.encode(step.texts, step.prompt, step.role, ways.get(step.prompt))
        else:
            kinds.append(step.method)
            answer, way = over_the_wire(asked.answer(over_the_wire(step)))
            if way is not None:
                ways[answer] = way
        step = desk.go_on(answer)
    return step.made, kinds


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("name", ["prompted", "instructed", "derived"])
def test_a_model_that_picks_its_prompts_is_asked_which(name: str, tmp_path: Path) -> None:
    own = {"device": "cpu", "batch_size": 8, "models": [{"name": f"made/{name}", "kind": "mteb"}]}
    study = write_study(tmp_path, evaluation=own)
    spec = study.evaluation.models[0]

    def scores(encoder: Encoder) -> list[float]:
        under = Prompted(encoder, "Find {what}") if not encoder.refuses() else encoder
        made = [scoring.evaluate(_sts(), encoder, "paper", 8), scoring.evaluate(_search(), encoder, "paper", 8)]
        return [*made, scoring.evaluate(_search(), under, "paper", 8)]  # type: ignore[arg-type]

    found, kinds = made_at_a_desk(study, spec, scores)
    here = _encoder(f"made/{name}")
    here._batch_size = 8
    assert found == pytest.approx(scores(here), abs=1e-6)
    assert {"rows", "way", "refuses"} <= set(kinds) <= {"rows", "way", "refuses", "way_under", "before"}


def test_what_is_raised_and_given_up_ends_the_piece(tmp_path: Path) -> None:
    study = write_study(tmp_path, evaluation={"models": [{"name": "letters", "kind": "lexical"}]})
    spec = study.evaluation.models[0]
    vectors, _ = made_at_a_desk(study, spec, lambda encoder: encoder.embed(["a", "b", "a"]))
    np.testing.assert_array_equal(vectors[0], vectors[2])
    assert (vectors[0] != vectors[1]).any()

    def broken(_: Encoder) -> None:
        raise DataError("not this one")

    with pytest.raises(DataError, match="not this one"):
        made_at_a_desk(study, spec, broken)
    desk = Desk(study, [spec], silent)
    assert desk.begin(lambda encoder: encoder.embed(["a"]), hand_of(study, spec).facts(), "letters") == Rows(
        ["a"], "", ""
    )
    with pytest.raises(GivenUp):
        desk.go_on(GivenUp())
    with pytest.raises(StudyError, match="are not those of the command's machine"):
        hand_of(study, spec, "another").facts()
