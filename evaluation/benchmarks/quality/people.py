"""The gold of a task beside what people answered to the same items, if a study had them judged (`subject: items`)."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from annotation.campaign_records import CampaignData
from annotation.ratings.ratings import counting_ratings
from evaluation.benchmarks.quality.checks import CheckedTask
from evaluation.benchmarks.quality.contents import ContentPart, Contents
from evaluation.benchmarks.quality.findings import Finding, found, rows_of, together, undefined
from plumbline.errors import StudyError, nearest
from plumbline.records import nfc
from plumbline.statistics.paired import spearman_interval
from plumbline.statistics.seeding import stream
from plumbline.study import Study

_FAR = 0.5  # of all ranks: how far people's rank of an item is from the gold's, for the item to be named
Answer = float | str
Judged = tuple[ContentPart, int, Answer]  # an item by its part and place, and what people said of it


class PeopleChecks:
    """What people's answers to one question of the study tell of tasks; `seed` is of resampling."""

    def __init__(self, study: Study, question: str, seed: int) -> None:
        collected = CampaignData.read(study)
        ratings = counting_ratings(collected.sample_ratings, study.raters.per_pair)
        questions = sorted(map(str, ratings["question"].unique()))
        if question and len(ratings) and question not in questions:
            raise StudyError(f"--question {question}: nobody was asked that; {nearest(question, questions)}")
        self._question, self._known, self._seed = question, questions, seed
        answers = ratings[ratings["question"] == question]
        self._simulated = bool(answers["simulated"].any())
        self._answers: dict[str, list[Answer]] = defaultdict(list)
        for pair, value, answer in zip(answers["pair_id"], answers["value"], answers["answer"], strict=True):
            self._answers[str(pair)].append(str(answer) if pd.isna(value) else float(value))
        self._pairs = collected.sample_pairs

    def __call__(self, task: CheckedTask, contents: Contents) -> Iterator[Finding]:
        """The finding of one task; none where its items have no gold."""
        if not contents.with_gold:
            return
        if not self._question:
            names = ", ".join(self._known) or "none has answers yet"
            yield undefined("people_scores", f"name the question that asks for the gold: --question ({names})")
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
            yield undefined("people_scores", f"nobody has answered {self._question!r} on its items")
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
    """Cohen's kappa of the label that most people gave and the gold; items without such a label do not count."""
    from sklearn.metrics import cohen_kappa_score  # noqa: PLC0415

    clear: list[Judged] = []
    for part, index, answer in both:
        (first, most), *others = Counter(map(str, answer)).most_common(2)
        if not others or others[0][1] < most:
            clear.append((part, index, first))
    gold = [str(part.gold[index]) for part, index, _ in clear]
    labels = [str(label) for _, _, label in clear]
    if len({*gold, *labels}) < 2:
        return undefined("people_labels", f"{simulated}kappa needs two labels; {len(clear)} items have a clear one")
    value = float(cohen_kappa_score(labels, gold))
    wrong = [case for case, label in zip(clear, gold, strict=True) if str(case[2]) != label]
    answer = f"{simulated}{len(clear):,} of {len(both):,} items, on which most people gave one label"
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
