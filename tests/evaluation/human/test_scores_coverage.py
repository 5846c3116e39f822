"""95% intervals of people's scores and of differences from models hold the truth in about 95 studies of 100."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from evaluation.human.answers import EmbeddingScorer, RaterScorer, ScorerAnswers, TaskItems
from evaluation.human.questions import question_of
from evaluation.human.scores import score
from tests.scale import scaled

ITEMS, LABELS = 40, 4
CAMPAIGNS = scaled(40, 1000)
RESAMPLES = 300
RATERS = (0.6, 0.7, 0.8)  # how often each is right
MODEL = 0.75


def _task(asked: Any, metric: str, right: list[Any]) -> TaskItems:
    items = tuple(map(str, range(len(right))))
    question = question_of(asked)
    return TaskItems("made", "", "eng", asked, question, question.metrics(metric)[:1], items, tuple(right))


def _labels(rng: np.random.Generator) -> tuple[TaskItems, list[ScorerAnswers], ScorerAnswers]:
    """Items that are hard or easy for all alike, so that people and model are paired."""
    right = [f"l{one}" for one in rng.integers(0, LABELS, ITEMS)]
    ease = rng.normal(0, 0.15, ITEMS)

    def given(name: str, kind: type[ScorerAnswers], sure: float) -> ScorerAnswers:
        hit = rng.random(ITEMS) < np.clip(sure + ease, 0, 1)
        return kind(name, tuple((one,) if yes else ("wrong",) for one, yes in zip(right, hit, strict=True)))

    people = [given(f"r{k}", RaterScorer, sure) for k, sure in enumerate(RATERS)]
    return _task("label", "accuracy", right), people, given("m", EmbeddingScorer, MODEL)


def _scores(rng: np.random.Generator) -> tuple[TaskItems, list[ScorerAnswers], ScorerAnswers]:
    """Ratings from 0 to 5 around a gold score; a model's similarities are nearer to it."""
    gold = rng.normal(size=ITEMS)

    def given(name: str, kind: type[ScorerAnswers], noise: float, *, rounded: bool) -> ScorerAnswers:
        said = gold + rng.normal(0, noise, ITEMS)
        values = np.clip(np.round(said * 1.2 + 2.5), 0, 5) if rounded else said
        return kind(name, tuple(values.tolist()))

    people = [given(f"r{k}", RaterScorer, 0.8, rounded=True) for k in range(2)]
    return _task("score", "cosine_spearman", gold.tolist()), people, given("m", EmbeddingScorer, 0.6, rounded=False)


def _clusters(rng: np.random.Generator) -> tuple[TaskItems, list[ScorerAnswers], ScorerAnswers]:
    right = np.arange(30) % 6

    def given(name: str, kind: type[ScorerAnswers], sure: float) -> ScorerAnswers:
        said = np.where(rng.random(30) < sure, right, rng.integers(0, 6, 30))
        return kind(name, tuple(map(str, said)))

    people = [given(f"r{k}", RaterScorer, 0.7) for k in range(2)]
    return _task("cluster", "v_measure", [str(one) for one in right]), people, given("m", EmbeddingScorer, 0.8)


MADE = {"accuracy": _labels, "rho": _scores, "V-measure": _clusters}


def _holds(ends: tuple[float, float], truth: float) -> bool:
    return ends[0] <= truth <= ends[1]


@pytest.mark.parametrize("kind", MADE)
def test_intervals_hold_the_truth_in_95_of_100_studies(kind: str) -> None:
    """The truth of a metric is its mean over studies of this size: what other items of the same number would give."""
    rng = np.random.default_rng(20)
    truths = np.mean([_plain(*MADE[kind](rng)) for _ in range(20 * CAMPAIGNS)], axis=0)
    hits, n = np.zeros(3), 0
    for _ in range(CAMPAIGNS):
        task, people, model = MADE[kind](rng)
        found = score(task, people, [model], n_resamples=RESAMPLES, rng=rng)
        rows = found.scores[found.scores["scorer_kind"].isin(["rater", "model"])].set_index("scorer")
        ends = [(rows.at[one, "low"], rows.at[one, "high"]) for one in ("r0", "m")]
        apart = found.differences.set_index("people").loc["raters_mean"]
        held = [_holds(one, truth) for one, truth in zip([*ends, (apart["low"], apart["high"])], truths, strict=True)]
        hits, n = hits + held, n + 1
    error = 3 * math.sqrt(0.95 * 0.05 / n)
    shares = hits / n
    # A percentile bootstrap of 30 to 40 items holds a little less than it says.
    assert (shares >= 0.93 - error).all() and (shares <= 0.97 + error).all(), shares


def _plain(task: TaskItems, people: list[ScorerAnswers], model: ScorerAnswers) -> tuple[float, float, float]:
    """(the first rater's score, the model's, the raters' mean less the model's), without any interval."""
    metric = task.metrics[0]
    gold = task.gold_numbers(metric)
    each = []
    for one in [*people, model]:
        values = one.read(task, metric)
        assert values is not None
        each.append(float(metric.measure(gold, values)(np.ones((1, len(gold))))[0]))
    return each[0], each[-1], float(np.mean(each[:-1])) - each[-1]


def test_the_mean_of_three_raters_holds_what_people_would_score() -> None:
    """Raters drawn from people of 60 to 80%; over items alone the interval knows nothing of other raters."""
    rng = np.random.default_rng(21)
    truth, hits = 0.7, []
    for _ in range(CAMPAIGNS):
        right = ["yes"] * ITEMS
        drawn = [
            tuple(("yes",) if one else ("no",) for one in rng.random(ITEMS) < rng.uniform(0.6, 0.8)) for _ in range(3)
        ]
        people = [RaterScorer(f"r{k}", values) for k, values in enumerate(drawn)]
        row = score(_task("label", "accuracy", right), people, n_resamples=RESAMPLES, rng=rng).scores
        own = row[row["scorer_kind"] == "raters_mean"].iloc[0]
        assert own["interval"] == "bootstrap over items, t over raters"
        hits.append(_holds((own["low"], own["high"]), truth))
    assert np.mean(hits) >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / len(hits))  # wide: noise counts in both parts


def test_no_difference_is_hardly_ever_found() -> None:
    rng = np.random.default_rng(22)
    found = []
    for _ in range(CAMPAIGNS):
        right = [f"l{one}" for one in rng.integers(0, LABELS, ITEMS)]
        hits = [rng.random(ITEMS) < 0.7 for _ in range(2)]
        said = [tuple((one,) if yes else ("wrong",) for one, yes in zip(right, hit, strict=True)) for hit in hits]
        task = _task("label", "accuracy", right)
        made = score(task, [RaterScorer("a", said[0])], [EmbeddingScorer("m", said[1])], n_resamples=RESAMPLES, rng=rng)
        found.append(made.differences.iloc[0]["p"] < 0.05)
    assert np.mean(found) <= 0.06 + 3 * math.sqrt(0.05 * 0.95 / len(found))
