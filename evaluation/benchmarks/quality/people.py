"""The gold of a task beside what people answered to the same items, if a study had them judged (`subject: items`)."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from annotation.ratings.collected import CampaignData
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
        known = sorted(map(str, ratings["question"].unique()))
        if question and len(ratings) and question not in known:
            raise StudyError(f"--question {question}: nobody was asked that; {nearest(question, known)}")
        self._question, self._known, self._seed = question, known, seed
        own = ratings[ratings["question"] == question]
        self._simulated = bool(own["simulated"].any())
        self._answers: dict[str, list[Answer]] = defaultdict(list)
        for pair, value, answer in zip(own["pair_id"], own["value"], own["answer"], strict=True):
            self._answers[str(pair)].append(str(answer) if pd.isna(value) else float(value))
        self._pairs = collected.sample_pairs

    def __call__(self, task: CheckedTask, contents: Contents) -> Iterator[Finding]:
        """The finding of one task; none where its items have no gold."""
        if not contents.with_gold:
            return
        if not self._question:
            asked = ", ".join(self._known) or "none has answers yet"
            yield undefined("people_scores", f"name the question that asks for the gold: --question ({asked})")
            return
        places = {
            tuple(sorted(map(nfc, texts))): (part, place)
            for part in reversed(contents.with_gold)
            for place, texts in enumerate(part.texts)
        }
        both: list[tuple[ContentPart, int, Sequence[Answer]]] = []
        for pair in self._pairs:
            key = tuple(sorted(text for text in json.loads(pair.fields or "{}").values() if isinstance(text, str)))
            if pair.dataset == task.name and key in places and (said := self._answers.get(pair.pair_id)):
                both.append((*places[key], said))
        if not both:
            yield undefined("people_scores", f"nobody has answered {self._question!r} on its items")
            return
        yield self._beside(task, both)

    def _beside(self, task: CheckedTask, both: Sequence[tuple[ContentPart, int, Sequence[Answer]]]) -> Finding:
        gold = [part.gold[place] for part, place, _ in both]
        simulated = "SIMULATED answers: " if self._simulated else ""
        if all(isinstance(one, float) for _, _, said in both for one in said) and all(map(_numeric, gold)):
            means = [float(np.mean([float(one) for one in said])) for _, _, said in both]
            rng = stream(self._seed, "people", task.name, self._question)
            made = spearman_interval(means, [float(one) for one in gold], rng=rng)
            if math.isnan(made.value):
                return undefined("people_scores", f"{simulated}{made.reason}")
            ends = f"95% interval from {made.low:.3f} to {made.high:.3f}" if not made.reason else made.reason
            rows = _far(both, means, gold)
            return found("people_scores", made.value, f"{simulated}{len(both):,} items, {ends}", rows)
        return _labels(both, simulated)


def _labels(both: Sequence[tuple[ContentPart, int, Sequence[Answer]]], simulated: str) -> Finding:
    """Cohen's kappa of the label that most people gave and the gold; items without such a label do not count."""
    from sklearn.metrics import cohen_kappa_score  # noqa: PLC0415

    clear: list[Judged] = []
    for part, place, said in both:
        (first, most), *others = Counter(map(str, said)).most_common(2)
        if not others or others[0][1] < most:
            clear.append((part, place, first))
    gold = [str(part.gold[place]) for part, place, _ in clear]
    given = [str(label) for _, _, label in clear]
    if len({*gold, *given}) < 2:
        return undefined("people_labels", f"{simulated}kappa needs two labels; {len(clear)} items have a clear one")
    value = float(cohen_kappa_score(given, gold))
    wrong = [one for one, label in zip(clear, gold, strict=True) if str(one[2]) != label]
    said = f"{simulated}{len(clear):,} of {len(both):,} items, on which most people gave one label"
    return found("people_labels", value, said, _rows(wrong))


def _far(
    both: Sequence[tuple[ContentPart, int, Sequence[Answer]]], means: Sequence[float], gold: Sequence[Any]
) -> pd.DataFrame:
    from scipy import stats  # noqa: PLC0415 (half a second)

    apart = np.abs(stats.rankdata(means) - stats.rankdata([float(one) for one in gold])) / len(means)
    order = [int(place) for place in np.argsort(-apart, kind="stable") if apart[place] > _FAR]
    return _rows([(both[place][0], both[place][1], means[place]) for place in order])


def _rows(judged: Sequence[Judged]) -> pd.DataFrame:
    frames = [
        rows_of(part, [place], [f"people {said if isinstance(said, str) else f'{said:.2f}'}, gold {part.gold[place]}"])
        for part, place, said in judged
    ]
    return together(frames)


def _numeric(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
