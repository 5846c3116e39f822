"""The state of each model on a Ray cluster, and the messages about workers that fail or die."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluation.models.embeddings import Embeddings
from evaluation.models.encoder import ModelHost
from evaluation.models.in_process import keep_speed
from evaluation.models.shards import Shards, TextQueue, TextShard
from evaluation.models.workers import EncodingWorker, Facts, MethodCall, due_of
from evaluation.work import ModelJob, explained, quiet
from plumbline.errors import PlumblineError, ServiceError
from plumbline.models.cluster import Slot, slots
from plumbline.rates import Stopwatch
from plumbline.study.evaluation import ModelSpec

LIGHT = ("openai", "lexical", "word_vectors")  # kinds of models that need neither a GPU nor many CPUs


def serves(slot: Slot, spec: ModelSpec) -> bool:
    """Return whether a slot suits a model: light models have slots without a CPU."""
    return (slot.cpus == 0) == (spec.kind in LIGHT)


def size_of_slots(ray: Any, device: str) -> tuple[int, int]:
    """Return the CPUs and GPUs of a slot: one each, or without GPUs as many CPUs as the smallest node has.

    A run fixes the size when it starts, as joining nodes would change it and invalidate slots in use. `device` is the
    study's device for models. Raises ServiceError if no node has a CPU.
    """
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
    if not nodes:
        raise ServiceError("no node of the Ray cluster has a free CPU; see `ray status`")
    gpus = any(has.get("GPU", 0) >= 1 for has in nodes) and device != "cpu"
    return (1, 1) if gpus else (min(int(has["CPU"]) for has in nodes), 0)


def model_slots(ray: Any, size: tuple[int, int]) -> list[Slot]:
    """Return the cluster's slots of this size, and one a node for light models, which take no CPU.

    Light models wait for a server, or compute very little.
    """
    return [*slots(ray, *size), *(slot._replace(cpus=0) for slot in slots(ray, 1, one_a_node=True))]


def command_cpus(ray: Any) -> int:
    """Return the CPUs that the command's own node gives to the cluster."""
    here = ray.get_runtime_context().get_node_id()
    return sum(int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["NodeID"] == here)


# Tries of a shard or piece whose process dies or fails. A process works on one at a time, so the fatal one is known;
# but the first two deaths may have other causes: a process may be killed, and the next one's node be lost.
TRIES = 3


@dataclass(eq=False)
class ModelRun:
    """A running model: `todo` has the numbers of pieces that no scoring worker has."""

    job: ModelJob
    shards: Shards
    todo: deque[int]
    workers: list[EncodingHandle] = field(default_factory=list)
    facts: Facts | None = None
    pieces_in_flight: int = 0
    texts: int = 0
    failure: str = ""
    unusable: set[Slot] = field(default_factory=set)
    reason: str = ""  # why slots are unusable: an error, rather than a death
    tries: Counter[Any] = field(default_factory=Counter)  # of pieces, and of slots where loading it killed the process
    waiting: dict[TextQueue, ScoringHandle] = field(default_factory=dict)
    questions: list[tuple[ScoringHandle, MethodCall]] = field(default_factory=list)  # not given to a worker yet
    answers: dict[bytes, Any] = field(default_factory=dict)  # answers by question
    ways: dict[str, Any] = field(default_factory=dict)  # the text behind a prompt, for models that choose their own
    watches: defaultdict[str, Stopwatch] = field(default_factory=lambda: defaultdict(Stopwatch))  # by kind of GPU

    @classmethod
    def of(cls, host: ModelHost, job: ModelJob) -> ModelRun:
        """Start a model's run, with its stored embeddings.

        Raises DataError if these cannot be read, StudyError for a local model that is not on the machine that runs the
        command.
        """
        spec, evaluation = job.model.spec, host.evaluation
        spec.location(host.file.parent)
        at_once = spec.requests if spec.kind == "openai" else 1
        batch = evaluation.batch_size * at_once  # texts encoded at once
        shards = Shards(host.store(job.model.model_id), batch)
        return cls(job, shards, deque(range(len(job.pieces))))

    def wants_worker(self) -> bool:
        """Return whether one more worker would have something to do.

        A model is not loaded for shards in flight, nor more often than there are shards left. Their number is known
        once one worker has loaded the model and scoring has begun. Until then more workers start only if nothing
        was encoded before, as everything is left then.
        """
        if self.failure:
            return False
        loading = sum(not worker.ready for worker in self.workers)
        return not self.workers or (self.shards.unassigned > loading if self.facts else self.shards.fresh)

    def start_worker(self, ray: Any, host: ModelHost, slot: Slot) -> EncodingHandle:
        """Start an encoding worker in a slot and return its handle."""
        model = self.job.model
        actor = ray.remote(concurrency_groups={"asked": 1})(EncodingWorker).options(**slot.options)
        worker = EncodingHandle(slot, self, actor.remote(host, model.spec, due_of(host, model.spec), quiet))
        self.workers.append(worker)
        return worker

    def take(self, shard: TextShard, gpu: str, rows: Embeddings, seconds: float) -> None:
        """Store a shard's embeddings, and the time they took on this kind of GPU. Raises as `Shards.add`."""
        self.watches[gpu].add(self.job.model.spec.name, len(shard.texts), sum(map(len, shard.texts)), seconds)
        self.shards.add(shard, rows)

    def close(self, folder: Path) -> None:
        """Close the store, and record the model's speed in a study's folder."""
        self.shards.close()
        for gpu, watch in self.watches.items():
            keep_speed(folder, self.job.model.spec, self.job.model.model_id, watch, gpu)

    def may_have(self, slots: Sequence[Slot]) -> bool:
        """Return whether a slot is left for the model."""
        return any(serves(slot, self.job.model.spec) and slot not in self.unusable for slot in slots)

    def failed(self, slot: Slot, error: Any, shard: TextShard | None) -> str:
        """Record an error in a slot, with its shard if any; return the message."""
        self.reason = why = line_of(error, f"node {slot.address}")
        self.unusable.add(slot)
        if shard is not None:
            shard.tries, shard.reason = shard.tries + 1, why
        return why

    def died(self, slot: Slot, error: Exception, over: TextShard | None) -> str:
        """Record a death in a slot, on a shard or while loading; return the message."""
        if over is not None:
            over.tries += 1
        else:
            self.tries[slot] += 1
        why = f"node {slot.address}: {death(error, over.tries if over is not None else self.tries[slot])}"
        if self.tries[slot] >= TRIES:
            self.unusable.add(slot)
            self.reason = self.reason or why
        return why


@dataclass(eq=False)
class EncodingHandle:
    """An encoding worker, and its shards in flight."""

    slot: Slot
    run: ModelRun
    actor: Any
    ready: bool = False
    gone: bool = False
    gpu: str = ""  # kind of GPU
    in_flight: list[TextShard] = field(default_factory=list)


@dataclass(eq=False)
class ScoringHandle:
    """A scoring worker, and the piece of a run that it makes."""

    actor: Any
    run: ModelRun | None = None
    piece: int = -1

    @property
    def current(self) -> ModelRun:
        """The run that it works for."""
        if self.run is None:
            raise RuntimeError("an idle scoring worker has no model run")
        return self.run

    def begin(self, run: ModelRun) -> Any:
        """Start the next piece of a run and return the call."""
        self.run, self.piece = run, run.todo.popleft()
        run.pieces_in_flight += 1
        return self.actor.begin.remote(run.job.pieces[self.piece], run.facts, run.job.model.spec.name)

    def free(self) -> None:
        """Mark it as idle."""
        self.current.pieces_in_flight -= 1
        self.run = None


def idle_for(run: ModelRun, workers: Sequence[EncodingHandle]) -> EncodingHandle | None:
    """Return an idle worker whose run has others, and whose slot suits a run without workers; or None."""
    for worker in workers:
        idle = worker.ready and not worker.in_flight and len(worker.run.workers) > 1
        if idle and serves(worker.slot, run.job.model.spec) and worker.slot not in run.unusable:
            return worker
    return None


def line_of(error: Any, where: str) -> str:
    """Return a process's error in one line with its place; raise a bug as it is."""
    cause: BaseException = error.cause
    if isinstance(cause, (ImportError, OSError)):
        return f"{where}: {cause}; docs/howto/ray.md says what a node needs"
    if isinstance(cause, (PlumblineError, MemoryError, RuntimeError)):
        return f"{where}: {explained(cause)}"
    raise error


def death(error: Exception, times: int) -> str:
    """Return the message about a dead process, with the number of deaths on the same work."""
    what = str(error).strip().splitlines()[0]
    often = "" if times < TRIES else f" {TRIES} times"
    return f"its process died{often} (killed, or out of memory?): {what}; see Ray's logs on the node"
