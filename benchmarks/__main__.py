"""`python -m benchmarks`: run all, print a table, write `latest.json` and `latest.md` in `benchmarks/results`.

The status is 1 if a limit is exceeded or something could not be measured. `python -m benchmarks server` runs one
module's, `python -m benchmarks server.large` those whose names begin so; only these modules' packages are needed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import re
import sys
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.memory import processor
from benchmarks.registry import Benchmark, Measurement, chosen, name_of
from plumbline import cli
from plumbline.errors import PlumblineError, StudyError
from plumbline.store import write_json

MODULES = (
    *("build", "bundle", "campaign", "cluster", "dashboard", "encoding", "engine", "evaluation", "flags"),
    *("generation", "gpu", "human", "instructions", "judges", "judging", "quality", "rating_page", "ratings"),
    *("ratings_saved", "report", "scale", "server", "server_floor", "server_load", "verdicts", "wordings"),
)
RESULTS = Path(__file__).parent / "results" / "latest.json"
COLUMNS = ("name", "value", "unit", "against")
KNOWN = ", ".join(MODULES)


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
        help=f"a module or the beginning of a benchmark's name (server.large); default: all. Modules: {KNOWN}",
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
        if measured:
            here = machine()
            rows = [{**{column: getattr(one, column) for column in COLUMNS}, "machine": here} for one in measured]
            write_json(RESULTS, rows := merged(rows))
            RESULTS.with_suffix(".md").write_text(markdown(rows), encoding="utf-8")
            print(f"{table(measured)}\non {here}")
    return 0 if measured and all(one.holds for one in measured) and not missing else 1


def wanted(names: list[str]) -> list[Benchmark]:
    """The benchmarks that `names` choose. Raises StudyError for a name that chooses none."""
    heads = tuple(name.partition(".")[0] for name in names)
    for module in MODULES:
        if not names or module.startswith(heads):
            importlib.import_module(f"benchmarks.{module}")  # which adds its benchmarks to the list
    for name in names:
        if not chosen([name]):
            raise StudyError(f"no benchmark is called {name!r}; its module must be one of {KNOWN}")
    return chosen(names)


def merged(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """The last results with these rows in place of theirs: a run of some leaves what the others measured."""
    before = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    return list({row["name"]: row for row in [*before, *rows]}.values())


def machine() -> str:
    """The processor, its cores, the GPU if torch was used and sees one, and the day."""
    facts = re.search(r"model name\s*: (.*)", processor())
    parts = [f"{os.cpu_count()} cores of {facts[1] if facts else platform.machine()}"]
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        parts.append(f"{torch.cuda.get_device_name()} with torch {torch.__version__}")
    return ", ".join([*parts, f"{datetime.now(UTC):%Y-%m-%d}"])


def markdown(rows: list[dict[str, object]]) -> str:
    """The table of docs/benchmarks.md, with each number's machine."""
    lines = [f"| `{row['name']}` | {row['value']:.3g} {row['unit']} | {row['against'] or 'reported'} |" for row in rows]
    lines = [f"{line} {row.get('machine', '')} |" for line, row in zip(lines, rows, strict=True)]
    return "\n".join(["| what | value | limit | machine |", "|---|---|---|---|", *lines, ""])


def table(measured: list[Measurement]) -> str:
    """Name, value, unit, limit, and whether it holds."""
    rows = []
    for one in measured:
        verdict = "" if not one.against else "ok" if one.holds else "OVER THE LIMIT"
        rows.append([one.name, f"{one.value:.3f}", one.unit, one.against or "none", verdict])
    return cli.columns(["benchmark", "value", "unit", "limit", ""], rows)


if __name__ == "__main__":
    cli.run(main)
