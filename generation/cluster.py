"""`plumbline generate --ray`: transform the texts of a study on the nodes of a running Ray cluster.

Each worker is a process on a node with its own generator (an engine on the node's GPUs, or an endpoint). All workers
work on one unit, then on the next. A worker that returns outputs gets as many new texts, so faster workers do more.
Only the command writes: it adds each output to its unit's journal, as without Ray; workers need no shared folder.
docs/howto/ray.md says what each node needs.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import sys
import time
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tqdm import tqdm

from generation.forecast import gpus_of, measured
from generation.generators import Generator, make_generator
from generation.jobs import Job, Plan
from generation.output import make_output
from generation.unit import Unit
from plumbline.errors import PlumblineError, ServiceError, StudyError
from plumbline.models.asking import SYNC_SECONDS, show
from plumbline.models.cluster import Scheduler, Slot, join, slots, without
from plumbline.rates import Stopwatch, keep_rates
from plumbline.records import TransformedText
from plumbline.study import Study
from plumbline.study.engines import EngineSpec
from plumbline.versions import installed_versions
from plumbline.words import count

_MAKE = ("plumbline", "py3langid", "rapidfuzz")  # packages that decide outputs
_RUN = ("vllm", "transformers")  # packages that run an engine
GATHER_SECONDS = 0.02  # wait for more outputs, as each answer costs time
TRIES = 3  # of a text, if its workers die


class JobQueue:
    """Texts for workers, each with one worker at a time; `in_flight` holds a worker's texts, by key.

    The texts of a dead worker are handed out again first. A text on which two workers died may be the cause, so a
    worker gets at most one such text at a time. After the third death the text is `lost`.
    """

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._fresh: Iterator[Job] = iter(jobs)
        self._again: deque[Job] = deque()
        self._suspects: deque[Job] = deque()
        self._deaths: Counter[str] = Counter()
        self.lost: list[Job] = []

    def take(self, in_flight: dict[str, Job], room: int) -> list[Job]:
        """Return at most `room` more texts for a worker, and add them to `in_flight`."""
        taken: list[Job] = []
        if room > 0 and self._suspects and not any(self._deaths[key] > 1 for key in in_flight):
            taken.append(self._suspects.popleft())
        while self._again and len(taken) < room:
            taken.append(self._again.popleft())
        taken += itertools.islice(self._fresh, max(0, room - len(taken)))
        in_flight.update((job.key, job) for job in taken)
        return taken

    def put_back(self, in_flight: dict[str, Job], *, died: bool) -> None:
        """Queue a stopped worker's texts again; `died` if its process ended."""
        for job in in_flight.values():
            self._deaths[job.key] += died
            deaths = self._deaths[job.key]
            (self._again if deaths < TRIES - 1 else self._suspects if deaths < TRIES else self.lost).append(job)
        in_flight.clear()


class Worker:
    """An asynchronous Ray actor that makes the texts of some transformations (`names`).

    It writes nothing: its outputs go to the command, which writes journals and tables.
    """

    def __init__(self, study: Study, names: Collection[str], *, allow_code: bool = False) -> None:
        self._study, self._names, self._allow_code = study, names, allow_code
        self._generator: Generator | None = None
        self._waiting: asyncio.Queue[Job] = asyncio.Queue()
        self._made: list[TransformedText] = []
        self._problem: Exception | None = None
        self._news = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def prepare(self, prompts: dict[str, str]) -> tuple[int, str, dict[str, str]]:
        """Load the generator; return its concurrency, the kind of GPU, and `versions_of` this node.

        `prompts` are the command's hashes (`made_of`). Raises StudyError if this node's differ.
        """
        plan = Plan(self._study)  # made here: a plan holds unfinished hashes, which cannot be pickled
        if made_of(plan) != prompts:
            raise StudyError(
                "this node's prompts, functions or files of outputs differ from those on the machine where you ran the"
                " command; install the same ones on this node"
            )
        self._generator = make_generator(plan, self._names, allow_code=self._allow_code)
        at_once = self._generator.concurrency
        self._tasks = [asyncio.create_task(self._work(plan, self._generator)) for _ in range(at_once)]
        return at_once, gpus_of(self._study.generator)[1], versions_of(self._study.generator)

    async def exchange(self, jobs: Sequence[Job]) -> list[TransformedText]:
        """Accept more texts, and return the outputs since the last call; wait until there is one.

        Once all outputs are returned, raises the generator's error if no text can succeed.
        """
        for job in jobs:
            self._waiting.put_nowait(job)
        await self._news.wait()
        await asyncio.sleep(GATHER_SECONDS)
        outputs = self._given()
        if self._problem is None:
            self._news.clear()
        elif not outputs:
            raise self._problem
        return outputs

    async def stop(self) -> list[TransformedText]:
        """Cancel the texts in flight, and return the outputs made so far; a pending `exchange` returns too."""
        for task in self._tasks:
            task.cancel()
        self._news.set()
        return self._given()

    def _given(self) -> list[TransformedText]:
        outputs, self._made = self._made, []
        return outputs

    async def close(self) -> None:
        """Release the generator's connections and memory."""
        await self.stop()
        if self._generator is not None:
            await self._generator.close()

    async def _work(self, plan: Plan, generator: Generator) -> None:
        """Make one text after the other until the generator fails."""
        while self._problem is None:
            job = await self._waiting.get()
            try:
                output = await make_output(plan, generator, job)
                self._made.append(output)
            except Exception as error:  # the command tells bugs from errors that users can fix
                self._problem = error
            self._news.set()


def made_of(plan: Plan) -> dict[str, str]:
    """Return each transformation's identity: the hash of its prompts, or of its function or file."""
    return {name: plan.prompt_hashes[name] or plan.makers[name].hash for name in plan.kinds}


def versions_of(spec: EngineSpec) -> dict[str, str]:
    """Return the versions installed here of packages that decide outputs, without builds (`+cpu`, `+cu128`)."""
    return installed_versions((*_MAKE, *(_RUN if spec.kind == "vllm" else ())), builds=False)


def other_version(of_node: dict[str, str], due: dict[str, str]) -> str:
    """Name the first package whose version on a node differs from `due`; add to `due` what it lacks."""
    for package, version in of_node.items():
        if due.setdefault(package, version) != version:
            return f"{package} is {version} on this node, but {due[package]} elsewhere"
    return ""


DEATHS = 3  # of workers in a row without an output: then their slot gets no other
TEXTS_A_WORKER = 16  # fewer texts start no further worker
DRAIN_SECONDS = 1.0  # wait for workers' outputs when a run is interrupted
CLOSE_SECONDS = 20.0


def generate_on(address: str, plan: Plan, todo: Sequence[Unit], *, allow_code: bool = False) -> Counter[str]:
    """Make units on the Ray cluster at an address (`auto`: this machine's); return counts as `generate` does.

    Never starts a cluster. Other workers get the texts of a worker that dies or fails; nodes that join get workers.
    Raises StudyError without the package ray; ServiceError if there is no cluster or no room on it, or if three workers
    died on a text; and a worker's error if no worker is left. Outputs received before stay.
    """
    ray = join(address)
    scheduler = _TextScheduler(ray, plan, todo, allow_code=allow_code)
    with without(contextlib.redirect_stdout):  # Ray prints pages about workers that died
        try:
            return scheduler.work()
        finally:
            scheduler.end()
            ray.shutdown()


@dataclass(eq=False)
class _WorkerHandle:
    """A worker as the command sees it: its texts in flight, by key, and its unanswered call."""

    slot: Slot
    actor: Any
    in_flight: dict[str, Job] = field(default_factory=dict)
    call: Any = None
    prepared: bool = False
    at_once: int = 0  #: texts that it works on at once
    more: int = 1  #: texts handed out beyond `at_once`
    received: int = 0


class _TextScheduler(Scheduler):
    """Assigns workers to slots and texts to workers, and adds outputs to journals."""

    def __init__(self, ray: Any, plan: Plan, todo: Sequence[Unit], *, allow_code: bool) -> None:
        self._plan, self._allow_code = plan, allow_code
        self._units = {(unit.transformation, unit.seed): unit for unit in todo}
        self._queue = JobQueue(job for unit in todo for job in unit.jobs())
        self._total: int = sum(unit.todo for unit in todo)
        self._counts: Counter[str] = Counter()
        self._taken: set[Slot] = set()  # slots that have a worker, or had one that failed
        self._free: deque[Slot] = deque()  # other slots
        self._deaths: Counter[Slot] = Counter()
        self._workers: list[_WorkerHandle] = []
        self._prepared_workers = 0
        self._returned: list[_WorkerHandle] = []  # that have answered
        self._idle: list[_WorkerHandle] = []  # that no text was left for
        self._watch = Stopwatch()
        self._versions = versions_of(plan.study.generator)  # packages that only nodes have: the first node's versions
        self._problem: Exception | None = None
        self._disk = ThreadPoolExecutor(1)  # in a thread: writing a large table takes seconds
        self._writes: list[Future[None]] = []
        self._synced = time.monotonic()
        super().__init__(ray)

    @property
    def _left(self) -> int:
        return self._total - self._counts.total() - len(self._queue.lost)

    def work(self) -> Counter[str]:
        """Run until all units are done, and return the counts."""
        if not self._slots:
            raise _no_room(self._plan)
        with tqdm(total=self._total, unit="text", desc="generating") as self._bar:
            while self._left and self._problem is None:
                self._turn(SYNC_SECONDS)
                self._write()
        for write in self._writes:
            write.result()
        if self._left and self._problem:
            raise self._problem
        if self._queue.lost:
            raise ServiceError(f"workers failed {TRIES} times on {_names(self._queue.lost)}; run again to continue")
        return self._counts

    def _all_slots(self) -> list[Slot]:
        """Return one slot per node; for engines, as many as the node's GPUs allow."""
        gpus = _gpus(self._plan)
        return slots(self._ray, 1, gpus, one_a_node=not gpus)

    def _look(self) -> None:
        super()._look()
        self._free = deque(slot for slot in self._slots if slot not in self._taken)

    def _hand_out(self) -> None:
        """Hand out texts, looking only at idle workers, as there may be thousands at work."""
        while self._free and math.ceil(self._left / TEXTS_A_WORKER) > len(self._workers):
            self._start(self._free.popleft())
        while self._returned:
            worker = self._returned.pop()
            if not self._feed(worker):
                self._idle.append(worker)
        while self._idle and self._feed(self._idle[-1]):  # where there is nothing for one, there is nothing for others
            self._idle.pop()

    def _start(self, slot: Slot) -> None:
        """Start a worker in a slot, the first or one that replaces a dead worker."""
        self._taken.add(slot)
        names = list(dict.fromkeys(name for name, _ in self._units))
        remote = self._ray.remote(Worker).options(**slot.options)
        worker = _WorkerHandle(slot, remote.remote(self._plan.study, names, allow_code=self._allow_code))
        self._workers.append(worker)
        self._after(worker.actor.prepare.remote(made_of(self._plan)), partial(self._prepared, worker))

    def _prepared(self, worker: _WorkerHandle, call: Any) -> None:
        """Note that a worker's generator is loaded, if its versions are the command's."""
        if (answer := self._from(worker, call)) is None:
            return
        worker.at_once, gpu, versions = answer
        if difference := other_version(versions, self._versions):
            problem = StudyError(f"node {worker.slot.address}: {difference}; install the same version on all nodes")
            self._lose(worker, problem, died=False)
            return
        if not self._prepared_workers:
            self._watch.start()
        self._prepared_workers += 1
        worker.prepared, self._watch.gpu = True, gpu
        self._returned.append(worker)
        self._watch.gpus += worker.slot.gpus

    def _feed(self, worker: _WorkerHandle) -> bool:
        """Hand texts to a worker; return False while others have the last ones and may still die on them."""
        jobs = self._queue.take(worker.in_flight, worker.at_once + worker.more - len(worker.in_flight))
        if worker.in_flight:
            worker.call = worker.actor.exchange.remote(jobs)
            self._after(worker.call, partial(self._exchanged, worker))
        return bool(worker.in_flight)

    def _exchanged(self, worker: _WorkerHandle, call: Any) -> None:
        """Add a worker's outputs to their units; a unit's last output settles it."""
        if (outputs := self._from(worker, call)) is None:
            return
        worker.call = None
        self._returned.append(worker)
        worker.received += len(outputs)
        worker.more = min(worker.at_once, max(worker.more, 2 * len(outputs)))
        for output in outputs:
            del worker.in_flight[output.key]
            unit = self._units[output.transformation, output.seed]
            last = unit.add(output)
            show(self._bar, self._counts, output.status)
            self._watch.note(output.transformation, 1, len(output.text))
            if last:
                self._writes.append(self._disk.submit(unit.settle))

    def _write(self) -> None:
        """Sync the journals every half second. Raises the errors of writing."""
        for write in [write for write in self._writes if write.done()]:
            self._writes.remove(write)
            write.result()
        if not self._writes and time.monotonic() - self._synced > SYNC_SECONDS:
            self._synced = time.monotonic()
            self._writes += [self._disk.submit(unit.journal.sync) for unit in self._units.values()]

    def _from(self, worker: _WorkerHandle, call: Any) -> Any:
        """Return a worker's answer; None if it failed or died."""

        def failed(error: Any) -> None:
            self._lose(worker, _mendable(error, worker.slot), died=False)

        def died(error: Exception) -> None:
            self._lose(worker, _death(error, worker), died=True)

        return self._answer(call, failed, died)

    def _lose(self, worker: _WorkerHandle, problem: Exception, *, died: bool) -> None:
        """Remove a worker: other workers, or the next in its slot, get its texts."""
        slot = worker.slot
        self._workers.remove(worker)
        self._prepared_workers -= worker.prepared
        self._watch.gpus -= slot.gpus * worker.prepared
        self._ray.kill(worker.actor)
        self._queue.put_back(worker.in_flight, died=died)
        self._deaths[slot] = 1 if worker.received else self._deaths[slot] + 1
        alive = any(node["Alive"] and node["NodeID"] == slot.node for node in self._ray.nodes())
        if died and worker.prepared and alive and self._deaths[slot] < DEATHS:
            self._start(slot)
        self._look()
        self._hand_out()
        if self._workers and self._left:
            tqdm.write(f"{problem}; the other workers continue", file=sys.stderr)
        if not self._workers:
            self._problem = problem

    def end(self) -> None:
        """Add the workers' remaining outputs, close idle workers, and stop all."""
        self._disk.shutdown(cancel_futures=True)
        self._drain()
        free = [worker.actor for worker in self._workers if worker.prepared and not worker.in_flight]
        self._end(free, [worker.actor for worker in self._workers], CLOSE_SECONDS)
        keep_rates(self._plan.study.folder, measured(self._plan, self._watch))

    def _drain(self) -> None:
        """Add the outputs that workers have made when a run is interrupted."""
        busy = [worker for worker in self._workers if worker.call is not None]
        answers = [worker.call for worker in busy] + [worker.actor.stop.remote() for worker in busy]
        ready = self._ray.wait(answers, num_returns=len(answers), timeout=DRAIN_SECONDS)[0] if busy else []
        for answer in ready:
            with contextlib.suppress(self._ray.exceptions.RayError, PlumblineError):
                for output in self._ray.get(answer):
                    self._units[output.transformation, output.seed].add(output)


def _gpus(plan: Plan) -> int:
    """Return the number of GPUs that a worker takes."""
    spec = plan.study.generator
    return spec.vllm.gpus if spec.kind == "vllm" else 0


def _no_room(plan: Plan) -> ServiceError:
    gpus = _gpus(plan)
    needed = f"{count(gpus, 'GPU')} (tensor_parallel_size x data_parallel_size) and a CPU" if gpus else "a CPU"
    return ServiceError(f"no node of the Ray cluster has {needed} free; see `ray status`")


def _names(jobs: Sequence[Job]) -> str:
    """Return the number of texts of each unit, in words for one line."""
    units = Counter((job.transformation, job.seed) for job in jobs)
    return ", ".join(f"{count(number, 'text')} of {name} with seed {seed}" for (name, seed), number in units.items())


def _death(error: Exception, worker: _WorkerHandle) -> ServiceError:
    """Return the error that says why a worker is gone."""
    where = f"node {worker.slot.address}"
    if not worker.prepared:  # most often a package that is missing
        why = str(error).strip().splitlines()[-1]
        return ServiceError(f"{where}: no worker starts ({why}); docs/howto/ray.md says what a node needs")
    number = len(worker.in_flight)
    line = f"{where}: a worker died with {count(number, 'text')} in flight (killed, or out of memory?)"
    return ServiceError(f"{line}; Ray's logs there say why")


def _mendable(error: Any, slot: Slot) -> Exception:
    """Return a worker's error with its node's address; raise a bug as it is."""
    cause: BaseException = error.cause
    if isinstance(cause, PlumblineError):
        return type(cause)(f"node {slot.address}: {cause}")
    if isinstance(cause, ImportError):
        return StudyError(f"node {slot.address}: {cause}; docs/howto/ray.md says what a node needs")
    if isinstance(cause, OSError):
        return OSError(cause.errno, cause.strerror, f"{cause.filename} on node {slot.address}")
    raise error
