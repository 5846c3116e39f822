"""Small campaigns on a started Argilla, and raters who answer in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from annotation import server
from annotation.argilla.accounts import published
from annotation.argilla.client import Argilla
from annotation.argilla.collect import collect
from annotation.argilla.publish import publish
from annotation.campaign.records import CampaignRecords
from annotation.sampling.queues import Queue
from annotation.sampling.sample import draw_sample
from plumbline.study import Study, load_study
from tests.shared import generate_once

Make = Callable[..., Study]
PARAPHRASING = Queue("paraphrasing", "en", "en")
ALONE = {"controls": 0, "repeats": 0}  # a sample with nothing beside it


def small(variant: Make, name: str, **changes: object) -> Study:
    """A drawn study of four paraphrases and four translations into three languages, without controls and repeats."""
    raters = {"per_pair": 3, "simulated": [{"name": "strict", "bias": -0.3}, {"name": "even"}, {"name": "kind"}]}
    parts = {"name": name, "transformations": ["paraphrasing", "translation"], "raters": raters}
    study = variant(**(parts | {"sample": {"pairs": 4, **ALONE}} | changes))
    generate_once(study)
    draw_sample(study)
    return study


_SENTENCES = """The weather in the mountains changed quickly this morning.
I would like to book a table for two people.
Our garden is full of roses and small trees.
She wrote a long letter to her brother in Canada.
He has never learned how to ride a bicycle.
Please send me that report before Friday.
Children played outside until it was dark.
Dogs bark loudly whenever postmen approach."""
SYSTEMS = {"zebu": "In short: {}", "okapi": "{} Indeed!", "quokka": "As they say, {}"}  # by name, what each does


def systems(folder: Path, *names: str, **changes: Any) -> Study:
    """A study of these systems, whose outputs of an original are rated on one page."""
    texts = [sentence.rstrip(".") for sentence in _SENTENCES.split("\n")]
    for name in names:
        table = pd.DataFrame({"text": texts, "output": [SYSTEMS[name].format(text) for text in texts]})
        table.to_csv(folder / f"{name}.csv", index=False)
    words = {"asked": {"en": "Say it again."}, "expected": {"positive": {"quality": 5}, "negative": {"quality": 1}}}
    made = [
        {"name": name, "axis": "own", "queue": "systems", "raters": words,
         "outputs": {"path": f"{name}.csv", "text": "text", "output": "output"}}
        for name in names
    ]  # fmt: skip
    data = {"name": "outputs", "task": "bitext_mining", "path": f"{names[0]}.csv", "language": "en", "split": "all"}
    parts = {
        "name": f"beside-{len(names)}",
        "datasets": [data | {"columns": {"sentence1": "text", "sentence2": "text"}}],
        "transformations": made,
        "seeds": [1337],
        "sample": {"pairs": 6, "together": True},
        "raters": {"per_pair": 2},
        "acceptance": {"min_pairs": 2},
    }
    file = folder / "study.yaml"
    file.write_text(yaml.safe_dump(parts | changes), encoding="utf-8")
    study = load_study(file, exports=folder / "exports")
    generate_once(study)
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
