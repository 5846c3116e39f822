"""Answers that are stored without Argilla's objects are those that Argilla's own handler stores.

With an enabled webhook Argilla's handler answers each request, so both are compared on one server.
"""

from __future__ import annotations

import contextlib
import fcntl
import sqlite3
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from queue_site import person
from servers import Server

LABELS = [{"value": name, "text": name} for name in ("a", "b", "c")]
QUESTIONS: dict[str, dict[str, Any]] = {
    "rating": {"type": "rating", "options": [{"value": number} for number in range(1, 6)]},
    "label": {"type": "label_selection", "options": LABELS},
    "labels": {"type": "multi_label_selection", "options": LABELS},
    "ranking": {"type": "ranking", "options": LABELS},
    "comment": {"type": "text"},
    "span": {"type": "span", "field": "text", "options": LABELS, "allow_overlapping": False},
}
REQUIRED = "rating"
RANKED = [{"value": name, "rank": rank} for rank, name in enumerate("abc", 1)]
VALUES: dict[str, list[Any]] = {
    "rating": [1, 5, 0, 6, "3", 3.5, True, None, [3], {"value": 3}, 10**30],
    "label": ["a", "d", "", 1, ["a"], None],
    "labels": [["a"], ["a", "b"], [], ["a", "a"], ["d"], "a", [1], None],
    "ranking": [RANKED, RANKED[:2], [{**RANKED[0], "rank": 4}, *RANKED[1:]], [RANKED[0]] * 3, ["a"], [], "a"],
    "comment": ["text", "", "\u00e4\U0001f600", "=1+1", "\x07", 3, ["text"], None],
    "span": [
        [{"label": "a", "start": 0, "end": 4}], [], [{"label": "d", "start": 0, "end": 4}],
        [{"label": "a", "start": 0, "end": 999}], [{"label": "a", "start": 3, "end": 3}],
        [{"label": "a", "start": 0, "end": 4}, {"label": "b", "start": 2, "end": 5}], [{"label": "a"}], "a",
    ],
}  # fmt: skip
BODIES: list[Any] = [
    {"status": "submitted", "values": {REQUIRED: {"value": 3}}},
    {"status": "submitted"}, {"status": "submitted", "values": {}}, {"status": "submitted", "values": None},
    {"status": "submitted", "values": {"comment": {"value": "without the required"}}},
    {"status": "submitted", "values": {REQUIRED: {"value": 3}, "unknown": {"value": 3}}},
    {"status": "submitted", "values": {REQUIRED: 3}}, {"status": "submitted", "values": [3]},
    {"status": "submitted", "values": {REQUIRED: {"value": 3, "more": 1}}, "more": 2},
    {"status": "draft"}, {"status": "draft", "values": {}}, {"status": "draft", "values": {"comment": {"value": "x"}}},
    {"status": "draft", "values": {"unknown": {"value": 3}}},
    {"status": "discarded"}, {"status": "discarded", "values": {REQUIRED: {"value": 9}}},
    {"status": "pending"}, {"status": None}, {"values": {}}, {}, [], None, "submitted", 3,
    *({"status": status, "values": {REQUIRED: {"value": 3}, name: {"value": value}}}
      for status in ("submitted", "draft") for name, values in VALUES.items() for value in values),
]  # fmt: skip


def test_every_answer_is_stored_or_refused_as_argilla_does(served: Callable[[bool], Server]) -> None:
    server = served(True)
    workspace = server.done("POST", "workspaces", {"name": "alike"})["id"]
    key = person(server, "alike", workspace)
    ours = _answered(server, _dataset(server, workspace, "ours"), key)
    with _webhook(server):
        theirs = _answered(server, _dataset(server, workspace, "theirs"), key)
    assert ours == theirs
    stored = [row for _, _, row in ours if row is not None]
    assert 30 < len(stored) < len(BODIES) - 30
    assert {row["status"] for row in stored} == {"submitted", "draft", "discarded"}


def test_who_may_not_answer_is_refused_as_argilla_does(served: Callable[[bool], Server]) -> None:
    server = served(True)
    inside, outside = (server.done("POST", "workspaces", {"name": name})["id"] for name in ("inside", "outside"))
    keys = {
        "member": person(server, "member", inside), "stranger": person(server, "stranger", outside),
        "admin": person(server, "admin", outside, "admin"), "owner": "", "nobody": "unknown.key",
    }  # fmt: skip
    found: dict[str, list[Any]] = {}
    for handler, watching in (("ours", contextlib.nullcontext()), ("theirs", _webhook(server))):
        with watching:
            _, (record, *_) = _dataset(server, inside, f"rights-{handler}")
            found[handler] = [
                server.call("POST", f"records/{where}/responses", BODIES[0], key).status_code
                for key in keys.values() for where in (record, record, uuid.uuid4(), "no-id")
            ]  # fmt: skip
    assert found["ours"] == found["theirs"]
    assert found["ours"] == [201, 409, 404, 422, 403, 403, 404, 422, 403, 403, 404, 422, 201, 409, 404, 422, *[401] * 4]


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize(
    ("change", "status"),
    [("UPDATE users SET role = 'annotator' WHERE username = ?", 403), ("DELETE FROM users WHERE username = ?", 401)],
)
def test_an_answer_is_refused_whose_sender_lost_the_right_while_it_waited_for_its_turn(
    served: Callable[[bool], Server], change: str, status: int, *, watched: bool
) -> None:
    server, name = served(True), f"late-{status}-{watched}"
    inside, outside = (server.done("POST", "workspaces", {"name": f"{name}-{where}"})["id"] for where in ("in", "out"))
    key, (made, (record, *_)) = person(server, name, outside, "owner"), _dataset(server, inside, name)
    with _webhook(server) if watched else contextlib.nullcontext(), ThreadPoolExecutor(1) as pool:
        with (server.home / "tmp" / "entrance").open() as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            sent = pool.submit(server.call, "POST", f"records/{record}/responses", BODIES[0], key)
            time.sleep(0.5)
            with contextlib.closing(sqlite3.connect(server.home / "argilla.db")) as database, database:
                database.execute("PRAGMA foreign_keys = ON")
                assert database.execute(change, (name,)).rowcount == 1
        assert sent.result().status_code == status
    assert server.done("GET", f"datasets/{made}/progress")["pending"] == len(BODIES)


@pytest.mark.parametrize("wanted", [1, 2])
def test_a_record_is_complete_with_as_many_answers_as_it_wants(served: Callable[[bool], Server], wanted: int) -> None:
    server = served(True)
    workspace = server.done("POST", "workspaces", {"name": f"counted-{wanted}"})["id"]
    made, (record, *_) = _dataset(server, workspace, "counted", wanted)
    before = server.done("GET", f"datasets/{made}")
    for number in range(wanted):
        assert server.done("GET", f"records/{record}")["status"] == "pending"
        key = person(server, f"rater-{wanted}-{number}", workspace)
        server.done("POST", f"records/{record}/responses", BODIES[0], key)
    assert server.done("GET", f"records/{record}")["status"] == "completed"
    after = server.done("GET", f"datasets/{made}")
    assert after["last_activity_at"] > before["last_activity_at"] and after["updated_at"] == before["updated_at"]
    team = server.done("GET", f"datasets/{made}/users/progress")["users"]
    assert [user["completed"]["submitted"] for user in team] == [1] * wanted


def _dataset(server: Server, workspace: str, name: str, wanted: int = 1) -> tuple[str, list[str]]:
    """A published dataset with questions of all types; its id and those of its records."""
    body = {"name": name, "workspace_id": workspace, "distribution": {"strategy": "overlap", "min_submitted": wanted}}
    made = str(server.done("POST", "datasets", body)["id"])
    text = {"name": "text", "title": "Text", "required": True, "settings": {"type": "text"}}
    server.done("POST", f"datasets/{made}/fields", text)
    for question, settings in QUESTIONS.items():
        asked = {"name": question, "title": question, "required": question == REQUIRED, "settings": settings}
        server.done("POST", f"datasets/{made}/questions", asked)
    server.done("PUT", f"datasets/{made}/publish")
    items = [{"fields": {"text": f"text {number}"}} for number in range(len(BODIES))]
    bulk = server.done("POST", f"datasets/{made}/records/bulk", {"items": items})["items"]
    return made, [record["id"] for record in bulk]


def _answered(server: Server, dataset: tuple[str, list[str]], key: str) -> list[tuple[int, Any, Any]]:
    """The status, the reply and the stored row of each body, without what is drawn or a time."""
    found = []
    for record, body in zip(dataset[1], BODIES, strict=True):
        reply = server.call("POST", f"records/{record}/responses", body, key)
        told = reply.json()
        with contextlib.closing(sqlite3.connect(server.home / "argilla.db")) as database:
            database.row_factory = sqlite3.Row
            row = database.execute(
                'SELECT r."values", r.status, r.inserted_at = r.updated_at AS new, s.status AS record'
                " FROM responses r JOIN records s ON s.id = r.record_id WHERE s.id = ?",
                (uuid.UUID(record).hex,),
            ).fetchone()
        if reply.is_success:
            assert told.pop("record_id") == record and told.pop("inserted_at") == told.pop("updated_at")
            assert uuid.UUID(told.pop("id")) and uuid.UUID(told.pop("user_id"))
        found.append((reply.status_code, told, None if row is None else dict(row)))
    return found


@contextlib.contextmanager
def _webhook(server: Server) -> Any:
    """An enabled webhook, to which nobody listens."""
    body = {"url": "http://127.0.0.1:9/", "events": ["response.created"], "description": "nobody"}
    made = server.done("POST", "webhooks", body)["id"]
    try:
        yield
    finally:
        server.done("DELETE", f"webhooks/{made}")
