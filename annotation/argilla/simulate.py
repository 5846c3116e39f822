"""Simulated raters, for rehearsals: made-up people who answer through Argilla's own HTTP API.

Each answers with the author's rating of the recorded output (with a control's expected answer) plus a bias of its own
plus normal noise, rounded and kept on the scale. What no generator made has no author's rating: in its place stands
what the transformation is meant to be, the best point, or, of a meaning that is to change, the worst of the first
question. Their accounts are called `simulated-...`, and every record of theirs
says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from tqdm import tqdm

from annotation import server
from annotation.argilla.client import SIMULATED, Argilla, User
from annotation.argilla.workspaces import admit, published, workspaces_of
from annotation.offering import alone
from annotation.rubric import Rubric
from annotation.sampling.shown import shown
from annotation.verdicts.preregistration import asked_rubric
from generation.generators.recorded import Recorded
from generation.run import read_transformed
from plumbline.errors import DataError, ServiceError, StudyError
from plumbline.identity import identity
from plumbline.records import Pair
from plumbline.study import Study
from plumbline.study.campaign import SimulatedRater
from plumbline.study.transformations import Transformation

BULK = 100  # the most answers that Argilla takes at once
Answer = dict[str, object]


def simulate(study: Study, argilla: Argilla) -> int:
    """Let the study's simulated raters answer every pair that still wants answers; returns how many they gave.

    Pairs get `raters.per_pair` answers in all; what people or earlier rehearsals answered stays. Raises
    StudyError where the study names no simulated raters, or its generator carries no authors' ratings.
    """
    if not study.raters.simulated:
        raise StudyError(f"{study.file}: raters.simulated is empty; name some, or let people rate")
    with alone(study):
        return _simulate(study, argilla)


def _simulate(study: Study, argilla: Argilla) -> int:
    rubric = asked_rubric(study)
    truth = _author_ratings(study, rubric)
    accounts = _accounts(study, argilla)
    todo: dict[str, list[Answer]] = {rater.name: [] for rater in study.raters.simulated}
    for dataset in published(study, argilla).values():
        for record in argilla.records(dataset.id):
            pair_id = record["external_id"]
            if pair_id not in truth:
                continue
            answered = {response["user_id"] for response in record.get("responses") or []}
            for rater in _turns(study, pair_id, answered, accounts):
                values = simulated_answer(study, rater, pair_id, truth[pair_id], rubric)
                values_json = {question: {"value": value} for question, value in values.items()}
                todo[rater.name].append({"record_id": record["id"], "values": values_json, "status": "submitted"})
    total = sum(map(len, todo.values()))
    with tqdm(total=total, unit="answer", desc="simulated raters", disable=total == 0) as bar:
        for name, answers in todo.items():
            for start in range(0, len(answers), BULK):
                batch = answers[start : start + BULK]
                _submit(argilla, accounts[name], batch)
                bar.update(len(batch))
    return total


def simulated_answer(
    study: Study, rater: SimulatedRater, pair_id: str, truth: Mapping[str, int], rubric: Rubric
) -> dict[str, int]:
    """One simulated rater's answers to one pair: a pure function of seed, rater and pair."""
    answers = {}
    for question in rubric.question_names():
        seed = int(identity("simulation-v1", study.raters.simulation_seed, rater.name, pair_id, question), 16)
        felt = truth[question] + rater.bias + np.random.default_rng(seed).normal(0.0, rater.noise)
        answers[question] = int(np.clip(round(felt), rubric.scale[0], rubric.scale[-1]))
    return answers


def _author_ratings(study: Study, rubric: Rubric) -> dict[str, dict[str, int]]:
    """The author's rating of each pair's output, by pair id and question; controls get the expected answers."""
    recorded = Recorded.of(study) if any(kind.calls for kind in study.kinds.values()) else None
    languages = {
        row.key: row.language
        for name in study.transformations
        for seed in study.seeds
        for row in read_transformed(study, name, seed)
    }
    rated: dict[str, dict[str, int]] = {}
    for pair in shown(study):
        if pair.control in ("positive", "negative"):
            highest = dict.fromkeys(rubric.question_names(), rubric.scale[-1])
            rated[pair.pair_id] = highest | rubric.expected(pair.pool, pair.control)
        else:
            kind = study.kinds[pair.transformation]
            rated[pair.pair_id] = (
                _author_rating(recorded, pair, languages.get(pair.key), rubric)
                if recorded is not None and kind.calls
                else _meant(kind, rubric)
            )
    return rated


def _meant(kind: Transformation, rubric: Rubric) -> dict[str, int]:
    """What a transformation is meant to be, where nobody rated its outputs."""
    first, *_ = rubric.question_names()
    best = dict.fromkeys(rubric.question_names(), rubric.scale[-1])
    return best if kind.meaning == "kept" else {**best, first: rubric.scale[0]}


def _author_rating(recorded: Recorded, pair: Pair, language: str | None, rubric: Rubric) -> dict[str, int]:
    found = recorded.find(pair.transformation, language, pair.original)
    given = {} if found is None else {question: getattr(found, question, None) for question in rubric.question_names()}
    rating = {question: value for question, value in given.items() if value is not None}
    if len(rating) < len(rubric.questions):
        raise DataError(
            f"pair {pair.pair_id} ({pair.transformation}) has no author's rating; only recordings carry one"
        )
    return rating


def _accounts(study: Study, argilla: Argilla) -> dict[str, User]:
    """An account for each simulated rater, in all of the study's workspaces, by the rater's name."""
    if argilla.connection is None:
        raise ServiceError("simulated raters answer only on the local server; unset ARGILLA_API_URL to rehearse")
    for rater in study.raters.simulated:
        server.ensure_user(argilla.connection, f"{SIMULATED}{rater.name}", first_name=f"Simulated {rater.name}")
    known = {user.username: user for user in argilla.users()}
    accounts = {rater.name: known[f"{SIMULATED}{rater.name}"] for rater in study.raters.simulated}
    for workspace_id, _ in workspaces_of(study, argilla).values():
        admit(workspace_id, argilla, list(accounts.values()))
    return accounts


def _turns(study: Study, pair_id: str, answered: set[str], accounts: Mapping[str, User]) -> Iterator[SimulatedRater]:
    """Whose turn it is on a pair: raters in an order of the pair's own, until it has enough answers."""
    raters = study.raters.simulated
    first = int(identity("turn-v1", pair_id), 16) % len(raters)
    left = study.raters.per_pair - len(answered)
    for rater in (*raters[first:], *raters[:first]):
        if left > 0 and accounts[rater.name].id not in answered:
            left -= 1
            yield rater


def _submit(argilla: Argilla, user: User, answers: list[Answer]) -> None:
    outcome = argilla.request("POST", "/me/responses/bulk", api_key=user.api_key, json={"items": answers})
    refused = [item["error"]["detail"] for item in outcome["items"] if item.get("error")]
    if refused:
        raise ServiceError(f"Argilla at {argilla.url} refused {len(refused)} simulated answers: {refused[0]}")
