"""Search as Argilla means it, asked of a really started server through HTTP: every kind of field, question and name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from annotation.server import URL_VARIABLE, Home, running
from tests.annotation.argilla_site import Api, Site, enter, response_status, term
from tests.annotation.server.postgres_site import postgres_url  # noqa: F401  # a fixture
from tests.annotation.server.search_site import (
    LABELS,
    ODD,
    answer,
    create,
    ids,
    metadata,
    property_of_record,
    query,
    response,
    suggestion,
    texts,
    user_id,
)
from tests.annotation.server.test_server_search import span


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def site(request: pytest.FixtureRequest, site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Every test here holds on both databases."""
    if request.param == "sqlite":
        yield site
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(URL_VARIABLE, request.getfixturevalue("postgres_url"))
        with running(Home(tmp_path_factory.mktemp("argilla") / "home")) as connection:
            yield enter(connection)


def test_text_queries_of_every_form(site: Site) -> None:
    campaign = create(site, "forms", [
        {"fields": {"text": "The quick brown fox", "other": "jumps"}},
        {"fields": {"text": "A brown, quick FOX doesn't stop at 3.14"}},
        {"fields": {"text": "東京へ行く カタカナ 한국어"}},
        {"fields": {"talk": [{"role": "user", "content": "Hello robot"}, {"role": "assistant", "content": "Hi you"}]}},
        {"fields": {"page": {"title": "Custom thing", "n": [1, "deep"]}}},
        {"fields": {"picture": "https://example.com/fox.png", "text": "a pay-off"}},
    ])  # fmt: skip

    def found(q: str, **more: Any) -> list[str]:
        return sorted(site.owner.found(campaign, query=query(q, **more)))

    everything = ids(0, 1, 2, 3, 4, 5)
    for q, expected in (
        ("FOX", ids(0, 1)), ("fo", []), ("quick jumps", ids(0)), ("jumps | stop", ids(0, 1)), ("quick -jumps", ids(1)),
        ("quick +stop", ids(1)), ("(jumps | stop) fox", ids(0, 1)), ('"quick brown"', ids(0)),
        ('"brown quick"', ids(1)),
        ('"brown quick"~2', ids(0, 1)), ("qui*", ids(0, 1)), ("quikc~2", ids(0, 1)), ("quikc~1", []),
        ("fax~", ids(0, 1, 5)),
        ("doesn't", ids(1)), ("doesn", []), ("3.14", ids(1)), ("東", ids(2)), ("京東", ids(2)), ('"京東"', []),
        ("カタ", []), ("カタカナ", ids(2)), ("한국어", ids(2)), ("robot you", ids(3)), ("assistant", ids(3)),
        ("deep", ids(4)), ("png", []), ("pay-off", ids(5)), ("off pay", ids(5)), ("*", everything), ("", []),
        ("!?", []),
        ("-missing", everything), ('"fox', ids(0, 1)), ("((fox", ids(0, 1)), ("fox))", ids(0, 1)), (r"\*", []),
    ):  # fmt: skip
        assert found(q) == expected, q
    assert found("jumps", field="text") == [] and found("jumps", field="other") == ids(0)
    assert found("hello", field="talk") == ids(3) and found("user", field="talk") == ids(3)
    search = f"datasets/{campaign.dataset}/records/search"
    assert "nowhere" in site.owner("POST", search, {"query": query("a", field="nowhere")}, expect=422)["detail"]


def test_every_write_is_seen_by_the_next_search(site: Site) -> None:
    campaign = create(site, "fresh", texts("first", "second"))
    path = f"datasets/{campaign.dataset}/records"
    assert site.owner.found(campaign, query=query("first")) == ids(0)
    site.owner("PATCH", f"records/{campaign.ids['r0']}", {"fields": {"text": "changed"}})
    assert site.owner.found(campaign, query=query("first | changed")) == ids(0)
    assert site.owner.found(campaign, query=query("first")) == []
    site.owner("PUT", f"{path}/bulk", {"items": [{"external_id": "r1", "fields": {"text": "upserted"}}]})
    assert site.owner.found(campaign, query=query("second | upserted")) == ids(1)
    site.owner("POST", f"{path}/bulk", {"items": texts("third", external_id="r2")})
    assert site.owner.found(campaign, query=query("-upserted")) == ids(0, 2)
    site.owner("DELETE", path, ids=campaign.ids["r0"])
    assert site.owner.found(campaign, query=query("changed | third")) == ids(2)


def test_responses_are_judged_one_by_one(site: Site) -> None:
    campaign = create(site, "judged", texts("a", "b", "c", "d"))
    ada, grace, alan = site.raters
    answer(ada, campaign, "r0", stars=10, label="good", labels=["good", LABELS[2]])
    answer(grace, campaign, "r0", stars=2, label="bad", labels=["bad"])
    answer(ada, campaign, "r1", stars=5, status="discarded")
    answer(grace, campaign, "r2", stars=4, words="free text", status="draft")

    def found(*filters: Any, who: Api = site.owner, mine: bool = False) -> list[str]:
        return sorted(who.found(campaign, list(filters), mine=mine))

    assert found(span(response("stars"), ge=3, le=9)) == ids(1, 2)  # 10 and 2 are both outside
    assert found(span(response("stars"), ge=3), span(response("stars"), le=9)) == ids(0, 1, 2)
    assert found(term(response("stars"), 5, 10)) == ids(0, 1)
    assert found(term(response("label"), "bad", "nothing")) == ids(0)
    assert found(term(response("labels"), LABELS[2])) == ids(0) and found(term(response("label"), LABELS[2])) == []
    assert found(span(response("label"), ge="a", le="c")) == ids(0)
    assert found(span(response("stars"), ge="many")) == [] and found(term(response("words"), "free text")) == []
    assert found(term(response("stars"), 2), who=ada, mine=True) == []
    assert found(span(response("stars"), le=3), who=grace, mine=True) == ids(0)
    for who, mine, statuses, expected in (
        (ada, True, ("pending",), ids(2, 3)), (alan, True, ("pending",), ids(0, 1, 2, 3)),
        (grace, True, ("draft", "submitted"), ids(0, 2)), (ada, True, ("discarded", "pending"), ids(1, 2, 3)),
        (site.owner, False, ("pending",), ids(3)), (site.owner, False, ("pending", "draft"), ids(2, 3)),
        (site.owner, False, ("nonsense",), []),
    ):  # fmt: skip
        assert found(*response_status(*statuses), who=who, mine=mine) == expected
    assert found(*response_status("submitted"), term(response("stars"), 10)) == ids(0)
    assert found(term(property_of_record("status"), "completed")) == ids(0)
    assert found(term(property_of_record("status"), "nonsense")) == []
    items = grace.search(campaign, mine=True, limit=1000)["items"]
    assert all("responses" not in item["record"] for item in items)
    listed = grace("POST", f"me/datasets/{campaign.dataset}/records/search", {}, include="responses")["items"]
    assert {one["user_id"] for item in listed for one in item["record"]["responses"]} == {user_id(grace)}


def test_suggestions_by_value_score_agent_and_type(site: Site) -> None:
    campaign = create(site, "hints", [
        {"fields": {"text": "a"}, "hints": {"stars": {"value": 3, "score": 0.5, "agent": "Model A", "type": "model"},
                                            "labels": {"value": ["good", "bad"], "score": [0.1, 0.9], "agent": "m:1"}}},
        {"fields": {"text": "b"}, "hints": {"stars": {"value": 7, "score": 0.25, "agent": "B", "type": "human"}}},
        {"fields": {"text": "c"}, "hints": {"label": {"value": LABELS[2]}, "words": {"value": "x", "agent": "w"}}},
        {"fields": {"text": "d"}},
    ])  # fmt: skip
    for scope, kind, expected in (
        (suggestion("stars", "value"), {"ge": 4}, [1]), (suggestion("stars", "value"), ("3", "7"), [0, 1]),
        (suggestion("labels", "value"), ("bad",), [0]), (suggestion("label", "value"), (LABELS[2],), [2]),
        (suggestion("stars", "score"), {"ge": 0.25, "le": 0.3}, [1]), (suggestion("labels", "score"), {"ge": 0.9}, [0]),
        (suggestion("labels", "score"), {"ge": 0.2, "le": 0.8}, []), (suggestion("stars", "agent"), ("B", "no"), [1]),
        (suggestion("words", "agent"), ("w",), [2]), (suggestion("stars", "type"), ("model",), [0]),
        (suggestion("stars", "type"), ("odd",), []), (suggestion("words", "value"), ("x",), []),
    ):  # fmt: skip
        one = span(scope, **kind) if isinstance(kind, dict) else term(scope, *kind)
        assert site.owner.found(campaign, [one]) == ids(*expected), (scope, kind)
    sort = [{"scope": suggestion("stars", "score"), "order": "asc"}]
    assert site.owner.found(campaign, sort=sort) == ids(1, 0, 2, 3)
    sort = [
        {"scope": suggestion("stars", "value"), "order": "desc"},
        {"scope": suggestion("label", "value"), "order": "asc"},
    ]
    assert site.owner.found(campaign, sort=sort) == ids(1, 0, 2, 3)
    options = site.owner("GET", f"datasets/{campaign.dataset}/records/search/suggestions/options")["items"]
    agents = {one["question"]["name"]: one["agents"] for one in options}
    assert {name: sorted(found) for name, found in agents.items()} == {
        "stars": ["B", "Model A"], "label": [], "labels": ["m:1"], "words": ["w"]}  # fmt: skip


def test_metadata_of_odd_names_and_several_values(site: Site) -> None:
    values: list[dict[str, Any]] = [
        {ODD: ["b", "z"], "size": 3, "share": 0.5, "hidden": "secret", "extra": 1}, {ODD: 7, "size": 2**53 + 1},
        {ODD: "it's", "share": -1.5}, {}, {ODD: ["a", "c"], "size": -4, "share": 0.5},
    ]  # fmt: skip
    campaign = create(site, "odd", [{"fields": {"text": f"t{i}"}, "metadata": one} for i, one in enumerate(values)])
    owner = site.owner
    for one, expected in (
        (term(metadata(ODD), "z", "it's"), [0, 2]), (term(metadata(ODD), 7), [1]), (term(metadata(ODD), "7"), [1]),
        (span(metadata("size"), ge=-4, le=3), [0, 4]), (term(metadata("size"), 3), [0]),
        (term(metadata("size"), "x"), []),
        (span(metadata("share"), le=0.5), [0, 2, 4]), (term(metadata("share"), 0.5), [0, 4]),
    ):  # fmt: skip
        assert owner.found(campaign, [one]) == ids(*expected), one
    # Several values: the least ascending, the greatest descending; none comes last either way.
    for order, expected in (("asc", [1, 4, 0, 2, 3]), ("desc", [0, 2, 4, 1, 3])):
        assert owner.found(campaign, sort=[{"scope": metadata(ODD), "order": order}]) == ids(*expected)
    for order, expected in (("asc", [4, 0, 1, 2, 3]), ("desc", [1, 0, 4, 2, 3])):
        assert owner.found(campaign, sort=[{"scope": metadata("size"), "order": order}]) == ids(*expected)
    both = [{"scope": metadata("share"), "order": "desc"}, {"scope": metadata("size"), "order": "asc"}]
    assert owner.found(campaign, sort=both) == ids(4, 0, 2, 1, 3)
    text = owner.found(campaign, [span(metadata("size"), ge=0)], query=query("t0 | t2 | t4"))
    assert text == ids(0)
    properties = owner("GET", f"me/datasets/{campaign.dataset}/metadata-properties")["items"]
    paths = {one["name"]: f"metadata-properties/{one['id']}/metrics" for one in properties}
    terms = owner("GET", paths[ODD])
    assert terms["total"] == 6
    assert [(one["term"], one["count"]) for one in terms["values"]] == [
        (one, 1) for one in ("7", "a", "b", "c", "it's", "z")
    ]
    numbers = owner("GET", paths["size"])
    assert (numbers["min"], numbers["max"]) == (-4, 2**53 + 1)
    grace = site.raters[1]
    seen = {one["name"] for one in grace("GET", f"me/datasets/{campaign.dataset}/metadata-properties")["items"]}
    assert "hidden" not in seen and ODD in seen
    (first,) = [
        one["record"] for one in grace.search(campaign, mine=True)["items"] if one["record"]["external_id"] == "r0"
    ]
    assert first["metadata"] == {key: value for key, value in values[0].items() if key not in ("hidden", "extra")}


def test_sorts_by_responses_are_ones_own_or_the_mean_of_all(site: Site) -> None:
    campaign = create(site, "means", texts("a", "b", "c"))
    ada, grace, _ = site.raters
    answer(ada, campaign, "r0", stars=9)
    answer(grace, campaign, "r0", stars=0)
    answer(ada, campaign, "r1", stars=4)
    answer(grace, campaign, "r1", stars=6)
    stars = {"scope": response("stars")}
    for who, mine, order, expected in (
        (site.owner, False, "desc", [1, 0, 2]), (site.owner, False, "asc", [0, 1, 2]),
        (ada, True, "desc", [0, 1, 2]), (grace, True, "desc", [1, 0, 2]), (grace, True, "asc", [0, 1, 2]),
    ):  # fmt: skip
        assert who.found(campaign, sort=[{**stars, "order": order}], mine=mine) == ids(*expected)


def test_similar_and_least_similar_with_texts_filters_and_pages(site: Site) -> None:
    vectors = [[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [-1.0, 0.0], None, [0.0, 0.0], [1e300, 0.0]]
    campaign = create(site, "similar", [
        {"fields": {"text": f"even t{i}" if i % 2 == 0 else f"uneven t{i}"}, "metadata": {"size": i},
         "vectors": {} if vector is None else {"v": vector}} for i, vector in enumerate(vectors)
    ])  # fmt: skip

    def near(**more: Any) -> dict[str, Any]:
        return {"vector": {"name": "v", **more}}

    owner, right = site.owner, [2.0, 0.0]
    items = owner.search(campaign, query=near(value=right))["items"]
    scores = {item["record"]["external_id"]: item["query_score"] for item in items}
    assert list(scores) == ids(0, 6, 1, 2, 5, 3)
    assert list(scores.values()) == pytest.approx([1, 1, (1 + 0.5**0.5) / 2, 0.5, 0.5, 0])
    least = owner.found(campaign, query=near(value=right, order="least_similar"))
    assert least[0] == "r3" and set(least[-2:]) == {"r0", "r6"}
    assert owner.found(campaign, query=near(record_id=campaign.ids["r0"]), limit=2) == ids(6, 1)
    assert owner.found(campaign, query={**near(value=right), **query("uneven")}) == ids(1, 5, 3)
    assert owner.found(campaign, [span(metadata("size"), le=2)], query=near(value=right)) == ids(0, 1, 2)
    sort = [{"scope": metadata("size"), "order": "desc"}]
    assert owner.found(campaign, query=near(value=right), sort=sort) == ids(0, 6, 1, 2, 5, 3)
    second = owner.search(campaign, query=near(value=right), offset=2, limit=2)
    assert [one["record"]["external_id"] for one in second["items"]] == ids(1, 2) and second["total"] == 4
    path = f"datasets/{campaign.dataset}/records/search"
    for bad in ([1.0], [1.0, 2.0, 3.0]):
        owner("POST", path, {"query": near(value=bad)}, expect=422)
    owner("POST", path, {"query": near(record_id=campaign.ids["r4"])}, expect=422)
    owner("POST", path, {"query": {"vector": {"name": "unknown", "value": [1.0, 0.0]}}}, expect=422)


def test_progress_of_all_and_of_each(site: Site) -> None:
    campaign = create(site, "progress", texts("a", "b", "c"))
    ada, grace, _ = site.raters
    answer(ada, campaign, "r0", stars=1)
    answer(grace, campaign, "r0", stars=1)
    answer(ada, campaign, "r1", stars=1, status="draft")
    progress = site.owner("GET", f"datasets/{campaign.dataset}/progress")
    assert {key: progress[key] for key in ("total", "completed", "pending")} == {
        "total": 3,
        "completed": 1,
        "pending": 2,
    }
    metrics = ada("GET", f"me/datasets/{campaign.dataset}/metrics")["responses"]
    assert metrics == {"total": 3, "submitted": 1, "discarded": 0, "draft": 1, "pending": 1}
    third = site.raters[2]  # r0 is complete, and in nobody's queue
    assert third("GET", f"datasets/{campaign.dataset}/progress")["pending"] == 2
    assert third("GET", f"me/datasets/{campaign.dataset}/metrics")["responses"]["pending"] == 3
