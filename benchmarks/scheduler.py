"""What it costs to schedule 10,000 workers: `--ray`'s own scheduler, made-up workers, and a clock that does not wait.

The clock goes on by what the scheduler takes of the processor, and jumps to when the next worker has something. The
scheduler's overhead is the share of time in which workers had room for texts, and there were texts, and they had none.
Journals, disk and network are not in it; of Ray's own work, its look at all calls is.
"""

from __future__ import annotations

import contextlib
import heapq
import io
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast
from unittest.mock import patch

from benchmarks.generation import write_study
from benchmarks.registry import Measurement, benchmark
from generation.cluster import GATHER_SECONDS, _TextScheduler, made_of, versions_of
from generation.jobs import Job, Plan
from generation.unit import Unit
from plumbline.study import load_study

WORKERS = 10_000
AT_ONCE = 4  #: texts that a worker makes at the same time
ANSWER_SECONDS = 20.0  #: of one text, up to a third more or less: all workers together make 2,000 texts a second
LOOK_SECONDS = 5e-7  #: of the processor, of Ray 2.60's `wait` for each call; measured with 100, 1,000 and 10,000
ROUNDS = 3  #: texts for each of those


@benchmark
def ten_thousand() -> Iterator[Measurement]:
    """10,000 workers, 120,000 texts."""
    overhead, processor = simulated(WORKERS)
    yield Measurement("scheduler.overhead_10k_workers", overhead, "share", at_most=0.01)
    yield Measurement("scheduler.texts_a_second_10k_workers", WORKERS * AT_ONCE * ROUNDS / processor, "1/s")


def simulated(workers: int) -> tuple[float, float]:
    """The scheduler's overhead with so many workers, each on a node of its own, and its seconds of the processor."""
    with tempfile.TemporaryDirectory() as folder:
        plan = Plan(load_study(write_study(Path(folder), "http://127.0.0.1:1/v1", AT_ONCE, 1), Path(folder)))
        made_of(plan)  # reads the prompts, once
        unit = _Unit(workers * AT_ONCE * ROUNDS)
        clock = _Clock()
        cluster = _Cluster(clock, workers, (AT_ONCE, "", versions_of(plan.study.generator)))
        with (
            patch("plumbline.models.cluster.time", clock),
            patch("generation.cluster.time", clock),
            patch("plumbline.models.cluster.on_node", lambda _: {}),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            scheduler = _TextScheduler(cluster, plan, [cast("Unit", unit)], allow_code=False)
            counts = scheduler.work()
            processor = clock.processor()
            scheduler.end()
    if counts["ok"] != unit.todo:
        raise RuntimeError(f"{counts} of {unit.todo} texts: nothing was measured")
    return cluster.idle / (cluster.idle + cluster.busy), processor


class _Clock:
    """In place of the module `time`: seconds that were waited for, and those that the scheduler worked."""

    def __init__(self) -> None:
        self._waited, self._begun, self._outside = 0.0, time.thread_time(), 0.0

    def monotonic(self) -> float:
        return self._waited + self.processor()

    def processor(self) -> float:
        """What the scheduler has taken of the processor."""
        return time.thread_time() - self._begun - self._outside

    def wait_until(self, moment: float) -> None:
        self._waited += max(0.0, moment - self.monotonic())

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """What the simulation itself takes is not the scheduler's."""
        begun = time.thread_time()
        yield
        self._outside += time.thread_time() - begun


class _Output(NamedTuple):
    """What a scheduler looks at of a text that was made."""

    key: str
    transformation: str
    seed: int
    text: str
    status: str = "ok"


class _Unit:
    """So many texts of one transformation; the journal takes no time."""

    transformation, seed = "paraphrasing", 1

    def __init__(self, texts: int) -> None:
        self.todo = self._left = texts
        self.journal = SimpleNamespace(sync=lambda: None)

    def jobs(self) -> Iterator[Job]:
        name, seed = self.transformation, self.seed
        return (Job(str(n), str(n), "a text", "en", name, seed, None, ("en",)) for n in range(self.todo))

    def add(self, _: _Output) -> bool:
        self._left -= 1
        return not self._left

    def settle(self) -> None:
        """Nothing is written."""


@dataclass(eq=False)
class _Call:
    """What a worker answers, and when."""

    at: float
    answer: Any


@dataclass(eq=False)
class _Worker:
    """A worker with a place for each of AT_ONCE texts, which it makes in the order in which they came."""

    cluster: _Cluster
    free_at: list[float] = field(default_factory=lambda: [0.0] * AT_ONCE)
    making: list[tuple[float, _Output]] = field(default_factory=list)

    def prepare(self, _: object) -> _Call:
        return self.cluster.called(0.0, self.cluster.prepared)

    def exchange(self, jobs: Sequence[Job]) -> _Call:
        now = self.cluster.clock.monotonic()
        for job in jobs:
            seconds = ANSWER_SECONDS * (2 / 3 + int(job.key) * 7919 % 1000 / 1500)
            idle = max(0.0, now - self.free_at[0])
            at = self.free_at[0] + idle + seconds
            self.cluster.idle += idle
            self.cluster.busy += seconds
            heapq.heapreplace(self.free_at, at)
            heapq.heappush(self.making, (at, _Output(job.key, job.transformation, job.seed, job.text)))
        at = max(now, self.making[0][0]) + GATHER_SECONDS
        outputs = []
        while self.making and self.making[0][0] <= at:
            outputs.append(heapq.heappop(self.making)[1])
        return self.cluster.called(at, outputs)

    def close(self) -> _Call:
        return self.cluster.called(0.0, None)


class _Cluster:
    """In place of the package `ray`: what the scheduler uses of it."""

    exceptions = SimpleNamespace(RayTaskError=RuntimeError, RayError=OSError)

    def __init__(self, clock: _Clock, nodes: int, prepared: tuple[int, str, dict[str, str]]) -> None:
        self.clock, self.prepared = clock, prepared
        self._nodes = [
            {"Alive": True, "Resources": {"CPU": 1.0}, "NodeID": str(n), "NodeManagerAddress": ""} for n in range(nodes)
        ]
        self._calls: list[tuple[float, int, _Call]] = []
        self.idle = self.busy = 0.0  #: seconds of all places of workers, until each was handed its last text

    def nodes(self) -> list[dict[str, Any]]:
        return self._nodes

    def remote(self, _: object) -> Any:
        """`ray.remote(Worker).options(...).remote(...)`, whose methods are called by `.remote(...)`."""

        def made(*_: object, **__: object) -> Any:
            worker = _Worker(self)
            methods = {name: self._outside(getattr(worker, name)) for name in ("prepare", "exchange", "close")}
            return SimpleNamespace(**{name: SimpleNamespace(remote=call) for name, call in methods.items()})

        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=self._outside(made)))

    def called(self, at: float, answer: Any) -> _Call:
        call = _Call(at, answer)
        heapq.heappush(self._calls, (at, id(call), call))
        return call

    def wait(
        self, calls: Sequence[_Call], num_returns: int = 1, timeout: float = 0.0
    ) -> tuple[list[_Call], list[_Call]]:
        with self.clock.stopped():
            end = self.clock.monotonic() + timeout
            ready: list[_Call] = []
            while self._calls and len(ready) < num_returns and self._calls[0][0] <= end:
                ready.append(heapq.heappop(self._calls)[2])
            self.clock.wait_until(ready[-1].at if len(ready) == num_returns else end)
            self.clock.wait_until(self.clock.monotonic() + len(calls) * LOOK_SECONDS)
            return ready, list(calls[len(ready) :])  # as many as are left; which they are, nobody asks

    def get(self, call: _Call) -> Any:
        return call.answer

    def kill(self, _: object) -> None:
        """Nothing is held."""

    def _outside(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def outside(*values: Any, **named: Any) -> Any:
            with self.clock.stopped():
                return call(*values, **named)

        return outside
