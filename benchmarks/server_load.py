"""Many raters at once on the local Argilla: on SQLite, on PostgreSQL, and on PostgreSQL from two processes.

Every rater asks for AHEAD pairs at a time, as the rating page does, and answers them: at about a pair a second, as in a
very quick campaign, and without any pause, which shows what the server takes. The raters run on the same machine, in
one light process.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import benchmarks.server as bench
from annotation.server import URL_VARIABLE, Connection, Home, User, database, running
from annotation.server.home import prepare
from benchmarks.registry import Measurement, benchmark

RATERS = (8, 32)
SECONDS = 10.0  #: of each run
PACED_SECONDS = 45.0
PAIRS = 4000  #: more than are answered, by three raters each
PACE = 0.95
AHEAD = 5  #: pairs that a search asks for
Waits = dict[str, float]  #: what was measured, by the names of the measurements' parts


@benchmark
def sqlite() -> Iterator[Measurement]:
    """The server as it is without options."""
    with tempfile.TemporaryDirectory() as folder:
        waits = measured(Home(Path(folder) / "home"), 1)
    yield Measurement("server.submissions_a_second", waits["rate_8"], "1/s", at_least=40)
    yield Measurement("server.p95_ms_8_raters_without_pauses", waits["p95_8"], "ms", at_most=250)
    yield Measurement("server.p95_ms_32_raters_without_pauses", waits["p95_32"], "ms", at_most=900)
    yield Measurement("server.p95_ms_32_raters", waits["paced_32"], "ms", at_most=500)
    yield Measurement("server.p95_ms_32_raters_beside_progress", waits["beside_32"], "ms", at_most=250)


@benchmark
def on_postgres() -> Iterator[Measurement]:
    """The same on PostgreSQL, from one process and from two; nothing where there is no PostgreSQL."""
    from tests.annotation.server.postgres_site import cluster, programs  # noqa: PLC0415 (only where it is measured)

    found = programs()
    if found is None:
        print("server.postgres_*: not measured, there is no PostgreSQL here", file=sys.stderr)
        return
    for workers in (1, 2):
        with cluster(found, durable=True) as address, tempfile.TemporaryDirectory() as folder:
            home = Home(Path(folder) / "home")
            prepare(home)
            os.environ[URL_VARIABLE] = address
            try:
                database.choose(home)  # which the home keeps
            finally:
                del os.environ[URL_VARIABLE]
            waits = measured(home, workers)
        name = f"server.postgres_{workers}"
        # 1.3 times the limits on SQLite, and of the answers a second as much less.
        yield Measurement(f"{name}_submissions_a_second", waits["rate_8"], "1/s", at_least=40 / 1.3)
        yield Measurement(f"{name}_p95_ms_8_raters_without_pauses", waits["p95_8"], "ms", at_most=325)
        yield Measurement(f"{name}_p95_ms_32_raters_without_pauses", waits["p95_32"], "ms", at_most=1170)
        yield Measurement(f"{name}_p95_ms_32_raters", waits["paced_32"], "ms", at_most=650)
        yield Measurement(f"{name}_p95_ms_32_raters_beside_progress", waits["beside_32"], "ms", at_most=325)


def measured(home: Home, workers: int) -> Waits:
    """What raters wait for on a new server. Raises RuntimeError where an answer was lost: nothing was measured."""
    starting = functools.partial(running, workers=workers)
    with bench.site("load", PAIRS, home, starting) as (connection, dataset):
        people = bench.users(connection, max(RATERS))
        waits: Waits = {}
        told = 0
        for number in RATERS:
            without_pauses = functools.partial(rate, connection, dataset, pace=0.0, seconds=SECONDS)
            seconds, took = run(people[:number], without_pauses)
            waits[f"rate_{number}"], waits[f"p95_{number}"] = len(seconds) / took, p95(seconds)
            told += len(seconds)
        paced = functools.partial(rate, connection, dataset, pace=PACE, seconds=PACED_SECONDS)
        progress = f"me/datasets/{dataset}/metrics", f"datasets/{dataset}/progress"
        beside = functools.partial(rate, connection, dataset, pace=0.0, seconds=SECONDS, reads=progress)
        for name, work in (("paced_32", paced), ("beside_32", beside)):
            seconds, _ = run(people, work)
            waits[name] = p95(seconds)
            told += len(seconds)
        with bench.client(connection, connection.api_key) as owner:
            shown = owner.get(f"datasets/{dataset}/users/progress").json()["users"]
        held = sum(one[status]["submitted"] for one in shown for status in ("completed", "pending"))
        if held != told:
            raise RuntimeError(f"{told} answers were acknowledged, but the server has {held}")
    return waits


def p95(seconds: Sequence[float]) -> float:
    """The 95th percentile, in milliseconds."""
    return statistics.quantiles(seconds, n=20)[-1] * 1000


def run(people: Sequence[User], work: Callable[[User, threading.Barrier], list[float]]) -> tuple[list[float], float]:
    """What each answer took that people gave at the same time, each by `work`, and how many seconds all took."""
    barrier = threading.Barrier(len(people) + 1)
    with ThreadPoolExecutor(len(people)) as pool:
        waits = [pool.submit(work, one, barrier) for one in people]
        barrier.wait()
        start = time.perf_counter()
        found = [wait for one in waits for wait in one.result()]
    return found, time.perf_counter() - start


def rate(  # noqa: PLR0913
    connection: Connection, dataset: str, user: User, barrier: threading.Barrier, *, pace: float, seconds: float,
    reads: Sequence[str] = (),
) -> list[float]:  # fmt: skip
    """Answer pair after pair for so many seconds; what each answer took. A late answer does not delay the next.

    After each answer, `reads` are requested, as Argilla's own page does.
    """
    draw = random.Random(user.username)  # noqa: S311 (a simulation, no secret)
    took: list[float] = []
    with contextlib.closing(http.client.HTTPConnection(urlsplit(connection.url).netloc, timeout=60)) as browser:
        barrier.wait()
        begun = time.perf_counter()
        start = begun + draw.random() * pace
        waiting: list[str] = []
        while time.perf_counter() < begun + seconds:
            if not waiting:
                path = f"me/datasets/{dataset}/records/search?limit={AHEAD}"
                waiting = [one["record"]["id"] for one in call(browser, user, path, bench.search(bench.QUEUE))["items"]]
            if not waiting:
                raise RuntimeError("the queue is empty: nothing was measured")
            record = waiting.pop(0)
            due = start + (len(took) + draw.uniform(0.2, 0.8)) * pace
            time.sleep(max(0.0, due - time.perf_counter()))
            values = {name: {"value": draw.randint(1, 5)} for name in bench.QUESTIONS}
            sent = time.perf_counter()
            call(browser, user, f"records/{record}/responses", {"status": "submitted", "values": values})
            took.append(time.perf_counter() - sent)
            for path in reads:
                call(browser, user, path)
    return took


def call(browser: http.client.HTTPConnection, user: User, path: str, body: Any = None) -> Any:
    """One call that must succeed; http.client takes a tenth of httpx's processor time, which is the server's here."""
    headers = {"X-Argilla-Api-Key": user.api_key, "Content-Type": "application/json"}
    method, content = ("GET", None) if body is None else ("POST", json.dumps(body))
    browser.request(method, f"/api/v1/{path}", content, headers)
    answer = browser.getresponse()
    text = answer.read()
    if answer.status not in (http.client.OK, http.client.CREATED):
        raise RuntimeError(f"{path}: {answer.status}")
    return json.loads(text)
