"""What `plumbline generate` does: every transformation that a study wants and does not have yet.

Each output is in its unit's journal when it was received, and a finished unit's journal becomes its Parquet table
(`generation.unit`), so `kill -9` loses only what was in flight. Outputs that got no answer are asked for again by the
next run, failed ones with `--again`.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from generation.forecast import forecast, gpus_of, measured
from generation.generators import Generator, make_generator, refuse_code
from generation.jobs import Job, Plan
from generation.output import make_output
from generation.output_statistics import count_ahead, flagged_lines, flagged_outputs
from generation.output_tables import errors_measure, lengths_measure
from generation.unit import COMMAND, Shard, Unit, planned, refuse_other_outputs, take_over
from plumbline import cli
from plumbline.errors import StudyError
from plumbline.hashes import return_large_blocks
from plumbline.manifest import stage
from plumbline.models.asking import ask_all
from plumbline.rates import Stopwatch, keep_rates
from plumbline.records import TransformedText
from plumbline.store import is_remote, only_one, read_batches, read_records
from plumbline.study import Study


def generate(study: Study, *, again: bool = False, cluster: str = "", allow_code: bool = False) -> Counter[str]:
    """Make what is missing of a study's transformations; returns counts of ok, failed, unanswered and reused outputs.

    Writes `texts.parquet` and `transformations/<transformation>/<seed>.parquet`. `again` asks for failed outputs too.
    `cluster` is the address of a Ray cluster that does the work; without one it is done here. `allow_code` lets
    functions of the study be called. Raises StudyError where one would be called without it, DataError for data sets
    that cannot be read and ServiceError for a generator that cannot work; what was received before stays.
    """
    return_large_blocks()
    plan = Plan(study)
    busy = f"another run is generating for {study.name!r}"
    with contextlib.ExitStack() as held:
        held.enter_context(only_one(study.scratch / ".generation.lock", busy))
        take_over(study.journal_file(name, seed) for name in study.transformations for seed in study.seeds)
        units = held.enter_context(planned(plan, again=again))
        counts, todo = _left(plan, units, allow_code=allow_code)
        for unit in units:
            if not unit.todo:
                unit.settle()
        if cluster and todo:
            from generation.cluster import generate_on  # noqa: PLC0415 (extra `ray`)

            counts += generate_on(cluster, plan, todo, allow_code=allow_code)
        elif todo:
            counts += _generate_here(plan, todo, allow_code=allow_code)
    return counts


def generate_shard(study: Study, shard: Shard, *, again: bool = False, allow_code: bool = False) -> Counter[str]:
    """Make what is missing of one shard's texts, beside processes that do the same for others; counts as `generate`.

    Writes journals alone: the next `generate` takes them over. Raises as `generate`, and StudyError where the records
    are at an address, or this shard is being worked on.
    """
    if is_remote(study.folder):
        raise StudyError("--shard needs a folder that all machines share, not an address; name one with --exports")
    return_large_blocks()
    plan = Plan(study)
    busy = f"a run without --shard is generating for {study.name!r}"
    twice = f"shard {shard.number}/{shard.of} of {study.name!r} is being generated"
    with contextlib.ExitStack() as held:
        held.enter_context(only_one(study.scratch / ".generation.lock", busy, shared=True))
        held.enter_context(only_one(study.scratch / f".generation.{shard.name}.lock", twice))
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="plumbline-")))
        units = held.enter_context(planned(plan, again=again, texts=folder / "texts.parquet", shard=shard))
        counts, todo = _left(plan, units, allow_code=allow_code)
        return counts + _generate_here(plan, todo, allow_code=allow_code) if todo else counts


def _left(plan: Plan, units: Sequence[Unit], *, allow_code: bool) -> tuple[Counter[str], list[Unit]]:
    """How many outputs are there, and the units that lack some."""
    todo = [unit for unit in units if unit.todo]
    if not allow_code:
        refuse_code(plan, {unit.transformation: None for unit in todo})
    return Counter(reused=sum(unit.wanted - unit.todo for unit in units)), todo


def failures(files: Iterable[Path], command: str) -> Counter[str]:
    """Why a study has no output for texts, with counts, the most frequent first."""
    reasons: Counter[str] = Counter()
    for file in files:
        for table in read_batches(file, TransformedText, command, ["reason"]):
            reasons.update(reason for reason in table["reason"].to_pylist() if reason)
    return reasons


def read_transformed(study: Study, transformation: str, seed: int) -> list[TransformedText]:
    """The outputs of one unit: those that the study wants, by key, and any kept from before (see `Unit`)."""
    refuse_other_outputs(study, transformation, seed)
    return read_records(study.transformation_file(transformation, seed), TransformedText, study.command(COMMAND))


async def generate_units(
    plan: Plan, generator: Generator, units: Sequence[Unit], watch: Stopwatch | None = None
) -> Counter[str]:
    """Hand all jobs of all units to a generator, as many at once as it wants; what is made is noted on the `watch`."""

    async def make(_: Unit, job: Job) -> TransformedText:
        output = await make_output(plan, generator, job)
        if watch is not None:
            watch.note(output.transformation, 1, len(output.text))
        return output

    return await ask_all(units, make, generator.concurrency, "text", "generating")


def _generate_here(plan: Plan, units: Sequence[Unit], *, allow_code: bool) -> Counter[str]:
    import uvloop  # noqa: PLC0415 (extra `generation`; who only reads outputs does without)

    async def work() -> Counter[str]:
        names = list(dict.fromkeys(unit.transformation for unit in units))
        generator = make_generator(plan, names, allow_code=allow_code)
        watch = Stopwatch(*gpus_of(plan.study.generator))
        try:
            return await generate_units(plan, generator, units, watch)
        finally:
            await generator.close()
            keep_rates(plan.study.folder, measured(plan, watch))

    return uvloop.run(work())


def _counted(counts: Counter[str]) -> str:
    line = f"{counts['ok']} texts transformed, {counts['failed']} failed, {counts['unanswered']} unanswered"
    return f"{line}, {counts['reused']} were there"


def run(options: argparse.Namespace) -> int:
    """Make what is missing, as the options say, and print what came of it."""
    study = cli.study_of(options)
    if options.generator:
        study = study.by(study.generator_called(options.generator))
    if options.dry_run:
        print(forecast(study, again=options.again, rate=options.rate))
        return 0
    if options.shard:
        counts = generate_shard(study, options.shard, again=options.again, allow_code=options.allow_code)
        print(f"{study.name}: {_counted(counts)}; when all shards have ended, run again without --shard")
        return 0
    outputs = [study.folder / "texts.parquet", study.outputs]
    with stage(study, "generation", study.data_files(), outputs):
        counts = generate(study, again=options.again, cluster=options.ray, allow_code=options.allow_code)
    print(f"{study.name}: {_counted(counts)} -> {study.outputs}")
    if counts["failed"] or counts["unanswered"]:
        files = (study.transformation_file(name, seed) for name in study.transformations for seed in study.seeds)
        for reason, count in failures(files, study.command(COMMAND)).most_common(3):
            print(f"  {count}: {reason}")
        print(
            "  (all reasons are in the tables; the next run asks again for the unanswered, with --again for failed too)"
        )
    for line in flagged_lines(flagged_outputs(study)):
        print(f"  {line}")
    errors = [errors_measure(study.transforming, after_retries=after) for after in (False, True)]
    count_ahead(study, [*errors, lengths_measure()])
    return 0
