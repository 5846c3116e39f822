"""Checks of what models score on tasks, and what they make of each item."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from evaluation import evaluate
from evaluation.benchmarks.checks import check, tasks_of
from evaluation.benchmarks.contents import CheckedTask, Finding
from evaluation.benchmarks.score_checks import ScoreChecks, difference_found, equal_scores, near_perfect
from evaluation.models.encoder import Encoder, ModelHost
from evaluation.records import EvaluationRecords
from evaluation.tasks.item_scores import Items, SubsetScores, difference, items_of
from evaluation.tasks.scoring import evaluate as score_of
from generation.datasets.local import TableDataset
from plumbline.statistics.estimates import Estimate
from plumbline.statistics.resampled_measures import mean as mean_measure
from plumbline.study import Study
from tests.evaluation.conftest import FakeModel, write_outputs, write_pairs, write_study, write_verdicts
from tests.mteb_site import site

MODELS = [{"name": "chars", "kind": "lexical"}, {"name": "longer", "kind": "lexical", "settings": {"ngrams": [5, 6]}}]


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
    scores = EvaluationRecords.open(study).scores if scores is None else scores
    checks = ScoreChecks(ModelHost.of(study), scores, [], 7, study.command("evaluate"))
    try:
        return {finding.check: finding for finding in check([one], checks)[0].findings}
    finally:
        checks.close()


@pytest.mark.parametrize("task", ["sts", "sts translation-1337", "requests"])
def test_scores_are_laid_beside_chance_and_each_other_over_the_same_items(scored: Study, task: str) -> None:
    name, _, copy = task.partition(" ")
    scores = EvaluationRecords.open(scored).scores
    own = scores[(scores["dataset"] == name) & (scores["transformation"] == (copy.partition("-")[0] or "original"))]
    chars, longer = (float(own.set_index("model")["score"][model]) for model in ("chars", "longer"))
    made = found(scored, task)
    assert made["difference"].value == pytest.approx(chars - longer, abs=1e-9)
    assert "chars minus longer" in made["difference"].reason
    assert made["near_perfect"].value == max(chars, longer)
    assert made["equal_scores"].value == pytest.approx(abs(chars - longer))
    assert made["random"].reason.startswith("mteb/baseline-random-encoder scores ")


def test_scores_that_are_not_there_or_hold_no_more_are_not_known(scored: Study) -> None:
    for scores in (pd.DataFrame(), EvaluationRecords.open(scored).scores.assign(unit_id="of other texts")):
        made = found(scored, "sts", scores)
        for name in ("random", "near_perfect", "equal_scores", "difference"):
            assert made[name].verdict == "look" and np.isnan(made[name].value)
            assert made[name].reason.startswith(
                "not known: no model of the study has a score on the task; run `plumbline "
            )


def test_why_no_model_has_a_score_is_said(scored: Study) -> None:
    undefined = EvaluationRecords.open(scored).scores.assign(score=np.nan, reason="all similarities are equal")
    assert found(scored, "sts", undefined)["random"].reason == (
        "not known: every model's score is undefined (all similarities are equal)"
    )
    one = TableDataset(
        "one", "clustering", "en", "1", {"test": pd.DataFrame({"text": ["a", "b"], "label": ["x", "x"]})}
    )
    (first, *_) = ScoreChecks(ModelHost.of(scored), pd.DataFrame(), [], 7, "")(CheckedTask("one", one))
    assert first.reason.startswith(
        "not known: the task cannot be scored: all rows of its test split have the label 'x'"
    )


def test_a_check_encodes_nothing(scored: Study, tmp_path: Path) -> None:
    (tmp_path / "moved").mkdir()
    study = write_study(tmp_path, evaluation={"models": MODELS})
    encoder = Encoder(FakeModel(), "fake", "1")
    encoder.only_stored = True
    tasks, notes = tasks_of(study, ["sts"])
    assert [task.name for task in tasks] == ["sts"] and notes[0].startswith("there are no verdicts yet")
    with pytest.raises(Exception, match="has no stored embeddings of 12 texts; evaluate the study"):
        items_of(tasks[0].dataset, encoder, "paper", 8)


def test_items_of_every_type_give_mtebs_own_score_together() -> None:
    taken = 0
    for name, dataset in site().tasks.items():
        model = Encoder(FakeModel(), "fake", "1")
        items = items_of(dataset, model, "paper", 8)
        assert bool(items.reason) == (not items.parts), name
        if items.measure is not None:
            taken += 1
            own = np.mean([part.score(items.measure) for part in items.parts])
            assert own == pytest.approx(score_of(dataset, model, "paper", 8), abs=1e-4), name
        else:
            assert dataset.task == "instruction_reranking" or name == "BiorxivClusteringS2S", items.reason
    assert taken == 17


def test_the_interval_of_a_difference_is_that_of_the_mean_and_covers() -> None:
    """Of means the bootstrap's interval is near the t-interval, and holds the truth in about 95% of 200 samples."""
    rng, held = np.random.default_rng(3), 0
    for _ in range(200):
        first, second = (np.array([0.7, 0.5])[:, None] > rng.random((2, 60))).astype(np.float64)
        models = [Items((SubsetScores(np.zeros(60), own),), mean_measure) for own in (first, second)]
        made = difference(models[0], models[1], n_resamples=400, rng=rng)
        assert made.value == pytest.approx(first.mean() - second.mean()) and made.n == 60
        held += made.low <= 0.2 <= made.high
    assert stats.binom.ppf(0.0005, 200, 0.94) <= held <= stats.binom.ppf(0.9995, 200, 0.94)


def test_models_whose_scores_rest_on_other_items_are_not_compared() -> None:
    one, other = (Items((SubsetScores(np.zeros(n), np.ones(n)),), mean_measure) for n in (5, 4))
    assert np.isnan(difference(one, other, rng=np.random.default_rng(1)).value)
    none = difference(one, Items(reason="mteb does not say"), rng=np.random.default_rng(1))
    assert np.isnan(none.value) and none.reason == "mteb does not say"


def test_verdicts_on_scores_follow_their_limits() -> None:
    assert (
        near_perfect({"a": 0.97, "b": 0.5}).verdict == "look" and near_perfect({"a": 0.97, "b": 0.96}).verdict == "fail"
    )
    assert near_perfect({"a": 0.95, "b": 0.5}).verdict == "pass"
    assert [equal_scores({"a": 0.5, "b": other}).verdict for other in (0.5, 0.51, 0.53)] == ["fail", "look", "pass"]
    assert equal_scores({"a": 0.5}).reason == "not known: only a has a score on the task"
    for low, high, verdict in ((0.01, 0.1, "pass"), (-0.01, 0.1, "look"), (0.0, 0.1, "look"), (-0.2, -0.1, "pass")):
        assert difference_found(["a", "b"], Estimate(value=0.05, low=low, high=high, n=50)).verdict == verdict
    assert difference_found(["a", "b"], Estimate.alone(0.05, "few", 2)).verdict == "look"


def test_a_model_at_chance_is_looked_at_and_a_task_where_all_are_fails(scored: Study) -> None:
    scores = EvaluationRecords.open(scored).scores
    base = float(found(scored, "requests")["random"].reason.split(" scores ")[1].split(" ")[0])
    for above, verdict in (((0.01, 0.3), "look"), ((0.01, 0.015), "fail"), ((0.1, 0.3), "pass")):
        at = scores["model"].map({"chars": base + above[0], "longer": base + above[1]})
        made = found(scored, "requests", scores.assign(score=at))["random"]
        assert made.verdict == verdict and made.value == pytest.approx(above[0], abs=1e-4)
