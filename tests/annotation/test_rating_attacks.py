"""Bad input to the rating page's store and to Argilla's API behind it, on a really started server."""

from __future__ import annotations

import itertools
import json
from typing import Any

import httpx
from playwright.sync_api import Browser, Page, expect

from annotation import server
from annotation.argilla.client import Argilla
from annotation.argilla.collect import collect
from plumbline.study import Study
from tests.annotation.campaigns import answer, dataset, pending
from tests.annotation.test_rating_page import begin, rate, responses, study, turn, user  # noqa: F401 (fixtures)

GOOD = {"quality": {"value": 3}, "fluency": {"value": 3}}
ODD: list[Any] = [
    0, 6, -1, 3.5, 10**30, True, None, "3", "", [], {}, [3], {"value": 3}, "NaN", "Infinity", "\u0663", "\ud800",
    "a\0b", "<script>alert(1)</script>", "x" * 10_000,
]  # fmt: skip
RAW = [
    '{"status": "submitted", "values": {"quality": {"value": NaN}, "fluency": {"value": 3}}}',
    '{"status": "submitted", "values": {"quality": {"value": Infinity}, "fluency": {"value": 3}}}',
    '{"status": "submitted", "values": {"quality": {"value": 1e400}, "fluency": {"value": 3}}}',
    *(
        f'{{"status": "submitted", "values": {{"quality": {{"value": {"9" * digits}}}, "fluency": {{"value": 3}}}}}}'
        for digits in (400, 5000)
    ),
    '{"status": "submitted"}', '{"status": "submitted", "values": null}', '{"status": "submitted", "values": {}}',
    '{"status": "nonsense", "values": {}}', '{"values": {}}', "[]", "null", "", "{", '"x"', "[" * 100_000,
    '{"status": "submitted", "values": []}', '{"status": "submitted", "values": {"quality": 3, "fluency": 3}}',
]  # fmt: skip


def odd_bodies() -> list[str]:
    bodies = list(RAW)
    for name, value in itertools.product(("quality", "fluency"), ODD):
        bodies.append(json.dumps({"status": "submitted", "values": {**GOOD, name: {"value": value}}}))
    for name in ("", "nonsense", "__proto__", "a" * 10_000, "\ud800", "quality\0", "<b>", "user_id"):
        bodies.append(json.dumps({"status": "submitted", "values": {**GOOD, name: {"value": 3}}}))
    for value in (3, None, [], {}, True, "\ud800", "a\0b"):
        bodies.append(json.dumps({"status": "submitted", "values": {**GOOD, "comment": {"value": value}}}))
    return bodies


def test_no_answer_by_the_api_breaks_the_server_or_what_is_collected(
    argilla: Argilla,
    study: Study,  # noqa: F811
    user: server.User,  # noqa: F811
) -> None:
    dataset_id = dataset(study, argilla)
    records = pending(argilla, user, dataset_id)
    headers = {"X-Argilla-Api-Key": user.api_key, "Content-Type": "application/json"}
    http = httpx.Client(base_url=argilla.url, trust_env=False, timeout=60, headers=headers)
    first = records[0]["id"]
    for body in odd_bodies():
        said = http.post(f"/api/v1/records/{first}/responses", content=body)
        assert said.status_code < 500, (said.status_code, body[:100], said.text[:200])
        if said.status_code in (200, 201):
            reply = http.delete(f"/api/v1/responses/{said.json()['id']}")
            assert reply.status_code == 200, (body[:100], reply.text)
        bulk = body[:-1] + f', "record_id": "{first}"}}' if body.startswith('{"') else body
        said = http.post("/api/v1/me/responses/bulk", content=f'{{"items": [{bulk}]}}')
        assert said.status_code < 500, (said.status_code, body[:100], said.text[:200])
        if said.status_code in (200, 201) and (item := said.json()["items"][0]["item"]):
            http.delete(f"/api/v1/responses/{item['id']}")
        list(argilla.records(dataset_id))
    assert not any(responses(argilla, dataset_id).values())
    odd = "=1+1 <b>\u202e\0"
    endless, long = odd + "x" * 1_000_000, odd + "x" * 10_000
    for text, status in ((endless, 422), (long, 201)):
        values = {**GOOD, "comment": {"value": text}}
        said = http.post(f"/api/v1/records/{first}/responses", json={"status": "submitted", "values": values})
        assert said.status_code == status
    for record in records[1:]:
        answer(argilla, user, record, "submitted", quality=3, fluency=3)
    collected = collect(study, argilla)
    assert len(collected) == 8 and collected["comment"].str.len().max() == len(long)  # as it was stored


def test_an_old_draft_of_another_browser_leaves_an_answer_as_it_is(
    argilla: Argilla,
    study: Study,  # noqa: F811
    user: server.User,  # noqa: F811
    page: Page,
    chromium: Browser,
) -> None:
    dataset_id = dataset(study, argilla)
    begin(page, argilla.url, user, dataset_id)
    turn(page, 1, 4)
    page.context.set_offline(True)
    page.keyboard.press("1")  # on a phone: a draft, and no connection
    page.wait_for_timeout(6000)
    other = chromium.new_context().new_page()
    begin(other, argilla.url, user, dataset_id)
    turn(other, 1, 4)
    rate(other, 4, 5)
    turn(other, 2, 4)
    expect(other.locator("#progress")).to_contain_text("1 of 4")
    other.context.close()
    page.context.set_offline(False)
    page.wait_for_timeout(8000)
    given = [each[0] for each in responses(argilla, dataset_id).values() if each]
    assert [(one["status"], one["values"]["quality"]["value"]) for one in given] == [("submitted", 4)]
