"""People, language models and embedding models on the same items: the tables of a human study, from its records."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from evaluation.human.agreement import agreement
from evaluation.human.annotators import annotators, difficulty
from evaluation.human.answers import Given, Task, codes_of, given_by
from evaluation.human.closeness import closeness
from evaluation.human.gold import by_unit, gold_of
from evaluation.human.records import (
    HumanAgreement,
    HumanAnnotator,
    HumanDifference,
    HumanDifficulty,
    HumanItemScore,
    HumanScore,
    ModelMade,
)
from evaluation.human.sampled import Sampled
from evaluation.human.scored import metric_of
from evaluation.human.scores import enough_resamples, score, with_holm
from plumbline.errors import DataError
from plumbline.streams import stream

GOLD = "gold"  # the scorer kind of what is right, among the answers to each item


@dataclass(frozen=True)
class Compared:
    """The tables by their records (`evaluation.human.records`), and what was left out, a line each."""

    scores: pd.DataFrame
    agreement: pd.DataFrame
    differences: pd.DataFrame
    items: pd.DataFrame
    annotators: pd.DataFrame
    difficulty: pd.DataFrame
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """A sampled task with everybody's answers: people's, language models' (frames as records have them), models'."""

    one: Sampled
    people: pd.DataFrame
    annotators: pd.DataFrame
    made: tuple[ModelMade, ...]


def compare(parts: Sequence[Part], *, seed: int, otherwise: Mapping[str, str] | None = None) -> Compared:
    """Scores, agreement, differences and items of all sampled tasks; Holm's correction is over them.

    All scores of a task's metric rest on the items that all compared scorers have (`evaluation.human.scores.score`).
    `otherwise` says how language models were asked for relevance that were not asked as people were. Raises DataError
    where no item of any task gives a score.
    """
    some = [part for part in parts if part.one.units]
    if not some:
        raise DataError("no item that people saw gives a score; " + "; ".join(_left_out(parts)))
    number = enough_resamples(len(some))
    made = [_compared(part, number, seed, otherwise or {}) for part in some]
    apart = pd.concat([one.differences for one in made], ignore_index=True)
    differences = with_holm(apart).assign(subset=apart["subset"], simulated=apart["simulated"])
    scores = _columns([one.scores for one in made], list(HumanScore.model_fields))
    compared = scores[scores["main"] & scores["compared"]]
    hard = difficulty(compared, stream(seed, "human", "difficulty"))
    return Compared(
        scores,
        _columns([one.agreement for one in made], list(HumanAgreement.model_fields)),
        differences[list(HumanDifference.model_fields)],
        _columns([one.items for one in made], list(HumanItemScore.model_fields)),
        _columns([one.annotators for one in made], list(HumanAnnotator.model_fields)),
        hard.assign(simulated=bool(scores["simulated"].any()))[list(HumanDifficulty.model_fields)],
        (*_left_out(parts), *(note for one in made for note in one.notes)),
    )


def _left_out(parts: Sequence[Part]) -> list[str]:
    """What gives nobody a score, by task and reason."""
    return [f"{part.one.name}: {n} left out: {reason}" for part in parts for reason, n in part.one.left_out.items()]


def _columns(frames: Sequence[pd.DataFrame], names: list[str]) -> pd.DataFrame:
    return pd.concat(frames, ignore_index=True)[names]


def _compared(part: Part, number: int, seed: int, otherwise: Mapping[str, str]) -> Compared:
    one = part.one
    facts = one.task.task, one.task.task_type, one.language
    task = Task.of(facts, one.task.asked, metric_of(one), gold_of(one), one.units)
    people, language = given_by(task, by_unit(one, part.people)), given_by(task, by_unit(one, part.annotators))
    models = [_given(made, task) for made in part.made]

    def rng(what: str) -> np.random.Generator:
        return stream(seed, "human", what, one.task.task, one.subset, one.language)

    found = score(task, people, [*language, *models], n_resamples=number, rng=rng("scores"))
    agreed = agreement(
        task, people, scale=one.task.scale, labels=one.task.labels, n_resamples=number, rng=rng("agreement")
    )
    beside = annotators(task, language, people, otherwise=otherwise, n_resamples=number, rng=rng("annotators"))
    simulated = bool(part.people["simulated"].any())
    reasons = {made.model: made.reason for made in part.made}
    why = [reasons.get(scorer, "") for scorer in found.scores["scorer"]]
    scores = found.scores.assign(
        subset=one.subset,
        simulated=simulated,
        main=found.scores["metric"] == task.metrics[0].name,
        content_hash=one.task.content_hash,
        reason=["; ".join(filter(None, dict.fromkeys(both))) for both in zip(found.scores["reason"], why, strict=True)],
    )
    items = pd.DataFrame(_items(one, task, [*people, *language, *models]))
    differences = found.differences.assign(subset=one.subset, simulated=simulated)
    agreed = agreed.assign(subset=one.subset, simulated=simulated)
    among = beside["measure"].map(dict(zip(agreed["measure"], agreed["value"], strict=True))).astype(float)
    beside = beside.assign(subset=one.subset, simulated=simulated, among_people=among)
    nobody = () if people else (f"{one.name}: nobody's answers count, so that models stand alone",)
    return Compared(scores, agreed, differences, items, beside, pd.DataFrame(), (*nobody, *found.notes))


def _given(made: ModelMade, task: Task) -> Given:
    """A model's answers: of each item what mteb's metric reads; nothing where mteb's score has no items."""
    values = np.array(made.made or [np.nan] * len(task.items), np.float64)
    beside = {name: np.array(own, np.float64) for name, own in made.others.items()}
    if made.labels:
        codes = np.stack([codes_of(task, run) for run in made.labels])
        beside |= {metric.name: codes for metric in task.metrics[1:]}
    return Given(made.model, "model", made=values, beside=beside)


def _items(one: Sampled, task: Task, scorers: Sequence[Given]) -> Iterator[dict[str, object]]:
    """What is right of each item, and what each scorer made of it."""
    place = {"task": task.name, "subset": one.subset, "language": one.language}
    for item, right in zip(task.items, task.right, strict=True):
        answer = "" if right is None else _words(task, right)
        yield {**place, "item": item, "scorer": GOLD, "scorer_kind": GOLD, "score": 1.0, "answer": answer}
    for scorer in scorers:
        near = closeness(task, scorer)
        said = scorer.values or (None,) * len(task.items)
        for item, value, answer in zip(task.items, near.tolist(), said, strict=True):
            who = {"scorer": scorer.scorer, "scorer_kind": scorer.kind}
            yield {
                **place,
                **who,
                "item": item,
                "score": value,
                "answer": "" if answer is None else _words(task, answer),
            }


def _words(task: Task, answer: object) -> str:
    """An answer as people read it: labels with commas, numbers of candidates in their order."""
    if isinstance(answer, np.ndarray):
        return ", ".join(f"{one:g}" for one in answer.tolist())
    if isinstance(answer, float):
        return f"{answer:g}"
    labels = [str(one) or "none" for one in answer] if isinstance(answer, tuple) else [str(answer)]
    return (
        ", ".join(" and ".join(json.loads(one)) or "none" for one in labels)
        if task.asked == "labels"
        else ", ".join(labels)
    )
