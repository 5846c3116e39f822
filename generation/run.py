"""`python -m generation.run`: every transformation that a study wants and does not have yet.

Resume is a set difference: wanted keys minus keys that stand in the tables and journals. Each output is
in its unit's journal when it is received, and a finished unit's journal becomes its Parquet table, so
`kill -9` loses only what was in flight. Failed outputs are asked for again by the next run.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NoReturn

from tqdm import tqdm

from generation import command
from generation.datasets import load_datasets
from generation.exceptions import PlumblineError, TextFailedError
from generation.generators import Generator, make_generator
from generation.jobs import Job, Plan
from generation.manifest import stage
from generation.records import Text, TransformedText
from generation.store import Journal, only_one, read_records, write_table
from generation.study import Study

COMMAND = "python -m generation.run --study ..."


@dataclass
class Unit:
    """One transformation with one seed: its jobs, what is there, and what is left to do.

    `others` are outputs that the study does not want now (of another prompt, say, or a data set that was taken
    out): they cost GPU time, so they are kept.
    """

    transformation: str
    seed: int
    wanted: dict[str, Job]
    done: dict[str, TransformedText]
    others: list[TransformedText]
    journal: Journal
    todo: list[Job] = field(default_factory=list)


def generate(study: Study) -> Counter[str]:
    """Make what is missing of a study's transformations; returns counts of done, failed and reused outputs.

    Writes `texts.parquet` and `transformations/<transformation>/<seed>.parquet`. Raises DataError for data
    sets that cannot be read and ServiceError for a generator that cannot work; what was received before stays.
    """
    plan = Plan(study)
    texts = [text for dataset in load_datasets(study) for text in dataset.texts()]
    with only_one(study.folder / ".generation.lock", f"another run is generating for {study.name!r}"):
        write_table(study.folder / "texts.parquet", texts, Text)
        units = [_unit(plan, texts, name, seed) for name in study.transformations for seed in study.seeds]
        counts: Counter[str] = Counter(reused=sum(len(unit.wanted) - len(unit.todo) for unit in units))
        try:
            if any(unit.todo for unit in units):
                asyncio.run(_generate(plan, units, counts))
        finally:
            for unit in units:
                unit.journal.close()
        for unit in units:
            _settle(study, unit)
    return counts


def failures(study: Study) -> Counter[str]:
    """Why outputs of a study failed, with counts, the most frequent first."""
    reasons: Counter[str] = Counter()
    for name in study.transformations:
        for seed in study.seeds:
            reasons.update(row.reason for row in read_transformed(study, name, seed) if row.status == "failed")
    return reasons


def read_transformed(study: Study, transformation: str, seed: int) -> list[TransformedText]:
    """The outputs of one unit: those that the study wants, by key, and any kept from before (see `Unit`)."""
    return read_records(study.transformation_file(transformation, seed), TransformedText, COMMAND)


def _unit(plan: Plan, texts: list[Text], transformation: str, seed: int) -> Unit:
    """What one unit wants, has and lacks."""
    wanted = {job.key: job for job in plan.jobs(texts, transformation, seed)}
    path = plan.study.transformation_file(transformation, seed)
    journal = Journal(path.with_suffix(".journal"))
    stored = read_records(path, TransformedText, COMMAND) if path.exists() else []
    present = {row.key: row for row in (*stored, *journal.read(TransformedText))}
    done = {key: present[key] for key in wanted if key in present}
    others = [row for key, row in present.items() if key not in wanted]
    todo = [job for key, job in wanted.items() if key not in done or done[key].status == "failed"]
    return Unit(transformation, seed, wanted, done, others, journal, todo)


async def _generate(plan: Plan, units: list[Unit], counts: Counter[str]) -> None:
    """Hand all jobs of all units to the generator, as many at once as it wants."""
    generator = make_generator(plan)
    jobs = ((unit, job) for unit in units for job in unit.todo)
    total = sum(len(unit.todo) for unit in units)
    try:
        with tqdm(total=total, unit="text", desc="generating") as bar:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(generator.concurrency, total)):
                    group.create_task(_work(plan, generator, jobs, counts, bar))
    except* (PlumblineError, OSError) as errors:
        raise errors.exceptions[0] from None
    finally:
        await generator.close()


async def _work(
    plan: Plan, generator: Generator, jobs: Iterator[tuple[Unit, Job]], counts: Counter[str], bar: tqdm[NoReturn]
) -> None:
    """One worker: takes the next job as soon as it is free."""
    for unit, job in jobs:
        row = await _transform(plan, generator, job)
        unit.journal.append(row)
        unit.done[job.key] = row
        counts[row.status] += 1
        bar.set_postfix(failed=counts["failed"], refresh=False)
        bar.update()


async def _transform(plan: Plan, generator: Generator, job: Job) -> TransformedText:
    """The record of one job, whether its text succeeded or failed."""
    reason, output, intermediate = "", "", None
    try:
        outcome = await generator.transform(job)
        output, intermediate = outcome.output.strip(), outcome.intermediate
        reason = "" if output else "the output is empty"
    except TextFailedError as error:
        reason = str(error)
    return TransformedText(
        key=job.key,
        text_id=job.text_id,
        text=job.text,
        source_language=job.source_language,
        transformation=job.transformation,
        seed=job.seed,
        language=job.language,
        intermediate=intermediate,
        output=output,
        status="failed" if reason else "ok",
        reason=reason,
        model=plan.study.generator.model,
        generator_hash=plan.generator_hash,
        prompt_hash=plan.prompt_hashes[job.transformation],
        finished_at=datetime.now(UTC),
    )


def _settle(study: Study, unit: Unit) -> None:
    """Turn a unit's journal into its table, in the texts' order, kept outputs last; untouched units keep their file."""
    path = study.transformation_file(unit.transformation, unit.seed)
    if unit.journal.path.exists() or not path.exists():
        rows = [unit.done[key] for key in unit.wanted if key in unit.done]
        write_table(path, [*rows, *unit.others], TransformedText)
        unit.journal.remove()


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m generation.run",
        description="Transform every text of a study. Can be stopped and run again at any time: it goes on.",
        epilog="example: python -m generation.run --study studies/demo.yaml",
    )
    command.add_study_options(parser)
    study = command.study_of(parser.parse_args())
    outputs = [study.folder / "texts.parquet", study.folder / "transformations"]
    with stage(study, "generation", [study.resolve(spec.path) for spec in study.datasets], outputs):
        counts = generate(study)
    print(
        f"{study.name}: {counts['ok']} texts transformed, {counts['failed']} failed, {counts['reused']} were there"
        f" -> {study.folder / 'transformations'}"
    )
    if counts["failed"]:
        for reason, count in failures(study).most_common(3):
            print(f"  {count} failed: {reason}")
        print("  (all reasons are in the tables; the next run asks for failed texts again)")
    return 0


if __name__ == "__main__":
    command.run(main)
