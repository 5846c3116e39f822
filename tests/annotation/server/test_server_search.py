"""What Argilla means by queue, search, filter, sort and status, asked of the server through HTTP and the SDK."""

from __future__ import annotations

import json
import sqlite3
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from uuid import UUID

import argilla as rg
import pytest

from tests.annotation.argilla_site import LANGUAGE, TEXTS, Site, eventually, response_status, term


def span(scope: dict[str, Any], **bounds: Any) -> dict[str, Any]:
    return {"type": "range", "scope": scope, **bounds}


def test_a_dataset_comes_back_through_the_sdk_as_it_was_logged(site: Site) -> None:
    campaign = site.publish("sdk")
    client = rg.Argilla(api_url=site.connection.url, api_key=site.connection.api_key)
    dataset = client.datasets("sdk", workspace="ws-sdk")
    assert dataset is not None and dataset.settings.distribution.min_submitted == 3
    back = list(dataset.records)
    client.api.http_client.close()
    assert [one.id for one in back] == [f"p{i}" for i in range(len(TEXTS))]
    assert back[5].fields["transformed"].startswith(TEXTS[5])
    assert back[5].metadata == {LANGUAGE: "de", "length": 5, "drift": 0.5}
    assert set(site.statuses(campaign).values()) == {"pending"}


def test_a_record_is_completed_if_and_only_if_three_have_submitted(site: Site) -> None:
    campaign = site.publish("status", records=2)
    first, second, third = site.raters
    seen = []
    for rater in (first, second, third):
        rater.rate(campaign, "p0", 4)
        seen.append(site.statuses(campaign)["p0"])
    assert seen == ["pending", "pending", "completed"]
    for status, expected in (("discarded", "pending"), ("submitted", "completed"), ("draft", "pending"),
                             ("submitted", "completed")):  # fmt: skip
        second.rate(campaign, "p0", 2, status)
        assert site.statuses(campaign)["p0"] == expected
    (item,) = [one for one in third.search(campaign, mine=True)["items"] if one["record"]["external_id"] == "p0"]
    assert "responses" not in item["record"]
    listed = site.owner("GET", f"datasets/{campaign.dataset}/records", include="responses")["items"]
    (mine,) = [one for item in listed for one in item["responses"] if one["values"]["quality"]["value"] == 2]
    second("DELETE", f"responses/{mine['id']}")
    assert site.statuses(campaign) == {"p0": "pending", "p1": "pending"}
    assert site.owner("GET", f"datasets/{campaign.dataset}/progress")["completed"] == 0


def test_single_answers_are_made_changed_and_counted(site: Site) -> None:
    campaign = site.publish("single", records=3, enough=1)
    rater = site.raters[0]
    values = {name: {"value": 5} for name in ("quality", "fluency")}
    made = rater("POST", f"records/{campaign.ids['p1']}/responses", {"status": "submitted", "values": values})
    assert site.statuses(campaign)["p1"] == "completed"
    rater("PUT", f"responses/{made['id']}", {"status": "draft", "values": values})
    assert site.statuses(campaign)["p1"] == "pending"
    metrics = rater("GET", f"me/datasets/{campaign.dataset}/metrics")["responses"]
    assert metrics == {"total": 3, "submitted": 0, "discarded": 0, "draft": 1, "pending": 2}


def test_statuses_follow_when_fewer_answers_become_enough(site: Site) -> None:
    campaign = site.publish("recount", records=2, enough=2)
    for rater in site.raters[:2]:
        rater.rate(campaign, "p1", 3)
    assert site.statuses(campaign) == {"p0": "pending", "p1": "completed"}
    # Argilla itself forbids another number while there are answers, but a crash can leave a status behind.
    with sqlite3.connect(site.home.database) as database:
        database.execute("UPDATE records SET status = 'pending' WHERE dataset_id = ?", (UUID(campaign.dataset).hex,))
    site.owner("PATCH", f"datasets/{campaign.dataset}", {"guidelines": "Read both."})
    assert eventually(lambda: site.statuses(campaign) == {"p0": "pending", "p1": "completed"})


def test_each_queue_covers_everything_once_in_an_order_of_its_own(site: Site) -> None:
    campaign = site.publish("queue", records=60)
    orders = []
    for rater in site.raters:
        pages = [
            rater.found(campaign, response_status("pending"), mine=True, offset=o, limit=7) for o in range(0, 63, 7)
        ]
        order = [one for page in pages for one in page]
        assert sorted(order) == sorted(campaign.ids)
        orders.append(order)
    assert len({tuple(order) for order in orders}) == 3
    rater = site.raters[0]
    for name, status in zip(orders[0][:3], ("submitted", "draft", "discarded"), strict=True):
        rater.rate(campaign, name, 3, status)
    for name, status in zip(orders[0][:3], ("submitted", "draft", "discarded"), strict=True):
        assert rater.found(campaign, response_status(status), mine=True) == [name]
    assert rater.found(campaign, response_status("pending"), mine=True, limit=1000) == orders[0][3:]
    both = rater.found(campaign, response_status("pending", "draft"), mine=True, limit=1000)
    assert both == [orders[0][1], *orders[0][3:]]
    assert site.raters[1].found(campaign, response_status("pending"), mine=True, limit=1000) == orders[1]
    anyone = site.owner.found(campaign, response_status("pending"), limit=1000)
    assert set(anyone) == set(campaign.ids) - set(orders[0][:3])


def test_texts_are_found_by_whole_words_phrases_and_prefixes(site: Site) -> None:
    campaign = site.publish("text")

    def found(q: str, **more: Any) -> list[str]:
        return site.owner.found(campaign, query={"text": {"q": q, **more}}, limit=100)

    everything = [f"p{i}" for i in range(12)]
    cats = [f"p{i}" for i in range(1, 12, 2)]
    assert found("CATS") == cats and found("cats number") == cats and found("sentence 7") == ["p7"]
    assert found("cat") == [] and found("ca*") == cats and found("cats dogs") == []
    assert found('"about cats"') == cats and found('"cats about"') == [] and found("cats missing") == []
    assert found("don't 3.14") == everything and found("don") == [] and found("don't", field="original") == []
    assert found("*") == everything and found("") == [] and found("!?") == []
    assert found("a' OR 1=1; DROP TABLE records") == []
    scores = site.owner.search(campaign, query={"text": {"q": "cats"}})["items"]
    assert all(item["query_score"] > 0 for item in scores)
    both = [term({"entity": "metadata", "metadata_property": "length"}, 1, 2)]
    assert site.owner.found(campaign, both, query={"text": {"q": "cats"}}) == ["p1"]
    body = {"query": {"text": {"q": "cats", "field": "nowhere"}}}
    site.owner("POST", f"datasets/{campaign.dataset}/records/search", body, expect=422)


def test_filters_and_sorts_by_metadata(site: Site) -> None:
    campaign = site.publish("metadata", records=6)
    language = {"entity": "metadata", "metadata_property": LANGUAGE}
    length, drift = ({"entity": "metadata", "metadata_property": name} for name in ("length", "drift"))
    search = site.owner.found
    assert search(campaign, [term(language, "de")]) == ["p1", "p3", "p5"]
    assert search(campaign, [term(language, "de"), span(length, ge=2, le=3)]) == ["p3"]
    assert search(campaign, [span(drift, ge=0.2)]) == ["p2", "p4", "p5"]
    assert search(campaign, [span(drift, ge="many")]) == []
    assert search(campaign, sort=[{"scope": drift, "order": "asc"}]) == ["p1", "p2", "p4", "p5", "p0", "p3"]
    assert search(campaign, sort=[{"scope": drift, "order": "desc"}]) == ["p5", "p4", "p2", "p1", "p0", "p3"]
    keys = [{"scope": language, "order": "desc"}, {"scope": length, "order": "desc"}]
    assert search(campaign, sort=keys) == ["p4", "p2", "p0", "p5", "p3", "p1"]
    properties = {
        one["name"]: one["id"]
        for one in site.owner("GET", f"me/datasets/{campaign.dataset}/metadata-properties")["items"]
    }
    metrics = site.owner("GET", f"metadata-properties/{properties[LANGUAGE]}/metrics")
    assert metrics == {"type": "terms", "total": 6, "values": [{"term": "de", "count": 3}, {"term": "en", "count": 3}]}
    metrics = site.owner("GET", f"metadata-properties/{properties['drift']}/metrics")
    assert (metrics["min"], metrics["max"]) == (0.1, 0.5)


def test_filters_and_sorts_by_answers_statuses_and_times(site: Site) -> None:
    campaign = site.publish("answers", records=4, enough=2)
    ada, grace, _ = site.raters
    for name, by_ada, by_grace in (("p0", 5, 1), ("p1", 2, 2), ("p2", 4, None)):
        ada.rate(campaign, name, by_ada)
        if by_grace is not None:
            grace.rate(campaign, name, by_grace)
    quality = {"entity": "response", "question": "quality"}
    status = {"entity": "record", "property": "status"}
    assert site.owner.found(campaign, [span(quality, ge=2, le=3)]) == ["p1"]
    assert site.owner.found(campaign, [term(quality, 5)]) == ["p0"]
    assert sorted(grace.found(campaign, [term(quality, 1, 5)], mine=True)) == ["p0"]
    assert grace.found(campaign, [term(quality, 5)], mine=True) == []
    assert site.owner.found(campaign, sort=[{"scope": quality, "order": "desc"}]) == ["p2", "p0", "p1", "p3"]
    assert ada.found(campaign, sort=[{"scope": quality, "order": "desc"}], mine=True) == ["p0", "p2", "p1", "p3"]
    assert site.owner.found(campaign, [term(status, "completed")]) == ["p0", "p1"]
    inserted = {"entity": "record", "property": "inserted_at"}
    listed = site.owner("GET", f"datasets/{campaign.dataset}/records")["items"]
    (moment,) = [one["inserted_at"] for one in listed if one["external_id"] == "p2"]
    assert site.owner.found(campaign, [span(inserted, ge=f"{moment}Z", le=f"{moment}Z")]) == ["p2"]
    assert len(site.owner.found(campaign, [span(inserted, le=moment[:10])])) == 4
    bad = {"filters": {"and": [span(inserted, ge="yesterday")]}}
    assert "date" in site.owner("POST", f"datasets/{campaign.dataset}/records/search", bad, expect=422)["detail"]


def test_similar_records_are_found_and_the_reference_is_left_out(site: Site) -> None:
    campaign = site.publish("vectors", records=5)
    by_record = {"vector": {"name": "v", "record_id": campaign.ids["p0"]}}
    result = site.owner.search(campaign, query=by_record)
    assert [item["record"]["external_id"] for item in result["items"]] == ["p1", "p2", "p3", "p4"]
    assert result["items"][0]["query_score"] == pytest.approx((1 + 1 / 1.01**0.5) / 2)
    least = {"vector": {"name": "v", "value": [1.0, 0.0], "order": "least_similar"}}
    assert site.owner.found(campaign, query=least, limit=2) == ["p4", "p3"]
    wrong = {"query": {"vector": {"name": "v", "value": [1.0, 0.0, 0.0]}}}
    site.owner("POST", f"datasets/{campaign.dataset}/records/search", wrong, expect=422)


def test_what_this_server_does_not_do_is_refused_and_not_accepted_silently(site: Site) -> None:
    campaign = site.publish("hub", records=1)
    body = {"name": "someone/something", "subset": "default", "split": "train", "private": True, "token": "t"}
    assert "hub" in site.owner("POST", f"datasets/{campaign.dataset}/export", body, expect=501)["detail"]
    site.owner("GET", "jobs/0000", expect=404)


def test_webhooks_are_delivered_without_redis(site: Site) -> None:
    heard: list[dict[str, Any]] = []

    class Listener(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """Keep the tests' output clean."""

    with HTTPServer(("127.0.0.1", 0), Listener) as listener:
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{listener.server_port}/"
        webhook = site.owner("POST", "webhooks", {"url": url, "events": ["response.created"]})
        try:
            campaign = site.publish("webhooks", records=1)
            site.raters[0].rate(campaign, "p0", 4)
            assert eventually(lambda: len(heard) == 1)
        finally:
            site.owner("DELETE", f"webhooks/{webhook['id']}")
            listener.shutdown()
    assert heard[0]["type"] == "response.created"
    assert heard[0]["data"]["values"]["quality"]["value"] == 4
