"""Select tasks: split the models, choose tasks by one half in each way, and judge each way on the other half."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from evaluation.benchmarks.scores import Scores, split
from evaluation.benchmarks.selection_methods import (
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
from evaluation.benchmarks.task_facts import amount, costs
from plumbline.errors import StudyError
from plumbline.statistics.estimates import Floats, stream
from plumbline.words import count

RANDOM = 1000  # random selections to compare with
METHODS = {
    "agreement": "chosen for agreement within the budget",
    "mmteb": "MMTEB's backward selection, until its thresholds stop it",
}


@dataclass(frozen=True)
class SelectionRequest:
    """The user's request; `budget` is in `unit`, 0 for as many tasks as MMTEB's thresholds leave."""

    budget: float
    unit: str
    method: str = "agreement"
    cover: str = "language"
    languages: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    rho: float = RHO
    mse: float = MSE
    held_out: float = 0.33
    seed: int = 1337


@dataclass(frozen=True)
class TaskSelection:
    """The selection of one way: its tasks, the budget of random selections, and its agreement."""

    method: str
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
    held: Bools
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
        required = count(int(needs.required.sum()), "task")
        raise StudyError(
            f"--budget {amount(request.budget)} {request.unit}: the cheapest selection that meets the requirements"
            f" ({len(needs.needs)} from --cover {request.cover}, {required} from --keep) takes"
            f" {priced(needs, cheapest, request.unit)}; raise the budget, name fewer --languages, or cover less"
            " (--cover type)"
        )
    if request.budget and not needs.within(float(needs.cost.min()), request.budget):
        raise StudyError(
            f"--budget {amount(request.budget)} {request.unit}: the cheapest task takes {amount(needs.cost.min())};"
            " raise the budget"
        )
    return needs


def priced(needs: Coverage, chosen: Bools, unit: str) -> str:
    """Return a selection's cost and size: "1,200 characters, 3 tasks"; only its size if that is the cost."""
    size = count(int(chosen.sum()), "task")
    return size if unit == "tasks" else f"{amount(needs.price(chosen))} {unit}, {size}"


def select(
    scores: Scores, facts: pd.DataFrame, request: SelectionRequest, progress: Callable[[], object] = lambda: None
) -> BenchmarkSelection:
    """Choose tasks in each way by the models that are not held out, and judge them on the held-out ones.

    `scores` without gaps (`scores.whole`), `facts` of the same tasks in their order. Raises StudyError and DataError.
    """
    needs = checked(facts, request)
    held = split(scores, request.held_out, request.seed)
    matrix = scores.array
    kept_scores, held_scores = matrix[~held], matrix[held]
    # A task that is constant among the choosing models cannot be predicted, so it is never removed.
    flat = np.ptp(kept_scores, axis=0) == 0
    removable = Coverage(needs.needs, needs.met, needs.required | flat, needs.cost)
    trace = backward(kept_scores, removable, rho=request.rho, mse=request.mse, progress=progress)
    stopped = np.ones(len(facts), np.bool_)
    stopped[[step.task for step in trace]] = False
    if request.budget:
        budget, priced = request.budget, needs
    else:
        budget = float(stopped.sum())
        priced = Coverage(needs.needs, needs.met, needs.required, np.ones(len(facts)))
    rng = stream(request.seed, "starts", f"{budget:.9g}")
    ways = {"agreement": (agreeing(kept_scores, priced, budget, rng, progress), budget, priced)}
    by_tasks = Coverage(needs.needs, needs.met, needs.required, np.ones(len(facts)))
    ways["mmteb"] = (stopped, float(stopped.sum()), by_tasks)
    judged = {
        name: _judged(name, chosen, size, (held_scores, needs, way), request.seed)
        for name, (chosen, size, way) in ways.items()
    }
    return BenchmarkSelection(request, scores, facts, needs, held, trace, judged)


def steps_of(facts: pd.DataFrame) -> int:
    """Return how often a selection calls its progress, at most."""
    return len(facts) + 1 + STARTS


def _judged(
    name: str, chosen: Bools, budget: float, with_what: tuple[Floats, Coverage, Coverage], seed: int
) -> TaskSelection:
    held_scores, needs, priced = with_what
    random = priced.random(budget, RANDOM, stream(seed, "random selections", f"{budget:.9g}"))
    rngs = [stream(seed, "interval", measure) for measure in ("rho", "tau")]
    return TaskSelection(name, chosen, budget, needs.price(chosen), agreement(held_scores, chosen, random, rngs))
