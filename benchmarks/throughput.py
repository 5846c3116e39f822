"""How long 10 million texts with 24 transformations each would take on many GPUs, and the bottleneck: a model.

What the command takes for a text is measured here. What GPUs make a second is assumed, for none was at hand; so is what
an object store takes. `python -m benchmarks throughput` measures, and `python -m benchmarks.throughput` prints the
table in docs/cluster.md from what `Inputs` says.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.registry import Measurement, benchmark
from benchmarks.scale import _row, _study
from generation.jobs import Plan
from generation.unit import planned
from plumbline import cli
from plumbline.records import TransformedText
from plumbline.transformations import TRANSFORMATIONS

TEXTS, VARIANTS = 10_000_000, 24
GPUS = (8, 64, 512)
SAMPLE = 10_000  #: texts on which the command is measured


@dataclass(frozen=True)
class Inputs:
    """What the model rests on; what is measured was so on two cores that other programs wanted as well."""

    plan_seconds: float = 13e-6  #: measured (`throughput`): of the processor, to plan an output
    journal_bytes: float = 531.0  #: measured (`throughput`): of an output in the journal
    command_seconds: float = 350e-6  #: measured (docs/decisions/0014): of the processor, from a worker to the table
    schedule_seconds: float = 42e-6  #: measured (`scheduler`): of the processor, to hand out and take back an output
    gpu_rate: float = 20.0  #: assumed: outputs that a GPU makes a second
    disk_bytes: float = 200e6  #: assumed: that a disk writes a second
    part_bytes: float = 50 * 2**20  #: assumed: of a table that a request brings to an object store
    store_requests: float = 3500.0  #: assumed: that an object store takes a second


@dataclass(frozen=True)
class Prediction:
    """What one number of GPUs makes, with one command on one core of the head node."""

    gpus: int
    made: float  #: outputs a second, if nothing but the GPUs took time
    loads: dict[str, float]  #: of each other part, the share of what it can do that this wants
    planning_hours: float  #: before the first output
    hours: float  #: in all

    @property
    def first(self) -> str:
        """The bottleneck: the part with the highest load."""
        return max(self.loads, key=lambda part: self.loads[part])

    @property
    def at_work(self) -> float:
        """Share of the time in which the GPUs are at work."""
        return TEXTS * VARIANTS / self.made / 3600 / self.hours


def predict(rest: Inputs, gpus: int) -> Prediction:
    """Predict how long all texts take, and the bottleneck.

    Args:
        rest: rates and sizes.
        gpus: how many work, each with an engine.
    """
    outputs, made = TEXTS * VARIANTS, gpus * rest.gpu_rate
    loads = {
        "head node": made * rest.command_seconds,
        "scheduler": made * rest.schedule_seconds,
        "journal": made * rest.journal_bytes / rest.disk_bytes,
        "object store": made * rest.journal_bytes / rest.part_bytes / rest.store_requests,
    }
    planning, making = outputs * rest.plan_seconds, outputs / made * max(1.0, *loads.values())
    return Prediction(gpus, made, loads, planning / 3600, (planning + making) / 3600)


def table(rest: Inputs) -> str:
    """The predictions as Markdown."""
    parts = list(predict(rest, 1).loads)
    head = ["GPUs", "outputs a second", *parts, "bottleneck", "planning, hours", "in all", "GPUs at work"]
    rows = [head, ["---"] * len(head)]
    for number in GPUS:
        one = predict(rest, number)
        first = one.first if one.loads[one.first] > 1 else "nothing"
        shares = [f"{one.loads[part]:.0%}" if one.loads[part] >= 0.005 else "under 1%" for part in parts]
        hours = f"{one.planning_hours:.1f}", f"{one.hours:.0f}"
        rows.append([str(number), f"{one.made:,.0f}", *shares, first, *hours, f"{one.at_work:.0%}"])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


@benchmark
def inputs() -> Iterator[Measurement]:
    """What the command takes for an output: of the processor to plan it, and of the disk."""
    with tempfile.TemporaryDirectory() as folder:
        study = _study(Path(folder), SAMPLE, list(TRANSFORMATIONS), (1337, 1338, 1339))
        plan = Plan(study)
        begun = time.process_time()
        with planned(plan) as units:
            seconds = time.process_time() - begun
            outputs = sum(unit.todo for unit in units)
            held = sum(unit._keys.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
                       .fetchone()[0] for unit in units)  # fmt: skip
            rows = [_row(plan, job, failed=False) for job in units[0].jobs()]
    if outputs != SAMPLE * VARIANTS:
        raise RuntimeError(f"{outputs} outputs are planned: something else was measured")
    written = sum(len(TransformedText.model_validate(row).model_dump_json()) + 1 for row in rows)
    yield Measurement("throughput.plan_microseconds_an_output", seconds / outputs * 1e6, "us")
    yield Measurement("throughput.key_bytes_an_output", held / outputs, "bytes")
    yield Measurement("throughput.journal_bytes_an_output", written / len(rows), "bytes")


def main() -> int:
    """Print the table."""
    parser = cli.Parser(prog="python -m benchmarks.throughput", description="Predict 10 million texts on many GPUs.")
    parser.parse_args()
    print(table(Inputs()))
    return 0


if __name__ == "__main__":
    cli.run(main)
