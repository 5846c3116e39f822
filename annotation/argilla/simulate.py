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
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tqdm import tqdm

from annotation import server
from annotation.argilla.accounts import admit, published, training_datasets, workspaces_of
from annotation.argilla.client import SIMULATED, Argilla, ArgillaUser, DatasetListing
from annotation.campaign.offering import alone
from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import CHECKS, Rubric
from annotation.human.simulated import rehearsal_of
from annotation.page.training import POOL, TrainingItem, read_items, training_rubric
from annotation.questions.question import Question, Value
from annotation.verdicts.preregistration import asked_rubric
from generation.generators import RecordedOutputs
from generation.production import read_transformed
from generation.recordings import Recording
from plumbline.errors import DataError, ServiceError, StudyError
from plumbline.fields import expected_of
from plumbline.identity import identity
from plumbline.records import Pair
from plumbline.study import Study
from plumbline.study.campaign import SimulatedRater
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
        records = CampaignRecords(study)
        desk = _Desk.of(study, asked_rubric(records), argilla)
        todo = desk.due(records)
        for dataset, items in training_datasets(study.name, argilla, read_items(study, desk.rubric)):
            desk.submit(desk.trained(dataset, items))
        with tqdm(total=len(todo), unit="answer", desc="simulated raters", disable=not todo) as bar:
            desk.submit(todo, bar)
    return len(todo)


@dataclass(frozen=True)
class _Desk:
    """Simulated raters at Argilla. Answers to give are pairs of a rater's name and an answer as Argilla takes it."""

    study: Study
    rubric: Rubric
    argilla: Argilla
    accounts: Mapping[str, ArgillaUser]  #: by the name of the rater

    @classmethod
    def of(cls, study: Study, rubric: Rubric, argilla: Argilla) -> _Desk:
        """Create each simulated rater's account, in all of the study's workspaces."""
        if argilla.connection is None:
            raise ServiceError("simulated raters answer only on the local server; unset ARGILLA_API_URL to rehearse")
        names = {rater.name: f"{SIMULATED}{rater.name}" for rater in study.raters.simulated}
        for name, username in names.items():
            server.ensure_user(argilla.connection, username, first_name=f"Simulated {name}")
        users = {user.username: user for user in argilla.users()}
        accounts = {name: users[username] for name, username in names.items()}
        for workspace_id, _ in workspaces_of(study.name, argilla).values():
            admit(workspace_id, argilla, list(accounts.values()))
        return cls(study, rubric, argilla, accounts)

    def due(self, records: CampaignRecords) -> list[tuple[str, Answer]]:
        """Return the answers that pairs lack, by rater, in the order of answering.

        Repeats come last, and the pairs that they repeat first: far apart, as raters see them.
        """
        raters, pairs = self.study.raters.simulated, {pair.pair_id: pair for pair in records.shown}
        answer = answering(self.study, self.rubric, records.shown)
        repeated = {pair.repeats for pair in records.shown if pair.control == "repeat"}
        todo = list[tuple[int, int, str, Answer]]()
        listed = (self.argilla.records(dataset.id) for dataset in published(records, self.argilla).values())
        for record in itertools.chain.from_iterable(listed):
            if pair := pairs.get(record["external_id"]):
                # A rater does a whole task: a score is computed over the rater's own items.
                key = pair.pool if self.study.judging.does_tasks else pair.pair_id
                turn = 2 if pair.control == "repeat" else int(pair.pair_id not in repeated)
                for rater in self._missing(record, key, self.study.raters_of(pair.pool)):
                    values = answer(rater, pair.pair_id)
                    given_answer = _answer(record, self.rubric.asked(pair.pool), values)
                    todo.append((raters.index(rater), turn, rater.name, given_answer))
        return [(name, due_answer) for *_, name, due_answer in sorted(todo, key=operator.itemgetter(0, 1))]

    def _missing(self, record: Mapping[str, Any], key: str, wanted: int) -> Sequence[SimulatedRater]:
        """Return who is to answer a record so that it has as many answers as wanted, from a place by its key on."""
        raters = self.study.raters.simulated
        first = int(identity("turn-v1", key), 16) % len(raters)
        answered = _answered(record)
        free = [r for r in (*raters[first:], *raters[:first]) if self.accounts[r.name].id not in answered]
        return free[: max(0, wanted - len(answered))]

    def trained(self, dataset: DatasetListing, items: Mapping[str, TrainingItem]) -> list[tuple[str, Answer]]:
        """Return raters' answers, near the right ones, to training pairs that they have not answered."""
        records = [record for record in self.argilla.records(dataset.id) if record["external_id"] in items]
        questions, todo = training_rubric(self.rubric, list(items.values())).asked(POOL), list[tuple[str, Answer]]()
        for rater, record in itertools.product(self.study.raters.simulated, records):
            if self.accounts[rater.name].id not in _answered(record):
                expected = expected_of(items[record["external_id"]].pair)
                truth = _at_level(questions, 1.0, expected)
                seed = self.study.raters.simulation_seed
                felt = simulated_answer(seed, rater, record["external_id"], truth, self.rubric)
                todo.append((rater.name, _answer(record, questions, felt)))
        return todo

    def submit(self, todo: Iterable[tuple[str, Answer]], bar: Any = None) -> None:
        """Send answers, of each rater as many at a time as Argilla takes. Raises ServiceError for a refused one."""
        for name, of_rater in itertools.groupby(todo, operator.itemgetter(0)):
            answers, api_key = [answer for _, answer in of_rater], self.accounts[name].api_key
            for start in range(0, len(answers), BULK):
                content = {"items": answers[start : start + BULK]}
                outcome = self.argilla.request("POST", "/me/responses/bulk", api_key=api_key, json=content)
                if refused := [item["error"]["detail"] for item in outcome["items"] if item.get("error")]:
                    number = count(len(refused), "simulated answer")
                    raise ServiceError(f"Argilla at {self.argilla.url} refused {number}: {refused[0]}")
                if bar is not None:
                    bar.update(len(content["items"]))


def _answered(record: Mapping[str, Any]) -> set[str]:
    """Return the ids of the users who have answered a record."""
    return {response["user_id"] for response in record.get("responses") or []}


def _answer(record: Mapping[str, Any], questions: Sequence[Question], values: Mapping[str, Value]) -> Answer:
    """Return an answer to the questions that have a value, as Argilla takes it."""
    by_name = {question.name: question for question in questions}
    contents = {name: {"value": by_name[name].given(value)} for name, value in values.items() if name in by_name}
    return {"record_id": record["id"], "values": contents, "status": "submitted"}


def answering(
    study: Study, rubric: Rubric, pairs: Sequence[Pair], *, draws: bool = False
) -> Callable[[SimulatedRater, str], Mapping[str, Value]]:
    """Return a function of rater and pair id that gives the simulated answers to these pairs, seeded.

    Raises DataError for a pair whose output nobody rated; with `draws` its true value is drawn by the seed.
    """
    if study.judging.does_tasks:
        return rehearsal_of(study).answers
    true_values, seed = TrueValues.of(study, rubric, draws=draws), study.raters.simulation_seed
    truths = {pair.pair_id: true_values.of_pair(pair) for pair in pairs}
    return lambda rater, pair_id: simulated_answer(seed, rater, pair_id, truths[pair_id], rubric)


def simulated_answer(
    simulation_seed: int, rater: SimulatedRater, pair_id: str, truth: Mapping[str, float], rubric: Rubric
) -> dict[str, Value]:
    """Return a simulated rater's answers to a pair: a pure function of seed, rater and pair.

    `truth` has the true value of each question that has one (`Question.truth`).
    """
    answers: dict[str, Value] = {}
    for question in rubric.asked():
        seed = int(identity("simulation-v1", simulation_seed, rater.name, pair_id, question.name), 16)
        noise = np.random.default_rng(seed).normal(0.0, rater.noise, 2)
        value = question.simulated(rater, truth.get(question.name), noise)
        if value is not None:
            answers[question.name] = value
    return answers


def _at_level(questions: Iterable[Question], level: float, expected: Mapping[str, Value]) -> dict[str, float]:
    """Return the true values of questions: right answers, and without one what lies at a level from worst to best."""
    truths = {question.name: question.truth(expected.get(question.name), level) for question in questions}
    return {name: truth for name, truth in truths.items() if truth is not None}


@dataclass(frozen=True)
class TrueValues:
    """The true values of pairs: the author's ratings, or the expected answers of controls.

    Labels are never recorded: the first label counts as the best, and the place among them follows the first rating.
    """

    rubric: Rubric
    kinds: Mapping[str, Transformation]
    simulation_seed: int
    recorded: RecordedOutputs | None  #: outputs with their authors' ratings
    languages: Mapping[str, str | None]  #: of outputs, by key
    draws: bool  #: whether the seed draws the values of outputs that nobody rated

    @classmethod
    def of(cls, study: Study, rubric: Rubric, *, draws: bool = False) -> TrueValues:
        """Return those of a study, with the recordings that its transformations need."""
        kinds = study.transforming
        calling = [name for name, kind in kinds.items() if kind.calls]
        of_the_eight = not draws and any(name in EIGHT for name in calling)
        wanted = bool(calling) and (study.generator.recordings or of_the_eight)
        rows = itertools.starmap(read_transformed, itertools.product([study], study.transformations, study.seeds))
        languages = {row.key: row.language for row in itertools.chain.from_iterable(rows)}
        recorded = RecordedOutputs.of(study) if wanted else None
        return cls(rubric, kinds, study.raters.simulation_seed, recorded, languages, draws)

    def of_pair(self, pair: Pair) -> dict[str, float]:
        """Return a pair's true values by question. Raises DataError if its author's rating is missing."""
        questions, expected = self.rubric.asked(pair.pool), self.rubric.right_answers(pair)
        ratings = [question for question in questions if question.has_points]
        if pair.control in CHECKS:
            rated = _at_level(ratings, 1.0, expected)
        elif pair.fields or (self.draws and self._recording(pair) is None):
            return self._drawn(pair, questions)
        else:
            rated = self._deserved(pair, ratings)
        level = _level(ratings[0], rated.get(ratings[0].name)) if ratings else 1.0
        return rated | _at_level([question for question in questions if question.labels], level, expected)

    def _recording(self, pair: Pair) -> Recording | None:
        if self.recorded is None or not self.kinds[pair.transformation].calls:
            return None
        return self.recorded.find(pair.transformation, self.languages.get(pair.key), pair.original)

    def _drawn(self, pair: Pair, questions: Sequence[Question]) -> dict[str, float]:
        """Draw values, mostly good, by an item's key, as a repeat has the same; they say nothing about quality."""
        seed = int(identity("latent-v1", self.simulation_seed, pair.key), 16)
        return _at_level(questions, float(np.random.default_rng(seed).beta(4.0, 1.0)), {})

    def _deserved(self, pair: Pair, ratings: Sequence[Question]) -> dict[str, float]:
        """Return the author's ratings of an output, with values for required questions that the author did not rate.

        Where nobody rated, they are what the transformation aims at.
        """
        kind, recording = self.kinds[pair.transformation], self._recording(pair)
        values = {question.name: getattr(recording, question.name, None) for question in ratings}
        rated = {name: float(value) for name, value in values.items() if value is not None}
        if not rated and ratings and kind.name in EIGHT:
            raise DataError(
                f"pair {pair.pair_id} ({pair.transformation}) has no author's rating; only recordings have one"
            )
        if not rated:
            changed = kind.meaning != "kept"
            return _at_level(ratings, 1.0, {}) | _at_level(ratings[:1] if changed else (), 0.0, {})
        first = next(question for question in ratings if question.name in rated)
        needed = [question for question in ratings if question.required]
        return _at_level(needed, _level(first, rated[first.name]), rated) | rated


def _level(question: Question, point: float | None) -> float:
    """Return where a point lies on a scale, from 0 to 1; without one it is the best."""
    low, high = question.scale[0], question.scale[-1]
    return 1.0 if point is None else (point - low) / (high - low)
