"""`python -m generation.run`: every transformation that a study wants and does not have yet.

Each output is in its unit's journal when it was received, and a finished unit's journal becomes its Parquet table
(`generation.unit`), so `kill -9` loses only what was in flight. Outputs that got no answer are asked for again by the
next run, failed ones with `--again`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
from tqdm import tqdm

from generation import command
from generation.datasets.loading import iter_datasets
from generation.exceptions import PlumblineError
from generation.generators import Generator, make_generator
from generation.jobs import Job, Plan
from generation.manifest import stage
from generation.output import make_output
from generation.records import Text, TransformedText
from generation.store import only_one, read_batches, read_records, write_table
from generation.study import Study
from generation.unit import COMMAND, Unit

_M_MMAP_THRESHOLD, _LARGE = -3, 1 << 17  # glibc's mallopt, and its own default in bytes
SYNC_SECONDS = 0.5  # an output that was received is on the disk itself within a second


def generate(study: Study, *, again: bool = False, cluster: str = "") -> Counter[str]:
    """Make what is missing of a study's transformations; returns counts of ok, failed, unanswered and reused outputs.

    Writes `texts.parquet` and `transformations/<transformation>/<seed>.parquet`. `again` asks for failed outputs too.
    `cluster` is the address of a Ray cluster that does the work; without one it is done here. Raises DataError for
    data sets that cannot be read and ServiceError for a generator that cannot work; what was received before stays.
    """
    _return_large_blocks()
    plan = Plan(study)
    busy = f"another run is generating for {study.name!r}"
    with only_one(study.scratch / ".generation.lock", busy), planned(plan, again=again) as units:
        counts: Counter[str] = Counter(reused=sum(unit.wanted - unit.todo for unit in units))
        todo = [unit for unit in units if unit.todo]
        for unit in units:
            if not unit.todo:
                unit.settle()
        if cluster and todo:
            from generation.cluster import generate_on  # noqa: PLC0415 (extra `ray`)

            counts += generate_on(cluster, plan, todo, again=again)
        elif todo:
            import uvloop  # noqa: PLC0415 (extra `generation`; who only reads outputs does without)

            counts += uvloop.run(_generate_here(plan, todo))
    return counts


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
            async with _synced(units), asyncio.TaskGroup() as group:
                for _ in range(min(generator.concurrency, total)):
                    group.create_task(_work(plan, generator, jobs, counts, bar))
    except* (PlumblineError, OSError) as errors:
        raise _first(errors) from None
    return counts


def failures(study: Study) -> Counter[str]:
    """Why a study has no output for texts, with counts, the most frequent first."""
    reasons: Counter[str] = Counter()
    for name in study.transformations:
        for seed in study.seeds:
            for table in read_batches(study.transformation_file(name, seed), TransformedText, COMMAND, ["reason"]):
                reasons.update(reason for reason in table["reason"].to_pylist() if reason)
    return reasons


def read_transformed(study: Study, transformation: str, seed: int) -> list[TransformedText]:
    """The outputs of one unit: those that the study wants, by key, and any kept from before (see `Unit`)."""
    return read_records(study.transformation_file(transformation, seed), TransformedText, COMMAND)


def _return_large_blocks() -> None:
    """Keep glibc from raising the size from which a freed block goes back to the system at once.

    It raises it when large ones are freed, as when data sets are read; a run would then keep what they took for hours.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none, and need none
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE)


async def _generate_here(plan: Plan, units: Sequence[Unit]) -> Counter[str]:
    generator = make_generator(plan)
    try:
        return await generate_units(plan, generator, units)
    finally:
        await generator.close()


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


@contextlib.asynccontextmanager
async def _synced(units: Sequence[Unit]) -> AsyncIterator[None]:
    """Hand the journals to the disk every half second while there is work."""

    async def sync() -> None:
        while True:
            await asyncio.sleep(SYNC_SECONDS)
            for unit in units:
                await asyncio.to_thread(unit.journal.sync)

    task = asyncio.create_task(sync())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first single error of a group, however deep."""
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m generation.run",
        description="Transform every text of a study. Can be stopped and run again at any time: it goes on.",
        epilog="example: python -m generation.run --study studies/demo.yaml",
    )
    command.add_study_options(parser)
    parser.add_argument(
        "--generator", metavar="MODEL", help="one of the study's `candidates`, in place of its generator"
    )
    parser.add_argument(
        "--again", action="store_true", help="ask for failed outputs too, not for unanswered ones alone"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what is left to do, and do nothing")
    parser.add_argument(
        "--rate", type=command.positive, metavar="N", help="with --dry-run: requests a second, to tell the hours"
    )
    parser.add_argument(
        "--ray", metavar="ADDRESS", default="", help="work on a running Ray cluster: `auto` or its address"
    )
    options = parser.parse_args()
    study = command.study_of(options)
    if options.generator:
        study = study.by(study.generator_called(options.generator))
    if options.dry_run:
        from generation.forecast import forecast  # noqa: PLC0415 (it plans as this module does)

        print(forecast(study, again=options.again, rate=options.rate))
        return 0
    outputs = [study.folder / "texts.parquet", study.outputs]
    with stage(study, "generation", study.data_files(), outputs):
        counts = generate(study, again=options.again, cluster=options.ray)
    print(
        f"{study.name}: {counts['ok']} texts transformed, {counts['failed']} failed, {counts['unanswered']} unanswered,"
        f" {counts['reused']} were there -> {study.outputs}"
    )
    if counts["failed"] or counts["unanswered"]:
        for reason, count in failures(study).most_common(3):
            print(f"  {count}: {reason}")
        print(
            "  (all reasons are in the tables; the next run asks again for the unanswered, with --again for failed too)"
        )
    return 0


if __name__ == "__main__":
    command.run(main)
