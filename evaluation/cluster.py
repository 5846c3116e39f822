"""Run model jobs: here, one model after the other, or with `--ray` on the nodes of a running Ray cluster.

On a cluster each encoding worker on a node loads one model and encodes its texts in shards, every text once; the
command stores the embeddings, shard by shard. Scoring workers run on the machine that runs the command, where the
embeddings are, as many as have work. Another worker repeats the work of one that dies; a job that cannot be done ends
its model, with the reason.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any

from tqdm import tqdm

from evaluation.model_runs import (
    TRIES,
    EncodingHandle,
    ModelRun,
    ScoringHandle,
    command_cpus,
    death,
    idle_for,
    line_of,
    model_slots,
    serves,
    size_of_slots,
)
from evaluation.models.encoder import ModelHost
from evaluation.models.shards import TextQueue, TextShard
from evaluation.models.workers import GivenUp, MethodCall, ModelResult, Rows, ScoringWorker
from evaluation.work import Loader, ModelEnd, ModelJob, quiet, work
from plumbline.errors import PlumblineError
from plumbline.models.cluster import Scheduler, Slot, join, on_node, without

IN_FLIGHT = 2  # shards of an encoding worker at a time, so that it never waits
SCORING = 2  # scoring workers for each slot: while one waits for embeddings, another scores
CLOSE_SECONDS = 5.0


def run_jobs(
    host: ModelHost, jobs: Sequence[ModelJob], load: Loader, address: str = ""
) -> Generator[tuple[ModelJob, Any]]:
    """Yield the results of each job as they come; a job's last is its `ModelEnd`. `address` is a Ray cluster's.

    An empty `address` means this machine. Raises StudyError without the package ray and ServiceError without that
    cluster; the error of a model is in its `ModelEnd`.
    """
    if address:
        with contextlib.closing(spread(address, host, jobs)) as stream:
            yield from stream
    else:
        for job in jobs:
            for result in work(host, job, load):
                yield job, result


def spread(address: str, host: ModelHost, jobs: Sequence[ModelJob]) -> Generator[tuple[ModelJob, Any]]:
    """Run jobs on the Ray cluster at an address (`auto`: this machine's), and yield results as `run_jobs` does.

    Never starts a cluster. A model that cannot be loaded, fails, or repeatedly kills its process ends with the reason;
    the others go on. Raises StudyError without the package ray, ServiceError if there is no cluster or no room on it.
    """
    ray = join(address)
    with contextlib.ExitStack() as ends:
        ends.callback(ray.shutdown)
        scheduler = _ModelScheduler(ray, host, jobs)
        ends.callback(scheduler.end)
        while not scheduler.done:
            with without(contextlib.redirect_stdout):  # Ray prints pages about processes that died
                results = scheduler.step()
            yield from results


class _ModelScheduler(Scheduler):
    """Schedules encoding workers in the slots, and scoring workers beside the command."""

    def __init__(self, ray: Any, host: ModelHost, jobs: Sequence[ModelJob]) -> None:
        self._host = host
        self._specs = [job.model.spec for job in jobs]
        self._results: list[tuple[ModelJob, Any]] = []
        self._encoding: list[EncodingHandle] = []
        self._scoring: list[ScoringHandle] = []
        self._size = size_of_slots(ray, host.evaluation.device)
        super().__init__(ray)
        self._most = max(1, min(SCORING * len(self._slots), command_cpus(ray)))
        self.runs: list[ModelRun] = []
        for job in jobs:
            try:
                self.runs.append(ModelRun.of(host, job))
            except PlumblineError as error:
                self._results.append((job, ModelEnd(failure=str(error))))

    @property
    def done(self) -> bool:
        """True if all models have ended, and their results were returned."""
        return not self.runs and not self._results

    def step(self) -> list[tuple[ModelJob, Any]]:
        """Keep all workers busy, wait for an answer, and return the new results."""
        self._turn()
        self._finish()
        results, self._results = self._results, []
        return results

    def end(self) -> None:
        """End all processes; kill those that are working."""
        free = [worker.actor for worker in self._encoding if worker.ready and not worker.in_flight]
        free += [scorer.actor for scorer in self._scoring if scorer.run is None]
        actors = [worker.actor for worker in self._encoding] + [scorer.actor for scorer in self._scoring]
        self._end(free, actors, CLOSE_SECONDS)
        for run in self.runs:
            run.close(self._host.folder)

    def _all_slots(self) -> list[Slot]:
        return model_slots(self._ray, self._size)

    def _hand_out(self) -> None:
        self._start_scoring()
        self._assign()
        self._start_encoding()

    def _start_encoding(self) -> None:
        """Start a worker in each free slot that a model wants, for the model with the fewest."""
        taken = {worker.slot for worker in self._encoding}
        for slot in [slot for slot in self._slots if slot not in taken]:
            runs = [run for run in self.runs if serves(slot, run.job.model.spec) and slot not in run.unusable]
            if runs := [run for run in runs if run.wants_worker()]:
                worker = min(runs, key=lambda run: len(run.workers)).start_worker(self._ray, self._host, slot)
                self._encoding.append(worker)
                self._after(worker.actor.facts.remote(), partial(self._loaded, worker))
        for run in [run for run in self.runs if not run.workers and not run.failure]:
            if not run.may_have(self._slots):
                self._fail(run, run.reason or "no node of the cluster has room for the model; see `ray status`")
            elif idle := idle_for(run, self._encoding):
                self._stop(idle)

    def _start_scoring(self) -> None:
        """Start as many scoring workers as have work."""
        wanted = min(self._most, sum(len(run.todo) + run.pieces_in_flight for run in self.runs))
        while len(self._scoring) < wanted:
            at = on_node(self._ray.get_runtime_context().get_node_id())
            actor = self._ray.remote(ScoringWorker).options(num_cpus=0, **at).remote(self._host, self._specs, quiet)
            self._scoring.append(ScoringHandle(actor))

    def _assign(self) -> None:
        """Give shards and questions to encoding workers, and pieces to scoring workers."""
        for run in self.runs:
            ready = [worker for worker in run.workers if worker.ready]
            while ready:
                worker = min(ready, key=lambda worker: len(worker.in_flight))
                shard = run.shards.next(len(run.workers)) if len(worker.in_flight) < IN_FLIGHT else None
                if shard is None:
                    break
                worker.in_flight.append(shard)
                way = run.ways.get(shard.prompt)
                call = worker.actor.encode.remote(shard.texts, shard.prompt, shard.role, way)
                self._after(call, partial(self._encoded, worker, shard))
            while ready and run.questions:
                scorer, question = run.questions.pop()
                call = ready[0].actor.answer.options(concurrency_group="asked").remote(question)
                self._after(call, partial(self._answered, scorer, question, ready[0]))
        for scorer in [scorer for scorer in self._scoring if scorer.run is None]:
            runs = [run for run in self.runs if run.facts is not None and run.todo and run.workers]
            if runs:
                run = min(runs, key=lambda worker: worker.pieces_in_flight)
                self._after(scorer.begin(run), partial(self._stepped, scorer))

    def _loaded(self, worker: EncodingHandle, call: Any) -> None:
        """Note that a worker has loaded its model."""
        if (facts := self._from(worker, call)) is not None:
            worker.ready, worker.gpu, worker.run.facts = True, facts.gpu, worker.run.facts or facts

    def _encoded(self, worker: EncodingHandle, shard: TextShard, call: Any) -> None:
        """Store an encoded shard."""
        rows, run = self._from(worker, call, shard), worker.run
        if rows is not None:
            worker.in_flight.remove(shard)
            self._serve(run, lambda: run.take(shard, worker.gpu, *rows))

    def _answered(self, scorer: ScoringHandle, question: MethodCall, worker: EncodingHandle, call: Any) -> None:
        """Pass on a model's answer to a question; if its worker died, ask another."""
        run, answer = worker.run, self._from(worker, call)
        if answer is not None:
            reply, way = answer
            if way is not None:
                run.ways[reply] = way
            if question.repeats:
                run.answers[question.key] = reply
        if answer is not None or not run.workers:
            self._go_on(scorer, reply if answer is not None else GivenUp())
        else:
            run.questions.append((scorer, question))

    def _from(self, worker: EncodingHandle, call: Any, shard: TextShard | None = None) -> Any:
        """Return a worker's answer; None if it failed or died."""
        if worker.gone:
            return None
        run, slot = worker.run, worker.slot

        def failed(error: Any) -> None:
            self._stop_failed(worker, run.failed(slot, error, shard), shard)

        def died(error: Exception) -> None:
            self._look()  # a lost node is not the shard's fault
            over = worker.in_flight[0] if worker.in_flight and slot in self._slots else None
            self._stop_failed(worker, run.died(slot, error, over), over)

        return self._answer(call, failed, died)

    def _stop_failed(self, worker: EncodingHandle, why: str, over: TextShard | None) -> None:
        """Stop a worker that failed or died on a shard; others encode its shards in flight."""
        run = worker.run
        self._stop(worker)
        if over is not None and over.tries >= TRIES:
            self._fail(run, over.reason or why)
            return
        if not (run.workers or run.may_have(self._slots)):
            self._fail(run, run.reason or why)
            return
        for shard in worker.in_flight:
            run.shards.put_back(shard)
        if not run.workers:  # others may need the scoring workers until a slot is free again
            self._give_up(run)
        tqdm.write(f"{run.job.model.name}: {why}; the run continues", file=sys.stderr)

    def _stop(self, worker: EncodingHandle) -> None:
        """Stop an encoding worker."""
        idle = worker.ready and not worker.in_flight and not worker.gone
        worker.gone = True
        self._encoding.remove(worker)
        worker.run.workers.remove(worker)
        if idle:
            worker.actor.close.remote()
            worker.actor.__ray_terminate__.remote()
        else:
            self._ray.kill(worker.actor)

    def _stepped(self, scorer: ScoringHandle, call: Any) -> None:
        """Handle a scoring worker's request or finished piece."""
        run = scorer.current

        def failed(error: Any) -> None:
            scorer.free()
            if not isinstance(error.cause, GivenUp):
                self._fail(run, line_of(error, "the machine that runs the command"))
            elif not run.failure:
                run.todo.appendleft(scorer.piece)

        def died(error: Exception) -> None:
            self._scoring.remove(scorer)
            scorer.free()
            run.tries[scorer.piece] += 1
            if run.tries[scorer.piece] >= TRIES:
                self._fail(run, death(error, TRIES))
            elif not run.failure:
                run.todo.appendleft(scorer.piece)

        if (step := self._answer(call, failed, died)) is not None:
            self._take(scorer, run, step)

    def _take(self, scorer: ScoringHandle, run: ModelRun, step: Rows | MethodCall | ModelResult) -> None:
        if isinstance(step, ModelResult):
            self._results.append((run.job, step.result))
            run.texts += step.texts
            scorer.free()
        elif run.failure or not run.workers:  # it would wait for a slot, and block others
            self._go_on(scorer, GivenUp())
        elif isinstance(step, Rows):
            queue = TextQueue(step.texts, step.prompt, step.role)
            run.waiting[queue] = scorer
            self._serve(run, lambda: run.shards.ask(queue))
        elif step.repeats and step.key in run.answers:
            self._go_on(scorer, run.answers[step.key])
        else:
            run.questions.append((scorer, step))

    def _serve(self, run: ModelRun, change: Callable[[], None]) -> None:
        """Change the stored or requested texts, and give rows to the scoring workers that wait for them."""
        try:
            if not run.failure:
                change()
            for queue, rows in run.shards.done():
                if queue in run.waiting:
                    self._go_on(run.waiting.pop(queue), rows)
        except PlumblineError as error:
            self._fail(run, str(error))

    def _go_on(self, scorer: ScoringHandle, answer: Any) -> None:
        self._after(scorer.actor.go_on.remote(answer), partial(self._stepped, scorer))

    def _fail(self, run: ModelRun, reason: str) -> None:
        """End a model with the reason; its earlier results stay."""
        if run.failure:
            return
        run.failure = reason
        run.todo.clear()
        run.shards.drop()
        for worker in list(run.workers):
            self._stop(worker)
        self._give_up(run)

    def _give_up(self, run: ModelRun) -> None:
        """Free the scoring workers that wait for a model."""
        for scorer in (*run.waiting.values(), *(scorer for scorer, _ in run.questions)):
            self._go_on(scorer, GivenUp())
        run.waiting.clear()
        run.questions.clear()

    def _finish(self) -> None:
        """End the models that have nothing left to do."""
        for run in [run for run in self.runs if not run.todo and not run.pieces_in_flight]:
            self._results.append((run.job, ModelEnd(run.texts, run.shards.encoded, run.failure)))
            self.runs.remove(run)
            for worker in list(run.workers):
                self._stop(worker)
            run.close(self._host.folder)
