"""Every route of the served application, and what each kind of person may get from it.

Columns: stranger, rater (annotator of the dataset), foreign (annotator of another workspace), worker (a participant of
a crowd, who has a room of their own), admin (of the dataset's workspace), owner. "-" is not asked: the change would
take away what other rows need, and who may make it is not in question.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from annotation.server.plugin.plumbline_argilla.rate import LINK, WORK

ROLES = ("stranger", "rater", "foreign", "worker", "admin", "owner")
OPEN = "200 200 200 200 200 200"  #: the same for all
OWN = "401 200 200 200 200 200"  #: each gets what is theirs
MEMBERS = "401 200 403 403 200 200"
ADMINS = "401 403 403 403 200 200"
OWNERS = "401 403 403 403 403 200"
ADMINS_CHANGE, OWNERS_CHANGE = "401 403 403 403 - -", "401 403 403 403 403 -"
API = "/api/v1"
STATUS = {"entity": "response", "property": "status"}
PENDING = {"filters": {"and": [{"type": "terms", "scope": STATUS, "values": ["pending", "submitted"]}]}}
HUB = {"name": "a/b", "subset": "s", "split": "train", "mapping": {"fields": [{"source": "a", "target": "text"}]}}
TEXT = {"name": "new", "title": "New", "settings": {"type": "text"}}
SUGGESTION = {"question_id": "{question_id}", "value": 2, "agent": "model"}


@dataclass(frozen=True)
class Row:
    """One route: who gets which status, what is sent, and the parameters of the address."""

    method: str
    path: str  #: as the application writes it
    statuses: str
    body: Any = None
    params: dict[str, str] = field(default_factory=dict)
    form: bool = False

    def expected(self, role: str) -> set[int]:
        """The statuses that a role may get; empty where it is not asked."""
        said = self.statuses.split()[ROLES.index(role)]
        return set() if said == "-" else {int(one) for one in said.split("/")}


EVERYTHING = {"include": "responses,suggestions,vectors"}
READS = [
    Row("GET", f"{API}/version", OPEN),
    Row("GET", f"{API}/status", OPEN),
    Row("GET", f"{API}/settings", OPEN),
    Row("GET", f"{API}/oauth2/providers", OPEN),
    Row("GET", f"{API}/oauth2/providers/{{provider}}/authentication", "404 404 404 404 404 404"),
    Row("GET", f"{API}/oauth2/providers/{{provider}}/access-token", "404 404 404 404 404 404"),
    Row("GET", f"{API}/me", OWN),
    Row("GET", f"{API}/me/datasets", OWN),
    Row("GET", f"{API}/me/workspaces", OWN),
    Row("GET", f"{API}/users", OWNERS),
    Row("GET", f"{API}/users/{{user_id}}", OWNERS),
    Row("GET", f"{API}/users/{{user_id}}/workspaces", OWNERS),
    Row("GET", f"{API}/workspaces/{{workspace_id}}", MEMBERS),
    Row("GET", f"{API}/workspaces/{{workspace_id}}/users", ADMINS),
    Row("GET", f"{API}/webhooks", OWNERS),
    Row("GET", f"{API}/jobs/{{job_id}}", "401 403/404 403/404 403/404 404 404"),
    Row("GET", f"{API}/datasets/{{dataset_id}}", MEMBERS),
    Row("GET", f"{API}/datasets/{{dataset_id}}/fields", MEMBERS),
    Row("GET", f"{API}/datasets/{{dataset_id}}/questions", MEMBERS),
    Row("GET", f"{API}/datasets/{{dataset_id}}/orders", ADMINS),
    Row("GET", f"{API}/datasets/{{dataset_id}}/vectors-settings", MEMBERS),
    Row("GET", f"{API}/datasets/{{dataset_id}}/progress", MEMBERS),
    Row("GET", f"{API}/datasets/{{dataset_id}}/users/progress", MEMBERS),
    Row("GET", f"{API}/datasets/{{dataset_id}}/records", ADMINS, params=EVERYTHING),
    Row("GET", f"{API}/datasets/{{dataset_id}}/records/search/suggestions/options", MEMBERS),
    Row("POST", f"{API}/datasets/{{dataset_id}}/records/search", ADMINS, PENDING, EVERYTHING),
    Row("GET", f"{API}/me/datasets/{{dataset_id}}/metadata-properties", MEMBERS),
    Row("GET", f"{API}/me/datasets/{{dataset_id}}/metrics", MEMBERS),
    Row("POST", f"{API}/me/datasets/{{dataset_id}}/records/search", MEMBERS, PENDING, EVERYTHING),
    Row("GET", f"{API}/metadata-properties/{{metadata_property_id}}/metrics", MEMBERS),
    Row("GET", f"{API}/records/{{record_id}}", MEMBERS),
    Row("GET", f"{API}/records/{{record_id}}/suggestions", MEMBERS),
]
CHANGES = [
    Row("POST", f"{API}/token", "401 401 401 401 401 401", {"username": "grace", "password": "wrong"}, form=True),
    Row("POST", f"{API}/datasets", ADMINS_CHANGE, {"name": "n", "workspace_id": "{workspace_id}"}),
    Row("PATCH", f"{API}/datasets/{{dataset_id}}", ADMINS_CHANGE, {"guidelines": "g"}),
    Row("DELETE", f"{API}/datasets/{{dataset_id}}", ADMINS_CHANGE),
    Row("PUT", f"{API}/datasets/{{dataset_id}}/publish", ADMINS_CHANGE),
    Row("POST", f"{API}/datasets/{{dataset_id}}/fields", ADMINS_CHANGE, TEXT),
    Row("POST", f"{API}/datasets/{{dataset_id}}/questions", ADMINS_CHANGE, TEXT),
    Row(
        "POST",
        f"{API}/datasets/{{dataset_id}}/metadata-properties",
        ADMINS_CHANGE,
        {"name": "m", "title": "M", "settings": {"type": "integer"}},
    ),
    Row(
        "POST",
        f"{API}/datasets/{{dataset_id}}/vectors-settings",
        ADMINS_CHANGE,
        {"name": "w", "title": "W", "dimensions": 2},
    ),
    Row("POST", f"{API}/datasets/{{dataset_id}}/import", "401 403 403 403 501 501", HUB),
    Row(
        "POST",
        f"{API}/datasets/{{dataset_id}}/export",
        "401 403 403 403 501 501",
        {"name": "a/b", "subset": "s", "split": "train", "private": True, "token": "t"},
    ),
    Row("POST", f"{API}/datasets/{{dataset_id}}/records/bulk", ADMINS_CHANGE, {"items": [{"fields": {"text": "x"}}]}),
    Row("PUT", f"{API}/datasets/{{dataset_id}}/records/bulk", ADMINS_CHANGE, {"items": [{"id": "{record_id}"}]}),
    Row("DELETE", f"{API}/datasets/{{dataset_id}}/records", ADMINS_CHANGE, params={"ids": "{record_id}"}),
    Row("PATCH", f"{API}/fields/{{field_id}}", ADMINS_CHANGE, {"title": "t"}),
    Row("DELETE", f"{API}/fields/{{field_id}}", ADMINS_CHANGE),
    Row("PATCH", f"{API}/questions/{{question_id}}", ADMINS_CHANGE, {"title": "t"}),
    Row("DELETE", f"{API}/questions/{{question_id}}", ADMINS_CHANGE),
    Row("PATCH", f"{API}/metadata-properties/{{metadata_property_id}}", ADMINS_CHANGE, {"title": "t"}),
    Row("DELETE", f"{API}/metadata-properties/{{metadata_property_id}}", ADMINS_CHANGE),
    Row("PATCH", f"{API}/vectors-settings/{{vector_settings_id}}", ADMINS_CHANGE, {"title": "t"}),
    Row("DELETE", f"{API}/vectors-settings/{{vector_settings_id}}", ADMINS_CHANGE),
    Row("PATCH", f"{API}/records/{{record_id}}", "401 403 403 403 200 200", {"metadata": {"length": 3}}),
    Row("DELETE", f"{API}/records/{{record_id}}", ADMINS_CHANGE),
    Row("PUT", f"{API}/records/{{record_id}}/suggestions", "401 403 403 403 200/201 200", SUGGESTION),
    Row("DELETE", f"{API}/records/{{record_id}}/suggestions", ADMINS_CHANGE, params={"ids": "{suggestion_id}"}),
    Row("DELETE", f"{API}/suggestions/{{suggestion_id}}", ADMINS_CHANGE),
    # The rater has answered the record: 409. The response is another rater's.
    Row("POST", f"{API}/records/{{record_id}}/responses", "401 409 403 403 - -", {"status": "discarded"}),
    Row("POST", f"{API}/me/responses/bulk", OWN, {"items": [{"record_id": "{record_id}", "status": "discarded"}]}),
    Row("PUT", f"{API}/responses/{{response_id}}", ADMINS_CHANGE, {"status": "discarded"}),
    Row("DELETE", f"{API}/responses/{{response_id}}", ADMINS_CHANGE),
    Row("POST", f"{API}/users", OWNERS_CHANGE, {"username": "x", "first_name": "X", "password": "long enough"}),
    Row("PATCH", f"{API}/users/{{user_id}}", OWNERS_CHANGE, {"first_name": "X"}),
    Row("DELETE", f"{API}/users/{{user_id}}", OWNERS_CHANGE),
    *(Row(method, f"{API}/users/{{user_id}}/link", OWNERS_CHANGE) for method in ("POST", "DELETE")),
    Row("POST", f"{API}/workspaces", OWNERS_CHANGE, {"name": "x"}),
    Row("DELETE", f"{API}/workspaces/{{workspace_id}}", OWNERS_CHANGE),
    Row("POST", f"{API}/workspaces/{{workspace_id}}/users", OWNERS_CHANGE, {"user_id": "{user_id}"}),
    Row("DELETE", f"{API}/workspaces/{{workspace_id}}/users/{{user_id}}", "401 403 403 403 - -"),
    Row("POST", f"{API}/webhooks", OWNERS_CHANGE, {"url": "http://127.0.0.1:9/x", "events": ["record.created"]}),
    Row("PATCH", f"{API}/webhooks/{{webhook_id}}", OWNERS_CHANGE, {"enabled": False}),
    Row("DELETE", f"{API}/webhooks/{{webhook_id}}", OWNERS_CHANGE),
    Row("POST", f"{API}/webhooks/{{webhook_id}}/ping", OWNERS_CHANGE),
]
PAGES = [
    # There is no such room here; what the others show is in tests/annotation/crowd/test_entry.py.
    Row("GET", "/crowd/enter/{room}", "404 404 404 404 404 404"),
    Row("POST", "/crowd/enter/{room}", "404 404 404 404 404 404", {"ticket": "forged"}, form=True),
    Row("GET", WORK, OPEN),  # the same words for everybody; what it shows it asks the API for
    Row("GET", LINK, OPEN),
    Row("POST", LINK, "400 400 400 400 400 400", {"token": "forged"}, form=True),  # without a cookie
    Row("DELETE", LINK, "204 204 204 204 204 204"),
    Row("GET", "/rate", OPEN),
    Row("GET", "/rate/{dataset:uuid}", OPEN),  # a page without anything of any dataset; it asks the API, as its reader
    *(Row("GET", f"{WORK}/{name}", OPEN) for name in ("beside.js", "beside.css")),
    Row("GET", "/{path}", OPEN),  # Argilla's own pages: the same files for everybody
]
TABLE = [*READS, *CHANGES, *PAGES]
