"""Names and numbers of models' scores for people, and the columns and notes of boards."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial

import pandas as pd

from plumbline.exhibits.table import UNDEFINED, Cell, Row, cell, number, numbers, word
from plumbline.statistics.rankings import LEAST_TASKS, MOST_LETTERED

hundred = partial(number, times=100)  # scores
points = partial(number, sign="+")  # differences, and coefficients of which the sign matters


def short_names(models: Collection[str]) -> dict[str, str]:
    """Return models' names without their owners, if they stay distinct: lines must fit a terminal."""
    short = {model: model.rsplit("/", 1)[-1] for model in models}
    return short if len(set(short.values())) == len(short) else {model: model for model in models}


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


def board_columns(
    table: pd.DataFrame,
    types: Iterable[str],
    named: Callable[[str], str] = str,
    *,
    mean: str = "Mean of tasks",
    times: float = 100,
) -> dict[str, Cell]:
    """Return the columns of `evaluation.tables.comparisons.board`, with those of intervals if any is known.

    Args:
        table: The board.
        types: The types of tasks that have a column of means.
        named: What heads the column of a type.
        mean: What heads the mean over types' means.
        times: The factor of scores.
    """
    columns: dict[str, Cell] = {"Model": "model", "Rank (Borda)": lambda row: f"{row['rank']} ({row['borda']:,g})"}
    has_intervals = "rank_low" in table and table["rank_low"].notna().any()
    if has_intervals:
        columns |= {"Rank 95%": span("rank"), "Rank 95% alone": span("rank_single")}
        if (table["group"] != "").any():
            columns["Group"] = cell("group", word)
        columns["Count 95%"] = span("borda")
    columns["Mean"] = numbers("mean", times=times)
    if has_intervals:
        columns["Mean 95%"] = span("mean", 2, times)
    means = {mean: "category_mean"} | {named(kind): kind for kind in types}
    return columns | {head: numbers(name, times=times) for head, name in means.items()}


def span(name: str, digits: int = 0, times: float = 1) -> Cell:
    """Return a column with the ends of intervals."""

    def ends(row: Row) -> str:
        low, high = (number(row[f"{name}_{end}"], digits, times=times) for end in ("low", "high"))
        return low if low == UNDEFINED else f"{low} to {high}"

    return ends


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
