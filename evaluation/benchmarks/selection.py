"""Select tasks: split the models, choose tasks by one half in each way, judge each way on the other half, write it.

The files of a selection are the chosen tasks with reasons, tables, and a benchmark for mteb.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from cyclopts import Parameter
from tqdm import tqdm

from evaluation.benchmarks.scores import Scores, ScoreSource, read, split, without_gaps
from evaluation.benchmarks.selection_methods import (
    BEATS,
    MSE,
    RHO,
    STARTS,
    Bools,
    Coverage,
    RankingAgreement,
    Step,
    agreeing,
    agreement,
    backward,
    coverage,
)
from evaluation.benchmarks.task_facts import UNITS, amount, costs
from plumbline.cli import Named, Seed, Several, positive, reads
from plumbline.errors import DataError, StudyError
from plumbline.exhibits.table import Exhibit, cell, csv_bytes, estimates, interval, json_file, number, write_files
from plumbline.statistics.estimates import Estimate, stream
from plumbline.study.places import output_folder
from plumbline.words import count

RANDOM = 1000  # random selections to compare with
_three = partial(number, digits=3)
METHODS = {
    "agreement": "chosen for agreement within the budget",
    "mmteb": "MMTEB's backward selection, until its thresholds stop it",
}


def _share(value: str) -> float:
    if (share := positive(value)) < 1:
        return share
    raise ValueError(f"{value!r} is not a share between 0 and 1")


@Parameter(name="*")
@dataclass(frozen=True)
class SelectionRequest:
    """The user's request; `budget` is in `unit`, 0 for as many tasks as MMTEB's thresholds leave.

    Args:
        method: Selection to write: best agreement (default), or MMTEB's backward selection.
        cover: Coverage required: each language within its task type (default), each task type, or none.
        keep: Tasks that the selection must contain.
        rho: MMTEB's lowest rank correlation for removing a task (default: 0.8).
        mse: MMTEB's limit for removing a task: the mean squared error of its predicted scores, divided by the scores'
            variance over models (default: 0.5).
        held_out: Share of models held out to judge the selection (default: 0.33).
        seed: Random seed for the split of models, the starts of the search and random selections (default: 1337).
    """

    budget: Annotated[float, Parameter(parse=False)] = 0.0
    unit: Annotated[str, Parameter(parse=False)] = "tasks"
    method: Literal["agreement", "mmteb"] = "agreement"
    cover: Literal["language", "type", "none"] = "language"
    languages: Annotated[tuple[str, ...], Parameter(parse=False)] = ()
    keep: Annotated[tuple[str, ...], Several, Parameter(metavar="TASK...")] = ()
    rho: Annotated[float, Parameter(metavar="RHO")] = RHO
    mse: Annotated[float, Parameter(metavar="MSE")] = MSE
    held_out: Annotated[float, reads(_share), Parameter(metavar="SHARE")] = 0.33
    seed: Seed = 1337


@dataclass(frozen=True)
class TaskSelection:
    """The selection of one way: its tasks, the budget of random selections, and its agreement."""

    chosen: Bools
    budget: float
    cost: float
    agreement: RankingAgreement


@dataclass(frozen=True)
class BenchmarkSelection:
    """The result. `main` is the requested selection."""

    request: SelectionRequest
    scores: Scores
    facts: pd.DataFrame
    coverage: Coverage
    held_out: Bools
    trace: list[Step]
    ways: dict[str, TaskSelection]

    @property
    def main(self) -> TaskSelection:
        """The requested selection."""
        return self.ways[self.request.method]


def checked(facts: pd.DataFrame, request: SelectionRequest) -> Coverage:
    """Return the needs of a selection and the costs of tasks. Raises StudyError if no selection fits the budget."""
    if not -1 <= request.rho <= 1 or not request.mse >= 0:  # also refuses NaN
        raise StudyError(f"--rho {request.rho:g} --mse {request.mse:g}: rho must be from -1 to 1, and mse at least 0")
    needs = coverage(facts, request.cover, request.languages, request.keep, costs(facts, request.unit))
    cheapest = needs.cheapest()
    if request.budget and not needs.within(needs.price(cheapest), request.budget):
        required, size = (count(int(tasks.sum()), "task") for tasks in (needs.required, cheapest))
        price = f"{amount(needs.price(cheapest))} {request.unit}, {size}" if request.unit != "tasks" else size
        raise StudyError(
            f"--budget {amount(request.budget)} {request.unit}: the cheapest selection that meets the requirements"
            f" ({len(needs.needs)} from --cover {request.cover}, {required} from --keep) takes"
            f" {price}; raise the budget, name fewer --languages, or cover less (--cover type)"
        )
    if request.budget and not needs.within(float(needs.cost.min()), request.budget):
        raise StudyError(
            f"--budget {amount(request.budget)} {request.unit}: the cheapest task takes {amount(needs.cost.min())};"
            " raise the budget"
        )
    return needs


def select(
    scores: Scores, facts: pd.DataFrame, request: SelectionRequest, progress: Callable[[], object] = lambda: None
) -> BenchmarkSelection:
    """Choose tasks in each way by the models that are not held out, and judge them on the held-out ones.

    `scores` are those of `without_gaps`, `facts` are of the same tasks in their order. Raises StudyError and DataError.
    """
    needs = checked(facts, request)
    held_out = split(scores, request.held_out, request.seed)
    matrix = scores.array
    kept_scores, held_scores = matrix[~held_out], matrix[held_out]
    # A task that is constant among the choosing models cannot be predicted, so it is never removed.
    flat = np.ptp(kept_scores, axis=0) == 0
    removable = replace(needs, required=needs.required | flat)
    trace = backward(kept_scores, removable, rho=request.rho, mse=request.mse, progress=progress)
    stopped = np.ones(len(facts), np.bool_)
    stopped[[step.task for step in trace]] = False
    by_tasks = replace(needs, cost=np.ones(len(facts)))
    budget, priced = (request.budget, needs) if request.budget else (float(stopped.sum()), by_tasks)
    rng = stream(request.seed, "starts", f"{budget:.9g}")
    ways = {
        "agreement": (agreeing(kept_scores, priced, budget, rng, progress), budget, priced),
        "mmteb": (stopped, float(stopped.sum()), by_tasks),
    }
    judged = {}
    for name, (chosen, size, way) in ways.items():
        random = way.random(size, RANDOM, stream(request.seed, "random selections", f"{size:.9g}"))
        rngs = [stream(request.seed, "interval", measure) for measure in ("rho", "tau")]
        judged[name] = TaskSelection(chosen, size, needs.price(chosen), agreement(held_scores, chosen, random, rngs))
    return BenchmarkSelection(request, scores, facts, needs, held_out, trace, judged)


def answer(selection: BenchmarkSelection) -> str:
    """Return the answer in one line."""
    main = selection.main
    n, n_all, n_held = int(main.chosen.sum()), len(main.chosen), int(selection.held_out.sum())
    tau = main.agreement.tau
    if n == n_all:
        needs, budget = selection.coverage, selection.request.budget
        if budget and needs.within(float(needs.cost.sum()), budget):
            return f"All {n} tasks are within the budget, so there is nothing to choose."
        return f"All {n} tasks are chosen: --cover, --keep or MMTEB's thresholds allow no task to be removed."
    if math.isnan(tau.value):
        return f"{n} of {n_all} tasks were chosen; whether they keep the ranking is unknown: {tau.reason}."
    return (
        f"{n} of {n_all} tasks were chosen. Agreement of their ranking of {n_held} held-out models with that by all"
        f" tasks: tau {correlation(tau)}, rho {correlation(main.agreement.rho)}. {against_random(main)}"
    )


def against_random(way: TaskSelection) -> str:
    """Return whether a selection beats random ones, in words."""
    shares, n = way.agreement.as_good, len(way.agreement.random_tau)
    if way.agreement.beats_random is None:
        return (
            "Whether this selection beats random ones is unknown: no random selection fits the budget or ranks the"
            " models."
        )
    text = f"{shares['tau']:.1%} of {n:,} random selections are at least as good by tau, {shares['rho']:.1%} by rho"
    if way.agreement.beats_random:
        return f"This selection beats random ones: {text}."
    return f"THIS SELECTION DOES NOT BEAT RANDOM ONES (both shares would have to be below {BEATS:.0%}): {text}."


def exhibit(selection: BenchmarkSelection, lines: Sequence[str] = ()) -> Exhibit:
    """Return the ways beside one another, with notes and these further `lines`."""
    unit = selection.request.unit
    columns = {
        "Method": cell("method", METHODS.__getitem__),
        "Tasks": "tasks",
        **({unit.capitalize(): cell("cost", amount)} if unit != "tasks" else {}),
        **{name: estimates(name, f"{name}_low", f"{name}_high", _three) for name in ("rho", "tau")},
        "Random as good (tau)": cell("tau_random_as_good", partial(number, digits=1, times=100, unit="%")),
        "Beats random": cell("beats_random", lambda beats: {"true": "yes", "false": "no"}.get(beats, beats)),
    }
    frame = pd.DataFrame([_measured(name, way) for name, way in selection.ways.items()])
    return Exhibit.of("selection", answer(selection), frame, columns, [*notes(selection), *lines])


def notes(selection: BenchmarkSelection) -> list[str]:
    """Return notes on the basis of the numbers."""
    scores, request = selection.scores, selection.request
    n_models = len(selection.held_out) - int(selection.held_out.sum())
    lines = [
        f"chosen with {n_models} models, judged on {int(selection.held_out.sum())} of other families (seed"
        f" {request.seed}); intervals are 95% percentile bootstraps over the held-out models",
        "Models are ranked by Borda counts; random selections meet the requirements and the budget of the chosen ones",
        *scores.remarks,
    ]
    if n_models - 1 <= selection.scores.frame.shape[1]:
        lines.append("there are no more models than tasks, so regressions use the least-norm solutions, as MMTEB's did")
    lines += scores.left_out("selection.json")
    return lines


def correlation(estimate: Estimate) -> str:
    """Return a correlation with its interval."""
    return interval(estimate.value, estimate.low, estimate.high, _three)


BENCHMARK = "benchmark.py"


def write(folder: Path, selection: BenchmarkSelection, tasks: dict[str, Any], source: str) -> tuple[str, ...]:
    """Write all files atomically, replacing those of an earlier selection; return the notes that arose.

    `tasks` are mteb's task objects by name, narrowed to the scored subsets; `source` is the value of --from.
    """
    names = selection.facts.index
    steps = [(n, names[step.task], step.rho, step.mse) for n, step in enumerate(selection.trace, 1)]
    files = {
        "tasks.csv": csv_bytes(_tasks(selection)),
        "trace.csv": csv_bytes(pd.DataFrame(steps, columns=["step", "task", "rho", "mse"])),
    }
    chosen = _names(selection)
    chosen_tasks = {name: tasks[name] for name in chosen if name in tasks}
    lines: list[str] = []
    if len(chosen_tasks) < len(chosen):
        lacking_task = next(name for name in chosen if name not in chosen_tasks)
        lines.append(f"{BENCHMARK} was not written: mteb has no task {lacking_task!r}")
    else:
        files[BENCHMARK] = _benchmark(chosen_tasks, folder.name, selection).encode()
    files["selection.json"] = json_file(_summary(selection, source, lines))
    write_files(folder, files)
    return tuple(lines)


def _names(selection: BenchmarkSelection) -> list[str]:
    return [str(name) for name, chosen in zip(selection.facts.index, selection.main.chosen, strict=True) if chosen]


def _tasks(selection: BenchmarkSelection) -> pd.DataFrame:
    facts = selection.facts.reset_index(names="task")
    facts["languages"] = facts["languages"].map(" ".join)
    facts["chosen"] = selection.main.chosen
    marked = selection.scores.marked
    facts["not_comparable"] = [len(marked.get(str(name), ())) for name in selection.facts.index]
    for name, way in selection.ways.items():
        facts[f"by_{name}"] = way.chosen
    return facts


def _measured(name: str, way: TaskSelection) -> dict[str, Any]:
    """Return one way's numbers; each undefined one has its reason."""
    agreement, shares = way.agreement, way.agreement.as_good
    row: dict[str, Any] = {"method": name, "tasks": int(way.chosen.sum()), "cost": way.cost, "budget": way.budget}
    for measure, estimate, random in (
        ("rho", agreement.rho, agreement.random_rho),
        ("tau", agreement.tau, agreement.random_tau),
    ):
        row |= {measure: estimate.value, f"{measure}_low": estimate.low, f"{measure}_high": estimate.high}
        row |= {f"{measure}_reason": estimate.reason, f"{measure}_random_as_good": shares[measure]}
        values = random[np.isfinite(random)]
        row[f"{measure}_random_median"] = float(np.median(values)) if len(values) else math.nan
    beats = agreement.beats_random
    return row | {
        "random": len(agreement.random_tau),
        "beats_random": "not known" if beats is None else str(beats).lower(),
    }


def _summary(selection: BenchmarkSelection, source: str, lines: list[str]) -> dict[str, Any]:
    """Return the chosen tasks, reasons and basis; undefined numbers are null."""
    request = selection.request
    return {
        "answer": answer(selection),
        "method": f"{request.method}: {METHODS[request.method]}",
        "tasks": _names(selection),
        "asked": {**vars(request), "from": source},
        "agreement": [_measured(name, way) for name, way in selection.ways.items()],
        "needs": list(selection.coverage.needs),
        "models": {"chosen_by": int((~selection.held_out).sum()), "held_out": int(selection.held_out.sum())},
        "notes": [*notes(selection), *lines],
        **selection.scores.basis(_names(selection), request.seed),
    }


def _benchmark(tasks: dict[str, Any], name: str, selection: BenchmarkSelection) -> str:
    """Return a Python file that makes the `mteb.Benchmark`; names appear in it only as strings."""
    lines = [
        '"""A selection of tasks as a benchmark of mteb, made by `plumbline select`."""',
        "",
        "import mteb",
        "",
        "BENCHMARK = mteb.Benchmark(",
        f"    name={json.dumps(f'{name} ({len(tasks)} tasks)')},",
        "    tasks=[",
    ]
    for task_name, task in tasks.items():
        subsets = (
            "" if task.hf_subsets == task.metadata.hf_subsets else f", hf_subsets={json.dumps(list(task.hf_subsets))}"
        )
        splits = json.dumps(list(task.eval_splits))
        lines.append(f"        mteb.get_task({json.dumps(task_name)}, eval_splits={splits}{subsets}),")
    lines += [
        "    ],",
        f"    description={json.dumps(answer(selection))},",
        ")",
        "",
        'if __name__ == "__main__":  # python benchmark.py MODEL',
        "    import sys",
        "",
        "    results = mteb.evaluate(mteb.get_model(sys.argv[1]), BENCHMARK)",
        "    print(results.to_dataframe())",
        "",
    ]
    return "\n".join(lines)


LEAST_TASKS = 3  # needed for a choice


def select_tasks(
    *,
    source: ScoreSource,
    budget: Annotated[tuple[str, ...], Several, Parameter(metavar="N UNIT")] = (),
    request: SelectionRequest = SelectionRequest(),
    gaps: Literal["refuse", "models", "tasks", "fewest"] = "refuse",
    out: Annotated[Named | None, Parameter(metavar="FOLDER")] = None,
) -> None:
    """Choose a smaller benchmark that keeps the ranking of models.

    Tasks are chosen that keep a benchmark's ranking within a budget; the choice is judged on held-out models and
    compared with random selections.

    Example: plumbline select --from "MTEB(eng, v2)" --languages eng --budget 10

    From a table of scores (a model a row, a task a column; or model, task, score), with measured seconds:

        plumbline select --from scores.csv --gaps fewest --budget 30 minutes --tasks seconds.csv

    Args:
        source: The scores.
        budget: Maximum number of tasks, texts, characters or minutes (default: as many tasks as MMTEB's thresholds
            leave).
        request: What is chosen, and how.
        gaps: If scores are missing: leave out models, tasks, or whichever lacks most scores (default: refuse).
        out: The folder for the files (default: selection).
    """
    unit = budget[1] if len(budget) > 1 else "tasks"
    try:
        most = positive(budget[0]) if budget else 0.0
    except ValueError as error:
        raise StudyError(f"--budget: {error}") from None
    if unit not in UNITS or len(budget) > 2:
        raise StudyError(f"--budget {' '.join(budget)}: write a number and one of {', '.join(UNITS)}")
    folder = output_folder(out, "selection")
    scores, facts, tasks = read(source)
    scores = without_gaps(scores, gaps)
    if scores.frame.shape[1] < LEAST_TASKS:
        n = scores.frame.shape[1]
        raise DataError(f"{source.source} has {count(n, 'usable task')}; a selection needs at least {LEAST_TASKS}")
    facts = facts.loc[[str(name) for name in scores.frame]]
    request = replace(request, budget=most, unit=unit, languages=source.languages)
    with tqdm(total=len(facts) + 1 + STARTS, desc="selecting", unit="step", delay=1, leave=False) as bar:
        selection = select(scores, facts, request, bar.update)
    lines = write(folder, selection, tasks, source.source)
    print(exhibit(selection, lines).text())
    written = ", ".join(path.name for path in sorted(folder.iterdir()) if path.suffix != ".csv")
    print(f"-> {folder}: {written}, tables as CSV")
