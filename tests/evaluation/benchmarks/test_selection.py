"""Backward selection by hand, its closed form against refits, constraints, agreement by other computations."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from evaluation.benchmarks.scores import Scores, split, without_gaps
from evaluation.benchmarks.selection import SelectionRequest, checked, select
from evaluation.benchmarks.selection_methods import (
    Coverage,
    agreeing,
    agreement,
    agreements,
    as_good,
    backward,
    coverage,
    left_out_predictions,
    predictability,
)
from plumbline.errors import DataError, StudyError


def free(n_tasks: int) -> Coverage:
    return Coverage((), np.zeros((0, n_tasks), np.bool_), np.zeros(n_tasks, np.bool_), np.ones(n_tasks))


def made(n_models: int = 40, n_tasks: int = 12) -> Scores:
    rng = np.random.default_rng(7)
    values = rng.normal(size=(n_models, 2)) @ rng.normal(size=(2, n_tasks)) + rng.normal(size=(n_models, n_tasks))
    names = [f"org{i // 2}/m{i}" for i in range(n_models)]
    frame = pd.DataFrame(values, index=names, columns=[f"t{i}" for i in range(n_tasks)])
    return Scores(frame, {name: name.split("/")[0] for name in names})


def facts(n_tasks: int = 12) -> pd.DataFrame:
    kinds = ["STS", "Retrieval", "Classification"]
    return pd.DataFrame(
        {
            "type": [kinds[i % 3] for i in range(n_tasks)],
            "languages": [("eng", "dan") if i % 2 else ("eng",) for i in range(n_tasks)],
            "texts": [100.0 * (i + 1) for i in range(n_tasks)],
            "characters": [1.0] * n_tasks,
            "seconds": [60.0] * n_tasks,
        },
        index=pd.Index([f"t{i}" for i in range(n_tasks)], name="task"),
    )


def test_a_prediction_worked_by_hand() -> None:
    """Three models, two tasks: a line through the two others.

    x = 0, 1, 3; y = 1, 2, 2. Without model 1: through (1, 2) and (3, 2) the line is flat: 2. Without model 2: through
    (0, 1) and (3, 2), slope 1/3: 1 + 1/3. Without model 3: through (0, 1) and (1, 2), slope 1: 1 + 3 = 4.
    From y to x: without model 1 both others have y = 2, the slope of least norm is 0: their mean (1 + 3)/2 = 2.
    Without model 2: through (1, 0) and (2, 3), slope 3: at y = 2 it is 3. Without model 3: (1, 0), (2, 1): at 2, 1.
    """
    scores = np.array([[0.0, 1.0], [1.0, 2.0], [3.0, 2.0]])
    predicted = left_out_predictions(scores)
    assert predicted[:, 1] == pytest.approx([2, 4 / 3, 4])
    assert predicted[:, 0] == pytest.approx([2, 3, 1])
    # Errors of x: (0-2)^2 + (1-3)^2 + (3-1)^2 = 12, mean 4; mean of x 4/3, variance (16 + 1 + 25)/9/3 = 14/9: 4/(14/9).
    # Ranks 1 2 3 against 2 3 1: differences -1 -1 2, rho = 1 - 6 * 6 / (3 * 8) = -1/2.
    rho, mse = predictability(scores, predicted)
    assert mse[0] == pytest.approx(36 / 14)
    assert rho[0] == pytest.approx(-0.5)


def test_a_trace_worked_by_hand() -> None:
    """Task c is 2a + 1 and b is unlike both: a and c predict each other without error, and the first of them goes.

    Then two tasks are left, which is where it ends. With a kept by hand c goes instead.
    """
    a, b = np.array([1.0, 2, 3, 4, 5, 6]), np.array([2.0, 1, 2, 1, 2, 1])
    scores = np.column_stack([a, b, 2 * a + 1])
    (step,) = backward(scores, free(3))
    assert step.task == 0
    assert (step.rho, step.mse) == pytest.approx((1, 0))
    kept = Coverage((), np.zeros((0, 3), np.bool_), np.array([True, False, False]), np.ones(3))
    assert [one.task for one in backward(scores, kept)] == [2]
    # Both have to stay: b alone may go, which nothing predicts, so that MMTEB's thresholds do not let it.
    both = Coverage((), np.zeros((0, 3), np.bool_), np.array([True, False, True]), np.ones(3))
    assert backward(scores, both) == []


def refits(scores: np.ndarray) -> np.ndarray:
    """Each task's scores of each model, predicted by the other models' on the other tasks."""
    return np.column_stack(
        [
            cross_val_predict(LinearRegression(), np.delete(scores, task, 1), scores[:, task], cv=LeaveOneOut())
            for task in range(scores.shape[1])
        ]
    )


@pytest.mark.parametrize(("models", "tasks"), [(40, 9), (12, 10), (12, 11), (12, 12), (12, 13), (10, 30)])
def test_the_closed_form_is_that_of_refits(models: int, tasks: int) -> None:
    rng = np.random.default_rng(models + tasks)
    scores = rng.normal(size=(models, 1)) + rng.normal(size=(models, tasks))
    assert left_out_predictions(scores) == pytest.approx(refits(scores), abs=1e-7)


@pytest.mark.parametrize("which", ["twin models", "twin tasks", "one model decides"])
def test_what_determines_no_weight_is_as_refits_have_it(which: str) -> None:
    scores = np.random.default_rng(1).normal(size=(12, 20 if which == "twin models" else 5))
    if which == "twin models":
        scores[3] = scores[4]
    elif which == "twin tasks":
        scores[:, 3] = scores[:, 4]
    else:
        scores[:, 2] = [0] * 11 + [1]
    assert left_out_predictions(scores) == pytest.approx(refits(scores), abs=1e-8)


def test_agreement_is_scipys_of_mean_ranks_and_random_selections_are_counted() -> None:
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(15, 8)).round(1)  # with ties
    chosen = np.arange(8) < 3
    random = free(8).random(3, 50, rng)
    found = agreement(scores, chosen, random, [np.random.default_rng(1), np.random.default_rng(2)])
    ranks = stats.rankdata(scores, axis=0)
    part, full = ranks[:, :3].mean(axis=1).round(9), ranks.mean(axis=1).round(9)
    assert found.tau.value == pytest.approx(stats.kendalltau(part, full).statistic)
    assert found.rho.value == pytest.approx(stats.spearmanr(part, full).statistic)
    # tau-b once more, pair by pair.
    pairs = [(np.sign(part[i] - part[j]), np.sign(full[i] - full[j])) for i in range(15) for j in range(i)]
    untied = math.prod(sum(one[side] != 0 for one in pairs) for side in (0, 1))
    assert found.tau.value == pytest.approx(sum(a * b for a, b in pairs) / math.sqrt(untied))
    assert found.tau.low <= found.tau.value <= found.tau.high
    others = [stats.kendalltau(ranks[:, one].mean(axis=1).round(9), full).statistic for one in random]
    assert found.random_tau == pytest.approx(others)
    assert found.as_good["tau"] == np.mean(np.array(others) >= found.tau.value - 1e-9)
    assert math.isnan(as_good(0.5, np.array([])))


def test_every_selection_keeps_types_languages_and_what_is_named_within_its_budget() -> None:
    needs = coverage(facts(), "language", ("dan",), ("t3",), facts()["texts"].to_numpy(np.float64))
    assert set(needs.needs) == {
        "type STS", "type Retrieval", "type Classification", "dan in STS", "dan in Retrieval", "dan in Classification"
    }  # fmt: skip
    cheapest = needs.cheapest()
    assert needs.holds(cheapest) and needs.price(cheapest) == 200 + 400 + 600  # t1 Retrieval, t3 STS, t5 Classification
    random = needs.random(3000, 200, np.random.default_rng(1))
    assert len(random) and all(needs.holds(one) and needs.price(one) <= 3000 for one in random)
    scores = made().frame.to_numpy()
    chosen = agreeing(scores, needs, 3000, np.random.default_rng(1))
    assert needs.holds(chosen) and needs.price(chosen) <= 3000
    left = np.ones(12, np.bool_)
    for step in backward(scores, needs):
        left[step.task] = False
        assert needs.holds(left)


def test_the_climb_ends_at_the_best_of_all_small_selections() -> None:
    scores = made(30, 8).frame.to_numpy()
    chosen = agreeing(scores, free(8), 2, np.random.default_rng(1))
    points = stats.rankdata(scores, axis=0)
    best = max(
        ((i, j) for i in range(8) for j in range(i)),
        key=lambda pair: np.corrcoef(points[:, list(pair)].sum(axis=1), points.sum(axis=1))[0, 1],
    )
    assert set(np.flatnonzero(chosen)) == set(best)


def test_held_out_models_change_no_choice_and_a_seed_gives_the_same_again() -> None:
    scores, asked = made(), SelectionRequest(5, "tasks", cover="type")
    first, again = (select(scores, facts(), asked) for _ in range(2))
    assert (first.main.chosen == again.main.chosen).all()
    assert first.main.agreement.tau == again.main.agreement.tau
    held = split(scores, asked.held_out, asked.seed)
    families = np.array([scores.families[name] for name in scores.frame.index])
    assert not set(families[held]) & set(families[~held])
    other = scores.frame.copy()
    other.loc[held] = np.random.default_rng(9).normal(size=(held.sum(), 12))
    changed = select(Scores(other, scores.families), facts(), asked)
    assert all((changed.ways[name].chosen == one.chosen).all() for name, one in first.ways.items())
    assert changed.main.agreement.tau.value != first.main.agreement.tau.value
    assert not (split(scores, 0.33, 1) == split(scores, 0.33, 2)).all()


def test_gaps_and_constant_tasks_are_named_and_never_nought() -> None:
    scores = made(10, 5)
    scores.frame.iloc[0, 0] = scores.frame.iloc[1, 0] = np.nan
    scores.frame["t4"] = 0.5
    with pytest.raises(DataError, match="2 of 50 scores are missing .*--gaps models leaves 8 models and 5 tasks"):
        without_gaps(scores, "refuse")
    by_models, by_tasks = without_gaps(scores, "models"), without_gaps(scores, "tasks")
    assert by_models.frame.shape == (8, 4) and by_tasks.frame.shape == (10, 3)
    assert [(one.kind, one.name) for one in by_models.omissions] == [
        ("model", "org0/m0"),
        ("model", "org0/m1"),
        ("task", "t4"),
    ]
    assert (
        [one.name for one in by_tasks.omissions]
        == ["t0", "t4"]
        == [one.name for one in without_gaps(scores, "fewest").omissions]
    )


def test_a_budget_that_no_coverage_can_meet_and_too_few_models_are_one_line() -> None:
    with pytest.raises(StudyError, match="cheapest selection .* takes 3 tasks; raise the budget"):
        select(made(), facts(), SelectionRequest(2, "tasks", cover="type"))
    with pytest.raises(DataError, match="4 models of 2 families cannot be split"):
        select(made(4), facts(), SelectionRequest(5, "tasks", cover="type"))
    rho, tau = agreements(np.ones((4, 3)), np.ones((1, 3), np.bool_))
    assert np.isnan(rho).all() and np.isnan(tau).all()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (SelectionRequest(0.5, "tasks", cover="none"), "--budget 0.5 tasks: the cheapest task takes 1"),
        (SelectionRequest(4, "tasks", cover="none", rho=math.nan), "rho must be from -1 to 1"),
        (SelectionRequest(4, "tasks", cover="none", mse=-1), "and mse at least 0"),
    ],
)
def test_what_would_choose_nothing_or_hold_against_nothing_is_one_line(asked: SelectionRequest, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        checked(facts(), asked)
