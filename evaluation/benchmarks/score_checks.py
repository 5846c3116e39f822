"""Checks of a task's scores by models, and of people's answers to its items.

Models: whether the task separates them from chance, and from one another. People: how their answers agree with the
gold, if a study had the items judged (`subject: items`).
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from annotation.campaign_records import CampaignData
from annotation.ratings.ratings import counting_ratings
from evaluation.benchmarks.contents import (
    CheckedTask,
    ContentPart,
    Contents,
    Finding,
    found,
    rows_of,
    together,
    undefined,
)
from evaluation.benchmarks.data_checks import hidden_bars
from evaluation.models.encoder import Encoder, ModelHost
from evaluation.models.registered import MtebModel
from evaluation.tasks import scoring
from evaluation.tasks.item_scores import Items, difference, items_of
from evaluation.tasks.protocols import Protocol
from evaluation.units import Model, ScoreUnit
from plumbline.errors import PlumblineError, StudyError, nearest
from plumbline.records import nfc
from plumbline.statistics.estimates import Estimate, stream
from plumbline.statistics.paired import spearman_interval
from plumbline.study.evaluation import ModelSpec

BASELINE = ModelSpec(name="mteb/baseline-random-encoder", kind="mteb")
_SCORED = ("random", "near_perfect", "equal_scores", "difference")


class ScoreChecks:
    """Checks of tasks by models' scores. `scores` is the study's table (empty without scores), `seed` for resampling.

    `compared` names the two models whose difference is tested; by default the first two of the study that have scores,
    which does not depend on the scores. `evaluate` is the command that computes scores.
    """

    def __init__(
        self, host: ModelHost, scores: pd.DataFrame, compared: Sequence[str], seed: int, evaluate: str
    ) -> None:
        self._host, self._scores, self._seed, self._evaluate = host, scores, seed, evaluate
        self._evaluation, self._compared = host.evaluation, compared
        self._models = {model.name: model for model in Model.all_of(host)}
        self._baselines: dict[str, float] = {}
        self._encoders: dict[str, Encoder] = {}

    def __call__(self, task: CheckedTask, _: object = None) -> Iterator[Finding]:
        """Yield the findings of one task."""
        scores = self._known(task.unit) if task.unit is not None else {}
        if not scores:
            why = self._unscored(task)
            for check in _SCORED:
                yield undefined(check, why)
            return
        yield self._random(task, scores)
        yield near_perfect(scores)
        yield equal_scores(scores)
        yield self._difference(task, scores)

    def _known(self, unit: ScoreUnit) -> dict[str, float]:
        return known_scores(self._scores, unit, self._models.values(), self._evaluation.protocol)

    def close(self) -> None:
        """Close the models' stored embeddings."""
        for loaded in self._encoders.values():
            loaded.close()

    def _unscored(self, task: CheckedTask) -> str:
        """Return why no model has a score, and what to do about it."""
        if why := scoring.unusable(task.dataset, self._evaluation.protocol):
            return f"the task cannot be scored: {why}"
        if not self._scores.empty and task.unit is not None:
            keys = [task.unit.unit_id(self._evaluation.protocol, model) for model in self._models.values()]
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

    def _difference(self, task: CheckedTask, scores: Mapping[str, float]) -> Finding:
        names = [*self._compared] or list(scores)[:2]
        lacking = [name for name in names if name not in scores]
        if lacking or len(names) < 2:
            what = f"{lacking[0]} has no score on the task" if lacking else "the test needs scores of two models"
            return undefined("difference", f"{what}; run `{self._evaluate}`")
        try:
            first, second = (self._items(task, name) for name in names)
        except PlumblineError as error:
            return undefined("difference", str(error))
        rng = stream(self._seed, "difference", task.name, *names)
        return difference_found(names, difference(first, second, rng=rng))

    def _items(self, task: CheckedTask, name: str) -> Items:
        """Return a model's result on each item, from stored embeddings only: a check encodes nothing."""
        if name not in self._encoders:
            self._encoders[name] = self._host.load(self._models[name].spec)
            self._encoders[name].only_stored = True
        evaluation = self._evaluation
        return items_of(task.dataset, self._encoders[name], evaluation.protocol, evaluation.batch_size)


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


def difference_found(names: Sequence[str], estimate: Estimate) -> Finding:
    """Return the finding on two models' difference: it passes if the interval excludes 0."""
    text = f"{names[0]} minus {names[1]}"
    if math.isnan(estimate.value):
        return undefined("difference", f"{text}: {estimate.reason}")
    if math.isnan(estimate.low):
        return Finding("difference", "look", estimate.value, f"{text}: no interval: {estimate.reason}")
    apart = estimate.low > 0 or estimate.high < 0
    words = f"{text}: 95% interval from {estimate.low:.4f} to {estimate.high:.4f} over {estimate.n:,} items"
    if not apart:
        words += ": the task does not separate them"
    return Finding("difference", "pass" if apart else "look", estimate.value, words)


_FAR = 0.5  # share of all ranks between people's rank of an item and gold's, from which it is listed
Answer = float | str
Judged = tuple[ContentPart, int, Answer]  # an item by its part and position, and people's answer


class PeopleChecks:
    """Checks of tasks by people's answers to one question; `per_pair` ratings of each pair count."""

    def __init__(self, collected: CampaignData, per_pair: int, question: str, seed: int) -> None:
        ratings = counting_ratings(collected.sample_ratings, per_pair)
        questions = sorted(map(str, ratings["question"].unique()))
        if question and len(ratings) and question not in questions:
            raise StudyError(f"--question {question}: the study does not ask it; {nearest(question, questions)}")
        self._question, self._known, self._seed = question, questions, seed
        answers = ratings[ratings["question"] == question]
        self._simulated = bool(answers["simulated"].any())
        self._answers: dict[str, list[Answer]] = defaultdict(list)
        for pair, value, answer in zip(answers["pair_id"], answers["value"], answers["answer"], strict=True):
            self._answers[str(pair)].append(str(answer) if pd.isna(value) else float(value))
        self._pairs = collected.sample_pairs

    def __call__(self, task: CheckedTask, contents: Contents) -> Iterator[Finding]:
        """Yield the finding of one task; none if its items have no gold."""
        if not contents.with_gold:
            return
        if not self._question:
            names = ", ".join(self._known) or "no question has answers yet"
            yield undefined("people_scores", f"use --question to name the question that asks for the gold ({names})")
            return
        places = {
            tuple(sorted(map(nfc, texts))): (part, index)
            for part in reversed(contents.with_gold)
            for index, texts in enumerate(part.texts)
        }
        both: list[tuple[ContentPart, int, Sequence[Answer]]] = []
        for pair in self._pairs:
            key = tuple(sorted(text for text in json.loads(pair.fields or "{}").values() if isinstance(text, str)))
            if pair.dataset == task.name and key in places and (answer := self._answers.get(pair.pair_id)):
                both.append((*places[key], answer))
        if not both:
            yield undefined("people_scores", f"nobody answered {self._question!r} on the task's items")
            return
        yield self._beside(task, both)

    def _beside(self, task: CheckedTask, both: Sequence[tuple[ContentPart, int, Sequence[Answer]]]) -> Finding:
        gold = [part.gold[index] for part, index, _ in both]
        simulated = "SIMULATED answers: " if self._simulated else ""
        if all(isinstance(value, float) for _, _, answer in both for value in answer) and all(map(_numeric, gold)):
            means = [float(np.mean([float(value) for value in answer])) for _, _, answer in both]
            rng = stream(self._seed, "people", task.name, self._question)
            estimate = spearman_interval(means, [float(value) for value in gold], rng=rng)
            if math.isnan(estimate.value):
                return undefined("people_scores", f"{simulated}{estimate.reason}")
            ends = (
                f"95% interval from {estimate.low:.3f} to {estimate.high:.3f}"
                if not estimate.reason
                else estimate.reason
            )
            rows = _far(both, means, gold)
            return found("people_scores", estimate.value, f"{simulated}{len(both):,} items, {ends}", rows)
        return _labels(both, simulated)


def _labels(both: Sequence[tuple[ContentPart, int, Sequence[Answer]]], simulated: str) -> Finding:
    """Check Cohen's kappa of the majority label and the gold; items without a majority do not count."""
    from sklearn.metrics import cohen_kappa_score  # noqa: PLC0415

    clear: list[Judged] = []
    for part, index, answer in both:
        (first, most), *others = Counter(map(str, answer)).most_common(2)
        if not others or others[0][1] < most:
            clear.append((part, index, first))
    gold = [str(part.gold[index]) for part, index, _ in clear]
    labels = [str(label) for _, _, label in clear]
    if len({*gold, *labels}) < 2:
        return undefined(
            "people_labels",
            f"{simulated}kappa needs two different labels; items with a majority label: {len(clear)}",
        )
    value = float(cohen_kappa_score(labels, gold))
    wrong = [case for case, label in zip(clear, gold, strict=True) if str(case[2]) != label]
    answer = f"{simulated}{len(clear):,} of {len(both):,} items have a majority label"
    return found("people_labels", value, answer, _rows(wrong))


def _far(
    both: Sequence[tuple[ContentPart, int, Sequence[Answer]]], means: Sequence[float], gold: Sequence[Any]
) -> pd.DataFrame:
    from scipy import stats  # noqa: PLC0415 (half a second)

    apart = np.abs(stats.rankdata(means) - stats.rankdata([float(value) for value in gold])) / len(means)
    order = [int(index) for index in np.argsort(-apart, kind="stable") if apart[index] > _FAR]
    return _rows([(both[index][0], both[index][1], means[index]) for index in order])


def _rows(judged: Sequence[Judged]) -> pd.DataFrame:
    frames = [
        rows_of(
            part, [index], [f"people {answer if isinstance(answer, str) else f'{answer:.2f}'}, gold {part.gold[index]}"]
        )
        for part, index, answer in judged
    ]
    return together(frames)


def _numeric(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
