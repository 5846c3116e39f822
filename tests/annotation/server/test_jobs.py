"""Background jobs of the really started server: recounts, webhooks, the hub, and what a crash cuts off."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from annotation.server import Home, running
from annotation.server.home import is_locked
from tests.annotation.argilla_site import Site, enter, eventually

RECOUNT = "update_dataset_records_status_job"
ONE_IS_ENOUGH = {"distribution": {"strategy": "overlap", "min_submitted": 1}}


class Listener(ThreadingHTTPServer):
    """Takes webhooks; answers with `answer` and keeps what came."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = 500
        self.events: list[tuple[str, str]] = []  # type, signature
        self.url = f"http://127.0.0.1:{self.server_address[1]}/hook"


class Handler(BaseHTTPRequestHandler):
    server: Listener

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.events.append((body["type"], self.headers["webhook-signature"]))
        self.send_response(self.server.answer)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its name
        """Nothing on the console."""


@pytest.fixture
def listener() -> Iterator[Listener]:
    server = Listener()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running(Home(tmp_path_factory.mktemp("jobs") / "home")) as connection:
        yield enter(connection)


def jobs(home: Home, name: str) -> list[tuple[str, str, str | None]]:
    """The journal's jobs of a function: id, status, arguments."""
    with contextlib.closing(sqlite3.connect(home.path / "jobs.db")) as database:
        rows = database.execute("SELECT id, status, arguments FROM jobs WHERE name = ? ORDER BY number", (name,))
        return rows.fetchall()


def logged(home: Home) -> str:
    """The server's log in one line."""
    return " ".join(home.log.read_text(encoding="utf-8").split())


@contextlib.contextmanager
def refusing(home: Home, what: str) -> Iterator[None]:
    """The journal refuses what is written, as it does on a full disk; `what` is INSERT (a new job) or UPDATE."""
    with contextlib.closing(sqlite3.connect(home.path / "jobs.db", isolation_level=None)) as database:
        database.execute(f"CREATE TRIGGER no BEFORE {what} ON jobs BEGIN SELECT RAISE(ABORT, 'disk is full'); END")
        yield
        database.execute("DROP TRIGGER no")


def test_a_changed_number_of_answers_recounts_and_its_job_can_be_asked_for(site: Site) -> None:
    campaign = site.publish("recount", records=3, enough=2)
    site.raters[0].rate(campaign, "p0", 5)
    for enough, expected in ((1, "completed"), (3, "pending")):
        before = len(jobs(site.home, RECOUNT))
        body = {"distribution": {"strategy": "overlap", "min_submitted": enough}}
        site.owner("PATCH", f"datasets/{campaign.dataset}", body)
        assert len(jobs(site.home, RECOUNT)) == before + 1
        job_id = jobs(site.home, RECOUNT)[-1][0]
        done = {"id": job_id, "status": "finished"}
        assert eventually(lambda job_id=job_id, done=done: site.owner("GET", f"jobs/{job_id}") == done)  # type: ignore[misc]
        assert jobs(site.home, RECOUNT)[-1] == (job_id, "finished", None)
        assert site.statuses(campaign) == {"p0": expected, "p1": "pending", "p2": "pending"}


def test_a_webhook_that_failed_when_the_server_was_killed_is_sent_at_the_next_start(
    site: Site, listener: Listener
) -> None:
    campaign = site.publish("hooks", records=2, enough=2)
    site.raters[0].rate(campaign, "p1", 4)
    with refusing(site.home, "UPDATE"):  # a recount whose end is not noted is run again, too, beside the webhook
        site.owner("PATCH", f"datasets/{campaign.dataset}", ONE_IS_ENOUGH)
        assert eventually(lambda: "finished, but jobs.db cannot be written" in logged(site.home))
    assert site.statuses(campaign)["p1"] == "completed"
    hook = {"url": listener.url, "events": ["response.created"], "description": "test"}
    site.owner("POST", "webhooks", hook)
    site.raters[0].rate(campaign, "p0", 4)
    assert eventually(lambda: len(listener.events) == 1)
    name = "notify_event_job"
    assert eventually(lambda: [status for _, status, _ in jobs(site.home, name)] == ["scheduled"])
    ((job_id, _, _),) = jobs(site.home, name)
    assert site.owner("GET", f"jobs/{job_id}")["status"] == "scheduled"
    os.kill(json.loads(site.home.state.read_text(encoding="utf-8"))["pid"], signal.SIGKILL)
    assert eventually(lambda: not is_locked(site.home))
    with contextlib.closing(sqlite3.connect(site.home.path / "jobs.db")) as database, database:
        database.execute("UPDATE jobs SET worker = 3")  # as if the server had had more processes before
    listener.answer = 200
    with running(site.home) as connection:
        again = enter(connection)
        assert eventually(lambda: again.owner("GET", f"jobs/{job_id}")["status"] == "finished")
        assert eventually(lambda: {status for _, status, _ in jobs(site.home, RECOUNT)} == {"finished"})
    assert [event for event, _ in listener.events] == ["response.created"] * 2
    assert all(signature.startswith("v1,") for _, signature in listener.events)
    assert jobs(site.home, name) == [(job_id, "finished", None)]
