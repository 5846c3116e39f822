"""The local Argilla beside the least that a server of answers does (`floor_app`), in turn, on one machine at one time.

Answers a second depend on the machine and on what else it does; their share of the floor's depends on our code. Raters
never pause. On our server they also search for pairs, as the rating page does; on the floor they only answer.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
import secrets
import socket
import statistics
import subprocess
import tempfile
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil

import benchmarks.server as bench
from annotation.server import Home, User, ensure_environment
from benchmarks.registry import Measurement, benchmark
from benchmarks.server_load import PAIRS, RATERS, call, p95, rate, run
from plumbline.errors import ServiceError

SECONDS, ROUNDS = 5.0, 3
MOST_PROCESSOR = (
    30  #: times the floor's: seven statements and the search by Argilla's objects, where the floor has two statements
)
PROGRAM = Path(__file__).with_name("floor_app.py")
START_SECONDS = 20.0


@benchmark
def beside_the_floor() -> Iterator[Measurement]:
    """8 and 32 raters on each in turn, three rounds: medians of the rounds' ratios.

    The server's CPU time for an answer, with its share of a search, is what other programs change least.
    """
    ratios: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        home = Home(Path(folder) / "home")
        url, token, floor_process = stack.enter_context(floor(Path(folder)))
        connection, dataset = stack.enter_context(bench.site("floor", PAIRS, home))
        process = _process(home)
        people = bench.users(connection, max(RATERS))
        strangers = [User(one.username, "", token) for one in people]
        search_and_answer = functools.partial(rate, connection, dataset, pace=0.0, seconds=SECONDS)
        answer = functools.partial(answer_floor, url)
        for _ in range(ROUNDS):
            for number in RATERS:
                before = _spent(floor_process)
                least, least_took = run(strangers[:number], answer)
                between = _spent(floor_process), _spent(process)
                ours, took = run(people[:number], search_and_answer)
                after = _spent(process)
                ratios[f"answers_of_floor_{number}"].append(len(ours) / took / (len(least) / least_took))
                ratios[f"p95_over_floor_{number}"].append(p95(ours) / p95(least))
                processor = (after - between[1]) / len(ours), (between[0] - before) / len(least)
                ratios["processor_over_floor"].append(processor[0] / processor[1])
    for name, values in ratios.items():
        most = MOST_PROCESSOR if name == "processor_over_floor" else None
        yield Measurement(f"server.{name}", statistics.median(values), "times", at_most=most)


@contextlib.contextmanager
def floor(folder: Path) -> Iterator[tuple[str, str, psutil.Process]]:
    """The floor's host and port, its only token, and its process. Raises ServiceError where it does not answer."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_urlsafe()
    command = [str(ensure_environment(bench.quiet)), "-P", str(PROGRAM), str(folder / "floor.db"), token, str(port)]
    with subprocess.Popen(command) as program:
        try:
            end = time.monotonic() + START_SECONDS
            while True:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                if program.poll() is not None or time.monotonic() > end:
                    raise ServiceError("the bare server does not answer")
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port}", token, psutil.Process(program.pid)
        finally:
            program.terminate()


def answer_floor(url: str, user: User, barrier: threading.Barrier) -> list[float]:
    """Send answers to the floor for SECONDS; what each took."""
    took: list[float] = []
    values = {name: {"value": 3} for name in bench.QUESTIONS}
    with contextlib.closing(http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)) as browser:
        barrier.wait()
        end = time.perf_counter() + SECONDS
        while (sent := time.perf_counter()) < end:
            call(browser, user, f"records/{uuid.uuid4()}/responses", {"status": "submitted", "values": values})
            took.append(time.perf_counter() - sent)
    return took


def _process(home: Home) -> psutil.Process:
    """Our server's process, as its folder names it."""
    return psutil.Process(json.loads(home.state.read_text(encoding="utf-8"))["pid"])


def _spent(process: psutil.Process) -> float:
    """Seconds of the processor that a process has taken."""
    times = process.cpu_times()
    return float(times.user + times.system)
