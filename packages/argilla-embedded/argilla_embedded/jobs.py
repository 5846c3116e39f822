"""Argilla's background jobs in this process, in place of Redis and its workers.

Argilla's job functions are coroutines that sometimes call blocking code, so they run off the server's event loop: each
queue has a thread with a loop of its own. A job is in the journal from its request until it has ended, so a job that a
crash or a stop cuts off is run again at the next start; a webhook may then be sent twice.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from argilla_server import _app
from argilla_server.api.handlers.v1 import jobs as job_handlers
from argilla_server.bulk import records_bulk
from argilla_server.contexts import datasets, distribution
from argilla_server.jobs import dataset_jobs, hub_jobs, webhook_jobs
from argilla_server.models import Webhook
from fastapi import HTTPException
from rq.exceptions import NoSuchJobError
from rq.job import JobStatus
from sqlalchemy import exists, select, true

from .journal import Journal
from .recount import HEARD

LOGGER = logging.getLogger("argilla_embedded.jobs")
RECOUNT_WAITS = (1.0, 1.0, 1.0)
WEBHOOK_WAITS = (10.0, 60.0, 180.0)
UNWRITABLE = "the server cannot record its background jobs: its disk is full or read-only; make room, then try again"

#: Whether anybody listens; without making objects of the webhooks, for it is asked with each change.
ENABLED = select(exists().where(Webhook.__table__.c.enabled == true()))

Function = Callable[..., Awaitable[None]]


@dataclass
class Job:
    """The interface of a job for Argilla's handlers."""

    id: str
    status: JobStatus = JobStatus.QUEUED

    def get_status(self, refresh: bool = True) -> JobStatus:
        """Return the job's status; `refresh` is rq's and has no effect here."""
        return self.status


@dataclass(frozen=True)
class Kind:
    """One of Argilla's job functions, its queue, and the waits in seconds before each retry."""

    function: Function
    queue: Queue
    waits: Sequence[float]


class Jobs:
    """Runs jobs and remembers the results of the last ones."""

    def __init__(self, journal: Journal, kinds: Sequence[Kind]) -> None:
        self.journal = journal
        self.kinds = {kind.function.__name__: kind for kind in kinds}

    def delayed(self, name: str) -> Callable[..., Job]:
        """Return a replacement for a function's `delay`: it returns as soon as the job is in the journal.

        Where that cannot be written, the request is answered with 507.
        """

        def delay(*args: Any, **kwargs: Any) -> Job:
            job = Job(str(uuid.uuid4()))
            try:
                self.journal.add(job.id, name, (list(args), kwargs))
            except sqlite3.Error as error:
                LOGGER.error("job %s was refused: jobs.db cannot be written (%s)", name, error)
                raise HTTPException(507, UNWRITABLE) from error
            self.begin(job.id, name, args, kwargs)
            return job

        return delay

    def begin(self, job_id: str, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Hand a job of the journal to its queue."""
        kind = self.kinds[name]
        kind.queue.put(self.run(job_id, kind, lambda: kind.function(*args, **kwargs)))

    def resume(self) -> None:
        """Run the jobs again that had not ended when the server stopped."""
        for job_id, name, args, kwargs in self.journal.unfinished():
            if name in self.kinds:
                LOGGER.warning("job %s was interrupted and runs again", name)
                self.begin(job_id, name, args, kwargs)
            else:
                self.journal.change(job_id, JobStatus.FAILED)

    async def run(self, job_id: str, kind: Kind, call: Callable[[], Awaitable[None]]) -> None:
        """Run one job until its final status."""
        name = kind.function.__name__
        for wait in (*kind.waits, None):
            self.note(job_id, JobStatus.STARTED)
            try:
                await call()
            except Exception as error:
                # Not the traceback: it may hold what the job carries, or a webhook's address with its secret.
                again = "no further attempt" if wait is None else f"next attempt in {wait:.0f} s"
                LOGGER.warning("job %s %s failed (%s); %s", name, job_id, type(error).__name__, again)
                if wait is not None:
                    self.note(job_id, JobStatus.SCHEDULED)
                    await asyncio.sleep(wait)
            else:
                self.note(job_id, JobStatus.FINISHED)
                return
        self.note(job_id, JobStatus.FAILED)

    def note(self, job_id: str, status: JobStatus) -> None:
        """A running job's status in the journal; a journal that cannot be written stops no job.

        One whose end was not noted is run again at the next start.
        """
        try:
            self.journal.change(job_id, status)
        except sqlite3.Error as error:
            LOGGER.warning("job %s is %s, but jobs.db cannot be written (%s)", job_id, status.value, error)

    def fetch(self, job_id: str, connection: object = None) -> Job:
        """The job of this id, as `rq.job.Job.fetch` finds it; `connection` is Redis's and means nothing here."""
        status = self.journal.status(job_id)
        if status is None:
            raise NoSuchJobError(job_id)
        return Job(job_id, status)


class Queue:
    """A thread with an event loop; daemonic, so that a job that hangs cannot keep the server from ending."""

    def __init__(self, name: str, in_order: bool) -> None:
        self.loop = asyncio.new_event_loop()
        self.turn = asyncio.Semaphore(1 if in_order else 64)
        self.tasks: set[asyncio.Task[None]] = set()
        self.thread = threading.Thread(target=self.loop.run_forever, name=f"jobs-{name}", daemon=True)
        self.thread.start()

    def put(self, work: Awaitable[None]) -> None:
        """Hand `work` to the thread; may be called from any other thread."""
        self.loop.call_soon_threadsafe(self.begin, work)

    def begin(self, work: Awaitable[None]) -> None:
        """Start `work` in the loop, and keep a reference to it: a loop has only weak references to its tasks."""
        task = self.loop.create_task(self.in_turn(work))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def in_turn(self, work: Awaitable[None]) -> None:
        """Run `work` after the work before it."""
        async with self.turn:
            await work


class NoRedis:
    """Replaces Redis in Argilla's check at the start."""

    def ping(self) -> bool:
        """Return True, because nothing needs to be reachable."""
        return True


def refuse_hub(*args: Any, **kwargs: Any) -> NoReturn:
    """Refuse import from, and export to, the Hugging Face hub."""
    raise HTTPException(501, "this server does not exchange datasets with the Hugging Face hub; use the SDK for it")


def only_if_heard(notify: Callable[..., Awaitable[list[Any]]]) -> Callable[..., Awaitable[list[Any]]]:
    """Skip `notify` while there are no webhooks, because building an event reads all of the dataset's settings."""

    async def notify_if_heard(db: Any, *event: Any) -> list[Any]:
        listening = HEARD.get()
        if listening is None:
            listening = await (await db.connection()).scalar(ENABLED)
        return await notify(db, *event) if listening else []

    return notify_if_heard


def apply(journal: Journal) -> None:
    """Replace Argilla's queues in Redis, and run the jobs again that a crash cut off.

    Call it once, after Argilla is imported and its sessions are bound.
    """
    recount, notify = dataset_jobs.update_dataset_records_status_job, webhook_jobs.notify_event_job
    kinds = [
        Kind(recount, Queue("recounts", in_order=True), RECOUNT_WAITS),
        Kind(notify, Queue("webhooks", in_order=False), WEBHOOK_WAITS),
    ]
    jobs = Jobs(journal, kinds)
    for function in (recount, notify):
        function.delay = jobs.delayed(function.__name__)
    hub_jobs.import_dataset_from_hub_job.delay = refuse_hub
    hub_jobs.export_dataset_to_hub_job.delay = refuse_hub
    for module in (records_bulk, distribution, datasets):
        for name in ("notify_record_event_v1", "notify_response_event_v1", "notify_dataset_event_v1"):
            if hasattr(module, name):
                setattr(module, name, only_if_heard(getattr(module, name)))
    job_handlers.Job = jobs
    _app.REDIS_CONNECTION = NoRedis()
    jobs.resume()
