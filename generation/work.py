"""Work on units of generation: which there are, and all their jobs at once through one generator."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
from tqdm import tqdm

from generation.datasets.loading import iter_datasets
from generation.generators import Generator
from generation.jobs import Job, Plan
from generation.output import make_output
from generation.unit import Unit
from plumbline.errors import PlumblineError
from plumbline.records import Text
from plumbline.store import write_table

SYNC_SECONDS = 0.5  # an output that was received is on the disk itself within a second


@contextlib.contextmanager
def planned(
    plan: Plan, *, again: bool = False, units: Sequence[tuple[str, int]] = (), texts: Path | None = None
) -> Iterator[list[Unit]]:
    """The units of a study (or some, by transformation and seed), with what each has and lacks.

    Without `units` the study's texts are read and written to `texts` first (by default the study's `texts.parquet`).
    """
    study = plan.study
    file = texts or study.folder / "texts.parquet"
    if not units:
        write_table(file, (text for dataset in iter_datasets(study) for text in dataset.texts()), Text)
        pa.default_memory_pool().release_unused()  # what the data sets took, which a long run has no more use for
    chosen = units or [(name, seed) for name in study.transformations for seed in study.seeds]
    made: list[Unit] = []
    try:
        for name, seed in tqdm(chosen, unit="unit", desc="planning", leave=False, delay=1):
            made.append(Unit(plan, name, seed, file, again=again))
        yield made
    finally:
        for unit in made:
            unit.close()


async def generate_units(plan: Plan, generator: Generator, units: Sequence[Unit]) -> Counter[str]:
    """Hand all jobs of all units to a generator, as many at once as it wants; each unit settles when it is done."""
    counts: Counter[str] = Counter()
    jobs = ((unit, job) for unit in units for job in unit.jobs())
    total = sum(unit.todo for unit in units)
    try:
        with tqdm(total=total, unit="text", desc="generating") as bar:
            async with asyncio.TaskGroup() as beside:  # a disk that fails ends the run, not the syncing alone
                syncing = beside.create_task(_sync(units))
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(generator.concurrency, total)):
                        group.create_task(_work(plan, generator, jobs, counts, bar))
                syncing.cancel()
    except* (PlumblineError, OSError) as errors:
        raise _first(errors) from None
    return counts


async def _work(
    plan: Plan, generator: Generator, jobs: Iterator[tuple[Unit, Job]], counts: Counter[str], bar: tqdm[NoReturn]
) -> None:
    """One worker: takes the next job as soon as it is free."""
    for unit, job in jobs:
        output = await make_output(plan, generator, job)
        counts[output.status] += 1
        if output.status != "ok":
            bar.set_postfix(failed=counts["failed"], unanswered=counts["unanswered"], refresh=False)
        bar.update()
        if unit.add(output):
            await asyncio.to_thread(unit.settle)  # beside the others' work: a large table takes seconds


async def _sync(units: Sequence[Unit]) -> None:
    """Hand the journals to the disk every half second, until cancelled."""
    while True:
        await asyncio.sleep(SYNC_SECONDS)
        for unit in units:
            await asyncio.to_thread(unit.journal.sync)


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first single error of a group, however deep."""
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
