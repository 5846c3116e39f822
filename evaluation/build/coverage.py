"""What every selection must keep (types, languages, tasks named by hand) and may cost; random selections that do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotation.statistics.paired import Floats
from plumbline.errors import StudyError

Bools = NDArray[np.bool_]
COVERS = ("language", "type", "none")
_SAME = 1e-9  # of costs that are sums of the same numbers in another order


@dataclass(frozen=True)
class Coverage:
    """Which tasks (columns) meet which needs (rows, as `needs` names them), which are `kept`, and what each costs."""

    needs: tuple[str, ...]
    met: Bools
    kept: Bools
    cost: Floats

    def __post_init__(self) -> None:
        if not self.met.any(axis=1).all():
            lacking = self.needs[int(np.argmin(self.met.any(axis=1)))]
            raise ValueError(f"no task meets {lacking}")

    def may_go(self, chosen: Bools) -> Bools:
        """Which of the chosen tasks may be taken out: not kept by hand, and no need is met by them alone."""
        alone = self.met[:, chosen].sum(axis=1) == 1
        free: Bools = chosen & ~self.kept & ~self.met[alone].any(axis=0)
        return free

    def holds(self, chosen: Bools) -> bool:
        """Whether a selection meets every need and has every kept task."""
        return bool((self.met[:, chosen].any(axis=1)).all() and chosen[self.kept].all())

    def price(self, chosen: Bools) -> float:
        """What a selection costs."""
        return float(self.cost[chosen].sum())

    def within(self, price: float, budget: float) -> bool:
        """Whether a price is within a budget, rounding aside."""
        return price <= budget + _SAME * max(1.0, abs(budget))

    def cheapest(self) -> Bools:
        """The cheapest selection that meets every need (an integer programme, solved by scipy's HiGHS)."""
        from scipy import optimize  # noqa: PLC0415 (half a second)

        least = self.kept.astype(np.float64)
        bounds = optimize.Bounds(least, np.ones(len(least)))
        # A task that costs nothing still counts a little, or all of them would come along.
        cost = self.cost / max(float(self.cost.max()), _SAME) + _SAME
        rows = [optimize.LinearConstraint(self.met.astype(np.float64), 1, math.inf)] if len(self.met) else []
        found = optimize.milp(cost, constraints=rows, integrality=np.ones(len(least), np.int64), bounds=bounds)
        if not found.success:
            raise RuntimeError(f"the cheapest selection was not found: {found.message}")
        chosen: Bools = found.x > 0.5
        return chosen

    def random(self, budget: float, n: int, rng: np.random.Generator) -> Bools:
        """Random selections (at most `n`, by tasks) that meet every need within a budget.

        Tasks leave in random order until the cost is within the budget, each only while all needs stay met; then those
        that left come back in random order as far as the budget has room. Where only the last ones could have left, a
        draw does not come within the budget, and is not among them. They are not uniform over all that could be.
        """
        n_tasks = self.met.shape[1]
        order = rng.random((n, n_tasks)).argsort(axis=1)
        chosen = np.ones((n, n_tasks), np.bool_)
        counts = np.tile(self.met.sum(axis=1), (n, 1))
        price = np.full(n, self.price(np.ones(n_tasks, np.bool_)))
        limit, rows, meets = budget + _SAME * max(1.0, abs(budget)), np.arange(n), self.met.T
        for task in order.T:
            blocked = ((counts <= 1) & meets[task]).any(axis=1) | self.kept[task] | (price <= limit)
            chosen[rows, task] = blocked
            counts -= meets[task] & ~blocked[:, None]
            price -= np.where(blocked, 0, self.cost[task])
        for task in rng.permuted(order, axis=1).T:
            back = ~chosen[rows, task] & (price + self.cost[task] <= limit)
            chosen[rows, task] |= back
            price += np.where(back, self.cost[task], 0)
        return chosen[price <= limit]


def coverage(tasks: pd.DataFrame, cover: str, languages: Sequence[str], keep: Sequence[str], cost: Floats) -> Coverage:
    """What a selection of `tasks` (index: their names; columns `type`, `languages`) must keep.

    By "type" each type stays represented; by "language" each language stays covered within its type, too (MMTEB, 2.4);
    of languages only those named, where any are. Raises StudyError for a task to keep that is not there.
    """
    names = list(tasks.index)
    if missing := [name for name in keep if name not in names]:
        raise StudyError(f"--keep {missing[0]}: it is not among the {len(names)} tasks; correct it, or leave it out")
    rows: dict[str, Bools] = {}
    types = tasks["type"].to_numpy(str)
    if cover != "none":
        rows |= {f"type {kind}": types == kind for kind in dict.fromkeys(types)}
    if cover == "language":
        own = [set(languages) & set(spoken) if languages else set(spoken) for spoken in tasks["languages"]]
        pairs = sorted({(kind, code) for kind, codes in zip(types, own, strict=True) for code in codes})
        for kind, code in pairs:
            rows[f"{code} in {kind}"] = (types == kind) & np.array([code in codes for codes in own])
    met = np.array(list(rows.values()), np.bool_).reshape(len(rows), len(names))
    return Coverage(tuple(rows), met, np.isin(names, list(keep)), cost)
