"""Many raters at once on the same records: what a client was told is what the server holds, also after a kill.

Each rater remembers the server's last acknowledged word on each record. Whenever nobody writes, everything that the
server says (records, responses, progress, each rater's own counts and queue) is compared with these.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import secrets
import signal
import sqlite3
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from annotation.server import URL_VARIABLE, Connection, Home, User, credentials, database, running
from tests.annotation.argilla_site import Api, Campaign, Site, eventually, response_status, term
from tests.annotation.server.postgres_site import postgres_url  # noqa: F401  # a fixture
from tests.scale import scaled

RATERS = scaled(6, 32)
PROCESSES = 2  #: of the server on PostgreSQL
STATUSES = ("submitted", "discarded", "draft")
#: Half of the raters' actions submit, so half of the raters as the wanted number puts every count next to the edge.
ACTIONS = ("submit", "submit", "submit", "upsert", "discard", "draft", "delete", "delete")
PENDING = {
    "filters": {"and": [*response_status("pending"), term({"entity": "record", "property": "status"}, "pending")]}
}
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # loading certificates for each client takes longer than a round


@dataclass
class Rater:
    """A person with the page open: sends what Argilla's page sends, and remembers what was acknowledged."""

    user: User
    id: str
    client: httpx.Client
    told: dict[str, dict[str, Any]] = field(default_factory=dict)  #: record's id to the response, as last acknowledged
    codes: Counter[int] = field(default_factory=Counter)

    def call(self, method: str, path: str, body: Any = None) -> httpx.Response:
        answer = self.client.request(method, path, json=body)
        self.codes[answer.status_code] += 1
        return answer

    def act(self, action: str, record: str, rating: int) -> None:
        """One action on one record; anything but the expected answer fails."""
        known = self.told.get(record)
        if action == "delete":
            if known is not None:
                answer = self.call("DELETE", f"responses/{known['id']}")
                assert answer.status_code == 200, answer.text
                del self.told[record]
            return
        status = {"discard": "discarded", "draft": "draft"}.get(action, "submitted")
        body = {"status": status, "values": {name: {"value": rating} for name in ("quality", "fluency")}}
        if action == "upsert":
            answer = self.call("POST", "me/responses/bulk", {"items": [{"record_id": record, **body}]})
            assert answer.status_code == 200, answer.text
            (item,) = answer.json()["items"]
            assert item["error"] is None, item
            self.told[record] = item["item"]
        elif known is None:
            answer = self.call("POST", f"records/{record}/responses", body)
            assert answer.status_code == 201, answer.text
            self.told[record] = answer.json()
        else:
            answer = self.call("PUT", f"responses/{known['id']}", body)
            assert answer.status_code == 200, answer.text
            self.told[record] = answer.json()
        assert self.told[record]["status"] == status


@dataclass
class Arena:
    """A server of its own that can be killed and started again, and its raters."""

    home: Home
    workers: int = 1
    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    raters: list[Rater] = field(default_factory=list)

    def open(self) -> None:
        """Start the server; the raters' clients learn the new address."""
        connection = self.stack.enter_context(running(self.home, workers=self.workers))
        self.owner = self.client(connection, credentials(self.home).owner)
        self.site = Site(self.home, connection, Api(connection, credentials(self.home).owner), [])
        for rater in self.raters:
            rater.client = self.client(connection, rater.user)

    def client(self, connection: Connection, user: User) -> httpx.Client:
        """A client that keeps its connection open, as a browser does, until the server ends."""
        headers = {"X-Argilla-Api-Key": user.api_key}
        url = f"{connection.url}/api/v1/"
        made = httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=60.0, verify=NO_TLS)
        return self.stack.enter_context(made)

    def kill(self) -> None:
        os.kill(json.loads(self.home.state.read_text(encoding="utf-8"))["pid"], signal.SIGKILL)

    def register(self) -> None:
        """Make the raters' accounts in the database itself: hashing a password, which nobody types, takes 0.25 s."""
        for number in range(RATERS):
            user = User(f"rater{number}", "never typed", secrets.token_urlsafe(24))
            one = uuid4()
            self.write(
                "INSERT INTO users (id, first_name, username, role, api_key, password_hash, inserted_at, updated_at)"  # noqa: S608
                f" SELECT '{one.hex}', 'R', '{user.username}', 'annotator', '{user.api_key}', 'none', inserted_at,"
                f" updated_at FROM users WHERE username = '{credentials(self.home).owner.username}';"
            )
            rater = Rater(user, str(one), self.client(self.site.connection, user))
            assert rater.client.get("me").json()["id"] == rater.id
            self.raters.append(rater)

    def write(self, sql: str) -> None:
        if (address := database.address_of(self.home)) is not None:
            database.query(address, sql)
            return
        with contextlib.closing(sqlite3.connect(self.home.database)) as connection, connection:
            connection.execute(sql)

    def wrong(self) -> int:
        """How many records on PostgreSQL are pending though they have enough answers."""
        asked = (
            "SELECT count(*) FROM records r JOIN datasets d ON d.id = r.dataset_id WHERE r.status = 'pending' AND"
            " (SELECT count(*) FROM responses a WHERE a.record_id = r.id AND a.status = 'submitted')"
            " >= (d.distribution ->> 'min_submitted')::int;"
        )
        return int(database.query(database.address_of(self.home) or "", asked)[0][0])

    def publish(self, name: str, records: int, enough: int) -> Campaign:
        """A dataset that every rater may answer; what raters remember of others is of no use any more."""
        campaign = self.site.publish(name, records, enough)
        for rater in self.raters:
            assert self.owner.post(self.members(name), json={"user_id": rater.id}).status_code == 201
            rater.told.clear()
            rater.codes.clear()
        return campaign

    def members(self, name: str) -> str:
        workspaces = {one["name"]: one["id"] for one in self.owner.get("me/workspaces").json()["items"]}
        return f"workspaces/{workspaces[f'ws-{name}']}/users"

    def passes(self, seconds: int) -> None:
        """Make everything that was handed out so much older."""
        with contextlib.closing(sqlite3.connect(self.home.path / "tmp" / "handed.db", isolation_level=None)) as handed:
            handed.execute("UPDATE held SET at = at - ?", (seconds,))

    def at_once(self, work: Callable[[Rater], None]) -> None:
        """Every rater does `work` at the same time; the first failure is raised when all have ended."""
        barrier = threading.Barrier(len(self.raters))

        def start(rater: Rater) -> None:
            barrier.wait()
            work(rater)

        with ThreadPoolExecutor(len(self.raters)) as pool:
            list(pool.map(start, self.raters))
        codes = sum((rater.codes for rater in self.raters), Counter[int]())
        assert not [code for code in codes if code >= 500], codes


# Both databases have to count rightly, each by locks of its own, PostgreSQL with several processes of the server; what
# a client sees else is the same code.
ON_BOTH = pytest.mark.parametrize("arena", ["sqlite", "postgres"], indirect=True, scope="module")
ON_POSTGRES = pytest.mark.parametrize("arena", ["postgres"], indirect=True, scope="module")
ON_SQLITE = pytest.mark.parametrize("arena", ["sqlite"], indirect=True, scope="module")


@pytest.fixture(scope="module")
def arena(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    made = Arena(Home(tmp_path_factory.mktemp("concurrency") / "home"))
    with made.stack, pytest.MonkeyPatch.context() as patch:
        if request.param == "postgres":
            patch.setenv(URL_VARIABLE, request.getfixturevalue("postgres_url"))
            made.workers = PROCESSES
        made.open()
        made.register()
        yield made


def records_of(arena: Arena, campaign: Campaign) -> list[dict[str, Any]]:
    path = f"datasets/{campaign.dataset}/records"
    return list(arena.owner.get(path, params={"limit": 1000, "include": "responses"}).json()["items"])


def responses_by(records: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """Every response by record and user; a second one of the same user on the same record fails."""
    every = [((record["id"], one["user_id"]), one) for record in records for one in record["responses"]]
    assert len(dict(every)) == len(every), "a rater has two responses on one record"
    return dict(every)


def check_counts(arena: Arena, campaign: Campaign, records: list[dict[str, Any]], enough: int) -> None:
    """Every count of the server against its own responses: record statuses, and progress in all and by user."""
    status = {}
    for record in records:
        submitted = sum(one["status"] == "submitted" for one in record["responses"])
        status[record["id"]] = "completed" if submitted >= enough else "pending"
    assert {record["id"]: record["status"] for record in records} == status
    in_all = Counter(status.values())
    progress = arena.owner.get(f"datasets/{campaign.dataset}/progress").json()
    del progress["users"]  # names only; their counts come next
    assert progress == {"total": len(records), "completed": in_all["completed"], "pending": in_all["pending"]}

    given = responses_by(records)
    shown = arena.owner.get(f"datasets/{campaign.dataset}/users/progress").json()["users"]
    by_name = {one.pop("username"): one for one in shown}
    for rater in arena.raters:
        mine = {record: one["status"] for (record, user), one in given.items() if user == rater.id}
        counted = Counter((status[record], own) for record, own in mine.items())
        expected = {one: {own: counted[one, own] for own in STATUSES} for one in ("completed", "pending")}
        assert by_name.pop(rater.user.username, {one: dict.fromkeys(STATUSES, 0) for one in expected}) == expected
        metrics = rater.client.get(f"me/datasets/{campaign.dataset}/metrics").json()["responses"]
        own = Counter(mine.values())
        left = len(records) - len(mine)  # to Argilla, what this rater has not answered, completed by others or not
        assert metrics == {**{one: own[one] for one in STATUSES}, "pending": left, "total": len(records)}
    assert by_name == {}


def check_told(arena: Arena, records: list[dict[str, Any]]) -> None:
    """What the server holds is what the raters were told: nothing lost, nothing twice, nothing that nobody gave."""
    told = {(record, rater.id): one for rater in arena.raters for record, one in rater.told.items()}
    held = responses_by(records)
    assert held.keys() == told.keys()
    parts = ("id", "status", "values", "inserted_at", "updated_at")
    for key, one in told.items():
        assert [held[key][part] for part in parts] == [one[part] for part in parts]


@ON_BOTH
def test_raters_submit_discard_and_delete_on_the_same_records(arena: Arena) -> None:
    enough = RATERS // 2
    campaign = arena.publish("rounds", records=4, enough=enough)
    ids = list(campaign.ids.values())
    seen: set[str] = set()
    for number, status in enumerate(STATUSES):

        def work(rater: Rater, number: int = number) -> None:
            draw = random.Random(f"{number} {rater.user.username}")
            # All of them on one record at a time, or each in an order of its own.
            for record in ids if number % 2 else draw.sample(ids, len(ids)):
                rater.act(draw.choice(ACTIONS), record, draw.randint(1, 5))

        arena.at_once(work)
        records = records_of(arena, campaign)
        check_told(arena, records)
        check_counts(arena, campaign, records, enough)
        seen |= {record["status"] for record in records}
        for rater in arena.raters:  # what is committed, the next search finds
            query = {"filters": {"and": response_status(status)}}
            found = rater.call("POST", f"me/datasets/{campaign.dataset}/records/search", query).json()
            mine = {record for record, one in rater.told.items() if one["status"] == status}
            assert found["total"] == len(mine) and {one["record"]["id"] for one in found["items"]} == mine
    assert seen == {"completed", "pending"}  # else the counts were never near the edge


def processes(arena: Arena) -> set[int]:
    """The processes that serve, on PostgreSQL."""
    parent = json.loads(arena.home.state.read_text(encoding="utf-8"))["pid"]
    return {int(one) for one in Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="utf-8").split()}


@ON_POSTGRES
def test_a_killed_process_loses_nothing_and_no_pair_is_served_beyond_its_quota(arena: Arena) -> None:
    enough, size = 3, scaled(12, 60)
    campaign = arena.publish("quota", records=size, enough=enough)
    told: Counter[str] = Counter()  # acknowledged answers by record
    complete: dict[str, float] = {}  # when the last of them that it needs was acknowledged
    lock = threading.Lock()

    def answer(rater: Rater) -> bool:
        """Take the next pair and answer it; False at the end of the queue."""
        begun = time.monotonic()
        found = rater.call("POST", f"me/datasets/{campaign.dataset}/records/search?limit=1", PENDING).json()["items"]
        if not found:
            return False
        record = found[0]["record"]["id"]
        assert begun < complete.get(record, begun + 1), "a pair that was complete before was served"
        body = {"status": "submitted", "values": {name: {"value": 4} for name in ("quality", "fluency")}}
        made = rater.call("POST", f"records/{record}/responses", body)
        assert made.status_code in {201, 409}, made.text
        with lock:
            if made.status_code == 201:
                rater.told[record] = made.json()
            told[record] += made.status_code == 201
            if told[record] == enough:
                complete[record] = time.monotonic()
        return True

    def work(rater: Rater) -> None:
        go_on = True
        while go_on:
            with contextlib.suppress(httpx.TransportError):  # the process was killed: another one is asked
                go_on = answer(rater)

    before = processes(arena)
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(arena.at_once, work)
        assert eventually(lambda: told.total() >= size)
        os.kill(max(before), signal.SIGKILL)
        done.result()
    assert eventually(lambda: len(processes(arena)) == PROCESSES and processes(arena) != before)
    # An answer that was stored and not counted is counted by the parent.
    assert eventually(lambda: {record["status"] for record in records_of(arena, campaign)} == {"completed"})
    records = records_of(arena, campaign)
    held = responses_by(records)
    for rater in arena.raters:
        assert all(held[record, rater.id]["id"] == one["id"] for record, one in rater.told.items())
    # What the kill cut off may be there without an acknowledgement: at most one answer of each rater.
    assert len(held) - told.total() <= len(arena.raters)
    assert {len(record["responses"]) for record in records} == {enough}
    check_counts(arena, campaign, records, enough)


@ON_BOTH
def test_no_pair_is_in_more_hands_than_it_wants_answers(arena: Arena) -> None:
    """Nor while one of the raters is taken out with ten pairs on the screen, which go to others, and let in again."""
    enough, size = 2, scaled(15, 100)
    campaign = arena.publish("hands", records=size, enough=enough)
    leaver = arena.raters[0]
    members = arena.members("hands")
    at_end = time.monotonic() + 300  # well before pairs return by themselves

    def progress(rater: Rater) -> tuple[int, int, int]:
        own = rater.client.get(f"datasets/{campaign.dataset}/progress").json()
        return own["total"], own["completed"], own["pending"]

    def queue(rater: Rater, offset: int) -> list[str]:
        path = f"me/datasets/{campaign.dataset}/records/search?limit=10&offset={offset}"
        return [one["record"]["id"] for one in rater.call("POST", path, PENDING).json()["items"]]

    def work(rater: Rater) -> None:
        """As Argilla's page: ten pairs at a time, and more when five are left, until all is answered."""
        left: list[str] = []
        while True:
            if len(left) <= 5:
                found = queue(rater, len(left))
                assert not set(found) & set(rater.told)
                left += [one for one in found if one not in left]
            if left:
                rater.act("submit", left.pop(0), 3)
            elif progress(rater) == (size, size, 0):  # else what others hold may come back
                break
            assert time.monotonic() < at_end
            if rater is leaver and len(rater.told) == 2:
                break
        if rater is leaver:
            assert arena.owner.delete(f"{members}/{rater.id}").status_code == 200
            assert rater.client.get(f"me/datasets/{campaign.dataset}/metrics").status_code == 403

    assert len(queue(leaver, 0)) == 10
    arena.at_once(work)
    assert arena.owner.post(members, json={"user_id": leaver.id}).status_code == 201
    assert not queue(leaver, 0) and progress(leaver) == (size, size, 0)
    records = records_of(arena, campaign)
    check_told(arena, records)
    check_counts(arena, campaign, records, enough)
    # Without it, each of the raters would be handed ten pairs before anybody has answered one.
    assert {len(record["responses"]) for record in records} == {enough}


@ON_POSTGRES
def test_what_is_handed_out_and_not_answered_goes_to_others_after_a_while(arena: Arena) -> None:
    campaign = arena.publish("left", records=1, enough=1)
    (record,) = campaign.ids.values()

    def sees(rater: Rater) -> tuple[list[str], int]:
        found = rater.call("POST", f"me/datasets/{campaign.dataset}/records/search", PENDING).json()
        progress = rater.client.get(f"datasets/{campaign.dataset}/progress").json()
        assert len(found["items"]) == found["total"] == progress["pending"]
        return [one["record"]["id"] for one in found["items"]], progress["completed"]

    first, second = arena.raters[:2]
    assert sees(first) == ([record], 0)
    assert sees(second) == ([], 0) and sees(first) == ([record], 0)  # neither left nor completed: it may come back
    assert arena.owner.get(f"datasets/{campaign.dataset}/progress").json()["pending"] == 1
    arena.passes(1201)
    assert sees(second) == ([record], 0)
    assert sees(first) == ([], 0)  # whose page may show it still: the answer counts, and is one too many
    first.act("submit", record, 5)
    assert sees(second) == ([], 1)


@ON_POSTGRES
def test_who_goes_on_keeps_what_was_handed_out_and_so_does_who_saves_a_draft(arena: Arena) -> None:
    campaign = arena.publish("slow", records=3, enough=1)
    slow, other = arena.raters[:2]

    def sees(rater: Rater, page: str = "limit=10") -> set[str]:
        found = rater.call("POST", f"me/datasets/{campaign.dataset}/records/search?{page}", PENDING).json()
        return {one["record"]["id"] for one in found["items"]}

    first = sees(slow, "limit=1")
    arena.passes(1100)
    second = sees(slow, "limit=1&offset=1")  # as Argilla's page: what comes after the ones that it has
    arena.passes(1100)
    assert sees(other) == set(campaign.ids.values()) - first - second and len(first | second) == 2
    slow.act("draft", min(first), 4)
    assert sees(other) & first == set()
    arena.passes(1201)
    assert sees(other) == set(campaign.ids.values())


@ON_POSTGRES
def test_what_one_process_changes_all_processes_know(arena: Arena) -> None:
    campaign = arena.publish("members", records=1, enough=1)
    rater, other = arena.raters[:2]

    def codes(path: str) -> Counter[int]:
        found: Counter[int] = Counter()
        for _ in range(12):  # the system gives each connection to one of the processes
            fresh = arena.client(arena.site.connection, rater.user)
            found[fresh.get(path).status_code] += 1
            fresh.close()
        return found

    records = f"datasets/{campaign.dataset}/records?limit=1"
    me = f"me/datasets/{campaign.dataset}/metrics"
    assert codes(me) == {200: 12} and codes(records) == {403: 12}
    assert arena.owner.delete(f"{arena.members('members')}/{rater.id}").status_code == 200
    assert codes(me) == {403: 12}
    assert other.client.get(me).status_code == 200


@ON_POSTGRES
def test_jobs_of_a_killed_process_are_run_again_by_the_one_in_its_place(arena: Arena) -> None:
    campaign = arena.publish("jobs", records=1, enough=1)
    arena.raters[0].act("submit", campaign.ids["p0"], 3)
    arena.write("UPDATE records SET status = 'pending';")  # which the recount puts right
    assert arena.wrong() > 1  # those of other datasets as well
    jobs = [(f"job-{worker}", json.dumps([[{"$uuid": campaign.dataset}], {}]), worker) for worker in range(PROCESSES)]
    with contextlib.closing(sqlite3.connect(arena.home.path / "jobs.db", isolation_level=None)) as journal:
        journal.executemany(
            "INSERT INTO jobs (id, name, arguments, status, changed, worker)"
            " VALUES (?, 'update_dataset_records_status_job', ?, 'started', 0, ?)",
            jobs,
        )
        os.kill(max(processes(arena)), signal.SIGKILL)  # either: numbers of processes begin again at the largest

        def statuses() -> dict[str, str]:
            return dict(journal.execute("SELECT id, status FROM jobs WHERE id LIKE 'job-%'"))

        assert eventually(lambda: sorted(statuses().values()) == ["finished", "started"])
        assert [one["status"] for one in records_of(arena, campaign)] == ["completed"]
        # What that process may have answered and not counted is counted by the others' parent, of all datasets.
        assert eventually(lambda: arena.wrong() == 0)
        journal.execute("DELETE FROM jobs WHERE id LIKE 'job-%'")


@ON_BOTH
def test_a_rater_with_two_windows_has_one_response(arena: Arena) -> None:
    campaign = arena.publish("windows", records=1, enough=RATERS)
    (record,) = campaign.ids.values()
    outcomes: list[list[int]] = []

    def both_windows(rater: Rater) -> None:
        body = {"status": "submitted", "values": {name: {"value": 3} for name in ("quality", "fluency")}}
        with ThreadPoolExecutor(2) as windows:
            answers = list(windows.map(lambda _: rater.call("POST", f"records/{record}/responses", body), range(2)))
        outcomes.append(sorted(answer.status_code for answer in answers))
        (rater.told[record],) = [answer.json() for answer in answers if answer.status_code == 201]

    arena.at_once(both_windows)
    assert outcomes == [[201, 409]] * RATERS
    records = records_of(arena, campaign)
    check_told(arena, records)
    check_counts(arena, campaign, records, RATERS)
    assert [one["status"] for one in records] == ["completed"]


@ON_SQLITE
def test_a_kill_among_submissions_loses_nothing_that_was_acknowledged(arena: Arena) -> None:
    campaign = arena.publish("kill", records=40, enough=2)
    ids = list(campaign.ids.values())
    started: set[tuple[str, str]] = set()

    def submit_on(rater: Rater) -> None:
        draw = random.Random(rater.user.username)
        for record in draw.sample(ids, len(ids)):
            started.add((record, rater.id))
            try:
                rater.act("submit", record, draw.randint(1, 5))
            except httpx.TransportError:
                return  # no acknowledgement, no promise

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(arena.at_once, submit_on)
        assert eventually(lambda: sum(len(rater.told) for rater in arena.raters) >= 100)
        arena.kill()
        done.result()
    arena.stack.close()

    told = {(record, rater.id): one for rater in arena.raters for record, one in rater.told.items()}
    assert 100 <= len(told) < RATERS * len(ids)
    with contextlib.closing(sqlite3.connect(arena.home.database)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    arena.open()
    records = records_of(arena, campaign)
    held = responses_by(records)
    assert all((held[key]["id"], held[key]["values"]) == (one["id"], one["values"]) for key, one in told.items())
    assert held.keys() <= started  # a submission that the kill cut off is there whole, or not at all
    assert all(one["status"] == "submitted" and len(one["values"]) == 2 for one in held.values())
    check_counts(arena, campaign, records, 2)
