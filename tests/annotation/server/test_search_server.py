"""Search as Argilla means it, asked of a really started server through HTTP: every kind of field, question and name."""

from __future__ import annotations

from typing import Any

from tests.annotation.argilla_site import Api, Campaign, Site, response_status, term

LABELS = ["good", "bad", 'it\'s "odd"']


def create(site: Site, name: str, records: list[dict[str, Any]]) -> Campaign:
    """A dataset with every kind of field that Argilla has, and most kinds of questions."""
    owner = site.owner
    workspace = owner("POST", "workspaces", {"name": f"ws-{name}"})["id"]
    for rater in site.raters:
        owner("POST", f"workspaces/{workspace}/users", {"user_id": user_id(rater)})
    distribution = {"strategy": "overlap", "min_submitted": 2}
    dataset = owner("POST", "datasets", {"name": name, "workspace_id": workspace, "distribution": distribution})["id"]
    kinds = {"text": "text", "other": "text", "talk": "chat", "page": "custom", "picture": "image"}
    for field, kind in kinds.items():
        settings = {"type": kind} | ({"template": "<p></p>"} if kind == "custom" else {})
        body = {"name": field, "title": field, "settings": settings, "required": False}
        owner("POST", f"datasets/{dataset}/fields", body)
    labels = [{"value": label, "text": label} for label in LABELS]
    for question, settings in (
        ("stars", {"type": "rating", "options": [{"value": value} for value in range(11)]}),
        ("label", {"type": "label_selection", "options": labels}),
        ("labels", {"type": "multi_label_selection", "options": labels}),
        ("words", {"type": "text"}),
    ):
        owner("POST", f"datasets/{dataset}/questions", {"name": question, "title": question, "settings": settings,
                                                        "required": question == "stars"})  # fmt: skip
    owner("PUT", f"datasets/{dataset}/publish")
    items = [{"external_id": f"r{i}", **record} for i, record in enumerate(records)]
    made = owner("POST", f"datasets/{dataset}/records/bulk", {"items": items})["items"]
    return Campaign(name, dataset, {one["external_id"]: one["id"] for one in made})


def user_id(api: Api) -> str:
    return str(api("GET", "me")["id"])


def texts(*texts: str, **more: Any) -> list[dict[str, Any]]:
    return [{"fields": {"text": text}, **more} for text in texts]


def answer(rater: Api, campaign: Campaign, record: str, status: str = "submitted", **values: Any) -> None:
    given = {name: {"value": value} for name, value in values.items()}
    body = {"items": [{"record_id": campaign.ids[record], "status": status, "values": given}]}
    result = rater("POST", "me/responses/bulk", body)
    assert all(item["error"] is None for item in result["items"]), result


def query(q: str, **more: Any) -> dict[str, Any]:
    return {"text": {"q": q, **more}}


def response(question: str) -> dict[str, Any]:
    return {"entity": "response", "question": question}


def property_of_record(name: str) -> dict[str, Any]:
    return {"entity": "record", "property": name}


def ids(*numbers: int) -> list[str]:
    return [f"r{number}" for number in numbers]


def span(scope: dict[str, Any], **bounds: Any) -> dict[str, Any]:
    return {"type": "range", "scope": scope, **bounds}


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
        ('"brown quick"~2', ids(0, 1)), ("qui*", ids(0, 1)), ("fax~", ids(0, 1, 5)), ('"京東"', []),
        ("robot you", ids(3)), ("assistant", ids(3)), ("deep", ids(4)), ("png", []), ("*", everything), ("", []),
        ("-missing", everything),
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
