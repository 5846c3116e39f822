"""Datasets with every kind of field and question on a started server, and the scopes that searches in them name."""

from __future__ import annotations

from typing import Any

from tests.annotation.argilla_site import Api, Campaign, Site

ODD = "Größe \"x\" 'y' $.a[0].b -- ; 日本"  # a property's name is any text
LABELS = ["good", "bad", 'it\'s "odd"']


def create(site: Site, name: str, records: list[dict[str, Any]] | None = None) -> Campaign:
    """A dataset with every kind of field and question that Argilla has; None as `records` leaves it a draft."""
    owner = site.owner
    workspace = owner("POST", "workspaces", {"name": f"ws-{name}"})["id"]
    for rater in site.raters:
        owner("POST", f"workspaces/{workspace}/users", {"user_id": user_id(rater)})
    distribution = {"strategy": "overlap", "min_submitted": 2}
    dataset = owner("POST", "datasets", {"name": name, "workspace_id": workspace, "distribution": distribution})["id"]
    for field, kind in (
        ("text", "text"),
        ("other", "text"),
        ("talk", "chat"),
        ("page", "custom"),
        ("picture", "image"),
    ):
        settings: dict[str, Any] = {"type": kind}
        if kind == "custom":
            settings["template"] = "<p></p>"
        owner("POST", f"datasets/{dataset}/fields", {"name": field, "title": field, "settings": settings,
                                                     "required": False})  # fmt: skip
    labels = [{"value": label, "text": label} for label in LABELS]
    for question, settings in (
        ("stars", {"type": "rating", "options": [{"value": value} for value in range(11)]}),
        ("label", {"type": "label_selection", "options": labels}),
        ("labels", {"type": "multi_label_selection", "options": labels}),
        ("words", {"type": "text"}),
    ):
        owner("POST", f"datasets/{dataset}/questions", {"name": question, "title": question, "settings": settings,
                                                        "required": question == "stars"})  # fmt: skip
    for prop, kind, roles in ((ODD, "terms", ["annotator"]), ("size", "integer", ["annotator"]),
                              ("share", "float", ["annotator"]), ("hidden", "terms", [])):  # fmt: skip
        body = {"name": prop, "title": prop, "settings": {"type": kind}, "visible_for_annotators": bool(roles)}
        owner("POST", f"datasets/{dataset}/metadata-properties", body)
    owner("POST", f"datasets/{dataset}/vectors-settings", {"name": "v", "title": "v", "dimensions": 2})
    if records is None:
        return Campaign(name, dataset, {})
    owner("PUT", f"datasets/{dataset}/publish")
    questions = {one["name"]: one["id"] for one in owner("GET", f"datasets/{dataset}/questions")["items"]}
    items = []
    for i, record in enumerate(records):
        hints = [{"question_id": questions[name], **hint} for name, hint in record.pop("hints", {}).items()]
        items.append({"external_id": f"r{i}", "suggestions": hints, **record})
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


def metadata(name: str) -> dict[str, Any]:
    return {"entity": "metadata", "metadata_property": name}


def response(question: str) -> dict[str, Any]:
    return {"entity": "response", "question": question}


def suggestion(question: str, prop: str) -> dict[str, Any]:
    return {"entity": "suggestion", "question": question, "property": prop}


def property_of_record(name: str) -> dict[str, Any]:
    return {"entity": "record", "property": name}


def ids(*numbers: int) -> list[str]:
    return [f"r{number}" for number in numbers]


def span(scope: dict[str, Any], **bounds: Any) -> dict[str, Any]:
    return {"type": "range", "scope": scope, **bounds}
