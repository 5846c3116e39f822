"""`python -m generation.run --ray`: the texts of a study, worked on by the nodes of a running Ray cluster.

Each worker is a process on a node with a generator of its own (an engine on GPUs of the node, or an endpoint), made
once. All work on one unit, and on the next when its texts are handed out; whoever gives outputs back is handed as many
texts more, so that a faster worker makes more. The command alone writes: each output goes into its unit's journal when
it comes, as without Ray, and workers need no folder that is shared. What must be where is in docs/howto/ray.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

from tqdm import tqdm

from generation.forecast import measured
from generation.jobs import Job, Plan
from generation.ray_session import Slot, join, slots, without
from generation.unit import Unit
from generation.work import first_error, show, sync_always
from generation.worker import Worker, made_of, other_version, versions_of
from plumbline.errors import PlumblineError, ServiceError, StudyError
from plumbline.rates import Stopwatch, keep_rates
from plumbline.records import TransformedText

TRIES = 3  # of a text whose workers die


class JobQueue:
    """Texts for workers, each with one worker at a time; `in_flight` is what a worker has, by key.

    What a dead worker had goes out again, before all else. A text that two workers died over may be why they
    died: such a one goes to a worker that has no other of them, so that the third death takes no others along. Then it
    is `lost`.
    """

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._fresh: Iterator[Job] = iter(jobs)
        self._again: deque[Job] = deque()
        self._suspects: deque[Job] = deque()
        self._deaths: Counter[str] = Counter()
        self.lost: list[Job] = []

    def take(self, in_flight: dict[str, Job], room: int) -> list[Job]:
        """At most `room` texts more for a worker; they are in flight then."""
        taken: list[Job] = []
        if room > 0 and self._suspects and not any(self._deaths[key] > 1 for key in in_flight):
            taken.append(self._suspects.popleft())
        while self._again and len(taken) < room:
            taken.append(self._again.popleft())
        taken += itertools.islice(self._fresh, max(0, room - len(taken)))
        in_flight.update((job.key, job) for job in taken)
        return taken

    def put_back(self, in_flight: dict[str, Job], *, died: bool) -> None:
        """Queue again what a worker had that works no more; `died` where it was its process that ended."""
        for job in in_flight.values():
            self._deaths[job.key] += died
            deaths = self._deaths[job.key]
            (self._again if deaths < TRIES - 1 else self._suspects if deaths < TRIES else self.lost).append(job)
        in_flight.clear()


DEATHS = 3  # of workers in a slot without an output in between: it gets no other
TEXTS_A_WORKER = 16  # no worker more is started for fewer
LOOK_SECONDS = 5.0  # so often the command looks for nodes that have joined
DRAIN_SECONDS = 1.0  # so long an interrupted run waits for what workers have made
CLOSE_SECONDS = 20.0


def generate_on(address: str, plan: Plan, todo: Sequence[Unit], *, allow_code: bool = False) -> Counter[str]:
    """Work on units on the Ray cluster at an address (`auto`: this machine's); counts as `generate` gives them.

    Never starts a cluster. What a worker had in flight that dies or fails goes to others; nodes that join get
    workers. Raises StudyError without the package ray, ServiceError where there is no cluster, no room on it, or three
    workers died over a text, and what a worker raised where no other is left; what was received before stays.
    """
    ray = join(address)
    scheduler = _TextScheduler(ray, plan, todo, allow_code=allow_code)
    with without(contextlib.redirect_stdout):  # Ray's pages on what has died
        try:
            return asyncio.run(scheduler.work())
        finally:
            scheduler.end()
            ray.shutdown()


class _OtherVersionError(StudyError):
    """A node has another version of a package than the others."""


@dataclass(eq=False)
class _WorkerHandle:
    """A worker as the command sees it: what it has in flight, by key, and the call that it has not answered yet."""

    slot: Slot
    actor: Any
    in_flight: dict[str, Job] = field(default_factory=dict)
    call: Any = None
    prepared: bool = False
    received: int = 0


class _TextScheduler:
    """Starts the workers of a run, hands texts to them, and takes back what they make."""

    def __init__(self, ray: Any, plan: Plan, todo: Sequence[Unit], *, allow_code: bool) -> None:
        self._ray, self._plan, self._allow_code = ray, plan, allow_code
        self._units = {(unit.transformation, unit.seed): unit for unit in todo}
        self._queue = JobQueue(job for unit in todo for job in unit.jobs())
        self._total: int = sum(unit.todo for unit in todo)
        self._counts: Counter[str] = Counter()
        self._taken: set[Slot] = set()  # that have a worker, or had one that cannot work
        self._tasks: set[asyncio.Task[None]] = set()  # one for each slot that is used
        self._workers: list[_WorkerHandle] = []
        self._watch = Stopwatch()
        self._versions = versions_of(plan.study.generator)  # and of what only nodes have, the first one's
        self._problem: Exception | None = None
        self._put_back = asyncio.Event()  # texts are in the queue again
        self._done = asyncio.Event()

    @property
    def _left(self) -> int:
        return self._total - self._counts.total() - len(self._queue.lost)

    async def work(self) -> Counter[str]:
        """Have all units worked on."""
        if not _slots(self._ray, self._plan):
            raise _no_room(self._plan)
        journals = [unit.journal for unit in self._units.values()]
        try:
            with tqdm(total=self._total, unit="text", desc="generating") as self._bar:
                async with asyncio.TaskGroup() as self._group:
                    beside = [self._group.create_task(coroutine) for coroutine in (sync_always(journals), self._look())]
                    await self._done.wait()
                    for task in (*beside, *self._tasks):
                        task.cancel()
        except* (PlumblineError, OSError) as errors:
            raise first_error(errors) from None
        if self._left and self._problem:
            raise self._problem
        if self._queue.lost:
            raise ServiceError(f"not done after {TRIES} tries: {_names(self._queue.lost)}; run again to go on")
        return self._counts

    async def _look(self) -> None:
        """Start workers where there is room, also on nodes that join later."""
        while True:
            self._start_workers()
            await asyncio.sleep(LOOK_SECONDS)

    def _start_workers(self) -> None:
        wanted = math.ceil(self._left / TEXTS_A_WORKER) - len(self._tasks)
        free = [slot for slot in _slots(self._ray, self._plan) if slot not in self._taken]
        for slot in free[: max(0, wanted)]:
            self._taken.add(slot)
            self._tasks.add(self._group.create_task(self._use(slot)))

    async def _use(self, slot: Slot) -> None:
        """Have texts made in a slot: by a worker, or by another after one that died there."""
        deaths, again = 0, True
        problem: Exception
        while again:
            worker = self._start_worker(slot)
            try:
                await self._serve(worker)
            except _OtherVersionError as error:
                problem, died = error, False
            except self._ray.exceptions.RayTaskError as error:
                problem, died = _mendable(error, slot), False
            except self._ray.exceptions.RayError as error:
                problem, died = _death(error, worker), True
            deaths = 1 if worker.received else deaths + 1
            alive = any(node["Alive"] and node["NodeID"] == slot.node for node in self._ray.nodes())
            again = died and worker.prepared and alive and deaths < DEATHS
            self._stop(worker, died=died)
            if not again:
                self._tasks.discard(cast("asyncio.Task[None]", asyncio.current_task()))
                self._start_workers()
            if self._tasks and self._left:
                tqdm.write(f"{problem}; the others go on", file=sys.stderr)
        if not self._tasks:
            self._problem = problem
            self._done.set()

    def _start_worker(self, slot: Slot) -> _WorkerHandle:
        names = list(dict.fromkeys(name for name, _ in self._units))
        remote = self._ray.remote(Worker).options(**slot.options)
        worker = _WorkerHandle(slot, remote.remote(self._plan.study, names, allow_code=self._allow_code))
        self._workers.append(worker)
        return worker

    async def _serve(self, worker: _WorkerHandle) -> NoReturn:
        """Hand texts to a worker as fast as it gives them back; raises what Ray says when it works no more."""
        at_once, gpu, versions = await worker.actor.prepare.remote(made_of(self._plan))
        if difference := other_version(versions, self._versions):
            raise _OtherVersionError(f"node {worker.slot.address}: {difference}; install the same everywhere")
        worker.prepared, more, self._watch.gpu = True, 1, gpu
        if not any(handle.prepared for handle in self._workers if handle is not worker):
            self._watch.start()
        self._watch.gpus += worker.slot.gpus
        while True:
            jobs = self._queue.take(worker.in_flight, at_once + more - len(worker.in_flight))
            if not worker.in_flight:  # others have the last ones, and may die over them
                self._put_back.clear()
                await self._put_back.wait()
                continue
            worker.call = worker.actor.exchange.remote(jobs)
            outputs = await worker.call
            self._receive(worker, outputs)
            more = min(at_once, max(more, 2 * len(outputs)))  # what it may have made before it is handed others

    def _receive(self, worker: _WorkerHandle, outputs: Sequence[TransformedText]) -> None:
        """Keep outputs; a unit's last one settles it."""
        worker.call = None
        worker.received += len(outputs)
        for output in outputs:
            del worker.in_flight[output.key]
            unit = self._units[output.transformation, output.seed]
            last = unit.add(output)
            show(self._bar, self._counts, output.status)
            self._watch.note(output.transformation, 1, len(output.text))
            if last:  # beside the others' work: a large table takes seconds
                self._group.create_task(asyncio.to_thread(unit.settle))
        if not self._left:
            self._done.set()

    def _stop(self, worker: _WorkerHandle, *, died: bool) -> None:
        """Do without a worker; what it had in flight is for others."""
        self._workers.remove(worker)
        self._watch.gpus -= worker.slot.gpus * worker.prepared
        self._ray.kill(worker.actor)
        self._queue.put_back(worker.in_flight, died=died)
        self._put_back.set()
        if not self._left:
            self._done.set()

    def end(self) -> None:
        """Take what the workers have made, close those that are free, and end all."""
        self._drain()
        closing = [worker.actor.close.remote() for worker in self._workers if worker.prepared and not worker.in_flight]
        if closing:
            self._ray.wait(closing, num_returns=len(closing), timeout=CLOSE_SECONDS)
        for worker in self._workers:
            self._ray.kill(worker.actor)
        keep_rates(self._plan.study, measured(self._plan, self._watch))

    def _drain(self) -> None:
        """Keep what an interrupted run's workers have made."""
        busy = [worker for worker in self._workers if worker.call is not None]
        answers = [worker.call for worker in busy] + [worker.actor.stop.remote() for worker in busy]
        ready = self._ray.wait(answers, num_returns=len(answers), timeout=DRAIN_SECONDS)[0] if busy else []
        for answer in ready:
            with contextlib.suppress(self._ray.exceptions.RayError, PlumblineError):
                for output in self._ray.get(answer):
                    self._units[output.transformation, output.seed].add(output)


def _slots(ray: Any, plan: Plan) -> list[Slot]:
    """One a node, for engines as many as the node's GPUs allow."""
    gpus = _gpus(plan)
    return slots(ray, 1, gpus, one_a_node=not gpus)


def _gpus(plan: Plan) -> int:
    """How many GPUs a worker takes."""
    spec = plan.study.generator
    return spec.vllm.gpus if spec.kind == "vllm" else 0


def _no_room(plan: Plan) -> ServiceError:
    gpus = _gpus(plan)
    needed = f"{gpus} GPUs (tensor_parallel_size x data_parallel_size) and a CPU" if gpus else "a CPU"
    return ServiceError(f"no node of the Ray cluster has {needed} to give; see `ray status`")


def _names(jobs: Sequence[Job]) -> str:
    """Texts as a line has room for: how many of which unit."""
    units = Counter((job.transformation, job.seed) for job in jobs)
    return ", ".join(f"{count} texts of {name} with seed {seed}" for (name, seed), count in units.items())


def _death(error: Exception, worker: _WorkerHandle) -> ServiceError:
    """Why there is a worker no more."""
    where = f"node {worker.slot.address}"
    if not worker.prepared:  # most often a package that is missing
        why = str(error).strip().splitlines()[-1]
        return ServiceError(f"{where}: no worker starts ({why}); docs/howto/ray.md says what a node needs")
    line = f"{where}: a worker died with {len(worker.in_flight)} texts in flight (killed, or out of memory?)"
    return ServiceError(f"{line}; Ray's logs there say why")


def _mendable(error: Any, slot: Slot) -> Exception:
    """What a worker raised, with the node that it came from; a bug stays what it is."""
    cause: BaseException = error.cause
    if isinstance(cause, PlumblineError):
        return type(cause)(f"node {slot.address}: {cause}")
    if isinstance(cause, ImportError):
        return StudyError(f"node {slot.address}: {cause}; docs/howto/ray.md says what a node needs")
    if isinstance(cause, OSError):
        return OSError(cause.errno, cause.strerror, f"{cause.filename} on node {slot.address}")
    raise error
