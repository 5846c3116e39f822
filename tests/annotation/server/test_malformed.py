"""Malformed requests get an answer that says so: whatever stands where a filter, a sort or an answer should, no 5xx."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.annotation.argilla_site import LANGUAGE, Campaign, Site
from tests.scale import scaled

SOUND = {200, 201}
WITHOUT = object()
TOLD = {400, 404, 405, 409, 413, 422}
JUNK: list[Any] = [
    None, True, -1, 0, 10**400, 1e308, "", "x" * 5000, "\0", "\ud800", [], {}, [None], {"and": None}, [[[]]], {"": {}},
    ["terms"] * 300,
]  # fmt: skip
RAW = ("[" * 5000 + "]" * 5000, '{"and":[' * 3000 + "]}" * 3000, "NaN", "Infinity", "1e400", "9" * 5000)
AGENT = {"entity": "suggestion", "question": "quality", "property": "agent"}
RESPONSE = {"entity": "response", "question": "quality", "property": None}
SEARCH = {
    "query": {"text": {"q": "cats", "field": "original"}},
    "filters": {"and": [
        {"type": "terms", "scope": {"entity": "response", "property": "status"}, "values": ["pending"]},
        {"type": "range", "scope": {"entity": "metadata", "metadata_property": "length"}, "ge": 0, "le": 9},
        {"type": "terms", "scope": {"entity": "metadata", "metadata_property": LANGUAGE}, "values": ["de", "en"]},
        {"type": "range", "scope": {"entity": "record", "property": "inserted_at"}, "ge": "2020-01-01T00:00:00"},
        {"type": "terms", "scope": AGENT, "values": ["m"]},
        {"type": "range", "scope": RESPONSE, "ge": 1, "le": 5},
    ]},
    "sort": [{"scope": {"entity": "record", "property": "updated_at"}, "order": "desc"},
             {"scope": RESPONSE, "order": "asc"}],
}  # fmt: skip
SIMILAR = {"query": {"vector": {"name": "v", "value": [1.0, 0.5], "order": "most_similar"}}}


@pytest.fixture(scope="module")
def campaign(site: Site) -> Campaign:
    return site.publish("malformed")


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a body, the body itself first."""
    yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in pairs:
        yield from places(part, (*path, key))


def changed(body: Any, path: tuple[Any, ...], junk: Any) -> Any:
    """The body with something else at one place, or without what stands there (`WITHOUT`)."""
    if not path:
        return junk
    part = made = copy.deepcopy(body)
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = junk
    if junk is WITHOUT:
        del part[path[-1]]
    return made


def malformed(body: Any) -> Iterator[str]:
    """Each place of a body with pieces of junk, without it, and with what Python's JSON does not write; as JSON."""
    draw = random.Random(7)
    for path in places(body):
        for junk in draw.sample([*JUNK, *RAW], scaled(4, 23)):
            if junk in RAW:
                yield json.dumps(changed(body, path, "RAW")).replace('"RAW"', junk)
            else:
                yield json.dumps(changed(body, path, junk))
        if path:
            yield json.dumps(changed(body, path, WITHOUT))
    yield from ("", "{", "nul", "[1,2", "\ufeff{}", '{"filters": NaN}', "é")


@pytest.mark.parametrize("mine", [True, False])
@pytest.mark.parametrize("body", [SEARCH, SIMILAR], ids=["search", "similar"])
def test_no_malformed_search_is_an_error_of_the_server(site: Site, campaign: Campaign, mine: bool, body: Any) -> None:
    who = site.raters[0] if mine else site.owner
    path = f"/api/v1/{'me/' if mine else ''}datasets/{campaign.dataset}/records/search"
    assert_told(who.user.api_key, site, "POST", path, body)


def assert_told(key: str, site: Site, method: str, path: str, body: Any) -> None:
    """Every malformed variant of a body is refused with a reason, or taken for what it says."""
    codes: dict[str, int] = {}
    with httpx.Client(base_url=site.connection.url, trust_env=False, timeout=60.0) as client:
        headers = {"X-Argilla-Api-Key": key, "Content-Type": "application/json"}
        assert client.request(method, path, content=json.dumps(body), headers=headers).status_code in SOUND
        for text in malformed(body):
            answer = client.request(method, path, content=text.encode("utf-8", "surrogatepass"), headers=headers)
            codes[text[:300]] = answer.status_code
    wrong = {text: code for text, code in codes.items() if code not in SOUND | TOLD}
    assert not wrong, f"{len(wrong)} of {len(codes)}: {list(wrong.items())[:5]}"


def test_no_malformed_answer_is_an_error_of_the_server(site: Site, campaign: Campaign) -> None:
    key, record = site.raters[1].user.api_key, campaign.ids["p0"]
    values = {"quality": {"value": 3}, "fluency": {"value": 4}}
    bulk = {"items": [{"record_id": record, "status": "submitted", "values": values}]}
    assert_told(key, site, "POST", "/api/v1/me/responses/bulk", bulk)
    (mine,) = site.raters[1]("GET", f"records/{record}")["responses"]
    assert_told(key, site, "PUT", f"/api/v1/responses/{mine['id']}", {"status": "submitted", "values": values})


def test_a_malformed_filter_is_422(site: Site, campaign: Campaign) -> None:
    for filters in ({"and": None}, {}, {"and": []}, {"and": {}}, [], {"and": [None]}, {"or": []}):
        for who, mine in ((site.raters[0], "me/"), (site.owner, "")):
            who("POST", f"{mine}datasets/{campaign.dataset}/records/search", {"filters": filters}, expect=422)


def test_no_malformed_address_is_an_error_of_the_server(site: Site, campaign: Campaign) -> None:
    search = f"me/datasets/{campaign.dataset}/records/search"
    asked = [f"{search}?limit={one}" for one in ("0", "-1", "1001", "x", "1e9", "9" * 400, "%00")]
    asked += [f"{search}?offset={one}" for one in ("-1", "9" * 30, "9" * 400, "x")]
    included = ("x", "responses,responses", "vectors:x", "vectors:", "%00", "," * 99)
    asked += [f"{search}?include={one}" for one in included]
    gets = ["records/x", "records/%00", "records/" + "0" * 5000, "datasets/..%2f..", "users/x", "jobs/%00",
            "jobs/" + "x" * 5000, f"datasets/{campaign.dataset}/records?offset=-1",
            f"datasets/{campaign.dataset}/records?offset={10**30}", "me/datasets?name=%00&workspace_id=x",
            f"datasets/{campaign.dataset}/records?include=vectors:none"]  # fmt: skip
    pages = ["/%00", "/a%00b", "/" + "x" * 5000, "/..%2f..%2fetc%2fpasswd", "/%2e%2e/%2e%2e/etc/passwd",
             "/_nuxt/../../x", "/%ff%fe", "//example.org/%2e%2e", "/\\..\\x", "/sign-in/%00"]  # fmt: skip
    headers = {"X-Argilla-Api-Key": site.owner.user.api_key}
    with httpx.Client(base_url=site.connection.url, trust_env=False, headers=headers) as client:
        answers = [client.post(f"/api/v1/{path}", json={}) for path in asked]
        answers += [client.get(f"/api/v1/{path}") for path in gets] + [client.get(path) for path in pages]
        answers += [client.request(method, "/sign-in") for method in ("PUT", "TRACE", "CONNECTED", "PROPFIND")]
    wrong = [(str(one.request.url)[:120], one.status_code) for one in answers if one.status_code >= 500]
    assert not wrong
    assert not [one for one in answers if "root:" in one.text or one.headers.get("location", "").startswith("//")]
