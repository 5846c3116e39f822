"""What every route of the served API shows to whom; and what an annotator learns of other annotators: nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import argilla as rg
import httpx
import pytest

from annotation.server import Home, ensure_environment, ensure_user, process, running
from tests import forks
from tests.annotation.server.route_table import API, ROLES, TABLE, Row

#: Builds the application as it is served and writes its routes: method, path, and of mounted files `/{path}`.
LISTING = """
import json, os, sys, time
from argilla_embedded import imports, launch
from argilla_embedded.recent import Recent
from argilla_embedded.setup import Switches
imports.leave_out_the_unused()
os.environ.update(launch.settings("http://127.0.0.1:1", "", "secret", True))
def walk(routes, before=""):
    for route in routes:
        path = before + getattr(route, "path", "?")
        if type(route).__name__ != "Mount":
            yield from ((method, path) for method in getattr(route, "methods", None) or [type(route).__name__])
        elif hasattr(route.app, "routes"):
            yield from walk(route.app.routes, path)
        else:
            yield "GET", path + "/{path}"
switches, plugins = Switches(True, True, True), ["plumbline_argilla.install:install"]
setup = launch.assembled("secret", Recent(time.monotonic), switches, plugins)
json.dump(sorted(walk(setup.app.routes)), sys.stdout)
"""


def test_every_route_is_in_the_table(tmp_path: Path) -> None:
    """An upgrade of Argilla that brings a route fails here until somebody has said who may see what."""
    variables = {name: os.environ[name] for name in process.PASSED_ON if name in os.environ}
    variables |= {"PYTHONPATH": os.pathsep.join(map(str, process.PATHS)), "PYTHONUNBUFFERED": "1"}
    command = [str(ensure_environment(print)), "-P", "-c", LISTING]
    with forks.PopenArgilla(command, cwd=tmp_path, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True) as listing:  # fmt: skip
        routes, trouble = listing.communicate()
    assert listing.returncode == 0, trouble
    told = {(row.method, row.path) for row in TABLE}
    heads = {("HEAD", path) for method, path in told if method == "GET"}  # the same without the answer's body
    assert {(method, path) for method, path in json.loads(routes)} - heads == told


@dataclass
class Stage:
    """A dataset that three raters answered, and a person of each role."""

    url: str
    keys: dict[str, str] = field(default_factory=dict)  #: by role; the stranger has none
    ids: dict[str, str] = field(default_factory=dict)  #: what stands in addresses, by the parameter's name
    secrets: dict[str, str] = field(default_factory=dict)  #: what belongs to the other rater and nobody else
    other_keys: dict[str, str] = field(default_factory=dict)  #: everybody's API key
    records: list[str] = field(default_factory=list)

    def call(self, role: str, method: str, path: str, **more: Any) -> httpx.Response:
        headers = {"X-Argilla-Api-Key": self.keys[role]} if role in self.keys else {}
        return httpx.request(method, f"{self.url}{path}", headers=headers, trust_env=False, timeout=30.0, **more)

    def api(self, role: str, method: str, path: str, body: Any = None, **params: Any) -> Any:
        answer = self.call(role, method, f"{API}/{path}", json=body, params=params)
        assert answer.is_success, (path, answer.text)
        return answer.json() if answer.content else None

    def ask(self, role: str, row: Row) -> httpx.Response:
        sent = {"data" if row.form else "json": self.filled(row.body)} if row.body is not None else {}
        return self.call(role, row.method, self.filled(row.path), params=self.filled(row.params), **sent)

    def filled(self, template: Any) -> Any:
        """With ids in the place of names in braces."""
        if isinstance(template, dict):
            return {key: self.filled(value) for key, value in template.items()}
        if isinstance(template, list):
            return [self.filled(value) for value in template]
        return re.sub(r"\{(\w+)\}", lambda m: self.ids[m[1]], template) if isinstance(template, str) else template


def build(stage: Stage) -> None:
    """Dataset with three records; `rater` and `grace` have answered the first, `grace` alone the others."""
    everyone = {user["username"]: user for user in stage.api("owner", "GET", "users")["items"]}
    here = stage.api("owner", "POST", "workspaces", {"name": "here"})["id"]
    there = stage.api("owner", "POST", "workspaces", {"name": "there"})["id"]
    room = stage.api("owner", "POST", "workspaces", {"name": "study-crowd-room"})["id"]
    for workspace, names in ((here, ("rater", "grace", "admin")), (there, ("foreign",)), (room, ("worker",))):
        for name in names:
            stage.api("owner", "POST", f"workspaces/{workspace}/users", {"user_id": everyone[name]["id"]})
    body = {"name": "set", "workspace_id": here, "distribution": {"strategy": "overlap", "min_submitted": 2}}
    dataset = stage.api("owner", "POST", "datasets", body)["id"]
    path = f"datasets/{dataset}"
    fields = stage.api("owner", "POST", f"{path}/fields",
                       {"name": "text", "title": "T", "required": True, "settings": {"type": "text"}})  # fmt: skip
    quality = stage.api("owner", "POST", f"{path}/questions", {
        "name": "quality", "title": "Q", "required": True,
        "settings": {"type": "rating", "options": [{"value": n} for n in range(1, 6)]}})  # fmt: skip
    stage.api("owner", "POST", f"{path}/questions", {"name": "comment", "title": "C", "settings": {"type": "text"}})
    length = stage.api("owner", "POST", f"{path}/metadata-properties",
                       {"name": "length", "title": "L", "settings": {"type": "integer"}})  # fmt: skip
    vector = stage.api("owner", "POST", f"{path}/vectors-settings", {"name": "v", "title": "V", "dimensions": 2})
    stage.api("owner", "PUT", f"{path}/publish")
    hint = {"question_id": quality["id"], "value": 3, "agent": "model"}
    items = [{"fields": {"text": f"text {n}"}, "external_id": f"p{n}", "metadata": {"length": n},
              "vectors": {"v": [1.0, n / 2]}, "suggestions": [hint]} for n in range(3)]  # fmt: skip
    made = stage.api("owner", "POST", f"{path}/records/bulk", {"items": items})["items"]
    stage.records = [one["id"] for one in made]
    given = [stage.api("grace", "POST", f"records/{record}/responses", answered(rating, "WRITTEN-BY-GRACE"))
             for rating, record in enumerate(stage.records, 3)]  # fmt: skip
    stage.api("rater", "POST", f"records/{stage.records[0]}/responses", answered(1, "written by the rater"))
    stage.api("owner", "POST", "webhooks", {"url": "http://127.0.0.1:9/nobody", "events": ["dataset.created"]})
    stage.ids = {
        "dataset_id": dataset, "workspace_id": here, "record_id": stage.records[0], "field_id": fields["id"],
        "question_id": quality["id"], "metadata_property_id": length["id"], "vector_settings_id": vector["id"],
        "response_id": given[0]["id"], "user_id": everyone["grace"]["id"], "job_id": "none", "provider": "none",
        "suggestion_id": stage.api("owner", "GET", f"records/{stage.records[0]}/suggestions")["items"][0]["id"],
        "webhook_id": stage.api("owner", "GET", "webhooks")["items"][0]["id"], "path": "sign-in",
        "room": "0123456789abcdef-sandbox",
    }  # fmt: skip
    stage.secrets = {"name": "grace", "first name": "Gracious", "id": everyone["grace"]["id"],
                     "response": given[1]["id"], "comment": "WRITTEN-BY-GRACE"}  # fmt: skip
    stage.other_keys = {name: user["api_key"] for name, user in everyone.items()}


def answered(rating: int, comment: str) -> dict[str, Any]:
    return {"status": "submitted", "values": {"quality": {"value": rating}, "comment": {"value": comment}}}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with running(Home(tmp_path_factory.mktemp("argilla") / "home")) as connection:
        names = ("rater", "grace", "foreign", "worker", "admin")
        users = {name: ensure_user(connection, name, "Gracious" if name == "grace" else name.title(),
                                   role="admin" if name == "admin" else "annotator") for name in names}  # fmt: skip
        keys = {name: user.api_key for name, user in users.items()} | {"owner": connection.api_key}
        made = Stage(connection.url, keys)
        build(made)
        yield made


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.method} {row.path}")
def test_each_role_gets_from_each_route_what_the_table_says(stage: Stage, row: Row) -> None:
    for role in ROLES:
        if not (expected := row.expected(role)):
            continue
        answer = stage.ask(role, row)
        assert answer.status_code in expected, (role, answer.status_code, answer.text[:300])
        body = answer.text
        if role not in ("admin", "owner") and not row.form:  # a form that was sent comes back with what was sent
            shown = [what for what, secret in stage.secrets.items() if secret in body and secret not in str(row.body)]
            sent = [what for what in shown if stage.secrets[what] in str(stage.filled([row.body, row.path]))]
            assert set(shown) <= set(sent), (role, shown, body[:500])
        if role != "owner":
            keys = [name for name, key in stage.other_keys.items() if key in body and name != role]
            assert not keys, (role, keys)


def test_an_annotator_sees_own_answers_and_own_progress(stage: Stage) -> None:
    first, second, _ = stage.records
    bulk = {"items": [{"record_id": first, **answered(1, "written by the rater")}]}
    stage.api("rater", "POST", "me/responses/bulk", bulk)
    mine = stage.api("rater", "GET", f"records/{first}")["responses"]
    assert [one["values"]["comment"]["value"] for one in mine] == ["written by the rater"]
    assert stage.api("rater", "GET", f"records/{second}")["responses"] == []
    assert "WRITTEN-BY-GRACE" in str(stage.api("admin", "GET", f"records/{first}")["responses"])
    (refused,) = stage.api("foreign", "POST", "me/responses/bulk", bulk)["items"]
    assert refused["item"] is None and refused["error"]
    path = f"datasets/{stage.ids['dataset_id']}"
    assert [one["username"] for one in stage.api("rater", "GET", f"{path}/users/progress")["users"]] == ["rater"]
    assert "'grace'" in str(stage.api("owner", "GET", f"{path}/users/progress"))
    # Of three records the rater has answered one, which is complete by that; one more is not asked of this rater.
    own = stage.api("rater", "GET", f"{path}/progress")
    assert (own["total"], own["completed"], own["pending"]) == (3, 1, 2)
    assert [user["username"] for user in own["users"]] == ["rater"]
    theirs = stage.api("grace", "GET", f"{path}/progress")
    assert (theirs["total"], theirs["completed"], theirs["pending"]) == (3, 3, 0)
    team = stage.api("owner", "GET", f"{path}/progress")
    assert (team["total"], team["completed"], team["pending"]) == (3, 1, 2)
    assert stage.api("rater", "GET", f"me/{path}/metrics")["responses"]["submitted"] == 1


def test_nothing_that_an_annotator_can_ask_depends_on_others_answers(stage: Stage) -> None:
    path = f"me/datasets/{stage.ids['dataset_id']}/records/search"

    def found(**body: Any) -> list[str]:
        items = stage.api("rater", "POST", path, body, include="responses")["items"]
        return [item["record"]["external_id"] for item in items]

    def rated(*values: int) -> list[str]:
        scope = {"entity": "response", "question": "quality", "property": None}
        return found(filters={"and": [{"type": "terms", "scope": scope, "values": [str(one) for one in values]}]})

    def status(*values: str) -> list[str]:
        scope = {"entity": "response", "property": "status"}
        return found(filters={"and": [{"type": "terms", "scope": scope, "values": list(values)}]})

    bulk = {"items": [{"record_id": stage.records[0], **answered(1, "written by the rater")}]}
    stage.api("rater", "POST", "me/responses/bulk", bulk)
    assert rated(1) == ["p0"] and rated(3, 4, 5) == []  # grace gave 3, 4 and 5
    assert status("submitted") == ["p0"] and set(status("pending")) == {"p1", "p2"} and status("discarded") == []
    scope = {"entity": "response", "question": "quality", "property": None}
    up, down = (found(sort=[{"scope": scope, "order": order}]) for order in ("asc", "desc"))
    assert up == down == ["p0", "p1", "p2"]  # by own answers: only the first has one
    before = (found(), found(query={"text": {"q": "text"}}), found(query={"vector": {"name": "v", "value": [1, 0]}}))
    stage.api("grace", "POST", "me/responses/bulk",
              {"items": [{"record_id": stage.records[2], **answered(1, "WRITTEN-BY-GRACE")}]})  # fmt: skip
    after = (found(), found(query={"text": {"q": "text"}}), found(query={"vector": {"name": "v", "value": [1, 0]}}))
    assert before == after


def test_an_annotator_reads_nothing_of_others_through_the_sdk(stage: Stage) -> None:
    client = rg.Argilla(api_url=stage.url, api_key=stage.keys["rater"])
    dataset = client.datasets("set", workspace="here")
    assert dataset is not None
    with pytest.raises(rg._exceptions.ForbiddenError):
        list(dataset.records(with_responses=True))
    with pytest.raises(rg._exceptions.ForbiddenError):
        list(client.users)
    progress = dataset.progress(with_users_distribution=True)
    client.api.http_client.close()
    assert "grace" not in str(progress) and "rater" in str(progress)
