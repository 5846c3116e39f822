"""What Argilla itself does not do is off, and on where it is asked for."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from queue_site import answer, dataset, person, queue
from servers import Server


@pytest.mark.parametrize("asked", [False, True])
def test_records_are_handed_out_only_where_that_is_asked_for(served: Callable[[bool], Server], asked: bool) -> None:
    server = served(asked)
    workspace = server.done("POST", "workspaces", {"name": "handing"})["id"]
    ada, grace = (person(server, name, workspace) for name in ("ada", "grace"))
    made, records = dataset(server, workspace)
    assert set(queue(server, made, ada)) == set(records)
    assert set(queue(server, made, grace)) == (set() if asked else set(records))
    progress = server.done("GET", f"datasets/{made}/progress", key=grace)
    assert progress["completed"] == 0 and progress["pending"] == (0 if asked else 10)  # what ada has may come back
    ada_id = server.done("GET", "me", key=ada)["id"]
    server.done("DELETE", f"workspaces/{workspace}/users/{ada_id}")
    assert set(queue(server, made, grace)) == set(records)
    server.done("POST", f"workspaces/{workspace}/users", {"user_id": ada_id})
    assert set(queue(server, made, ada)) == (set() if asked else set(records))  # grace has them now
    server.done("DELETE", f"users/{server.done('GET', 'me', key=grace)['id']}")
    assert set(queue(server, made, ada)) == set(records)


@pytest.mark.parametrize("asked", [False, True])
def test_annotators_see_others_progress_unless_it_is_private(served: Callable[[bool], Server], asked: bool) -> None:
    server = served(asked)
    workspace = server.done("POST", "workspaces", {"name": "progress"})["id"]
    hedy, mary = (person(server, name, workspace) for name in ("hedy", "mary"))
    made, records = dataset(server, workspace, wanted=2)
    answer(server, records[0], hedy)
    team = server.done("GET", f"datasets/{made}/users/progress", key=mary)["users"]
    assert [user["username"] for user in team] == ([] if asked else ["hedy"])
    answer(server, records[0], mary)
    own = server.done("GET", f"datasets/{made}/progress", key=hedy)
    assert (own["total"], own["completed"], own["pending"]) == (10, 1, 9)
    # In searches Argilla itself shows annotators their own answers alone.
    search = f"me/datasets/{made}/records/search"
    shown = server.done("POST", search, {}, hedy, params={"include": "responses"})["items"]
    assert sum(len(item["record"]["responses"] or []) for item in shown) == 1


def test_argilla_is_as_it_is_without_hardening_and_an_address(served: Callable[[bool], Server]) -> None:
    plain, hard = served(False), served(True)
    body = {"username": "weak", "first_name": "W", "password": "12345678"}
    assert plain.call("POST", "users", body).status_code == 201
    assert hard.call("POST", "users", body).status_code == 422
    for server, status, framed in ((plain, 200, None), (hard, 404, "DENY")):
        assert server.client.get("/api/v1/openapi.json").status_code == status
        page = server.client.get("/sign-in")
        assert page.headers.get("x-frame-options") == framed
        assert ("content-security-policy" in page.headers) == (framed is not None)
        assert ("search_engine" in server.client.get("/api/v1/status").text) == (framed is None)
    large = plain.client.post("/api/v1/me/responses/bulk", content=b" " * 2**20)
    assert large.status_code in (401, 422)  # read to its end, and then refused, as this or that fastapi does
    refused = hard.client.post("/api/v1/me/responses/bulk", content=b" " * 2**20)
    assert refused.json()["detail"] == "sign in to send a request of this size"
    for host, status in (("argilla.example.org", 200), ("rebound.example", 421)):
        assert hard.client.get("/api/v1/version", headers={"Host": host}).status_code == status
