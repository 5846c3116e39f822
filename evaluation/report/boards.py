"""A board of models as people read it: ranks and means, each with its interval, and what all of them rest on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pandas as pd

from evaluation.display import hundred
from plumbline.statistics.rankings import LEAST_TASKS, MOST_LETTERED

GAPS = (
    "A model without a score on a {task} gets no point there, all others have one for it (mteb's rule), and it has no"
    " mean; scores that are equal to nine decimals are ties."
)
HOW = (
    "95% over {n} {tasks}, as if they were a sample. Counts and means: {tasks} drawn anew 10,000 times. Ranks: which"
    " models can be told apart (paired t-tests of their points, Holm's correction over all pairs{bound}); with 95%"
    " confidence all ranks lie within their limits at once.{letters}"
)
SHORT = (
    "Of fewer than {least} {tasks} intervals of counts and means are too short: of 5 to 8 tasks drawn from MTEB's"
    " boards 95% ones held 89% to 93% of the counts over all tasks, of 10 to 20 tasks 93% to 94%."
)
_COVERED = 10  # tasks
_FEW = 20  # tasks, up to which that bound is ever felt
_LETTERS = " Models with a letter in common are not told apart."
_MANY = f" There are more than {MOST_LETTERED} models, too many for letters."


def printed(
    table: pd.DataFrame,
    types: Iterable[str],
    named: Callable[[str], str],
    *,
    mean: str = "Mean of tasks",
    shown: Callable[[float], str] = hundred,
) -> list[dict[str, str]]:
    """Rows of `evaluation.tables.comparisons.board`; columns of intervals only where any is known.

    `mean` is what the mean over types' means is called.
    """
    kinds, rows = list(types), table.to_dict(orient="records")
    return [
        _row(row, table, shown)
        | {mean: shown(row["category_mean"])}
        | {named(kind): shown(row[kind]) for kind in kinds}
        for row in rows
    ]


def notes(table: pd.DataFrame, n_tasks: int, tasks: str = "data sets") -> list[str]:
    """What the intervals of a board mean, or why there are none, and what is made of gaps."""
    gaps = GAPS.format(task=tasks.removesuffix("s"))
    if "rank_low" not in table or len(table) < 2:
        return [gaps]
    if n_tasks < LEAST_TASKS:
        return [f"No intervals: of {n_tasks} {tasks} they would say nothing; it takes {LEAST_TASKS}.", gaps]
    if table["rank_low"].isna().all():
        return [gaps]
    letters = _LETTERS if (table["group"] != "").any() else _MANY if len(table) > MOST_LETTERED else ""
    bound = f", p at least 2^(1-{n_tasks})" if n_tasks <= _FEW else ""
    short = [SHORT.format(least=_COVERED, tasks=tasks)] if n_tasks < _COVERED else []
    return [HOW.format(n=n_tasks, tasks=tasks, letters=letters, bound=bound), *short, gaps]


def _row(row: Mapping[Any, Any], table: pd.DataFrame, shown: Callable[[float], str]) -> dict[str, str]:
    """The cells before those of types."""
    cells = {"Model": str(row["model"]), "Rank (Borda)": f"{row['rank']} ({row['borda']:g})"}
    has_intervals = "rank_low" in table and table["rank_low"].notna().any()
    if has_intervals:
        cells["Rank 95%"] = _span(row["rank_low"], row["rank_high"], lambda end: f"{end:.0f}")
        if (table["group"] != "").any():
            cells["Group"] = row["group"] or "–"
        cells["Count 95%"] = _span(row["borda_low"], row["borda_high"], lambda end: f"{end:.0f}")
    cells["Mean"] = shown(row["mean"])
    if has_intervals:
        cells["Mean 95%"] = _span(row["mean_low"], row["mean_high"], shown)
    return cells


def _span(low: float, high: float, shown: Callable[[float], str]) -> str:
    return "–" if pd.isna(low) else f"{shown(low)} to {shown(high)}"


CAPTION = (
    "ranks by Borda count, and between which ranks each model's lies with 95% confidence for all at once: models whose"
    " lines overlap may not be told apart"
)
