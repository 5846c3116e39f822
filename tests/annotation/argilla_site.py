"""A started Argilla with an owner and three raters, and what the tests of the server ask of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import argilla as rg
import httpx

from annotation.server import Connection, Home, User, credentials, ensure_user

LANGUAGE = 'the "language" of it'  # names are any text, quotes and spaces included
RATERS = ("ada", "grace", "alan")
TEXTS = [f"Sentence number {i} about {'cats' if i % 2 else 'dogs'}." for i in range(12)]


@dataclass(frozen=True)
class Api:
    """Argilla's HTTP API as one user."""

    connection: Connection
    user: User

    def __call__(self, method: str, path: str, body: Any = None, expect: int | None = None, **params: Any) -> Any:
        """One call; its JSON (None when empty). Fails unless the status is `expect`, or any success."""
        answer = httpx.request(
            method, f"{self.connection.url}/api/v1/{path}", json=body, params=params, timeout=60.0, trust_env=False,
            headers={"X-Argilla-Api-Key": self.user.api_key},
        )  # fmt: skip
        assert (answer.status_code == expect) if expect else answer.is_success, (answer.status_code, answer.text)
        return answer.json() if answer.content else None

    def search(self, campaign: Campaign, filters: list[Any] | None = None, mine: bool = False, **more: Any) -> Any:
        """A search in the campaign's dataset; `mine` is the annotators' end point."""
        params = {key: more.pop(key) for key in ("offset", "limit") if key in more}
        body = {key: value for key, value in more.items() if value is not None}
        if filters:
            body["filters"] = {"and": filters}
        path = f"{'me/' if mine else ''}datasets/{campaign.dataset}/records/search"
        return self("POST", path, body, **params)

    def found(self, campaign: Campaign, *args: Any, **more: Any) -> list[str]:
        """The external ids that a search finds, in its order."""
        result = self.search(campaign, *args, **more)
        ids = [item["record"]["external_id"] for item in result["items"]]
        assert result["total"] >= len(ids)
        return ids

    def rate(self, campaign: Campaign, record: str, rating: int, status: str = "submitted") -> None:
        """Answer both questions on one record, replacing an earlier answer."""
        values = {name: {"value": rating} for name in ("quality", "fluency")}
        item = {"record_id": campaign.ids[record], "status": status, "values": values}
        (result,) = self("POST", "me/responses/bulk", {"items": [item]})["items"]
        assert result["error"] is None, result


@dataclass(frozen=True)
class Campaign:
    """A published dataset."""

    name: str
    dataset: str  #: its id
    ids: dict[str, str]  #: external id to Argilla's


@dataclass(frozen=True)
class Site:
    """A running server with an owner and three raters."""

    home: Home
    connection: Connection
    owner: Api
    raters: list[Api]

    def publish(self, name: str, records: int = len(TEXTS), enough: int = 3) -> Campaign:
        """Publish a dataset through the SDK: two texts, two ratings, metadata, a vector."""
        client = rg.Argilla(api_url=self.connection.url, api_key=self.connection.api_key)
        workspace = rg.Workspace(name=f"ws-{name}", client=client).create()
        for rater in self.raters:
            workspace.add_user(rater.user.username)
        settings = rg.Settings(
            fields=[rg.TextField("original", client=client), rg.TextField("transformed", client=client)],
            questions=[rg.RatingQuestion(question, [1, 2, 3, 4, 5]) for question in ("quality", "fluency")],
            metadata=[rg.TermsMetadataProperty(LANGUAGE), rg.IntegerMetadataProperty("length"),
                      rg.FloatMetadataProperty("drift")],
            vectors=[rg.VectorField("v", dimensions=2)],
            distribution=rg.TaskDistribution(min_submitted=enough),
        )  # fmt: skip
        dataset = rg.Dataset(name=name, workspace=workspace, settings=settings, client=client).create()
        dataset.records.log([record(i) for i in range(records)])
        client.api.http_client.close()
        listed = self.owner("GET", f"datasets/{dataset.id}/records", limit=1000)["items"]
        return Campaign(name, str(dataset.id), {item["external_id"]: item["id"] for item in listed})

    def statuses(self, campaign: Campaign) -> dict[str, str]:
        """Each record's status, by external id."""
        items = self.owner("GET", f"datasets/{campaign.dataset}/records", limit=1000)["items"]
        return {item["external_id"]: item["status"] for item in items}


def record(i: int) -> rg.Record:
    """Pair i: languages alternate, lengths count up, every third has no drift, the vector turns with i."""
    metadata: dict[str, Any] = {LANGUAGE: "de" if i % 2 else "en", "length": i}
    if i % 3:
        metadata["drift"] = i / 10
    text = TEXTS[i % len(TEXTS)]
    fields = {"original": text, "transformed": f"{text} Again, don't stop: 3.14."}
    return rg.Record(id=f"p{i}", fields=fields, metadata=metadata, vectors={"v": [1.0, i / 10]})


def enter(connection: Connection) -> Site:
    """The server with its three raters, made where they are missing."""
    assert connection.home is not None
    raters = [Api(connection, ensure_user(connection, name, name.title())) for name in RATERS]
    return Site(connection.home, connection, Api(connection, credentials(connection.home).owner), raters)


def response_status(*statuses: str) -> list[Any]:
    return [term({"entity": "response", "property": "status"}, *statuses)]


def term(scope: dict[str, Any], *values: Any) -> dict[str, Any]:
    return {"type": "terms", "scope": scope, "values": list(values)}


def eventually(condition: Callable[[], bool], pause: float = 0.05) -> bool:
    """Whether `condition` comes true in time; on a busy machine it takes a server process long to start."""
    deadline = time.monotonic() + 240
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True
