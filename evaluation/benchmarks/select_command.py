"""The command `select`: which tasks of a benchmark keep its ranking of models, within a budget."""

from __future__ import annotations

import argparse

from evaluation.benchmarks.options import Commands, add_command, add_run_options, add_source_options, out_of
from plumbline import cli
from plumbline.errors import DataError, StudyError

LEAST_TASKS = 3  # to choose among
EXAMPLE = """example: python -m evaluation.benchmarks select --from "MTEB(eng, v2)" --languages eng --budget 10

From a table of scores (a model a row, a task a column; or model, task, score), and with seconds that were measured:

  python -m evaluation.benchmarks select --from scores.csv --gaps fewest --budget 30 minutes --tasks seconds.csv
"""


def add_select_command(commands: Commands) -> None:
    """`select`, with its options."""
    parser = add_command(
        commands,
        "select",
        _select,
        "tasks that keep a benchmark's ranking of models within a budget",
        "Choose tasks that keep a benchmark's ranking within a budget, judge them on models that had no\n"
        "part in it, and hold them against random selections.",
        EXAMPLE,
    )
    add = parser.add_argument
    add_source_options(parser)
    add("--budget", nargs="+", default=(), metavar=("N", "UNIT"),
        help="so many tasks, texts, characters or minutes (default: as many tasks as MMTEB leaves)")  # fmt: skip
    add("--cover", choices=("language", "type", "none"), default="language",
        help="what must stay: each language within its type (default), each type, or nothing")  # fmt: skip
    add("--keep", nargs="+", default=(), metavar="TASK", help="tasks that stay whatever comes")
    add("--method", choices=("agreement", "backward", "mmteb"), default="agreement",
        help="what is written: for agreement (default), backward to the budget, or where MMTEB stops")  # fmt: skip
    add("--rho", type=float, default=0.8, help="MMTEB's least rank correlation of a task that goes (default: 0.8)")
    add("--mse", type=float, default=0.5, help="its largest error, in variances (default: 0.5)")
    add("--gaps", choices=("refuse", "models", "tasks", "fewest"), default="refuse",
        help="with missing scores: leave out models, tasks, or whichever lacks most (default: refuse)")  # fmt: skip
    add("--held-out", type=_share, default=0.33, metavar="SHARE", help="of models that judge (default: 0.33)")
    add_run_options(parser, "split, starts and random selections", "selection")
    add("--dry-run", action="store_true", help="say what there is to choose from; choose and write nothing")


def _select(options: argparse.Namespace) -> int:
    from tqdm import tqdm  # noqa: PLC0415

    from evaluation.benchmarks import selection_files  # noqa: PLC0415 (what takes long to import comes after --help)
    from evaluation.benchmarks.matrix import whole  # noqa: PLC0415
    from evaluation.benchmarks.options import read  # noqa: PLC0415
    from evaluation.benchmarks.selection import SelectionRequest, checked, priced, select, steps_of  # noqa: PLC0415

    amount, unit = _budget(options.budget)
    out = out_of(options, "selection")
    scores, facts, tasks = read(options)
    scores = whole(scores, options.gaps)
    if scores.frame.shape[1] < LEAST_TASKS:
        n = scores.frame.shape[1]
        raise DataError(f"{n} tasks are left of those in {options.source}; to choose takes {LEAST_TASKS} at least")
    facts = facts.loc[[str(name) for name in scores.frame]]
    request = SelectionRequest(
        amount, unit, options.method, options.cover, tuple(options.languages), tuple(options.keep), options.rho,
        options.mse, options.held_out, options.seed,
    )  # fmt: skip
    if options.dry_run:
        needs = checked(facts, request)
        print(f"{scores.frame.shape[0]} models and {len(facts)} tasks without gaps; {len(scores.omissions)} left out")
        print(f"all of them: {priced(needs, needs.cost > -1, unit)}; the cheapest selection that meets"
              f" {len(needs.needs)} needs: {priced(needs, needs.cheapest(), unit)}")  # fmt: skip
        print("\n".join(selection_files.left_out(scores.omissions)))
        return 0
    with tqdm(total=steps_of(facts), desc="selecting", unit="step", delay=1, leave=False) as bar:
        selection = select(scores, facts, request, bar.update)
    from evaluation.benchmarks.selection_files import write  # noqa: PLC0415

    lines = write(out, selection, tasks, options.source)
    print(selection_files.answer(selection))
    print(f"\n{selection_files.table(selection)}\n")
    for note in (*selection_files.notes(selection), *lines):
        print(f"- {note}")
    print(f"-> {out}: {', '.join(path.name for path in sorted(out.iterdir()) if path.suffix != '.csv')}, tables as CSV")
    return 0


def _budget(values: tuple[str, ...] | list[str]) -> tuple[float, str]:
    if not values:
        return 0.0, "tasks"
    amount, unit = values[0], values[1] if len(values) > 1 else "tasks"
    try:
        number = cli.positive(amount)
    except argparse.ArgumentTypeError as error:
        raise StudyError(f"--budget: {error}") from None
    units = ("tasks", "texts", "characters", "minutes")
    if unit not in units or len(values) > 2:
        raise StudyError(f"--budget {' '.join(values)}: give a number and one of {', '.join(units)}")
    return number, unit


def _share(value: str) -> float:
    number = cli.positive(value)
    if number >= 1:
        raise argparse.ArgumentTypeError(f"{value!r} is not a share between 0 and 1")
    return number
