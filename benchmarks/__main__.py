"""`python -m benchmarks`: run all, print a table, write `benchmarks/results/latest.json`; status 1 over a limit."""

from __future__ import annotations

from pathlib import Path

import benchmarks.generation  # noqa: F401 (importing a module adds its benchmarks to the list)
from benchmarks.registry import BENCHMARKS, Measurement
from generation import command
from generation.store import write_json

RESULTS = Path(__file__).parent / "results" / "latest.json"


def main() -> int:
    """Run every benchmark; 0 if all limits hold."""
    measured = [measurement for run in BENCHMARKS for measurement in run()]
    columns = ("name", "value", "unit", "against")
    write_json(RESULTS, [{column: getattr(one, column) for column in columns} for one in measured])
    print(table(measured))
    return 0 if all(one.holds for one in measured) else 1


def table(measured: list[Measurement]) -> str:
    """Name, value, unit, limit, and whether it holds."""
    rows = []
    for one in measured:
        verdict = "" if not one.against else "ok" if one.holds else "OVER THE LIMIT"
        rows.append([one.name, f"{one.value:.3f}", one.unit, one.against or "reported only", verdict])
    return command.columns(["benchmark", "value", "unit", "against", ""], rows)


if __name__ == "__main__":
    command.run(main)
