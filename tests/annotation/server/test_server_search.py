"""What Argilla means by queue, search, filter, sort and status, asked of the server through HTTP and the SDK."""

from __future__ import annotations

from typing import Any

import argilla as rg

from tests.annotation.argilla_site import LANGUAGE, TEXTS, Site, response_status


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
