"""Checks of what models score on tasks, and what they make of each item."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

from evaluation import evaluate
from evaluation.benchmarks.checks import ScoreChecks, check, equal_scores, near_perfect, tasks_of
from evaluation.benchmarks.contents import Finding
from evaluation.models.encoder import Encoder, ModelHost
from evaluation.records import EvaluationRecords
from evaluation.tasks.scoring import evaluate as score_of
from evaluation.tasks.scoring import measured
from plumbline.study import Study
from tests.evaluation.conftest import FakeModel, ngrams_of, write_outputs, write_pairs, write_study, write_verdicts
from tests.mteb_site import site

MODELS = [{"name": "chars", "kind": "lexical"}, {"name": "longer", "kind": "lexical"}]


@pytest.fixture(scope="module", autouse=True)
def _models() -> Iterator[None]:
    with ngrams_of({"longer": (5, 6)}):
        yield


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Study:
    study = write_study(tmp_path_factory.mktemp("scored"), evaluation={"models": MODELS})
    write_outputs(study)
    write_pairs(study)
    write_verdicts(study)
    assert evaluate(study).failures == {}
    return study


def found(study: Study, task: str, scores: pd.DataFrame | None = None) -> dict[str, Finding]:
    tasks, _ = tasks_of(study, [])
    (one,) = (own for own in tasks if own.name == task)
    scores = EvaluationRecords(study).scores if scores is None else scores
    checks = ScoreChecks(ModelHost.of(study), scores, study.command("evaluate"))
    return {finding.check: finding for finding in check([one], checks)[task]}


@pytest.mark.parametrize("task", ["sts", "sts translation-1337", "requests"])
def test_scores_are_laid_beside_chance_and_each_other(scored: Study, task: str) -> None:
    name, _, copy = task.partition(" ")
    scores = EvaluationRecords(scored).scores
    own = scores[(scores["dataset"] == name) & (scores["transformation"] == (copy.partition("-")[0] or "original"))]
    chars, longer = (float(own.set_index("model")["score"][model]) for model in ("chars", "longer"))
    made = found(scored, task)
    assert made["near_perfect"].value == max(chars, longer)
    assert made["equal_scores"].value == pytest.approx(abs(chars - longer))
    assert made["random"].reason.startswith("mteb/baseline-random-encoder scores ")


def test_scores_that_are_not_there_or_hold_no_more_are_not_known(scored: Study) -> None:
    for scores in (pd.DataFrame(), EvaluationRecords(scored).scores.assign(unit_id="of other texts")):
        made = found(scored, "sts", scores)
        for name in ("random", "near_perfect", "equal_scores"):
            assert made[name].verdict == "look" and np.isnan(made[name].value)
            assert made[name].reason.startswith(
                "not known: no model of the study has a score on the task; run `plumbline "
            )


def test_items_of_every_type_give_mtebs_own_score_together() -> None:
    taken = 0
    for name, dataset in site().tasks.items():
        model = Encoder(FakeModel(), "fake", "1")
        _, items = measured(dataset, model, "paper", 8)
        assert bool(items.reason) == (not items.parts), name
        if items.measure is not None:
            taken += 1
            own = np.mean([part.score(items.measure) for part in items.parts])
            assert own == pytest.approx(score_of(dataset, model, "paper", 8), abs=1e-4), name
        else:
            assert dataset.task == "instruction_reranking" or name == "BiorxivClusteringS2S", items.reason
    assert taken == 17


def test_verdicts_on_scores_follow_their_limits() -> None:
    assert (
        near_perfect({"a": 0.97, "b": 0.5}).verdict == "look" and near_perfect({"a": 0.97, "b": 0.96}).verdict == "fail"
    )
    assert near_perfect({"a": 0.95, "b": 0.5}).verdict == "pass"
    assert [equal_scores({"a": 0.5, "b": other}).verdict for other in (0.5, 0.51, 0.53)] == ["fail", "look", "pass"]
    assert equal_scores({"a": 0.5}).reason == "not known: only a has a score on the task"


def test_a_model_at_chance_is_looked_at_and_a_task_where_all_are_fails(scored: Study) -> None:
    scores = EvaluationRecords(scored).scores
    base = float(found(scored, "requests")["random"].reason.split(" scores ")[1].split(" ")[0])
    for above, verdict in (((0.01, 0.3), "look"), ((0.01, 0.015), "fail"), ((0.1, 0.3), "pass")):
        at = scores["model"].map({"chars": base + above[0], "longer": base + above[1]})
        made = found(scored, "requests", scores.assign(score=at))["random"]
        assert made.verdict == verdict and made.value == pytest.approx(above[0], abs=1e-4)
