"""Work on units of generation: which there are, and all their jobs at once through one generator."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn, TypeVar

from tqdm import tqdm

from generation.datasets.loading import iter_datasets
from generation.generators import Generator
from generation.jobs import Job, Plan
from generation.output import make_output
from generation.shards import Shard
from generation.unit import Unit
from plumbline.errors import PlumblineError
from plumbline.journal import Journal
from plumbline.memory import return_unused
from plumbline.rates import Stopwatch
from plumbline.records import Text
from plumbline.store import write_table

J = TypeVar("J")
SYNC_SECONDS = 0.5  # an output that was received is on the disk itself within a second


@contextlib.contextmanager
def planned(
    plan: Plan, *, again: bool = False, texts: Path | None = None, shard: Shard | None = None
) -> Iterator[list[Unit]]:
    """The units of a study, with what each has and lacks; of a `shard`, where there is one, its texts alone.

    The texts are read and written to `texts` first (by default the study's `texts.parquet`).
    """
    study = plan.study
    file = texts or study.folder / "texts.parquet"
    all_texts = (text for dataset in iter_datasets(study) for text in dataset.texts())
    write_table(file, (text for text in all_texts if shard is None or shard.has(text.text)), Text)
    return_unused()  # what the data sets took, which a long run has no more use for
    places = [(name, seed) for name in study.transformations for seed in study.seeds]
    units: list[Unit] = []
    try:
        for name, seed in tqdm(places, unit="unit", desc="planning", leave=False, delay=1):
            units.append(Unit(plan, name, seed, file, again=again, shard=shard))
        if texts is None:  # a dry run leaves nothing
            plan.complete.keep()
        yield units
    finally:
        for unit in units:
            unit.close()


async def generate_units(
    plan: Plan, generator: Generator, units: Sequence[Unit], watch: Stopwatch | None = None
) -> Counter[str]:
    """Hand all jobs of all units to a generator, as many at once as it wants; each unit settles when it is done.

    What is made is noted on the `watch`.
    """
    counts: Counter[str] = Counter()
    jobs = ((unit, job) for unit in units for job in unit.jobs())
    total = sum(unit.todo for unit in units)
    with tqdm(total=total, unit="text", desc="generating") as bar:

        async def make(unit_and_job: tuple[Unit, Job]) -> None:
            unit, job = unit_and_job
            output = await make_output(plan, generator, job)
            show(bar, counts, output.status)
            if watch is not None:
                watch.note(output.transformation, 1, len(output.text))
            if unit.add(output):
                await asyncio.to_thread(unit.settle)  # beside the others' work: a large table takes seconds

        await all_through(jobs, make, min(generator.concurrency, total), [unit.journal for unit in units])
    return counts


def show(bar: tqdm[NoReturn], counts: Counter[str], status: str) -> None:
    """Count one that came, and show it."""
    counts[status] += 1
    if status != "ok":
        bar.set_postfix(failed=counts["failed"], unanswered=counts["unanswered"], refresh=False)
    bar.update()


async def all_through(
    jobs: Iterator[J], work: Callable[[J], Awaitable[None]], workers: int, journals: Sequence[Journal]
) -> None:
    """Do all jobs, so many at once: whoever is free takes the next. Journals go to the disk meanwhile.

    Raises the first PlumblineError or OSError; what stands in the journals stays.
    """

    async def worker() -> None:
        for job in jobs:
            await work(job)

    try:
        async with asyncio.TaskGroup() as beside:  # a disk that fails ends the run, not the syncing alone
            syncing = beside.create_task(sync_always(journals))
            async with asyncio.TaskGroup() as group:
                for _ in range(workers):
                    group.create_task(worker())
            syncing.cancel()
    except* (PlumblineError, OSError) as errors:
        raise first_error(errors) from None


async def sync_always(journals: Sequence[Journal]) -> None:
    """Hand the journals to the disk every half second, until cancelled."""
    while True:
        await asyncio.sleep(SYNC_SECONDS)
        for journal in journals:
            await asyncio.to_thread(journal.sync)


def first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first single error of a group, however deep."""
    first = errors.exceptions[0]
    return first_error(first) if isinstance(first, BaseExceptionGroup) else first
