"""A dataset of ten records that two annotators see, by the API alone."""

from __future__ import annotations

from typing import Any

from servers import Server


def person(server: Server, name: str, workspace: str, role: str = "annotator") -> str:
    """A new member of a workspace; the API key."""
    body = {"username": name, "first_name": name, "password": f"{name}-password", "role": role}
    user = server.done("POST", "users", body)
    server.done("POST", f"workspaces/{workspace}/users", {"user_id": user["id"]})
    return str(user["api_key"])


def dataset(server: Server, workspace: str, records: int = 10, wanted: int = 1) -> tuple[str, list[str]]:
    """A published dataset with a rating; its id and those of its records."""
    body = {
        "name": "texts",
        "workspace_id": workspace,
        "distribution": {"strategy": "overlap", "min_submitted": wanted},
    }
    made = server.done("POST", "datasets", body)["id"]
    path = f"datasets/{made}"
    text = {"name": "text", "title": "Text", "required": True, "settings": {"type": "text"}}
    server.done("POST", f"{path}/fields", text)
    rating = {"type": "rating", "options": [{"value": number} for number in range(1, 6)]}
    server.done("POST", f"{path}/questions", {"name": "quality", "title": "Q", "required": True, "settings": rating})
    server.done("PUT", f"{path}/publish")
    items = [{"fields": {"text": f"text {number}"}, "external_id": str(number)} for number in range(records)]
    bulk = server.done("POST", f"{path}/records/bulk", {"items": items})["items"]
    return made, [record["id"] for record in bulk]


def queue(server: Server, made: str, key: str, limit: int = 10) -> list[str]:
    """The records that Argilla's page would show an annotator next."""
    scopes = ({"entity": entity, "property": "status"} for entity in ("response", "record"))
    pending = [{"type": "terms", "scope": scope, "values": ["pending"]} for scope in scopes]
    answer = server.done("POST", f"me/datasets/{made}/records/search", {"filters": {"and": pending}}, key,
                         params={"limit": limit, "include": "responses"})  # fmt: skip
    return [item["record"]["id"] for item in answer["items"]]


def answer(server: Server, record: str, key: str, status: str = "submitted") -> Any:
    body = {"status": status, "values": {"quality": {"value": 4}}}
    return server.done("POST", f"records/{record}/responses", body, key)
