"""Small campaigns on a started Argilla, and raters who answer in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from annotation import server
from annotation.argilla.accounts import published
from annotation.argilla.client import Argilla
from annotation.argilla.collect import collect
from annotation.argilla.publish import publish
from annotation.campaign.records import CampaignRecords
from annotation.sampling.queues import Queue
from annotation.sampling.sample import draw_sample
from generation.production import generate
from plumbline.study import Study

Make = Callable[..., Study]
PARAPHRASING = Queue("paraphrasing", "en", "en")
ALONE = {"controls": 0, "repeats": 0}  # a sample with nothing beside it


def small(variant: Make, name: str, **changes: object) -> Study:
    """A drawn study of four paraphrases and four translations into three languages, without controls and repeats."""
    raters = {"per_pair": 3, "simulated": [{"name": "strict", "bias": -0.3}, {"name": "even"}, {"name": "kind"}]}
    parts = {"name": name, "transformations": ["paraphrasing", "translation"], "raters": raters}
    study = variant(**(parts | {"sample": {"pairs": 4, **ALONE}} | changes))
    generate(study)
    draw_sample(study)
    return study


def published_study(argilla: Argilla, variant: Make, name: str, **changes: object) -> Study:
    """The same, published."""
    study = small(variant, name, **changes)
    publish(study, argilla)
    return study


def rater(argilla: Argilla, name: str) -> server.User:
    """An annotator with an account; publishing lets them in."""
    assert argilla.connection is not None
    return server.ensure_user(argilla.connection, name, first_name=name)


def answer(argilla: Argilla, user: server.User, record: dict[str, Any], status: str, **values: object) -> None:
    """One answer of a rater, as Argilla's page gives it."""
    given = {question: {"value": value} for question, value in values.items()} or None
    path = f"/records/{record['id']}/responses"
    argilla.request("POST", path, api_key=user.api_key, json={"values": given, "status": status})


def pending(argilla: Argilla, user: server.User, dataset_id: str) -> list[dict[str, Any]]:
    """The records that a rater has still before them, in their order, with the ids that only owners read."""
    status = {"type": "terms", "scope": {"entity": "response", "property": "status"}, "values": ["pending"]}
    body = {"filters": {"type": "and", "and": [status]}}
    path = f"/me/datasets/{dataset_id}/records/search"
    found = argilla.request("POST", path, api_key=user.api_key, json=body, params={"limit": 100})
    names = {record["id"]: record["external_id"] for record in argilla.records(dataset_id)}
    return [{**item["record"], "external_id": names[item["record"]["id"]]} for item in found["items"]]


def dataset(study: Study, argilla: Argilla, queue: Queue = PARAPHRASING) -> str:
    """The id of a queue's dataset."""
    return published(CampaignRecords(study), argilla)[queue].id


def ratings_of(study: Study, argilla: Argilla) -> set[tuple[str, str, int]]:
    """What is collected: (pair, question, value) of submitted ratings."""
    found = collect(study, argilla)
    found = found[found["status"] == "submitted"]
    return set(zip(found["pair_id"], found["question"], found["value"].astype(int), strict=True))
