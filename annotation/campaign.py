"""A campaign in Argilla: one dataset a pool of transformations, published once and collected as often as one likes."""

from __future__ import annotations

import contextlib
import io
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pandas as pd
from tqdm import tqdm

from annotation.agreement import read_ratings
from annotation.client import Argilla, User, translated
from annotation.rubric import Rubric, load_rubric
from annotation.sample import read_pairs
from generation.exceptions import DataError, ServiceError, StudyError
from generation.records import Pair, Rating, identity
from generation.store import only_one, write_table
from generation.study import Study

HIDDEN = ("transformation", "dataset", "task_type", "seed")  # metadata that could sway a rater
SHOWN = ("language", "output_language")
BATCH = 500  # pairs sent at once; Argilla takes up to 500


def dataset_name(study: Study, pool: str) -> str:
    """What a pool's dataset is called in Argilla."""
    return f"{study.name}-{pool}"


def publish(study: Study, argilla: Argilla) -> dict[str, int]:
    """Put the study's pairs before its annotators; returns how many pairs are new, by pool.

    Makes the workspace (named like the study) and the datasets where they are missing, adds pairs that are not
    there yet (by pair id), and lets every annotator in but simulated ones. Answers are never touched.
    """
    with alone(study):
        return _publish(study, argilla)


def alone(study: Study) -> contextlib.AbstractContextManager[None]:
    """Refuse a second command on the same campaign while one works on it."""
    return only_one(study.folder / ".campaign.lock", f"another command works on the campaign of {study.name!r}")


def _publish(study: Study, argilla: Argilla) -> dict[str, int]:
    rubric = load_rubric(study)
    pools: dict[str, list[Pair]] = defaultdict(list)
    for pair in read_pairs(study):
        pools[pair.pool].append(pair)
    workspace = _workspace(study, argilla)
    admit_annotators(workspace, argilla)
    new = {}
    for pool, pairs in pools.items():
        dataset = argilla.dataset(dataset_name(study, pool), workspace)
        if dataset is not None and _is_draft(argilla, dataset):
            # An earlier run was cut off while it made this one: nobody has seen it, so it is made anew.
            argilla.request("DELETE", f"/datasets/{dataset.id}")
            dataset = None
        dataset = dataset or _create(study, argilla, rubric, pool)
        _check_settings(study, dataset, rubric)
        present = {record["external_id"] for record in argilla.records(str(dataset.id))}
        missing = [pair for pair in pairs if pair.pair_id not in present]
        _log(argilla, dataset, missing)
        new[pool] = len(missing)
    return new


def admit_annotators(workspace: Any, argilla: Argilla) -> None:
    """Let every annotator of the server into a workspace but simulated ones."""
    admit(workspace, argilla, [user for user in argilla.users() if user.role == "annotator" and not user.simulated])


def admit(workspace: Any, argilla: Argilla, users: Sequence[User]) -> None:
    """Let users into a workspace; those that are in stay. Owners are never put in: its admins could read their keys."""
    members = argilla.request("GET", f"/workspaces/{workspace.id}/users")["items"]
    present = {member["id"] for member in members}
    for user in users:
        if user.id not in present:
            argilla.request("POST", f"/workspaces/{workspace.id}/users", json={"user_id": user.id})


def published(study: Study, argilla: Argilla) -> dict[str, str]:
    """The ids of the study's datasets in Argilla, by pool. Raises ServiceError for one that is not there."""
    ids = {}
    workspace = argilla.workspace(study.name)
    for pool in dict.fromkeys(pair.pool for pair in read_pairs(study)):
        dataset = argilla.dataset(dataset_name(study, pool), workspace) if workspace else None
        if dataset is None:
            raise ServiceError(
                f"Argilla at {argilla.url} has no dataset {dataset_name(study, pool)!r};"
                " run `python -m annotation publish --study ...` first"
            )
        ids[pool] = str(dataset.id)
    return ids


def collect(study: Study, argilla: Argilla, *, replace: bool = False) -> pd.DataFrame:
    """Fetch every answer into `ratings.parquet`: a row a pair, rater and question, drafts and discards too.

    Can be run while people work, and any number of times. Refuses to drop answers: those that were collected
    before and are no longer on the server, and those to pairs of another sample, unless `replace` says so.
    """
    with alone(study):
        return _collect(study, argilla, replace=replace)


def _collect(study: Study, argilla: Argilla, *, replace: bool) -> pd.DataFrame:
    rubric = load_rubric(study)
    pairs = {pair.pair_id: pair for pair in read_pairs(study)}
    users = {user.id: user for user in argilla.users()}
    rows, strangers = [], 0
    for dataset_id in published(study, argilla).values():
        for record in argilla.records(dataset_id):
            pair, responses = pairs.get(record["external_id"]), record.get("responses") or []
            if pair is None:
                strangers += len(responses)
                continue
            for response in responses:
                rows += _ratings(study, rubric, pair, users, response)
    if strangers and not replace:
        raise DataError(
            f"{strangers} answers on the server at {argilla.url} are of pairs that are not in pairs.parquet;"
            " bring the sample back that was published, or add --replace to leave them out"
        )
    frame = pd.DataFrame([row.model_dump() for row in rows], columns=list(Rating.model_fields))
    frame = frame.astype({"value": "Int64"}).sort_values(list(Rating.KEY), ignore_index=True)
    path = study.folder / "ratings.parquet"
    if path.exists() and not replace:
        _refuse_loss(read_ratings(study), frame, argilla.url)
    write_table(path, frame, Rating)
    return read_ratings(study)


def pseudonym(study: Study, user: User) -> str:
    """What a rater is called outside the server: not derivable from the name, the same at each collection."""
    return f"{'simulated' if user.simulated else 'rater'}-{identity('rater-v1', study.name, user.id)[:8]}"


def _workspace(study: Study, argilla: Argilla) -> Any:
    import argilla as rg  # noqa: PLC0415 (takes a second)

    found = argilla.workspace(study.name)
    if found is not None:
        return found
    with translated(argilla.url):
        return rg.Workspace(name=study.name, client=argilla.sdk).create()


def _log(argilla: Argilla, dataset: Any, pairs: Sequence[Pair]) -> None:
    """Send pairs through the SDK, with one bar of ours instead of the SDK's one a batch."""
    with tqdm(total=len(pairs), unit="pair", desc=f"publishing {dataset.name}", disable=not pairs) as bar:
        for start in range(0, len(pairs), BATCH):
            batch = [_record(pair) for pair in pairs[start : start + BATCH]]
            with translated(argilla.url), contextlib.redirect_stderr(io.StringIO()):
                dataset.records.log(batch, batch_size=len(batch), on_error="raise")
            bar.update(len(batch))


def _create(study: Study, argilla: Argilla, rubric: Rubric, pool: str) -> Any:
    """A pool's dataset: two texts, the rubric's questions, a free comment, `per_pair` answers a pair."""
    import argilla as rg  # noqa: PLC0415 (takes a second)

    explained = rubric.pool(pool)
    client = argilla.sdk
    questions = [
        rg.RatingQuestion(
            name=question.name,
            title=question.title,
            description=f"{explained.quality} {question.description}"
            if question.name == "quality"
            else question.description,
            values=list(rubric.scale),
            client=client,
        )
        for question in rubric.questions
    ]
    settings = rg.Settings(
        guidelines=rubric.guidelines_for(pool),
        # Never Markdown: the texts are data, and a rater must see them as they are.
        fields=[
            rg.TextField(name="original", title="Original", use_markdown=False, client=client),
            rg.TextField(name="transformed", title=explained.title, use_markdown=False, client=client),
        ],
        questions=[*questions, rg.TextQuestion(name="comment", title="Comment", required=False, client=client)],
        metadata=[
            *(rg.TermsMetadataProperty(name=name, visible_for_annotators=True, client=client) for name in SHOWN),
            *(rg.TermsMetadataProperty(name=name, visible_for_annotators=False, client=client) for name in HIDDEN),
        ],
        distribution=rg.TaskDistribution(min_submitted=study.raters.per_pair),
    )
    with translated(argilla.url):
        dataset = rg.Dataset(
            name=dataset_name(study, pool), workspace=study.name, settings=settings, client=argilla.sdk
        )
        return dataset.create()


def _is_draft(argilla: Argilla, dataset: Any) -> bool:
    """Whether a dataset was never finished; annotators do not see such ones."""
    return bool(argilla.request("GET", f"/datasets/{dataset.id}")["status"] == "draft")


def _check_settings(study: Study, dataset: Any, rubric: Rubric) -> None:
    """Refuse a dataset that asks something else than the study: its answers would be read wrongly, or be too few."""
    asked = {question.name: question.values for question in dataset.settings.questions if hasattr(question, "values")}
    wanted = {question.name: list(rubric.scale) for question in rubric.questions}
    if asked != wanted:
        raise StudyError(
            f"the dataset {dataset.name!r} in Argilla asks {asked}, the rubric {rubric.name!r} {wanted};"
            " give the new study another name"
        )
    wanted_answers, asked_answers = study.raters.per_pair, dataset.settings.distribution.min_submitted
    if asked_answers != wanted_answers:
        raise StudyError(
            f"the dataset {dataset.name!r} in Argilla asks {asked_answers} answers a pair, raters.per_pair is now"
            f" {wanted_answers}; undo the change, or give the new study another name"
        )


def _record(pair: Pair) -> Any:
    import argilla as rg  # noqa: PLC0415 (takes a second)

    return rg.Record(
        id=pair.pair_id,
        fields={"original": pair.original, "transformed": pair.transformed},
        metadata={name: str(getattr(pair, name)) for name in (*SHOWN, *HIDDEN)},
    )


def _ratings(
    study: Study, rubric: Rubric, pair: Pair, users: Mapping[str, User], response: Mapping[str, Any]
) -> list[Rating]:
    """One response as a rating for each question. Answers of deleted accounts cannot be told apart: refused."""
    user = users.get(response["user_id"])
    if user is None:
        raise DataError(f"pair {pair.pair_id}: an answer of an account that is no longer on the server")
    values = response.get("values") or {}
    ratings = []
    for question in rubric.question_names():
        value = values.get(question, {}).get("value")
        if value is not None and value not in rubric.scale:
            raise DataError(f"pair {pair.pair_id}, {question}: the answer {value!r} is not on the scale")
        if value is None and response["status"] == "submitted":
            raise DataError(f"pair {pair.pair_id}: a submitted answer without {question!r}")
        ratings.append(
            Rating(
                pair_id=pair.pair_id,
                transformation=pair.transformation,
                language=pair.language,
                rater_id=pseudonym(study, user),
                question=question,
                value=value,
                status=response["status"],
                submitted_at=datetime.fromisoformat(f"{response['updated_at'].removesuffix('Z')}+00:00"),
                source="argilla",
                simulated=user.simulated,
            )
        )
    return ratings


def _refuse_loss(before: pd.DataFrame, now: pd.DataFrame, url: str) -> None:
    key = list(Rating.KEY)
    had = set(before.loc[before["status"] == "submitted", key].itertuples(index=False, name=None))
    lost = had - set(now[key].itertuples(index=False, name=None))
    if lost:
        raise DataError(
            f"{len(lost)} ratings that were collected before are not on the server at {url};"
            " is it the right one? Add --replace to drop them"
        )
