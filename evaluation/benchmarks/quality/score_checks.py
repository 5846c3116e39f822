"""Checks of the scores that models have on a task: whether it tells them from chance, and from one another."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from evaluation.benchmarks.quality.checks import CheckedTask
from evaluation.benchmarks.quality.findings import Finding, found, undefined
from evaluation.benchmarks.quality.statistics import hidden_bars
from evaluation.models import encoder
from evaluation.models.encoder import Encoder
from evaluation.models.registered import MtebModel
from evaluation.tasks import scoring
from evaluation.tasks.item_scores import Items, difference, items_of
from evaluation.units import Model, ScoreUnit, label
from plumbline.errors import PlumblineError
from plumbline.statistics.estimates import Estimate
from plumbline.statistics.seeding import stream
from plumbline.study import Study
from plumbline.study.evaluation import ModelSpec

BASELINE = ModelSpec(name="mteb/baseline-random-encoder", kind="mteb")
_SCORED = ("random", "near_perfect", "equal_scores", "difference")


class ScoreChecks:
    """What scores tell of tasks. `scores` is the study's table (none where nothing was scored), `seed` of resampling.

    `compared` are the two models whose difference is looked at; where none are named the first two of the study that
    have scores: nobody picks them by what they scored.
    """

    def __init__(self, study: Study, scores: pd.DataFrame, compared: Sequence[ModelSpec], seed: int) -> None:
        self._study, self._scores, self._seed = study, scores, seed
        self._compared = compared
        self._models = {model.name: model for model in (Model.of(study, spec) for spec in study.evaluation.models)}
        self._baselines: dict[str, float] = {}
        self._encoders: dict[str, Encoder] = {}

    def __call__(self, task: CheckedTask, _: object = None) -> Iterator[Finding]:
        """The findings of one task."""
        scores = known_scores(self._study, self._scores, task.unit) if task.unit is not None else {}
        if not scores:
            why = self._unscored(task)
            for check in _SCORED:
                yield undefined(check, why)
            return
        yield self._random(task, scores)
        yield near_perfect(scores)
        yield equal_scores(scores)
        yield self._difference(task, scores)

    def close(self) -> None:
        """Let go of the models' stored embeddings."""
        for loaded in self._encoders.values():
            loaded.close()

    @property
    def _evaluate(self) -> str:
        return self._study.command("evaluation.run")

    def _unscored(self, task: CheckedTask) -> str:
        """Why no model has a score, and what to do where anything can be done."""
        if why := scoring.unusable(task.dataset, self._study.evaluation.protocol):
            return f"it can have no score: {why}"
        if not self._scores.empty and task.unit is not None:
            keys = [task.unit.unit_id(self._study, model) for model in self._models.values()]
            rows = self._scores[self._scores["unit_id"].isin(keys) & (self._scores["dataset"] == task.dataset.name)]
            if len(rows):
                return f"no model's score on it is defined ({'; '.join(dict.fromkeys(rows['reason']))})"
        return f"no model of the study has a score on it; `{self._evaluate}`"

    def _random(self, task: CheckedTask, scores: Mapping[str, float]) -> Finding:
        """How far the models are above vectors that know nothing of the texts (mteb's random baseline)."""
        (dataset, *_), protocol = task.unit.place if task.unit else ("",), self._study.evaluation.protocol
        if dataset not in self._baselines and task.unit is not None:
            model = Encoder(MtebModel(BASELINE), BASELINE.name, "")
            original = task.unit.dataset
            with hidden_bars("mteb.models.model_implementations.random_baseline"):
                result = scoring.evaluate(original, model, protocol, self._study.evaluation.batch_size)
            self._baselines[dataset] = result
            model.close()
        base = self._baselines[dataset]
        if math.isnan(base):
            return undefined("random", "the random baseline's own score is undefined")
        worst, best = min(scores, key=lambda name: scores[name]), max(scores, key=lambda name: scores[name])
        ends = f"{worst} {scores[worst]:.4f}, {best} {scores[best]:.4f}"
        text = f"{BASELINE.name} has {base:.4f} on the original texts, {ends}"
        return found("random", scores[worst] - base, text, fails=scores[best] - base)

    def _difference(self, task: CheckedTask, scores: Mapping[str, float]) -> Finding:
        names = [label(self._study, spec) for spec in self._compared] or list(scores)[:2]
        lacking = [name for name in names if name not in scores]
        if lacking or len(names) < 2:
            what = f"{lacking[0]} has no score on it" if lacking else "it takes scores of two models"
            return undefined("difference", f"{what}; `{self._evaluate}`")
        try:
            first, second = (self._items(task, name) for name in names)
        except PlumblineError as error:
            return undefined("difference", str(error))
        rng = stream(self._seed, "difference", task.name, *names)
        return difference_found(names, difference(first, second, rng=rng))

    def _items(self, task: CheckedTask, name: str) -> Items:
        """What a model made of each item, by its stored embeddings alone: a check encodes nothing."""
        if name not in self._encoders:
            self._encoders[name] = encoder.load(self._study, self._models[name].spec)
            self._encoders[name].only_stored = True
        evaluation = self._study.evaluation
        return items_of(task.dataset, self._encoders[name], evaluation.protocol, evaluation.batch_size)


def known_scores(study: Study, scores: pd.DataFrame, unit: ScoreUnit) -> dict[str, float]:
    """The models' scores on a unit, in the study's order: those of its table that still are its scores."""
    if scores.empty:
        return {}
    evaluated = scores[scores["status"] == "evaluated"].set_index("unit_id")
    evaluated = evaluated[(evaluated["dataset"] == unit.name) & (evaluated["transformation"] == unit.transformation)]
    by_model = {}
    for model in (Model.of(study, spec) for spec in study.evaluation.models):
        key = unit.unit_id(study, model)
        values = evaluated.loc[[key], "score"] if key in evaluated.index else pd.Series(dtype=float)
        if len(values) and math.isfinite(values.iloc[0]):
            by_model[model.name] = float(values.iloc[0])
    return by_model


def near_perfect(scores: Mapping[str, float]) -> Finding:
    """Whether the best model leaves room, and whether the weakest does."""
    worst, best = min(scores, key=lambda name: scores[name]), max(scores, key=lambda name: scores[name])
    text = f"{best} has {scores[best]:.4f}, {worst} {scores[worst]:.4f}"
    return found("near_perfect", scores[best], text, fails=scores[worst])


def equal_scores(scores: Mapping[str, float]) -> Finding:
    """How far the models' scores lie apart."""
    if len(scores) < 2:
        return undefined("equal_scores", f"{next(iter(scores))} alone has a score on it")
    apart = max(scores.values()) - min(scores.values())
    return found("equal_scores", apart, f"{len(scores)} models, from {min(scores.values()):.4f} on")


def difference_found(names: Sequence[str], estimate: Estimate) -> Finding:
    """The finding of two models' difference: it passes where the interval leaves out 0."""
    text = f"{names[0]} less {names[1]}"
    if math.isnan(estimate.value):
        return undefined("difference", f"{text}: {estimate.reason}")
    if math.isnan(estimate.low):
        return Finding("difference", "look", estimate.value, f"{text}: no interval: {estimate.reason}")
    apart = estimate.low > 0 or estimate.high < 0
    words = f"{text}: 95% interval from {estimate.low:.4f} to {estimate.high:.4f} over {estimate.n:,} items"
    if not apart:
        words += ": the task does not tell them apart"
    return Finding("difference", "pass" if apart else "look", estimate.value, words)
