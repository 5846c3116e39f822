"""Work on a running Ray cluster: its slots, a pool of workers in them, and a chat model for each worker.

Only the command writes. Workers answer calls and keep nothing, so a run that is killed continues from the records, as
without Ray. docs/howto/ray.md says what each node needs.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tqdm import tqdm

from plumbline.errors import DataError, PlumblineError, ServiceError, StudyError, TextFailedError, TextUnansweredError
from plumbline.models.chat import Attempt, Chat, Completion, open_chat
from plumbline.resources import installed_versions, installing
from plumbline.study import Study
from plumbline.study.engines import EngineSpec

REACH_SECONDS = 5.0
TRIES = 3  # of a call whose workers die, and of workers in one slot that die without an answer


def join(address: str) -> Any:
    """Connect to a running cluster, and return the package ray. Never starts a cluster.

    Args:
        address: the cluster's address; `auto` is the cluster that this machine is part of.

    Returns:
        The module `ray`.

    Raises:
        StudyError: the package ray is not installed.
        ServiceError: no cluster runs at the address.

    Example:
        >>> join("10.0.0.1:6379")  # doctest: +SKIP
    """
    settings = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # silences advice on standard error
        "RAY_NUM_REDIS_GET_RETRIES": "3",  # each attempt takes 40 s, and Ctrl-C does not end it
    }
    for name, value in settings.items():
        os.environ.setdefault(name, value)
    try:
        import ray  # noqa: PLC0415 (extra `ray`)
        from ray._private.services import canonicalize_bootstrap_address  # noqa: PLC0415 (imported first, as `ray.init` does)
    except ImportError:
        raise StudyError(f"--ray needs the package ray, here and on the nodes: {installing('ray')}") from None
    try:
        cluster = canonicalize_bootstrap_address(address)
        if cluster is None:
            raise ConnectionError("no cluster runs at this address")  # `local`: ray would start one
        host, _, port = cluster.rpartition(":")
        socket.create_connection((host.strip("[]"), int(port)), REACH_SECONDS).close()
        ray.init(address=cluster, log_to_driver=False, logging_level="ERROR")
    except Exception as error:  # ConnectionError, ValueError, RuntimeError: by what is wrong
        line = f"--ray {address}: {error}; start a cluster with `ray start --head`"
        raise ServiceError(f"{line}, or name a running one that this machine is part of: --ray 10.0.0.1:6379") from None
    return ray


class Slot(NamedTuple):
    """A slot on a node for one worker, with this many CPUs and GPUs."""

    node: str
    address: str
    cpus: int
    gpus: int = 0

    @property
    def options(self) -> dict[str, Any]:
        """The options of an actor that runs here."""
        return {"num_cpus": self.cpus, "num_gpus": self.gpus, **on_node(self.node)}


def on_node(node: str) -> dict[str, Any]:
    """Return options that pin an actor to a node."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: PLC0415 (extra `ray`)

    return {"scheduling_strategy": NodeAffinitySchedulingStrategy(node_id=node, soft=False)}


def slots(ray: Any, cpus: int, gpus: int = 0, *, one_a_node: bool = False) -> list[Slot]:
    """Return all slots with this many CPUs and GPUs on the nodes that are alive."""
    listed = []
    for node in ray.nodes():
        has = node["Resources"] if node["Alive"] else {}
        room = int(has.get("CPU", 0)) // cpus
        room = min(room, int(has.get("GPU", 0)) // gpus) if gpus else room
        listed += [Slot(node["NodeID"], node["NodeManagerAddress"], cpus, gpus)] * (
            min(room, 1) if one_a_node else room
        )
    return listed


class WorkerDiedError(TextUnansweredError):
    """The workers that had a call died, several times in a row."""


@dataclass(eq=False)
class _Worker:
    """The worker of a slot, or the one that replaced it; `deaths` are those in a row without an answer."""

    slot: Slot
    actor: Any = None
    deaths: int = 0


@dataclass(eq=False)
class WorkerPool:
    """Workers that answer calls, one in each slot; `make` starts one in a slot.

    A worker is an actor with the method `prepare`, whose answer is `facts`. One that dies is replaced, and its calls go
    to others. One that cannot work (no model, wrong key) is given up, and `note` is told why, while others go on.
    """

    ray: Any
    slots: Sequence[Slot]
    make: Callable[[Slot], Any]
    calls_each: int
    note: Callable[[str], None]
    facts: Any = None
    _workers: list[_Worker] = field(default_factory=list)
    _free: asyncio.Queue[tuple[_Worker, Any]] = field(default_factory=asyncio.Queue)
    _starting: set[asyncio.Task[None]] = field(default_factory=set)
    _problem: BaseException | None = None

    async def open(self) -> WorkerPool:
        """Start all workers, and wait for the first that is ready. Raises the last worker's error if there is none."""
        self._workers = [_Worker(slot) for slot in self.slots]
        for worker in self._workers:
            self._begin(worker)
        self._release(*await self._next())
        return self

    async def call(self, method: str, *values: Any) -> Any:
        """Return a free worker's answer.

        Raises the error that the method raised for these values; WorkerDiedError after the third death; and the last
        worker's error if none is left.
        """
        deaths = 0
        while True:
            worker, actor = await self._next()
            try:
                answer = await self._answer(worker.slot, actor, method, *values)
            except WorkerDiedError as error:
                deaths += 1
                self._replace(worker, actor, error)
                if deaths == TRIES:
                    raise
            except (TextFailedError, DataError):
                self._release(worker, actor)
                raise
            except PlumblineError as error:
                self._give_up(worker, error)
            else:
                worker.deaths = 0
                self._release(worker, actor)
                return answer

    def close(self) -> None:
        """Stop all workers."""
        for task in self._starting:
            task.cancel()
        for worker in self._workers:
            self._kill(worker)
        self._workers.clear()

    async def _answer(self, slot: Slot, actor: Any, method: str, *values: Any) -> Any:
        """Return an actor's answer, or raise its error with the node's address; a bug is raised as it is."""
        try:
            return await getattr(actor, method).remote(*values)
        except self.ray.exceptions.RayTaskError as error:
            cause = error.cause
        except self.ray.exceptions.RayError as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            line = f"node {slot.address}: a worker died (killed, or out of memory?): {reason}; see Ray's logs there"
            raise WorkerDiedError(line) from None
        if isinstance(cause, (TextFailedError, DataError)):
            raise cause
        if isinstance(cause, PlumblineError):
            raise type(cause)(*(f"node {slot.address}: {fault}" for fault in cause.args))
        if isinstance(cause, (ImportError, OSError)):
            raise ServiceError(f"node {slot.address}: {cause}; docs/howto/ray.md says what a node needs")
        raise cause

    async def _next(self) -> tuple[_Worker, Any]:
        """Wait for a worker with room for a call. Raises the last worker's error if none is left."""
        while True:
            worker, actor = await self._free.get()
            if self._problem is not None:
                self._release(worker, actor)  # wakes the next that waits
                raise self._problem
            if worker.actor is actor:
                return worker, actor

    def _release(self, worker: _Worker, actor: Any) -> None:
        self._free.put_nowait((worker, actor))

    def _begin(self, worker: _Worker) -> None:
        task = asyncio.get_running_loop().create_task(self._start(worker))
        self._starting.add(task)
        task.add_done_callback(self._started)

    def _started(self, task: asyncio.Task[None]) -> None:
        self._starting.discard(task)
        if not task.cancelled() and (bug := task.exception()):
            self._end(bug)

    def _end(self, cause: BaseException) -> None:
        self._problem = cause
        self._release(_Worker(self.slots[0]), None)

    async def _start(self, worker: _Worker) -> None:
        """Start a worker in its slot, and let it take calls once it is prepared."""
        worker.actor = actor = self.make(worker.slot)
        try:
            facts = await self._answer(worker.slot, actor, "prepare")
        except WorkerDiedError as error:
            self._replace(worker, actor, error)
        except PlumblineError as error:
            self._give_up(worker, error)
        else:
            self.facts = facts if self.facts is None else self.facts
            for _ in range(self.calls_each):
                self._release(worker, actor)

    def _replace(self, worker: _Worker, actor: Any, cause: PlumblineError) -> None:
        """Start another worker in place of one that died, unless that was done already or three died in a row."""
        if worker.actor is not actor:
            return
        worker.deaths += 1
        if worker.deaths >= TRIES:
            self._give_up(worker, cause)
            return
        worker.actor = None
        self.note(f"{cause}; the run continues")
        self._begin(worker)

    def _give_up(self, worker: _Worker, cause: PlumblineError) -> None:
        """Go on without a worker."""
        if worker not in self._workers:
            return
        self._workers.remove(worker)
        self._kill(worker)
        if self._workers:
            self.note(f"{cause}; the other workers continue")
        else:
            self._end(cause)

    def _kill(self, worker: _Worker) -> None:
        if worker.actor is not None:
            self.ray.kill(worker.actor)
        worker.actor = None


def refuse_other_versions(expected: Mapping[str, str], here: Mapping[str, str]) -> None:
    """Raise StudyError if a node has another version of a package than the machine that runs the command."""
    for package, version in expected.items():
        if here.get(package) != version:
            installed = here.get(package, "missing")
            raise StudyError(f"{package} is {installed} there, but {version} on the machine that runs the command")


def _versions(spec: EngineSpec) -> dict[str, str]:
    """Return versions that decide answers, without builds (`+cpu`, `+cu128`), which differ between machines."""
    return installed_versions(("plumbline", *spec.PACKAGES), builds=False)


class ChatWorker:
    """A Ray actor that asks a chat model of its own: an engine on the node's GPUs, or a server."""

    def __init__(self, spec: EngineSpec, study: Study, versions: Mapping[str, str]) -> None:
        self._spec, self._study, self._expected = spec, study, versions

    async def prepare(self) -> None:
        """Open the model. Raises StudyError for other versions than the command's, and as `open_chat`."""
        refuse_other_versions(self._expected, _versions(self._spec))
        self._chat = open_chat(self._spec, self._study)

    async def ask(self, message: str, attempt: Attempt, labels: Sequence[str]) -> Completion:
        """Return the model's answer. Raises as `Chat.ask`."""
        return await self._chat.ask(message, attempt, labels)


class ClusterChat(Chat):
    """A chat model that workers on the nodes of a cluster ask: one for each engine's GPUs, or one a node."""

    def __init__(self, spec: EngineSpec, study: Study, address: str) -> None:
        """Connect to the cluster. Raises as `join`, and ServiceError if no node has room for the model."""
        self._ray = join(address)
        gpus = spec.gpus
        slot_list = slots(self._ray, 1, gpus, one_a_node=not gpus)
        if not slot_list:
            self._ray.shutdown()
            needed = f"{gpus} GPUs (tensor_parallel_size x data_parallel_size) and a CPU" if gpus else "a CPU"
            raise ServiceError(f"no node of the Ray cluster has {needed}; see `ray status`")
        self.concurrency = spec.in_flight * len(slot_list)
        remote = self._ray.remote(ChatWorker)
        values = spec, study, _versions(spec)

        def make(slot: Slot) -> Any:
            return remote.options(max_concurrency=spec.in_flight + 1, **slot.options).remote(*values)

        self._pool = WorkerPool(
            self._ray, slot_list, make, spec.in_flight, lambda line: tqdm.write(line, file=sys.stderr)
        )
        self._opened: asyncio.Task[WorkerPool] | None = None

    async def ask(self, message: str, attempt: Attempt, labels: Sequence[str] = ()) -> Completion:
        """Return a worker's answer. Raises as `Chat.ask`, with TextUnansweredError if three workers died on it."""
        if self._opened is None:
            self._opened = asyncio.get_running_loop().create_task(self._pool.open())
        await self._opened
        answer: Completion = await self._pool.call("ask", message, attempt, labels)
        return answer

    async def close(self) -> None:
        """Stop the workers and leave the cluster."""
        self._pool.close()
        self._ray.shutdown()
