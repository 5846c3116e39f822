"""The rating page beside Argilla's own: what a rater waits for in a browser, and what eight on each page get done.

Requests are counted in a real browser, one rater on each page. Then eight raters send each page's requests, one after
another and without pauses, to the same server in turn.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Page

import benchmarks.server as bench
from annotation.argilla.client import attach
from annotation.argilla.dataset import give_task
from annotation.server import Connection, User
from annotation.server.plugin.plumbline_argilla import rate
from benchmarks.browser import browser
from benchmarks.registry import Measurement, benchmark

RATERS, ANSWERS, SECONDS, ROUNDS = 8, 40, 15.0, 3
TASK: dict[str, Any] = {
    "version": 1, "study": "benchmark", "queue": "benchmark", "name": "Benchmark", "language": "en", "direction": "ltr",
    "words": rate.WORDS, "title": "Benchmark", "about": "Asked", "asked": "", "guidelines": "", "examples": [],
    "contact": "", "consent": "",
    "texts": [{"name": name, "title": name, "lang": "en", "dir": "ltr"} for name in ("original", "transformed")],
    "questions": [
        {"name": name, "kind": "rating", "required": True, "title": name, "hint": "",
         "points": [[point, ""] for point in range(1, 6)]}
        for name in bench.QUESTIONS
    ],
    "comment": {"name": "comment", "title": "Comment", "most": 2000}, "unable": {"title": "No", "reasons": ["No"]},
}  # fmt: skip
#: The milliseconds from the key that submits to the frame in which another text is shown.
WATCH = """
() => {
  window.waits = []; let since = 0, before = "";
  const shown = () => document.querySelector(".text_field_component, .texts")?.innerText || "";
  document.addEventListener("keydown", event => {
    if (event.key === "Enter") { since = performance.now(); before = shown(); look(); }
  }, true);
  const look = () => {
    if (since && shown() && shown() !== before) { window.waits.push(performance.now() - since); since = 0; return; }
    requestAnimationFrame(look);
  };
}
"""
Mix = dict[str, float]  # requests for each answer, by kind


@benchmark
def beside_argillas() -> Iterator[Measurement]:
    """One rater in a browser on each page, then eight on each by their requests."""
    with bench.site("pages", 6000) as (connection, dataset):
        people = bench.users(connection, 2 + 2 * RATERS)
        with browser() as chromium:
            _, theirs = in_browser(chromium.new_page(), connection, dataset, people[0], ours=False)
            with attach(connection) as argilla:
                give_task(argilla, dataset, TASK)
            waits, mine = in_browser(chromium.new_page(), connection, dataset, people[1], ours=True)
        rates: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(ROUNDS):
            for ours, mix in ((False, theirs), (True, mine)):
                rates[ours].append(load(connection, dataset, people[2 : 2 + RATERS], mix))
    share = statistics.median(rates[True]) / statistics.median(rates[False])
    yield Measurement("rating_page.next_pair_ms_p95", statistics.quantiles(waits, n=20)[-1], "ms", at_most=50)
    yield Measurement("rating_page.requests_an_answer", sum(mine.values()), "requests")
    yield Measurement("rating_page.requests_an_answer_on_argillas", sum(theirs.values()), "requests")
    yield Measurement("rating_page.answers_over_argillas", share, "times", at_least=1.0)


def in_browser(page: Page, connection: Connection, dataset: str, user: User, *, ours: bool) -> tuple[list[float], Mix]:
    """What ANSWERS by keyboard waited for, in milliseconds, and the requests that an answer took."""
    page.goto(f"{connection.url}/work")
    page.get_by_label("User name").fill(user.username)
    page.get_by_label("Password").fill(user.password)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="Go on").click()
    if ours:
        page.get_by_role("button", name="Begin").click()
    page.get_by_text("Sentence number").first.wait_for()
    page.wait_for_timeout(1000)
    kinds: Counter[str] = Counter()
    page.on("request", lambda request: kinds.update([kind_of(request.url)] if "/api/" in request.url else []))
    page.evaluate(WATCH)
    for number in range(1, ANSWERS + 1):
        for key in ("3", "4"):
            page.keyboard.press(key)
            page.wait_for_timeout(150)  # a very quick rater
        page.keyboard.press("Enter")
        page.wait_for_function("number => window.waits.length === number", arg=number)
    page.wait_for_timeout(1000)
    waits: list[float] = page.evaluate("() => window.waits")
    page.close()
    return waits, {kind: number / ANSWERS for kind, number in kinds.items()}


def kind_of(url: str) -> str:
    """What a request is for."""
    path = urlsplit(url).path
    for kind in ("search", "responses", "metrics", "progress"):
        if path.endswith(kind) or f"/{kind}/" in path:
            return kind
    return "other"


def load(connection: Connection, dataset: str, people: Sequence[User], mix: Mix) -> float:
    """Answers a second of raters who send the requests of a page and never pause."""
    barrier = threading.Barrier(len(people))
    with ThreadPoolExecutor(len(people)) as pool:
        done = list(pool.map(lambda user: _rate(connection, dataset, user, mix, barrier), people))
    return sum(done) / SECONDS


def _rate(connection: Connection, dataset: str, user: User, mix: Mix, barrier: threading.Barrier) -> int:
    due: dict[str, float] = dict.fromkeys((*mix, "search", "metrics", "progress", "other"), 0.0)
    paths = {"metrics": f"me/datasets/{dataset}/metrics", "progress": f"datasets/{dataset}/progress", "other": "me"}
    records: list[str] = []
    answers, answered = 0, set[str]()
    values = {name: {"value": 3} for name in bench.QUESTIONS}
    with contextlib.closing(http.client.HTTPConnection(urlsplit(connection.url).netloc, timeout=60)) as browser_:
        barrier.wait()
        end = time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            for kind, number in mix.items():
                due[kind] += number
            while due["search"] >= 1 or not records:
                due["search"] -= 1
                path = f"me/datasets/{dataset}/records/search?include=responses&limit={round(1 / mix['search']) + 4}"
                found = _call(browser_, user, "POST", path, bench.search(bench.QUEUE))["items"]
                records = [item["record"]["id"] for item in found if item["record"]["id"] not in answered]
            record = records.pop(0)
            _call(browser_, user, "POST", f"records/{record}/responses", {"status": "submitted", "values": values})
            answered.add(record)
            answers += 1
            for kind in ("metrics", "progress", "other"):
                while due[kind] >= 1:
                    due[kind] -= 1
                    _call(browser_, user, "GET", paths[kind])
    return answers


def _call(browser_: http.client.HTTPConnection, user: User, method: str, path: str, body: Any = None) -> Any:
    headers = {"X-Argilla-Api-Key": user.api_key, "Content-Type": "application/json"}
    browser_.request(method, f"/api/v1/{path}", None if body is None else json.dumps(body), headers)
    answer = browser_.getresponse()
    content = answer.read()
    if answer.status not in (http.client.OK, http.client.CREATED):
        raise RuntimeError(f"{path}: {answer.status}")
    return json.loads(content)
