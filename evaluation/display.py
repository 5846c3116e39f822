"""The tables of `evaluation.tables` for people: text for a terminal, and boards of models with notes."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from annotation.records import Verdict
from annotation.verdicts.rules import late_lines
from annotation.verdicts.tables import display
from evaluation.records import EvaluationRecords
from evaluation.tables import (
    axis_table,
    dataset_table,
    drift_by_quality,
    drift_correlations,
    left_out,
    transformation_table,
)
from plumbline.cli import columns
from plumbline.statistics.rankings import LEAST_TASKS, MOST_LETTERED
from plumbline.study.judged import KNOWN
from plumbline.transformations import AXES, ORIGINAL, Axes

_MARK = " [not accepted]"
_SIMULATED = "The verdicts rest on SIMULATED ratings: these numbers measure nothing."


def report(records: EvaluationRecords, verdicts: Sequence[Verdict]) -> str:
    """Return the command's whole output: axes, transformations, data sets, units left out, and drift."""
    study, scores, drift = records.study, records.scores, records.drift
    short = short_names({*scores["model"], *drift["model"]})
    scores = scores.assign(model=scores["model"].map(short))
    drift = drift.assign(model=drift["model"].map(short))
    head = f"Evaluation of {study.name!r}, protocol {study.evaluation.protocol!r}; scores times 100."
    parts = ["\n".join([head, *_warnings(verdicts)]), scores_text(scores, verdicts)]
    if (ratings := records.sample_ratings) is not None:
        question = records.question
        frame = drift_by_quality(records.sample, ratings, drift, per_pair=study.raters.per_pair, question=question)
        table = drift_correlations(frame, study.sample.seed)
        empty = "no drift was computed" if drift.empty else "no pair has a rating that counts"
        parts.append(_drift(table, question, empty))
    return "\n\n".join(parts)


def scores_text(scores: pd.DataFrame, verdicts: Sequence[Verdict]) -> str:
    """Return the tables of scores: axes, transformations, data sets, and units left out."""
    parts = [_axes(scores, verdicts, include_rejected=False), _transformations(scores, include_rejected=False)]
    if (scores["status"] == "included_rejected").any():
        parts.append("INCLUDING TRANSFORMATIONS THAT NO VERDICT ACCEPTS (--include-rejected):")
        parts.append(_axes(scores, verdicts, include_rejected=True))
        parts.append(_transformations(scores, include_rejected=True))
    return "\n\n".join([*parts, _datasets(scores), _left_out(scores)])


def short_names(models: Collection[str]) -> dict[str, str]:
    """Return models' names without their owners', if they stay distinct: lines must fit a terminal."""
    short = {model: model.rsplit("/", 1)[-1] for model in models}
    return short if len(set(short.values())) == len(short) else {model: model for model in models}


def _warnings(verdicts: Sequence[Verdict]) -> list[str]:
    return [*([_SIMULATED] if any(verdict.simulated for verdict in verdicts) else []), *late_lines(verdicts)]


def _axes(scores: pd.DataFrame, verdicts: Sequence[Verdict], *, include_rejected: bool) -> str:
    table = axis_table(scores, verdicts, include_rejected=include_rejected)
    rows = []
    axes = Axes.of_columns(table)
    notes = [f"  {note}" for note in total_notes(axes)]
    notes += [f"  {note}" for note in axis_notes(table.to_dict(orient="records"), {name: name for name in axes.names})]
    for row in table.to_dict(orient="records"):
        mark = _MARK if row["included_rejected"] else ""
        cells = [f"{row['model']}{mark}", str(row["n_failed"]), hundred(row["original"])]
        for name in axes.names:
            cells.append(f"{hundred(row[name])} ({points(row[f'{name}_difference'])})")
        notes += [f"  {note}" for note in other_originals(row, axes.names)]
        rows.append(cells)
        if row["included_rejected"]:
            notes.append(f"  included although not accepted: {row['included_rejected']}")
    caption = "Scores by axis (in brackets: points from the original score on the same data sets and items)"
    if bool(table["simulated"].any()):
        caption += "; verdicts from simulated ratings"
    caption += "".join(f"; {line.rstrip('.')}" for line in late_lines(verdicts))
    return "\n".join([caption, columns(["model", "failed", "original", *axes.names], rows), *dict.fromkeys(notes)])


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


def other_originals(row: Mapping[Any, Any], names: Sequence[str]) -> list[str]:
    """Return the original scores that a row's differences refer to, if they are not the displayed one."""
    same = {name: hundred(row[f"{name}_original"]) for name in names}
    others = [
        f"{name} {value}" for name, value in same.items() if value not in (hundred(row["original"]), hundred(math.nan))
    ]
    return [f"{row['model']}, original score on the axis's data sets and items: {', '.join(others)}"] if others else []


def worded(note: str) -> str:
    """Return a note with the displayed names of transformations and axes."""
    for name in sorted((name for name in {*KNOWN, *AXES} if "_" in name), key=len, reverse=True):
        note = note.replace(name, display(name, pooled=False))
    return note


def _transformations(scores: pd.DataFrame, *, include_rejected: bool) -> str:
    table = transformation_table(scores, include_rejected=include_rejected)
    rows = [
        [
            row["model"],
            row["axis"],
            row["transformation"] + (_MARK if row["included_rejected"] else ""),
            str(row["n_datasets"]),
            str(row["n_failed"]),
            hundred(row["original"]),
            hundred(row["score"]),
            points(row["difference"]),
        ]
        for row in table.to_dict(orient="records")
    ]
    header = ["model", "axis", "transformation", "data sets", "failed", "original", "score", "difference"]
    caption = (
        "Scores by transformation (failed: items whose outputs failed; original: score on the same data sets and items)"
    )
    undefined = table[table["reason"] != ""]
    notes = [f"  {row.model}, {row.transformation}: {row.reason}" for row in undefined.itertuples()]
    return "\n".join([caption, columns(header, rows, "no transformation was evaluated"), *notes])


def _datasets(scores: pd.DataFrame) -> str:
    table = dataset_table(scores)
    names = list(table["dataset"].drop_duplicates())
    rows: list[list[str]] = []
    for (model, transformation), part in table.groupby(["model", "transformation"], sort=False):
        values = dict(zip(part["dataset"], part["score"], strict=True))
        mark = _MARK if (part["status"] == "included_rejected").any() else ""
        failed = str(part["n_failed"].sum())
        rows.append(
            [str(model), f"{transformation}{mark}", failed, *(hundred(values.get(name, math.nan)) for name in names)]
        )
    rows.sort(key=lambda row: (row[0], row[1] != ORIGINAL))
    metrics = dict(zip(table["dataset"], table["metric"], strict=True))
    caption = "Scores by data set (" + ", ".join(f"{name}: {metrics[name]}" for name in names) + ")"
    return caption + "\n" + columns(["model", "transformation", "failed", *names], rows, "nothing was evaluated")


def _left_out(scores: pd.DataFrame) -> str:
    table = left_out(scores)
    lines = [
        f"  {row['transformation']}: {row['reason']}"
        + (" (included nevertheless)" if row["status"] == "included_rejected" else "")
        + f" [{row['datasets']}]"
        for row in table.to_dict(orient="records")
    ]
    return "\n".join(["Left out, failed, or included despite the verdict, with reasons:", *(lines or ["  nothing"])])


def _drift(table: pd.DataFrame, question: str, empty: str) -> str:
    if not question:
        return "Drift (1 - cos) cannot be compared with ratings: no question of the rubric has a scale"
    rows = [
        [
            row["transformation"],
            row["model"],
            decimal(row["rho"]),
            decimal(row["low"]) + ("" if math.isnan(row["low"]) else f" to {decimal(row['high'])}"),
            str(row["n"]),
            row["reason"],
        ]
        for row in table.to_dict(orient="records")
    ]
    caption = f"Drift (1 - cos) against mean {question}: Spearman's rho, 95% bootstrap interval over pairs"
    if bool(table["simulated"].any()):
        caption += "; SIMULATED ratings"
    header = ["transformation", "model", "rho", "95% interval", "pairs", ""]
    return caption + "\n" + columns(header, rows, empty)


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
        if "rank_repeated_low" in table:
            cells["Rank 95% repeated"] = _span(row["rank_repeated_low"], row["rank_repeated_high"], whole)
        if (table["group"] != "").any():
            cells["Group"] = row["group"] or "–"
        cells["Count 95%"] = _span(row["borda_low"], row["borda_high"], whole)
    cells["Mean"] = shown(row["mean"])
    if has_intervals:
        cells["Mean 95%"] = _span(row["mean_low"], row["mean_high"], shown)
    return cells


def _span(low: float, high: float, shown: Callable[[float], str]) -> str:
    return "–" if pd.isna(low) else f"{shown(low)} to {shown(high)}"


BOARD_CAPTION = "ranks by Borda count, with simultaneous 95% intervals: models with overlapping lines may not differ"
