"""Checks of a task's scores by models: whether the task separates them from chance, and from one another."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

import pandas as pd

from evaluation.benchmarks.contents import CheckedTask, Finding, found, undefined
from evaluation.benchmarks.data_checks import hidden_bars
from evaluation.models.encoder import Encoder, ModelHost
from evaluation.models.registered import MtebModel
from evaluation.tasks import scoring
from evaluation.tasks.protocols import Protocol
from evaluation.units import Model, ScoreUnit
from plumbline.study.evaluation import MtebSpec

BASELINE = MtebSpec(name="mteb/baseline-random-encoder")
_SCORED = ("random", "near_perfect", "equal_scores")


class ScoreChecks:
    """Checks of tasks by models' scores. `scores` is the study's table (empty without scores).

    `evaluate` is the command that computes scores.
    """

    def __init__(self, host: ModelHost, scores: pd.DataFrame, evaluate: str) -> None:
        self._scores, self._evaluation, self._evaluate = scores, host.evaluation, evaluate
        self._models = Model.all_of(host)
        self._baselines: dict[str, float] = {}

    def findings(self, task: CheckedTask) -> Iterator[Finding]:
        """Yield the findings of one task."""
        protocol = self._evaluation.protocol
        scores = known_scores(self._scores, task.unit, self._models, protocol) if task.unit is not None else {}
        if not scores:
            why = self._unscored(task)
            for check in _SCORED:
                yield undefined(check, why)
            return
        yield self._random(task, scores)
        yield near_perfect(scores)
        yield equal_scores(scores)

    def _unscored(self, task: CheckedTask) -> str:
        """Return why no model has a score, and what to do about it."""
        if why := scoring.unusable(task.dataset, self._evaluation.protocol):
            return f"the task cannot be scored: {why}"
        if not self._scores.empty and task.unit is not None:
            keys = [task.unit.unit_id(self._evaluation.protocol, model) for model in self._models]
            rows = self._scores[self._scores["unit_id"].isin(keys) & (self._scores["dataset"] == task.dataset.name)]
            if len(rows):
                return f"every model's score is undefined ({'; '.join(dict.fromkeys(rows['reason']))})"
        return f"no model of the study has a score on the task; run `{self._evaluate}`"

    def _random(self, task: CheckedTask, scores: Mapping[str, float]) -> Finding:
        """Check how far the models are above random vectors (mteb's random baseline)."""
        (dataset, *_), protocol = task.unit.place if task.unit else ("",), self._evaluation.protocol
        if dataset not in self._baselines and task.unit is not None:
            model = Encoder(MtebModel(BASELINE), BASELINE.name, "")
            original = task.unit.dataset
            with hidden_bars("mteb.models.model_implementations.random_baseline"):
                result = scoring.evaluate(original, model, protocol, self._evaluation.batch_size)
            self._baselines[dataset] = result
            model.close()
        base = self._baselines[dataset]
        if math.isnan(base):
            return undefined("random", "the random baseline's own score is undefined")
        worst, best = min(scores, key=lambda name: scores[name]), max(scores, key=lambda name: scores[name])
        ends = f"weakest model: {worst} ({scores[worst]:.4f}); best model: {best} ({scores[best]:.4f})"
        text = f"{BASELINE.name} scores {base:.4f} on the original texts; {ends}"
        return found("random", scores[worst] - base, text, fails=scores[best] - base)


def known_scores(
    scores: pd.DataFrame, unit: ScoreUnit, models: Iterable[Model], protocol: Protocol
) -> dict[str, float]:
    """Return models' valid scores on a unit from a study's table, in the models' order."""
    if scores.empty:
        return {}
    evaluated = scores[scores["status"] == "evaluated"].set_index("unit_id")
    evaluated = evaluated[(evaluated["dataset"] == unit.name) & (evaluated["transformation"] == unit.transformation)]
    by_model = {}
    for model in models:
        key = unit.unit_id(protocol, model)
        values = evaluated.loc[[key], "score"] if key in evaluated.index else pd.Series(dtype=float)
        if len(values) and math.isfinite(values.iloc[0]):
            by_model[model.name] = float(values.iloc[0])
    return by_model


def near_perfect(scores: Mapping[str, float]) -> Finding:
    """Check whether the best model, and the weakest, leave room for improvement."""
    worst, best = min(scores, key=lambda name: scores[name]), max(scores, key=lambda name: scores[name])
    text = f"{best} scores {scores[best]:.4f}, {worst} {scores[worst]:.4f}"
    return found("near_perfect", scores[best], text, fails=scores[worst])


def equal_scores(scores: Mapping[str, float]) -> Finding:
    """Check how far apart the models' scores are."""
    if len(scores) < 2:
        return undefined("equal_scores", f"only {next(iter(scores))} has a score on the task")
    low, high = min(scores.values()), max(scores.values())
    return found("equal_scores", high - low, f"scores of {len(scores)} models from {low:.4f} to {high:.4f}")
