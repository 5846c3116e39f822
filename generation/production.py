"""Make the outputs that a study wants and lacks: `plumbline generate`.

Each output is written to its unit's journal when it is received, and a finished unit's journal becomes its Parquet
table (`generation.unit`), so `kill -9` loses only texts in flight. The next run asks again for unanswered outputs, with
`--again` for failed ones too.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter
from cyclopts.validators import LimitedChoice

from generation.datasets.loading import refuse_missing_files
from generation.forecast import forecast
from generation.generators import Generator, make_generator, refuse_code
from generation.jobs import COMMAND, Job, Plan, refuse_other_outputs
from generation.output import make_output
from generation.output_statistics import flagged_lines, flagged_outputs
from generation.unit import Shard, Unit, planned, take_over
from plumbline.cli import Local, Named, Several, StudyOptions, reads
from plumbline.errors import ServiceError, StudyError
from plumbline.importing import uvloop
from plumbline.manifest import stage
from plumbline.models.asking import ask_all
from plumbline.models.batch import (
    IN_BATCH,
    BatchServer,
    batch_path,
    batch_server,
    next_step,
    refuse_batch,
    refuse_file,
    refuse_out,
    requests_out,
)
from plumbline.records import TransformedText
from plumbline.store import is_remote, only_one, read_batches, read_records
from plumbline.study import Study
from plumbline.study_files import checked
from plumbline.words import count

LOCK = ".generation.lock"  # among a study's scratch files


def generate(
    study: Study, *, again: bool = False, cluster: str = "", batch_file: Path | None = None, allow_code: bool = False
) -> Counter[str]:
    """Make the missing outputs of a study; return counts of ok, failed, unanswered and reused outputs.

    Writes `texts.parquet` and `transformations/<transformation>/<seed>.parquet`. `again` asks for failed outputs too.
    `cluster` is the address of a Ray cluster to work on; empty for this machine. Requests are written into
    `batch_file`, if any, and their texts end unanswered. `allow_code` allows the study's functions to run. Raises
    StudyError if a function is needed without it or requests are in a batch, DataError for data sets that cannot be
    read, and ServiceError for a generator that cannot work; outputs received before stay.
    """
    refuse_missing_files(study)
    plan = Plan(study)
    busy = f"another run is generating for {study.name!r}"
    with contextlib.ExitStack() as locks:
        locks.enter_context(only_one(study.scratch / LOCK, busy))
        batch = _batch(study, batch_file, again=again, cluster=cluster)
        if batch:
            locks.callback(batch.requests.close)
        take_over(study.journal_file(name, seed) for name in study.transformations for seed in study.seeds)
        units = locks.enter_context(planned(plan, again=again))
        counts, todo = _left(plan, units, allow_code=allow_code)
        for unit in units:
            if not unit.todo:
                unit.settle()
        if todo:
            counts += _generate(plan, todo, cluster, batch, allow_code=allow_code)
        if batch:
            batch.requests.write()
            if not counts["unanswered"] and not batch.requests.out:
                batch.requests.path.unlink()
    return counts


def _batch(study: Study, file: Path | None, *, again: bool, cluster: str) -> BatchServer | None:
    """Return the generator if it is or was asked through files. Raises StudyError if this run would pay twice."""
    if cluster or again:
        refuse_batch(study)
    if not file:
        refuse_out(study)
        if not batch_path(study).exists():
            return None
    elif str(file) not in requests_out(study):  # the command of a killed run continues it
        refuse_file(file)
    return batch_server(study, file)


def read_batch(study: Study, files: Sequence[Path], *, lost: bool = False) -> list[str]:
    """Read answers from the files of a batch, for the next `generate`; return a line on each file.

    If it was `lost`, requests that have no answer then are asked again. Raises StudyError if no request is in a batch,
    DataError for a file without answers to them.
    """
    with only_one(study.scratch / LOCK, f"another run is generating for {study.name!r}"):
        if not batch_path(study).exists():
            way = f"`{study.command(COMMAND)} --batch-file requests.jsonl` writes what is missing"
            raise StudyError(f"no request of {study.name!r} is in a batch; {way}")
        server = batch_server(study)
        with contextlib.closing(server.requests):
            return server.requests.read(files, server.key, lost=lost)


def generate_shard(study: Study, shard: Shard, *, again: bool = False, allow_code: bool = False) -> Counter[str]:
    """Make the missing outputs of one shard, beside processes that make others; return counts as `generate`.

    Writes only journals: the next `generate` takes them over. Raises as `generate`, and StudyError if the records are
    at an address, or another process is making this shard.
    """
    if is_remote(study.folder):
        raise StudyError("--shard needs a folder that all machines share, not an address; name a folder with --exports")
    refuse_missing_files(study)
    plan = Plan(study)
    busy = f"a run without --shard is generating for {study.name!r}"
    twice = f"another run is generating shard {shard.number}/{shard.of} of {study.name!r}"
    with contextlib.ExitStack() as locks:
        locks.enter_context(only_one(study.scratch / LOCK, busy, shared=True))
        locks.enter_context(only_one(study.scratch / f".generation.{shard.name}.lock", twice))
        refuse_batch(study)
        folder = Path(locks.enter_context(tempfile.TemporaryDirectory(prefix="plumbline-")))
        units = locks.enter_context(planned(plan, again=again, texts=folder / "texts.parquet", shard=shard))
        counts, todo = _left(plan, units, allow_code=allow_code)
        return counts + _generate(plan, todo, allow_code=allow_code) if todo else counts


def _left(plan: Plan, units: Sequence[Unit], *, allow_code: bool) -> tuple[Counter[str], list[Unit]]:
    """Return the count of outputs that are there, and the units that lack some."""
    todo = [unit for unit in units if unit.todo]
    if not allow_code:
        refuse_code(plan, {unit.transformation: None for unit in todo})
    return Counter(reused=sum(unit.wanted - unit.todo for unit in units)), todo


def reasons_of(files: Iterable[Path], command: str) -> Counter[str]:
    """Return the reasons why texts have no output, with counts; empty for those that have one."""
    reasons: Counter[str] = Counter()
    for file in files:
        for table in read_batches(file, TransformedText, command, ["reason"]):
            reasons.update(table["reason"].to_pylist())
    return reasons


def read_transformed(study: Study, transformation: str, seed: int) -> list[TransformedText]:
    """Return the outputs of one unit: those that the study wants, by key, and any older ones (see `Unit`)."""
    refuse_other_outputs(study, transformation, seed)
    return read_records(study.transformation_file(transformation, seed), TransformedText, study.command(COMMAND))


async def generate_units(plan: Plan, generator: Generator, units: Sequence[Unit]) -> Counter[str]:
    """Hand all jobs of all units to a generator, up to its concurrency."""

    async def make(_: Unit, job: Job) -> TransformedText:
        return await make_output(plan, generator, job)

    return await ask_all(units, make, generator.concurrency, "text", "generating")


def _generate(
    plan: Plan, units: Sequence[Unit], cluster: str = "", batch: BatchServer | None = None, *, allow_code: bool
) -> Counter[str]:
    async def work() -> Counter[str]:
        names = list(dict.fromkeys(unit.transformation for unit in units))
        generator = make_generator(plan, names, cluster=cluster, chat=batch, allow_code=allow_code)
        try:
            return await generate_units(plan, generator, units)
        finally:
            await generator.close()

    return uvloop.run(work())


def _counted(counts: Counter[str]) -> str:
    line = f"{counts['ok']} texts transformed, {counts['failed']} failed, {counts['unanswered']} unanswered"
    return f"{line}, {counts['reused']} already stored"


_AT_MOST_ONE = Group("At most one of these", validator=LimitedChoice(0, 1))


@Parameter(name="*")
@dataclass(frozen=True)
class Route:
    """How the generator is asked, if not by this machine alone and at once.

    Args:
        ray: Run on a Ray cluster: `auto` or its address.
        shard: Transform only the K-th of N parts of the texts, as in an array job of Slurm (docs/howto/slurm.md).
        batch_file: Write the requests into a file for a batch API, and send none (docs/howto/batch.md).
        batch_output: First read the answers in a batch's output and error files.
        batch_lost: Ask again what has no answer, as the batch failed or was never sent.
    """

    ray: Annotated[Named, Parameter(metavar="ADDRESS", group=_AT_MOST_ONE)] = ""
    shard: Annotated[
        Shard | None, reads(Shard.read), Parameter(metavar="K/N", group=_AT_MOST_ONE, n_tokens=1, accepts_keys=False)
    ] = None
    batch_file: Annotated[Local | None, Parameter(group=_AT_MOST_ONE)] = None
    batch_output: Annotated[tuple[Local, ...], Several, Parameter(metavar="FILE...")] = ()
    batch_lost: bool = False


def transform_texts(
    *,
    options: StudyOptions,
    generator: Annotated[str, Parameter(metavar="MODEL")] = "",
    again: bool = False,
    allow_code: bool = False,
    dry_run: bool = False,
    route: Route = Route(),
) -> StudyOptions | None:
    """Transform the study's texts.

    You can stop it at any time; run it again to continue.

    Example: plumbline generate --study studies/demo.yaml

    Args:
        options: The study.
        generator: Use one of the study's `candidates` instead of its generator.
        again: Ask again for failed outputs too, not only for unanswered ones.
        allow_code: Allow transformations that are functions, which run code.
        dry_run: Show how much work is left, and generate nothing.
        route: How the generator is asked.
    """
    study = checked(options)  # also its questions: `sample` refuses the same, but after the generator was paid
    if generator:
        study = study.by(study.generator_called(generator))
    if dry_run:
        print(forecast(study, again=again))
        return options
    if route.batch_output or route.batch_lost:
        for line in read_batch(study, route.batch_output, lost=route.batch_lost):
            print(line)
    if route.shard:
        counts = generate_shard(study, route.shard, again=again, allow_code=allow_code)
        print(f"{study.name}: {_counted(counts)}; when all shards have ended, run again without --shard")
        _refuse_failures(counts["failed"] + counts["unanswered"], counts["ok"] + counts["reused"])
        return options
    outputs = [study.folder / "texts.parquet", study.outputs]
    with stage(study, "generation", study.data_files(), outputs):
        counts = generate(study, again=again, cluster=route.ray, batch_file=route.batch_file, allow_code=allow_code)
    print(f"{study.name}: {_counted(counts)} -> {study.outputs}")
    reasons, n_made = Counter[str](), counts["ok"]
    if counts["failed"] or counts["unanswered"] or not n_made:
        files = (study.transformation_file(name, seed) for name in study.transformations for seed in study.seeds)
        reasons = reasons_of(files, study.command(COMMAND))
        n_made = reasons.pop("", 0)
        del reasons[IN_BATCH]
    for reason, number in reasons.most_common(3):
        print(f"  {number}: {reason}")
    if reasons:
        print("  (the tables have all reasons; the next run repeats unanswered texts, with --again also failed texts)")
    for line in flagged_lines(flagged_outputs(study)):
        print(f"  {line}")
    if route.batch_file and requests_out(study):
        following, words = next_step(study)
        print(f"{words}\nNext: {study.command(COMMAND)} {following}")
        return None
    _refuse_failures(reasons.total(), n_made)
    return options


def _refuse_failures(n_failed: int, n_made: int) -> None:
    if n_failed and not n_made:
        raise ServiceError(f"none of {count(n_failed, 'text')} has an output; the reasons are above or in the tables")
