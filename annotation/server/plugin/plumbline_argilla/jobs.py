"""Argilla's background jobs in this process, in place of Redis and its workers.

Argilla's job functions are coroutines that call blocking code here and there, so they run off the server's event
loop: each queue has a thread with a loop of its own and takes its jobs one after another. What a crash cuts off is
not run again, with one exception that matters: the recount of record status is repeated by `database.apply`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from argilla_server import _app
from argilla_server.api.handlers.v1 import jobs as job_handlers
from argilla_server.bulk import records_bulk
from argilla_server.contexts import datasets, distribution, webhooks
from argilla_server.jobs import dataset_jobs, hub_jobs, webhook_jobs
from fastapi import HTTPException
from rq.exceptions import NoSuchJobError
from rq.job import JobStatus

LOGGER = logging.getLogger("plumbline_argilla.jobs")
REMEMBERED = 1000
RECOUNT_WAITS = (1.0, 1.0, 1.0)
WEBHOOK_WAITS = (10.0, 60.0, 180.0)

Function = Callable[..., Awaitable[None]]


@dataclass
class Job:
    """What Argilla's handlers ask of a job."""

    id: str
    status: JobStatus = JobStatus.QUEUED

    def get_status(self, refresh: bool = True) -> JobStatus:
        """Where the job is; `refresh` is rq's and means nothing here."""
        return self.status


class Jobs:
    """Runs jobs and remembers how the last ones ended."""

    def __init__(self) -> None:
        self.known: OrderedDict[str, Job] = OrderedDict()

    def delayed(self, function: Function, queue: Queue, waits: Sequence[float]) -> Callable[..., Job]:
        """What takes the place of `function.delay`: it returns at once, and retries after each of `waits` seconds."""

        def delay(*args: Any, **kwargs: Any) -> Job:
            job = Job(str(uuid.uuid4()))
            self.known[job.id] = job
            while len(self.known) > REMEMBERED:
                self.known.popitem(last=False)
            queue.put(self.run(job, lambda: function(*args, **kwargs), function.__name__, waits))
            return job

        return delay

    async def run(self, job: Job, call: Callable[[], Awaitable[None]], name: str, waits: Sequence[float]) -> None:
        """One job to its final status."""
        for wait in (*waits, None):
            job.status = JobStatus.STARTED
            try:
                await call()
            except Exception:
                LOGGER.warning(
                    "job %s failed%s", name, "" if wait is None else f"; again in {wait:.0f} s", exc_info=True
                )
                if wait is not None:
                    job.status = JobStatus.SCHEDULED
                    await asyncio.sleep(wait)
            else:
                job.status = JobStatus.FINISHED
                return
        job.status = JobStatus.FAILED

    def fetch(self, job_id: str, connection: object = None) -> Job:
        """The job of this id, as `rq.job.Job.fetch` finds it; `connection` is Redis's and means nothing here."""
        try:
            return self.known[job_id]
        except KeyError:
            raise NoSuchJobError(job_id) from None


class Queue:
    """A thread with an event loop; daemonic, so that a job that hangs cannot keep the server from ending."""

    def __init__(self, name: str, in_order: bool) -> None:
        self.loop = asyncio.new_event_loop()
        self.turn = asyncio.Semaphore(1 if in_order else 64)
        self.tasks: set[asyncio.Task[None]] = set()
        self.thread = threading.Thread(target=self.loop.run_forever, name=f"jobs-{name}", daemon=True)
        self.thread.start()

    def put(self, work: Awaitable[None]) -> None:
        """Hand `work` over to the thread; callable from any other."""
        self.loop.call_soon_threadsafe(self.begin, work)

    def begin(self, work: Awaitable[None]) -> None:
        """Start `work` in the loop, and hold on to it: a loop keeps only weak references to its tasks."""
        task = self.loop.create_task(self.in_turn(work))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def in_turn(self, work: Awaitable[None]) -> None:
        """Run `work` when those before it are done."""
        async with self.turn:
            await work


class NoRedis:
    """Stands where Argilla checks for Redis when it starts."""

    def ping(self) -> bool:
        """Always there, for there is nothing to reach."""
        return True


def refuse_hub(*args: Any, **kwargs: Any) -> NoReturn:
    """Import from and export to the hub: this server calls nothing outside."""
    raise HTTPException(501, "this server does not exchange datasets with the Hugging Face hub; use the SDK for it")


def only_if_heard(notify: Callable[..., Awaitable[list[Any]]]) -> Callable[..., Awaitable[list[Any]]]:
    """`notify` without its work while there is no webhook: building an event reads all of the dataset's settings."""

    async def notify_if_heard(db: Any, *event: Any) -> list[Any]:
        return await notify(db, *event) if await webhooks.list_enabled_webhooks(db) else []

    return notify_if_heard


def apply() -> None:
    """Put the queues in the places where Argilla looks for Redis. Call it once, after Argilla is imported."""
    jobs = Jobs()
    recounts, messages = Queue("recounts", in_order=True), Queue("webhooks", in_order=False)
    recount, notify = dataset_jobs.update_dataset_records_status_job, webhook_jobs.notify_event_job
    recount.delay = jobs.delayed(recount, recounts, RECOUNT_WAITS)
    notify.delay = jobs.delayed(notify, messages, WEBHOOK_WAITS)
    hub_jobs.import_dataset_from_hub_job.delay = refuse_hub
    hub_jobs.export_dataset_to_hub_job.delay = refuse_hub
    for module in (records_bulk, distribution, datasets):
        for name in ("notify_record_event_v1", "notify_response_event_v1", "notify_dataset_event_v1"):
            if hasattr(module, name):
                setattr(module, name, only_if_heard(getattr(module, name)))
    job_handlers.Job = jobs
    _app.REDIS_CONNECTION = NoRedis()
