"""Run model jobs: here, one model after the other, or with `--ray` on the nodes of a running Ray cluster.

On a cluster each model has a process on the machine that runs the command, where its embeddings are: it does the same
work as without a cluster, and workers on the nodes encode its texts. A process that dies is started again and goes on.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tqdm import tqdm

from evaluation.models.encoder import Encoder, ModelHost
from evaluation.models.workers import ClusterModel
from evaluation.units import Model
from evaluation.work import JobOutcome, Loader, ModelEnd, ModelJob, quiet, work
from plumbline.errors import ServiceError
from plumbline.models.cluster import TRIES, Slot, join, on_node, slots
from plumbline.study.evaluation import ModelSpec

LOOK_SECONDS = 1.0  # so that Ctrl-C is noticed


def run_jobs(
    host: ModelHost, jobs: Sequence[ModelJob], load: Loader, address: str = ""
) -> Generator[tuple[ModelJob, Any]]:
    """Yield the results of each job as they come; a job's last is its `ModelEnd`.

    Args:
        host: the study's settings and folders.
        jobs: what is left for each model.
        load: returns a model's encoder, on this machine.
        address: the address of a Ray cluster; empty for this machine.

    Raises:
        StudyError: the package ray is not installed.
        ServiceError: there is no cluster, or no room on it. The error of a model is in its `ModelEnd`.

    Example:
        >>> for job, result in run_jobs(host, jobs, ModelHost.load):  # doctest: +SKIP
        ...     print(job.model.name, result)
    """
    if address:
        yield from _on_cluster(address, host, jobs)
        return
    for job in jobs:
        for result in work(host, job, load):
            yield job, result


def save_results(
    stream: Generator[tuple[ModelJob, Any]],
    save: Callable[[ModelJob, Any], bool],
    outcome: JobOutcome,
    n_scores: int,
    fail: Callable[[Model, str], None] | None = None,
) -> None:
    """Save the results of `run_jobs` as they come, counted in `outcome`, with a progress bar of this many scores.

    `save` returns whether a result is a score; `fail` gets the reason of each model that failed.
    """
    with tqdm(total=n_scores, unit="score", desc="evaluating", disable=not n_scores) as bar, contextlib.closing(stream):
        for job, result in stream:
            if isinstance(result, ModelEnd):
                outcome.end(job.model, result)
                if result.failure and fail is not None:
                    fail(job.model, result.failure)
            elif save(job, result):
                outcome.made += 1
                bar.update()


@dataclass(eq=False)
class _Run:
    """A running model: its process, the slots that are free again after it, and the number of its results so far."""

    job: ModelJob
    process: Any
    slots: Sequence[Slot]
    done: int = 0


@dataclass
class _Room:
    """The slots that models can have: `free` for one model each, and one on each `node` for light models together."""

    free: list[Slot]
    nodes: Sequence[Slot]
    most: int  #: models at a time

    def shares(self, waiting: list[ModelJob], running: int) -> Iterator[tuple[ModelJob, list[Slot], list[Slot]]]:
        """Yield the jobs that can start now, which leave `waiting`, with all their slots and those taken from `free`.

        The heavy models that can start share the free slots.
        """
        for job in list(waiting):
            room = self.most - running
            if not room:
                return
            if job.model.spec.LIGHT:
                share, reserved = [slot._replace(cpus=0) for slot in self.nodes], list[Slot]()
            else:
                heavy = sum(not each.model.spec.LIGHT for each in waiting)
                share = reserved = [self.free.pop() for _ in range(-(-len(self.free) // min(heavy, room)))]
            if share:
                waiting.remove(job)
                running += 1
                yield job, share, reserved


def _on_cluster(address: str, host: ModelHost, jobs: Sequence[ModelJob]) -> Iterator[tuple[ModelJob, Any]]:
    ray = join(address)
    with contextlib.ExitStack() as ends:
        ends.callback(ray.shutdown)
        here = ray.get_runtime_context().get_node_id()
        cpus = sum(int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["NodeID"] == here)
        room = _Room(_model_slots(ray), slots(ray, 1, one_a_node=True), max(1, cpus))
        options = {"num_cpus": 0, "max_restarts": TRIES - 1, "max_task_retries": TRIES - 1, **on_node(here)}
        waiting, running = list(jobs), dict[Any, _Run]()
        while waiting or running:
            for job, share, slots_taken in room.shares(waiting, len(running)):
                run = _Run(job, ray.remote(ModelProcess).options(**options).remote(host, job, share), slots_taken)
                running[run.process.result.remote(0)] = run
            for call in ray.wait(list(running), timeout=LOOK_SECONDS)[0]:
                run = running.pop(call)
                result, notes = _answer(ray, call)
                for note in notes:
                    tqdm.write(f"{run.job.model.name}: {note}", file=sys.stderr)
                yield run.job, result
                if isinstance(result, ModelEnd):
                    ray.kill(run.process)  # its workers end with it
                    room.free += run.slots
                else:
                    run.done += 1
                    running[run.process.result.remote(run.done)] = run


def _answer(ray: Any, call: Any) -> tuple[Any, list[str]]:
    """Return a process's result with its notes; its end if it died. Raises the error that its job raised."""
    try:
        answer: tuple[Any, list[str]] = ray.get(call)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayError as error:
        cause = (str(error).strip().splitlines() or [""])[0]
        return ModelEnd(failure=f"its process died {TRIES} times (killed, or out of memory?): {cause}"), []
    return answer


def _model_slots(ray: Any) -> list[Slot]:
    """Return a slot for each GPU, or else for as many CPUs as the smallest node has. Raises ServiceError if none."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
    if not nodes:
        raise ServiceError("no node of the Ray cluster has a free CPU; see `ray status`")
    if any(has.get("GPU", 0) >= 1 for has in nodes):
        return slots(ray, 1, 1)
    return slots(ray, min(int(has["CPU"]) for has in nodes))


class ModelProcess:
    """A Ray actor that does a model's job on the machine that runs the command."""

    def __init__(self, host: ModelHost, job: ModelJob, share: Sequence[Slot]) -> None:
        self._host, self._job, self._slots = host, job, share
        self._results: Iterator[Any] | None = None
        self._notes: list[str] = []
        self._open = contextlib.ExitStack()
        self._open.enter_context(quiet(host.datasets, [job.model.spec]))

    def result(self, number: int) -> tuple[Any, list[str]]:
        """Return the job's next result, and notes on workers; `number` results came before, also of a dead process."""
        if self._results is None:
            remaining = replace(self._job, pieces=self._job.pieces[number:])
            self._results = work(self._host, remaining, self._load)
        result = next(self._results)
        notes, self._notes[:] = list(self._notes), []
        return result, notes

    def _load(self, host: ModelHost, spec: ModelSpec) -> Encoder:
        import ray  # noqa: PLC0415 (extra `ray`)

        return ClusterModel.open(ray, self._slots, host, spec, quiet, self._notes.append)
