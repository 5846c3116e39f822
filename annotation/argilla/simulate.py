"""Simulated raters, for rehearsals: made-up people who answer through Argilla's own HTTP API.

Each rater answers with the author's rating of the recorded output (for a control, the expected answer) plus the rater's
bias plus normal noise, rounded and kept on the scale. A study's own transformation may have no recorded rating: its aim
takes the rating's place, which is the best point, or, if the meaning is to change, the worst point of the first
question. A question without a recorded rating follows the first one that has a rating, at the same relative place on
its own scale or among its labels. An item of another subject has a value drawn by the seed, which says nothing about
the item. The raters' accounts are called `simulated-...`, and every record of theirs says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from tqdm import tqdm

from annotation import server
from annotation.argilla.accounts import admit, published, workspaces_of
from annotation.argilla.client import SIMULATED, Argilla, ArgillaUser, DatasetListing
from annotation.argilla.training_answers import training_datasets
from annotation.campaign_records import CampaignRecords
from annotation.human.simulated import rehearsal_of
from annotation.offering import alone
from annotation.questions import QuestionScale, Value, labels_of, ranked
from annotation.rubric import CHECKS, Rubric
from annotation.training import POOL, TrainingItem, read_items, training_rubric
from annotation.verdicts.preregistration import asked_rubric
from generation.generators import RecordedOutputs
from generation.production import read_transformed
from generation.recordings import Recording
from plumbline.errors import DataError, ServiceError, StudyError
from plumbline.fields import expected_of
from plumbline.identity import identity
from plumbline.records import Pair
from plumbline.statistics.estimates import Floats
from plumbline.study import Study
from plumbline.study.campaign import RatersSpec, SimulatedRater
from plumbline.study.transformations import EIGHT, Transformation
from plumbline.words import count

BULK = 100  # the most answers that Argilla takes at a time
Answer = dict[str, object]


def simulate(study: Study, argilla: Argilla) -> int:
    """Let the study's simulated raters answer every pair that lacks answers; return how many they gave.

    Pairs get `raters.per_pair` answers in all; answers of people and of earlier rehearsals stay. Raises StudyError if
    the study names no simulated raters, or if its generator has no authors' ratings.
    """
    if not study.raters.simulated:
        raise StudyError(f"{study.file}: raters.simulated is empty; name simulated raters, or let people rate")
    with alone(study):
        records, raters = CampaignRecords.open(study), study.raters
        rubric = asked_rubric(records)
        answer, pools = answering(study, rubric, records.shown), {pair.pair_id: pair.pool for pair in records.shown}
        accounts = _accounts(raters.simulated, argilla, study.name)
        # Repeats come last, and the pairs that they repeat first: far apart, as raters see them.
        repeated = {pair.repeats for pair in records.shown if pair.control == "repeat"}
        turns = {
            pair.pair_id: 2 if pair.control == "repeat" else int(pair.pair_id not in repeated) for pair in records.shown
        }
        todo: dict[tuple[str, int], list[Answer]] = {
            (rater.name, turn): [] for rater in raters.simulated for turn in range(3)
        }
        for dataset in published(records, argilla).values():
            for record in argilla.records(dataset.id):
                pair_id = record["external_id"]
                if pair_id not in pools:
                    continue
                pool = pools[pair_id]
                # A rater does a whole task: a score is computed over the rater's own items.
                order = _order(raters.simulated, pool if study.judging.does_tasks else pair_id)
                for rater in _missing(order, record, accounts, study.raters_of(pool)):
                    values = answer(rater, pair_id)
                    questions = {question.name: question for question in rubric.asked(pool)}
                    values_json = {name: {"value": questions[name].given(value)} for name, value in values.items()}
                    todo[rater.name, turns[pair_id]].append(
                        {"record_id": record["id"], "values": values_json, "status": "submitted"}
                    )
        for dataset, items in training_datasets(study.name, argilla, read_items(study, rubric)):
            for name, answers in _trained(argilla, dataset, items, rubric, raters, accounts).items():
                for batch in _batches(answers):
                    _submit(argilla, accounts[name], batch)
        total = sum(map(len, todo.values()))
        with tqdm(total=total, unit="answer", desc="simulated raters", disable=total == 0) as bar:
            for (name, _), answers in todo.items():
                for batch in _batches(answers):
                    _submit(argilla, accounts[name], batch)
                    bar.update(len(batch))
    return total


def _trained(
    argilla: Argilla,
    dataset: DatasetListing,
    items: Mapping[str, TrainingItem],
    rubric: Rubric,
    raters: RatersSpec,
    accounts: Mapping[str, ArgillaUser],
) -> dict[str, list[Answer]]:
    """Return simulated raters' answers, near the right ones, to training pairs that they have not answered."""
    records = [record for record in argilla.records(dataset.id) if record["external_id"] in items]
    questions = training_rubric(rubric, list(items.values())).asked(POOL)
    todo = dict[str, list[Answer]]()
    for rater, record in itertools.product(raters.simulated, records):
        if accounts[rater.name].id in {response["user_id"] for response in record.get("responses") or []}:
            continue
        expected = expected_of(items[record["external_id"]].pair)
        truth = {
            question.name: float(expected.get(question.name, question.scale[-1]))
            if question.kind == "rating"
            else _place(question, expected.get(question.name), 1.0)
            for question in questions
            if question.kind == "rating" or question.labels
        }
        felt = simulated_answer(raters.simulation_seed, rater, record["external_id"], truth, rubric)
        values = {
            question.name: {"value": question.given(felt[question.name])}
            for question in questions
            if question.name in felt
        }
        answer: Answer = {"record_id": record["id"], "values": values, "status": "submitted"}
        todo.setdefault(rater.name, []).append(answer)
    return todo


def answering(
    study: Study, rubric: Rubric, pairs: Sequence[Pair], *, draws: bool = False
) -> Callable[[SimulatedRater, str], Mapping[str, Value]]:
    """Return a function of rater and pair id that gives the simulated answers to these pairs, seeded.

    Raises DataError for a pair whose output nobody rated; with `draws` its true value is drawn by the seed.
    """
    if study.judging.does_tasks:
        return rehearsal_of(study).answers
    truths, seed = _truths(study, rubric, pairs, draws=draws), study.raters.simulation_seed
    return lambda rater, pair_id: simulated_answer(seed, rater, pair_id, truths[pair_id], rubric)


def simulated_answer(
    simulation_seed: int, rater: SimulatedRater, pair_id: str, truth: Mapping[str, float], rubric: Rubric
) -> dict[str, Value]:
    """Return a simulated rater's answers to a pair: a pure function of seed, rater and pair.

    `truth` has a point of the scale for each rating, and for labels a place among them, from 0; a positive bias goes up
    the scale, and towards the first label.
    """
    answers: dict[str, Value] = {}
    for question in rubric.asked():
        if question.kind == "text" and question.required:
            answers[question.name] = f"A text by simulated rater {rater.name}"
        if question.name not in truth:
            continue
        seed = int(identity("simulation-v1", simulation_seed, rater.name, pair_id, question.name), 16)
        noise = np.random.default_rng(seed).normal(0.0, rater.noise, 2)
        if question.kind == "rating":
            felt = truth[question.name] + rater.bias + noise[0]
            point = int(np.clip(round(felt), question.scale[0], question.scale[-1]))
            _, answers[question.name] = min(
                (abs(step - point), step) for step in question.scale
            )  # a scale may have gaps
        else:
            answers[question.name] = _labels(question, truth[question.name] - rater.bias + noise)
    return answers


def _labels(question: QuestionScale, felt: Floats) -> str:
    """Return the label nearest to a perceived place, two such labels, or all ranked by their distance to it."""
    places = [int(label_index) for label_index in np.clip(np.round(felt), 0, len(question.labels) - 1)]
    if question.kind == "label":
        return question.labels[places[0]]
    if question.kind == "multi_label":
        return str(question.kept([question.labels[label_index] for label_index in sorted(set(places))]))
    near = sorted(range(len(question.labels)), key=lambda label_index: (abs(label_index - felt[0]), label_index))
    return ranked({question.labels[label_index]: rank for rank, label_index in enumerate(near, 1)})


def _truths(study: Study, rubric: Rubric, pairs: Sequence[Pair], *, draws: bool = False) -> dict[str, dict[str, float]]:
    """Return each pair's true value by question: the author's rating, or the expected answer of a control.

    Labels are never recorded: the first label counts as the best, and the place among them follows the first rating.
    """
    kinds = study.transforming
    transformed = [name for name, kind in kinds.items() if kind.calls]
    of_the_eight = not draws and any(name in EIGHT for name in transformed)
    wanted = study.generator.recordings or of_the_eight
    recorded = RecordedOutputs.of(study) if transformed and wanted else None
    languages = {
        row.key: row.language
        for name in study.transformations
        for seed in study.seeds
        for row in read_transformed(study, name, seed)
    }
    truths: dict[str, dict[str, float]] = {}
    for pair in pairs:
        questions = rubric.asked(pair.pool)
        ratings = [question for question in questions if question.kind == "rating"]
        expected = rubric.right_answers(pair)
        if pair.control in CHECKS:
            rated = {question.name: float(expected.get(question.name, question.scale[-1]) or 0) for question in ratings}
        elif pair.fields:
            truths[pair.pair_id] = _drawn(study.raters.simulation_seed, pair.key, questions)
            continue
        else:
            kind, recording = kinds[pair.transformation], None
            if recorded is not None and kind.calls:
                recording = recorded.find(pair.transformation, languages.get(pair.key), pair.original)
            if draws and recording is None:
                truths[pair.pair_id] = _drawn(study.raters.simulation_seed, pair.key, questions)
                continue
            rated = _deserved(kind, pair, recording, ratings)
        best = 1.0
        if ratings:
            low, high = ratings[0].scale[0], ratings[0].scale[-1]
            best = (rated.get(ratings[0].name, high) - low) / (high - low)
        places = {
            question.name: _place(question, expected.get(question.name), best)
            for question in questions
            if question.labels
        }
        truths[pair.pair_id] = {**rated, **places}
    return truths


def _drawn(simulation_seed: int, key: str, questions: Sequence[QuestionScale]) -> dict[str, float]:
    """Draw the true values of an item of another subject: good more often than bad.

    The values follow from the item's key, so a repeat has the same ones. They say nothing about the item's quality.
    """
    seed = int(identity("latent-v1", simulation_seed, key), 16)
    good = float(np.random.default_rng(seed).beta(4.0, 1.0))
    rated = {
        question.name: question.scale[0] + good * (question.scale[-1] - question.scale[0])
        for question in questions
        if question.kind == "rating"
    }
    return rated | {question.name: _place(question, None, good) for question in questions if question.labels}


def _place(question: QuestionScale, expected: Value, best: float) -> float:
    """Return the index of the true label: the first expected one, or, without one, further on for a worse pair."""
    if expected is not None:
        return float(question.labels.index(labels_of(str(expected))[0]))
    return (1 - best) * (len(question.labels) - 1)


def _meant(kind: Transformation, questions: Sequence[QuestionScale]) -> dict[str, float]:
    """Return the values that a transformation aims at, for outputs that nobody rated."""
    best = {question.name: float(question.scale[-1]) for question in questions}
    first = {question.name: float(question.scale[0]) for question in questions[:1]}
    return best if kind.meaning == "kept" else best | first


def _deserved(
    kind: Transformation, pair: Pair, recording: Recording | None, questions: Sequence[QuestionScale]
) -> dict[str, float]:
    """Return the author's ratings of an output, with values for required questions that the author did not rate."""
    recorded_values = {question.name: getattr(recording, question.name, None) for question in questions}
    rating = {question: float(value) for question, value in recorded_values.items() if value is not None}
    if questions and not rating and kind.name in EIGHT:
        raise DataError(f"pair {pair.pair_id} ({pair.transformation}) has no author's rating; only recordings have one")
    if not rating:
        return _meant(kind, questions)
    first = next(question for question in questions if question.name in rating)
    level = (rating[first.name] - first.scale[0]) / (first.scale[-1] - first.scale[0])
    unrated = [question for question in questions if question.required and question.name not in rating]
    return rating | {
        question.name: question.scale[0] + level * (question.scale[-1] - question.scale[0]) for question in unrated
    }


def _accounts(raters: Sequence[SimulatedRater], argilla: Argilla, study_name: str) -> dict[str, ArgillaUser]:
    """Create each simulated rater's account, in all of the study's workspaces; return them by name."""
    if argilla.connection is None:
        raise ServiceError("simulated raters answer only on the local server; unset ARGILLA_API_URL to rehearse")
    for rater in raters:
        server.ensure_user(argilla.connection, f"{SIMULATED}{rater.name}", first_name=f"Simulated {rater.name}")
    users = {user.username: user for user in argilla.users()}
    accounts = {rater.name: users[f"{SIMULATED}{rater.name}"] for rater in raters}
    for workspace_id, _ in workspaces_of(study_name, argilla).values():
        admit(workspace_id, argilla, list(accounts.values()))
    return accounts


def _order(raters: Sequence[SimulatedRater], key: str) -> list[SimulatedRater]:
    """Return the raters in the order of a pair, or a pool."""
    first = int(identity("turn-v1", key), 16) % len(raters)
    return [*raters[first:], *raters[:first]]


def _missing(
    raters: Sequence[SimulatedRater], record: Mapping[str, Any], accounts: Mapping[str, ArgillaUser], wanted: int
) -> list[SimulatedRater]:
    """Return the raters who are to answer a record so that it has the wanted number of answers."""
    answered = {response["user_id"] for response in record.get("responses") or []}
    others = [rater for rater in raters if accounts[rater.name].id not in answered]
    return others[: max(0, wanted - len(answered))]


def _batches(answers: Sequence[Answer]) -> list[Sequence[Answer]]:
    return [answers[start : start + BULK] for start in range(0, len(answers), BULK)]


def _submit(argilla: Argilla, user: ArgillaUser, answers: Sequence[Answer]) -> None:
    outcome = argilla.request("POST", "/me/responses/bulk", api_key=user.api_key, json={"items": answers})
    refused = [item["error"]["detail"] for item in outcome["items"] if item.get("error")]
    if refused:
        raise ServiceError(f"Argilla at {argilla.url} refused {count(len(refused), 'simulated answer')}: {refused[0]}")
