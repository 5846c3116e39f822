"""`python -m benchmarks`: run all, print a table, write `benchmarks/results/latest.json`.

The status is 1 if a limit is exceeded or something could not be measured. `python -m benchmarks server` runs one
module's, `python -m benchmarks server.large` those whose names begin so.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import benchmarks.build
import benchmarks.bundle
import benchmarks.campaign
import benchmarks.cluster
import benchmarks.dashboard
import benchmarks.engine
import benchmarks.evaluation
import benchmarks.flags
import benchmarks.generation
import benchmarks.gpu
import benchmarks.human
import benchmarks.instructions
import benchmarks.judges
import benchmarks.judging
import benchmarks.quality
import benchmarks.rating_page
import benchmarks.ratings
import benchmarks.ratings_saved
import benchmarks.report
import benchmarks.scale
import benchmarks.server
import benchmarks.server_floor
import benchmarks.server_load
import benchmarks.verdicts
import benchmarks.wordings  # noqa: F401 (importing a module adds its benchmarks to the list)
from benchmarks.registry import BENCHMARKS, Benchmark, Measurement, chosen, name_of
from plumbline import cli
from plumbline.errors import PlumblineError, StudyError
from plumbline.store import write_json

RESULTS = Path(__file__).parent / "results" / "latest.json"
COLUMNS = ("name", "value", "unit", "against")


def main() -> int:
    """Run the benchmarks that were asked for; 0 if all are measured and all limits hold."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure the platform's speed and memory, and check them against limits.",
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="a module (server) or the beginning of a benchmark's name (server.large); default: all. Known: "
        + ", ".join(map(name_of, BENCHMARKS)),
    )
    runs = wanted(parser.parse_args().names)
    measured: list[Measurement] = []
    missing = False
    try:
        for run in runs:
            try:
                measured.extend(run())
            except PlumblineError as error:  # a machine that lacks what one of them needs measures the others
                missing = True
                print(f"{name_of(run)}: not measured: {error}", file=sys.stderr)
    finally:  # what was measured before a failure took its time too
        write_json(RESULTS, merged([{column: getattr(one, column) for column in COLUMNS} for one in measured]))
        print(table(measured))
    return 0 if all(one.holds for one in measured) and not missing else 1


def wanted(names: list[str]) -> list[Benchmark]:
    """The benchmarks that `names` choose. Raises StudyError for a name that chooses none."""
    for name in names:
        if not chosen([name]):
            raise StudyError(f"no benchmark is called {name!r}; known: {', '.join(map(name_of, BENCHMARKS))}")
    return chosen(names)


def merged(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """The last results with these rows in place of theirs: a run of some leaves what the others measured."""
    before = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    return list({row["name"]: row for row in [*before, *rows]}.values())


def table(measured: list[Measurement]) -> str:
    """Name, value, unit, limit, and whether it holds."""
    rows = []
    for one in measured:
        verdict = "" if not one.against else "ok" if one.holds else "OVER THE LIMIT"
        rows.append([one.name, f"{one.value:.3f}", one.unit, one.against or "none", verdict])
    return cli.columns(["benchmark", "value", "unit", "limit", ""], rows)


if __name__ == "__main__":
    cli.run(main)
