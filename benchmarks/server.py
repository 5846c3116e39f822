"""The local Argilla under a lab's load: eight raters at once, a queue of 50,000 records, and the way to a first pair.

Every server is a really started one in a temporary folder; what is measured is what a client waits for.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import socket
import sqlite3
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from annotation.server import Connection, Home, User, ensure_user, running
from benchmarks.registry import Measurement, benchmark

RATERS, PAIRS, ANSWERS = 8, 800, 3
SUBMISSIONS = PAIRS * ANSWERS // RATERS  #: of each rater
PACE = 0.95  #: seconds a pair; all of it takes SUBMISSIONS * PACE, which is a little less than five minutes
RECORDS, WORDS = 50_000, 40  #: a large dataset, and the words of one record
VOCABULARY = 20_000
REPEATS = 9
SIGN_INS = 5
IDLE = 1000  #: connections on which nothing is sent
QUESTIONS = ("quality", "fluency")
QUEUE = (("response", "pending"), ("record", "pending"))  #: what Argilla's page asks for
WORKSPACE = "benchmark"
Values = dict[str, dict[str, int]]
Starting = contextlib.AbstractContextManager[Connection]


@dataclass
class Rater:
    """A person who takes a pair from the queue, thinks, and submits; what the server acknowledged is kept."""

    user: User
    client: httpx.Client
    dataset: str
    told: dict[str, Values] = field(default_factory=dict)  #: record's id to the values that were acknowledged
    seconds: list[float] = field(default_factory=list)  #: of each submission
    errors: int = 0  #: answers 5xx, or none at all

    def rate(self, number: int) -> None:
        """Rate `number` pairs at PACE, or as many as the queue has; a late submission does not delay the next."""
        draw = random.Random(self.user.username)  # noqa: S311 (a simulation, no secret)
        start = time.perf_counter() + draw.random() * PACE
        for turn in range(number):
            record = self.next_record()
            if record is None:
                return
            due = start + (turn + draw.uniform(0.2, 0.8)) * PACE
            time.sleep(max(0.0, due - time.perf_counter()))
            self.submit(record, {name: {"value": draw.randint(1, 5)} for name in QUESTIONS})

    def next_record(self) -> str | None:
        """The first record of the queue, or None at its end."""
        for _ in range(3):
            answer = self.send("POST", f"me/datasets/{self.dataset}/records/search?limit=1", search(QUEUE))
            if answer is not None:
                items = answer.json()["items"]
                return str(items[0]["record"]["id"]) if items else None
        raise RuntimeError("the queue does not answer: nothing was measured")

    def submit(self, record: str, values: Values) -> None:
        """Submit one answer, as Argilla's page does, and time it."""
        start = time.perf_counter()
        answer = self.send("POST", f"records/{record}/responses", {"status": "submitted", "values": values})
        self.seconds.append(time.perf_counter() - start)
        if answer is not None:
            self.told[record] = values

    def send(self, method: str, path: str, body: Any) -> httpx.Response | None:
        """One call; None (and counted) when the server failed. Anything else that is refused is a fault of ours."""
        try:
            answer = self.client.request(method, path, json=body)
        except httpx.TransportError:
            self.errors += 1
            return None
        if answer.is_server_error:
            self.errors += 1
            return None
        if answer.status_code == httpx.codes.CONFLICT and self.errors:
            return None  # an answer that the server kept although it failed to say so
        answer.raise_for_status()
        return answer


@benchmark
def raters() -> Iterator[Measurement]:
    """Eight raters, 800 pairs, three answers a pair, about a second a pair: speed, and whether all was counted."""
    with site("raters", PAIRS) as (connection, dataset), contextlib.ExitStack() as stack:
        owner = stack.enter_context(client(connection, connection.api_key))
        accounts = users(connection, RATERS)
        people = [Rater(one, stack.enter_context(client(connection, one.api_key)), dataset) for one in accounts]
        with ThreadPoolExecutor(RATERS) as pool:
            list(pool.map(lambda one: one.rate(SUBMISSIONS), people))
        seconds = [one for person in people for one in person.seconds]
        if len(seconds) < PAIRS * ANSWERS * 0.9:
            raise RuntimeError(f"{len(seconds)} submissions of {PAIRS * ANSWERS}: nothing was measured")
        lost, wrong = audit(owner, people)
    p95 = statistics.quantiles(seconds, n=20)[-1] * 1000
    yield Measurement("server.p95_ms_8_raters", p95, "ms", at_most=120)
    yield Measurement("server.submissions_lost", lost, "answers", at_most=0)
    yield Measurement("server.wrong_counts", wrong, "counts", at_most=0)
    yield Measurement("server.answers_5xx", sum(one.errors for one in people), "answers", at_most=0)


def audit(owner: httpx.Client, people: Sequence[Rater]) -> tuple[int, int]:
    """Acknowledged answers that the server does not hold as given, and counts that its own answers contradict."""
    dataset = people[0].dataset
    records = owner.get(f"datasets/{dataset}/records", params={"include": "responses", "limit": 1000}).json()["items"]
    held = {(record["id"], one["user_id"]): one for record in records for one in record["responses"]}
    lost, wrong = 0, sum(len(record["responses"]) for record in records) - len(held)
    shown = {one["username"]: one for one in owner.get(f"datasets/{dataset}/users/progress").json()["users"]}
    for person in people:
        me = person.client.get("me").json()["id"]
        for record, values in person.told.items():
            one = held.get((record, me))
            lost += one is None or one["status"] != "submitted" or one["values"] != values
        mine = [user for _, user in held if user == me]
        counted = shown[person.user.username]
        wrong += len(mine) != counted["completed"]["submitted"] + counted["pending"]["submitted"]
        wrong += len(mine) != person.client.get(f"me/datasets/{dataset}/metrics").json()["responses"]["submitted"]
    submitted = {record["id"]: len(record["responses"]) for record in records}
    wrong += sum((record["status"] == "completed") != (submitted[record["id"]] >= ANSWERS) for record in records)
    completed = owner.get(f"datasets/{dataset}/progress").json()["completed"]
    wrong += completed != sum(number >= ANSWERS for number in submitted.values())
    return lost, wrong


@benchmark
def large() -> Iterator[Measurement]:
    """A queue of 50,000 records in the middle of a campaign: its first page, and text searches in it."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "home")
        with site("large", 1, home) as (connection, dataset):
            people = users(connection, ANSWERS)
            with client(connection, people[0].api_key) as annotator:
                record = annotator.post(f"me/datasets/{dataset}/records/search", json=search(QUEUE)).json()["items"][0]
                Rater(people[0], annotator, dataset).submit(
                    record["record"]["id"], {name: {"value": 3} for name in QUESTIONS}
                )
        words = multiply(home.database)
        with running(home, progress=quiet) as connection, client(connection, people[0].api_key) as annotator:
            path = f"me/datasets/{dataset}/records/search?include=responses&include=suggestions&offset=0&limit=10"
            pages = [timed(annotator, path, search(QUEUE)) for _ in range(REPEATS + 1)][1:]
            yield Measurement("server.queue_first_page_ms_50k", statistics.median(pages), "ms", at_most=300)
            cold = timed(annotator, path, search(QUEUE, words[50]))
            kinds = [statistics.median([timed(annotator, path, search(QUEUE, one)) for one in kind])
                     for kind in queries(words)]  # fmt: skip
            # The slowest kind of query, not the mean of all.
            yield Measurement("server.text_search_ms_50k", max(kinds), "ms", at_most=500)
            yield Measurement("server.text_search_cold_ms_50k", cold, "ms")


def queries(words: Sequence[str]) -> list[list[str]]:
    """Kinds of text queries, REPEATS different ones of each; `words` are ordered from the commonest on."""
    draw = random.Random(2)  # noqa: S311
    common, middle, rare = words[:20], words[100:1000], words[5000:]
    shapes: list[Callable[[], str]] = [
        lambda: draw.choice(common),
        lambda: draw.choice(rare),
        lambda: f"{draw.choice(common)} {draw.choice(middle)}",
        lambda: f'"{draw.choice(common)} {draw.choice(common)}"',
        lambda: f'"{draw.choice(common)} {draw.choice(common)}"~3',
        lambda: f"{draw.choice(middle)[:3]}*",
        lambda: f"({draw.choice(middle)} | {draw.choice(middle)}) -{draw.choice(common)}",
        lambda: f"{draw.choice(middle)}~1",
    ]
    return [[shape() for _ in range(REPEATS)] for shape in shapes]


def timed(annotator: httpx.Client, path: str, body: Any) -> float:
    """Milliseconds of one search that must succeed."""
    start = time.perf_counter()
    answer = annotator.post(path, json=body)
    seconds = time.perf_counter() - start
    answer.raise_for_status()
    return seconds * 1000


def multiply(database: Path) -> list[str]:
    """Make RECORDS out of the only record and its only response, in a stopped server's database.

    Every second record has an answer of one of two other users, every tenth one of the first. Texts are made-up
    words as often as natural ones are (the n-th has the weight 1/n). Returns the words, the commonest first.
    """
    draw = random.Random(1)  # noqa: S311
    words = sorted({"".join(draw.choices("abdefgiklmnoprstu", k=draw.randint(3, 9))) for _ in range(VOCABULARY)})
    draw.shuffle(words)
    weights = list(accumulate(1 / (rank + 1) for rank in range(len(words))))
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        connection.row_factory = sqlite3.Row
        (record,), (response,) = (
            map(dict, connection.execute(f"SELECT * FROM {table}"))  # noqa: S608 (two words of ours)
            for table in ("records", "responses")
        )
        raters = [
            row["id"]
            for row in connection.execute("SELECT id FROM users WHERE role = 'annotator' ORDER BY inserted_at")
        ]
        records, responses = [], []
        for number in range(RECORDS - 1):
            text = draw.choices(words, cum_weights=weights, k=WORDS)
            half = [" ".join(text[: WORDS // 2]), " ".join(text[WORDS // 2 :])]
            fields = '{"original": "%s", "transformed": "%s"}' % tuple(half)  # noqa: UP031 (only letters and spaces)
            records.append({**record, "id": uuid.uuid4().hex, "external_id": f"r{number}", "fields": fields})
            for rater, every in ((raters[0], 10), (raters[1 + number // 2 % 2], 2)):
                if number % every == 0:
                    responses.append(
                        {**response, "id": uuid.uuid4().hex, "record_id": records[-1]["id"], "user_id": rater}
                    )
        for table, rows in (("records", records), ("responses", responses)):
            names = ", ".join(f'"{name}"' for name in rows[0])
            places = ", ".join(f":{name}" for name in rows[0])
            connection.executemany(f"INSERT INTO {table} ({names}) VALUES ({places})", rows)  # noqa: S608
    return words


@benchmark
def start() -> Iterator[Measurement]:
    """From the start of a server, in an environment that is there, to its first page: median of three."""
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "home")
        for _ in range(4):
            begun = time.perf_counter()
            with running(home, progress=quiet) as connection:
                httpx.get(f"{connection.url}/work", trust_env=False).raise_for_status()
                seconds.append(time.perf_counter() - begun)
    yield Measurement("server.start_seconds", statistics.median(seconds[1:]), "s", at_most=4)


@benchmark
def idle_connections() -> Iterator[Measurement]:
    """One rater's searches beside 1,000 idle connections, relative to those alone."""
    with site("idle", PAIRS) as (connection, dataset), contextlib.ExitStack() as stack:
        (account,) = users(connection, 1)
        annotator = stack.enter_context(client(connection, account.api_key))
        path = f"me/datasets/{dataset}/records/search?limit=5"

        def searches() -> float:
            return statistics.median([timed(annotator, path, search(QUEUE)) for _ in range(10 * REPEATS)])

        searches()
        place = urlsplit(connection.url)
        ratios = []
        for _ in range(3):
            alone = searches()
            with contextlib.ExitStack() as others:
                for _ in range(IDLE):
                    others.enter_context(socket.create_connection((place.hostname, place.port)))
                ratios.append(searches() / alone)
    yield Measurement("server.search_beside_1000_idle", statistics.median(ratios), "times", at_most=1.5)


@benchmark
def browser() -> Iterator[Measurement]:
    """From the sign-in button to the first pair on the screen, in headless chromium; nothing where there is none."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("server.signin_to_first_record_seconds: not measured, there is no chromium here", file=sys.stderr)
        return
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 (only where there is a browser)

    with site("browser", PAIRS) as (connection, _), sync_playwright() as playwright:
        (user,) = users(connection, 1)
        chrome = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        seconds = []
        for _ in range(SIGN_INS):
            page = chrome.new_context().new_page()  # nothing in its cache
            page.goto(connection.url)
            page.locator("input[type=text]").fill(user.username)
            page.locator("input[type=password]").fill(user.password)
            start = time.perf_counter()
            page.keyboard.press("Enter")
            page.get_by_text("benchmark-browser").click()
            page.get_by_text("Sentence number").first.wait_for()
            seconds.append(time.perf_counter() - start)
            page.context.close()
        chrome.close()
    yield Measurement("server.signin_to_first_record_seconds", statistics.median(seconds), "s", at_most=3)


@contextlib.contextmanager
def site(
    name: str, records: int, home: Home | None = None, starting: Callable[..., Starting] = running
) -> Iterator[tuple[Connection, str]]:
    """A started server (on a temporary home unless one is given) and the id of a dataset of two texts, two ratings."""
    with contextlib.ExitStack() as stack:
        if home is None:
            home = Home(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "home")
        connection = stack.enter_context(starting(home, progress=quiet))
        owner = stack.enter_context(client(connection, connection.api_key))
        workspace = post(owner, "workspaces", {"name": WORKSPACE})["id"]
        scale = {"type": "rating", "options": [{"value": value} for value in range(1, 6)]}
        dataset = post(owner, "datasets", {"name": f"benchmark-{name}", "workspace_id": workspace,
                       "distribution": {"strategy": "overlap", "min_submitted": ANSWERS}})["id"]  # fmt: skip
        for text in ("original", "transformed"):
            post(owner, f"datasets/{dataset}/fields",
                 {"name": text, "title": text, "required": True, "settings": {"type": "text"}})  # fmt: skip
        for question in QUESTIONS:
            post(owner, f"datasets/{dataset}/questions",
                 {"name": question, "title": question, "required": True, "settings": scale})  # fmt: skip
        owner.put(f"datasets/{dataset}/publish").raise_for_status()
        for start in range(0, records, 500):
            items = [{"external_id": str(number), "fields": {"original": f"Sentence number {number}.",
                      "transformed": f"This is the sentence with the number {number}."}}
                     for number in range(start, min(start + 500, records))]  # fmt: skip
            post(owner, f"datasets/{dataset}/records/bulk", {"items": items})
        yield connection, str(dataset)


def users(connection: Connection, number: int) -> list[User]:
    """So many annotators, let into the workspace."""
    with client(connection, connection.api_key) as owner:
        (workspace,) = [one["id"] for one in owner.get("me/workspaces").json()["items"]]
        made = [ensure_user(connection, f"bench{place}", "B") for place in range(number)]
        ids = {one["username"]: one["id"] for one in owner.get("users").json()["items"]}
        for user in made:
            post(owner, f"workspaces/{workspace}/users", {"user_id": ids[user.username]})
    return made


def client(connection: Connection, api_key: str) -> httpx.Client:
    """Argilla's API as one user, over a connection that stays open as a browser's does."""
    return httpx.Client(base_url=f"{connection.url}/api/v1/", headers={"X-Argilla-Api-Key": api_key},
                        trust_env=False, timeout=60.0)  # fmt: skip


def post(owner: httpx.Client, path: str, body: Any) -> Any:
    """One call that must succeed; its JSON."""
    return owner.post(path, json=body).raise_for_status().json()


def search(statuses: Sequence[tuple[str, str]], words: str | None = None) -> dict[str, Any]:
    """A search as Argilla's page sends it: statuses of the own response and of the record, and words."""
    filters = [{"type": "terms", "scope": {"entity": entity, "property": "status"}, "values": [status]}
               for entity, status in statuses]  # fmt: skip
    return {"query": {} if words is None else {"text": {"q": words}}, "filters": {"and": filters}}


def quiet(line: str) -> None:
    """A `progress` that says nothing; the table is all that a benchmark prints."""
