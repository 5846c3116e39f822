"""Numbers and notes of `evaluation.tables` for people, and boards of models."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from annotation.verdicts.tables import display
from plumbline.statistics.rankings import LEAST_TASKS, MOST_LETTERED
from plumbline.study.judged import KNOWN
from plumbline.transformations import AXES, Axes


def short_names(models: Collection[str]) -> dict[str, str]:
    """Return models' names without their owners', if they stay distinct: lines must fit a terminal."""
    short = {model: model.rsplit("/", 1)[-1] for model in models}
    return short if len(set(short.values())) == len(short) else {model: model for model in models}


def total_notes(axes: Axes) -> list[str]:
    """Return a note on the axes of the total, unless these are HTEB's."""
    if axes.are_htebs:
        return []
    others = [axis for axis in axes.shown if axis not in axes.of_total]
    beside = f", without {', '.join(others)}" if others else ""
    return [f"{axes.total}: the mean over {', '.join(axes.of_total)}{beside}"]


def axis_notes(rows: Sequence[Mapping[Any, Any]], heads: Mapping[str, str]) -> list[str]:
    """Return the reasons for missing values of `axis_table`, one line each, with models and axis.

    `heads` are the displayed names of axes and total. A reason that holds for all models or all axes does not name
    them.
    """
    models_by_reason: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        why = {head: row[f"{name}_reason"] for name, head in heads.items()}
        alike = len(set(why.values())) == 1
        for head, reason in [("", *set(why.values()))] if alike else why.items():
            models_by_reason.setdefault((head, reason), []).append(row["model"])
    notes = []
    for (head, reason), models in models_by_reason.items():
        whose = [] if len(models) == len(rows) > 1 else models
        label = ", ".join([*whose, *([head] if head else [])])
        notes.append(f"{label or 'all models'}: {reason}" if reason else "")
    return list(filter(None, notes))


def worded(note: str) -> str:
    """Return a note with the displayed names of transformations and axes."""
    for name in sorted((name for name in {*KNOWN, *AXES} if "_" in name), key=len, reverse=True):
        note = note.replace(name, display(name, pooled=False))
    return note


def _shown(form: str, scale: float) -> Callable[[float], str]:
    return lambda value: "–" if math.isnan(value) else format(scale * value, form)


hundred = _shown(".2f", 100)  # scores
points = _shown("+.2f", 1)  # differences
decimal = _shown("+.2f", 1)  # correlations
whole = _shown(".0f", 1)  # counts and ranks


_BOARD_GAPS = (
    "A model without a score on a {task} has no mean and gets no point there; every other model gets one (mteb's"
    " rule). Scores that are equal to nine decimals are ties."
)
_BOARD_INTERVALS = (
    "95% intervals treat the {n} {tasks} as a sample. Counts, means and a single model's rank: bootstrap of {tasks},"
    " 10,000 draws. Ranks: paired t-tests of points tell models apart (Holm's correction over all pairs{bound});"
    " with 95% confidence all ranks lie within their limits at once.{letters}"
)
_BOARD_SHORT = (
    "With fewer than {least} {tasks} the intervals of counts and means are too narrow: with 5 to 8 tasks drawn from"
    " MTEB's boards, 95% intervals covered 89% to 93% of the counts over all tasks, with 10 to 20 tasks 93% to 94%."
)
_COVERED = 10  # tasks
_FEW = 20  # tasks, up to which that bound matters
_LETTERS = " Models that share a letter do not differ significantly."
_TIERS = " A group begins with the best model that differs significantly from the first of the group above."


def board_rows(
    table: pd.DataFrame,
    types: Iterable[str],
    named: Callable[[str], str],
    *,
    mean: str = "Mean of tasks",
    shown: Callable[[float], str] = hundred,
) -> list[dict[str, str]]:
    """Return the rows of `evaluation.tables.comparisons.board`, with columns of intervals if any is known.

    `mean` is the heading of the mean over types' means.
    """
    kinds, rows = list(types), table.to_dict(orient="records")
    return [
        _board_row(row, table, shown)
        | {mean: shown(row["category_mean"])}
        | {named(kind): shown(row[kind]) for kind in kinds}
        for row in rows
    ]


def board_notes(table: pd.DataFrame, n_tasks: int, tasks: str = "data sets") -> list[str]:
    """Return notes on a board's intervals, or why it has none, and on gaps."""
    gaps = _BOARD_GAPS.format(task=tasks.removesuffix("s"))
    if "rank_low" not in table or len(table) < 2:
        return [gaps]
    if n_tasks < LEAST_TASKS:
        return [f"No intervals: they need at least {LEAST_TASKS} {tasks}, not {n_tasks}.", gaps]
    if table["rank_low"].isna().all():
        return [gaps]
    grouped = (table["group"] != "").any()
    letters = (_TIERS if table["rank_low"].notna().sum() > MOST_LETTERED else _LETTERS) if grouped else ""
    bound = f", p at least 2^(1-{n_tasks})" if n_tasks <= _FEW else ""
    short = [_BOARD_SHORT.format(least=_COVERED, tasks=tasks)] if n_tasks < _COVERED else []
    return [_BOARD_INTERVALS.format(n=n_tasks, tasks=tasks, letters=letters, bound=bound), *short, gaps]


def _board_row(row: Mapping[Any, Any], table: pd.DataFrame, shown: Callable[[float], str]) -> dict[str, str]:
    """Return the cells before those of types."""
    cells = {"Model": str(row["model"]), "Rank (Borda)": f"{row['rank']} ({row['borda']:g})"}
    has_intervals = "rank_low" in table and table["rank_low"].notna().any()
    if has_intervals:
        cells["Rank 95%"] = _span(row["rank_low"], row["rank_high"], whole)
        cells["Rank 95% alone"] = _span(row["rank_single_low"], row["rank_single_high"], whole)
        if (table["group"] != "").any():
            cells["Group"] = row["group"] or "–"
        cells["Count 95%"] = _span(row["borda_low"], row["borda_high"], whole)
    cells["Mean"] = shown(row["mean"])
    if has_intervals:
        cells["Mean 95%"] = _span(row["mean_low"], row["mean_high"], shown)
    return cells


def _span(low: float, high: float, shown: Callable[[float], str]) -> str:
    return "–" if pd.isna(low) else f"{shown(low)} to {shown(high)}"
