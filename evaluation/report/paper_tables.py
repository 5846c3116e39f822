"""The papers' tables as a report's exhibits: `evaluation.tables` in the form that HTEB, PTEB and MMTEB print."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from annotation.records import Verdict
from annotation.verdicts.tables import display, number
from evaluation import tables
from evaluation.display import axis_notes, board_notes, board_rows, decimal, hundred, points, total_notes, worded
from plumbline.exhibits.table import Exhibit, reasons
from plumbline.transformations import HTEB_TOTAL, ORIGINAL, OWN_TOTAL, Axes, in_order

REFUSED = " [not accepted]"
SIGNIFICANT = 0.05
_ARROW = " → "
_OWN_ORIGINALS = (
    "a → b: a is the original's score on the data sets and items of b; shown if it differs from the column Original,"
    " which covers whole data sets, as in the papers"
)
_TAU_HEADS = dict.fromkeys((HTEB_TOTAL, OWN_TOTAL), "Total (mean of the axes)")
_AVERAGED = "Each data set counts once: the mean over seeds and over the subsets (languages) of the study's split."
_TAU_HEADS |= {"overall": "Overall (mean of all transformations)"}


@dataclass(frozen=True)
class PaperResults:
    """Input of the tables.

    `notes` are for all tables of a report (simulated ratings, what was left out and why); `seed` is for resampling.
    """

    scores: pd.DataFrame
    verdicts: Sequence[Verdict]
    notes: tuple[str, ...]
    seed: int

    @property
    def axes(self) -> Axes:
        """The axes of the scores."""
        return Axes.of(self.scores)

    @property
    def heads(self) -> dict[str, str]:
        """Readable names of the axes and the total, by name."""
        return {axis: display(axis) for axis in self.axes.shown} | {self.axes.total: "Total"}

    @property
    def of_total(self) -> list[str]:
        """Notes on the axes that the total rests on, if they are not HTEB's."""
        return [note.replace(self.axes.total, "Total", 1) for note in total_notes(self.axes)]


def axes(results: PaperResults, *, include_rejected: bool = False) -> Exhibit:
    """Return HTEB's Tables 14 and 15: original, axes and total by model, and their averages."""
    frame = tables.axis_table(results.scores, results.verdicts, include_rejected=include_rejected)
    rows = []
    ends = ("", "_original", "_difference")
    heads = results.heads
    average = frame[["original", *(f"{name}{end}" for name in heads for end in ends)]].mean(skipna=False)
    records = frame.to_dict(orient="records")
    why = results.of_total + axis_notes(records, heads)
    for row in [*records, {"model": "Average", "included_rejected": "", **average}]:
        cells = {"Model": row["model"] + (REFUSED if row["included_rejected"] else "")}
        cells["Original"] = hundred(row["original"])
        of_axis = {name: (row[name], row[f"{name}_difference"]) for name in heads}
        cells |= {head: moved(*of_axis[name], row["original"]) for name, head in heads.items()}
        rows.append(cells)
    caption = "Scores times 100 by axis; in brackets the difference in points from the original score of the same items"
    table = exhibit("axes", caption, frame, rows, why)
    return _with_refused(table) if include_rejected else table


def transformations(results: PaperResults, *, include_rejected: bool = False) -> Exhibit:
    """Return HTEB's Figure 6 as a table: differences by model and transformation."""
    frame = tables.transformation_table(results.scores, include_rejected=include_rejected)
    names = in_order(frame["transformation"].unique())
    rows = []
    for model, part in frame.groupby("model", sort=False):
        cells = {row["transformation"]: row for row in part.to_dict(orient="records")}
        row = {"Model": str(model)}
        for name in names:
            mark = REFUSED if name in cells and cells[name]["included_rejected"] else ""
            row[named(name)] = (points(cells[name]["difference"]) if name in cells else "–") + mark
        rows.append(row)
    caption = "Difference in points from the original score of the same items, by transformation"
    why = reasons(map(named, frame["transformation"]), frame["reason"])
    table = exhibit("transformations", caption, frame, rows, why)
    return _with_refused(table) if include_rejected else table


def split_half(results: PaperResults) -> Exhibit:
    """Return HTEB's Table 3."""
    frame = tables.split_half_table(results.scores, results.seed)
    rows = [
        {"Axis": display(row["axis"]), "rho": decimal(row["rho"]), "Splits": str(row["n_splits"])}
        | {"Data sets": str(row["n_datasets"]), "Models": str(row["n_models"])}
        for row in frame.to_dict(orient="records")
    ]
    caption = "Split-half reliability: median of Spearman's rho over splits of the data sets, stratified by task"
    return exhibit("split_half", caption, frame, rows, reasons(map(display, frame["axis"]), frame["reason"]))


def kendall(results: PaperResults) -> Exhibit:
    """Return HTEB's Table 4."""
    frame = tables.kendall_table(results.scores)
    heads = [_TAU_HEADS.get(name) or named(name) for name in frame["name"]]
    rows = [
        {"Of": head, "tau ± SD": _three(row["tau"], row["sd"])}
        | {"Data sets": str(row["n_datasets"]), "Models": str(row["n_models"])}
        for head, row in zip(heads, frame.to_dict(orient="records"), strict=True)
    ]
    caption = "Kendall's tau between rankings of models by original and transformed scores: mean and SD over data sets"
    how = (
        "On each data set models are ranked by transformed scores; an axis's score is the mean over its"
        " transformations. SD: the sample standard deviation over data sets"
    )
    why = (how, *results.of_total, *reasons(heads, frame["reason"]))
    return exhibit("kendall", caption, frame, rows, why)


def shifts(results: PaperResults) -> Exhibit:
    """Return HTEB's Figure 7 as a table."""
    frame = tables.shift_table(results.scores)
    rows = [
        {"Of": named(row["name"]), **_shift(row), "Median absolute": number(row["median_absolute"])}
        | {"n": str(row["n"]), "Test": row["method"] or "–"}
        for row in frame.to_dict(orient="records")
    ]
    caption = (
        "Hodges-Lehmann shift in points with 95% interval (not corrected), Wilcoxon's p corrected by Holm's method, and"
        " median absolute difference"
    )
    return exhibit("shifts", caption, frame, rows, reasons(map(named, frame["name"]), frame["reason"]))


def against_baseline(results: PaperResults, baseline: str, *, pooled: bool) -> Exhibit:
    """Return PTEB's Table 7 (runs pooled) or 14 (runs averaged)."""
    frame = tables.baseline_table(results.scores, baseline, seed=results.seed if pooled else None)
    rows = [
        {"Model": row["model"], **_shift(row), "n": str(row["n"]), "Test": row["method"] or "–"}
        for row in frame.to_dict(orient="records")
    ]
    unit = "over pairs of data set and run, bootstrap interval" if pooled else "over data sets, runs averaged first"
    caption = (
        f"{baseline} against each model: Hodges-Lehmann shift in points (a negative shift favours the model of the row)"
        f" {unit}"
    )
    name = "baseline_runs" if pooled else "baseline_averages"
    return exhibit(name, caption, frame, rows, reasons(frame["model"], frame["reason"]))


def ranking(results: PaperResults, *, transformed: bool) -> Exhibit:
    """Return MMTEB's Table 2: Borda ranks and means, with intervals over data sets."""
    frame = tables.ranking_table(results.scores, transformed=transformed, seed=results.seed)
    tasks = [name for name in results.scores["task_type"].unique() if name in frame.columns]
    rows = board_rows(frame, tasks, named)
    which = "axis-balanced transformed scores" if transformed else "original scores"
    name = "ranking_transformed" if transformed else "ranking_original"
    n_datasets = int(frame["n_datasets"].max()) if len(frame) else 0
    says = [_AVERAGED, *board_notes(frame, n_datasets)]
    why = (*says, *(results.of_total if transformed else ()), *reasons(frame["model"], frame["reason"]))
    return exhibit(name, f"Models ranked by {which}, times 100", frame, rows, why)


def sizes(results: PaperResults) -> Exhibit:
    """Return HTEB's Figure 5 as a table; empty if no family has two sizes."""
    frame = tables.size_table(results.scores)
    rows = [
        {"Model": row["model"], "Million parameters": f"{row['parameters']:g}", "Original": hundred(row["original"])}
        | {head: hundred(row[name]) for name, head in results.heads.items()}
        for row in frame.to_dict(orient="records")
    ]
    return exhibit("sizes", "Scores times 100 by size of model", frame, rows, results.of_total)


def drift(correlations: pd.DataFrame, question: str = "quality") -> Exhibit:
    """Return HTEB's Figure 3 as a table."""
    rows = [
        {"Transformation": named(row["transformation"]), "Model": row["model"]}
        | {"rho [95%]": interval(row["rho"], row["low"], row["high"]), "Pairs": str(row["n"])}
        for row in correlations.to_dict(orient="records")
    ]
    names = [named(name) for name in correlations["transformation"]]
    caption = (
        f"Spearman's rho between a pair's drift (1 - cos) and its mean {question}, with bootstrap interval over pairs"
    )
    why = reasons(names, correlations["reason"])
    return exhibit("drift_correlations", caption, correlations, rows, why)


def left_out(results: PaperResults) -> Exhibit:
    """Return a table of what was left out, failed, or was included despite the verdict, with reasons."""
    frame = tables.left_out(results.scores)
    rows = [
        {"Transformation": named(row["transformation"]), "Status": row["status"].replace("_", " ")}
        | {"Reason": row["reason"], "Data sets": row["datasets"], "Seeds": row["seeds"]}
        for row in frame.to_dict(orient="records")
    ]
    heads = ["Transformation", "Status", "Reason", "Data sets", "Seeds"]
    return Exhibit("left_out", "Left out, failed, or included despite the verdict", frame, _words(rows, heads))


def exhibit(
    name: str, caption: str, frame: pd.DataFrame, rows: Sequence[Mapping[str, str]], why: Sequence[str] = ()
) -> Exhibit:
    """Return an exhibit of printed rows, with notes on what it lacks (`why`)."""
    printed = _words(rows)
    compared = [_OWN_ORIGINALS] if any(_ARROW in cell for _, cells in printed.items() for cell in cells) else []
    return Exhibit(name, caption, frame, printed, tuple(map(worded, (*why, *compared))))


def with_notes(table: Exhibit, notes: Sequence[str]) -> Exhibit:
    """Return the table with the report's notes added to its own."""
    return replace(table, notes=(*table.notes, *map(worded, notes)))


def _with_refused(table: Exhibit) -> Exhibit:
    caption = f"{table.caption}; INCLUDING TRANSFORMATIONS THAT NO VERDICT ACCEPTS"
    return replace(table, name=f"{table.name}_with_refused", caption=caption)


def _words(rows: Sequence[Mapping[str, str]], heads: Sequence[str] = ()) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(heads or rows[0])) if rows or heads else pd.DataFrame()


def _shift(row: Mapping[Any, Any]) -> dict[str, str]:
    p = "–" if math.isnan(row["p_holm"]) else p_value(row["p_holm"]).removeprefix("p ").removeprefix("= ")
    return {"Shift [95%]": interval(row["shift"], row["low"], row["high"]), "p (Holm)": p}


def p_value(p: float) -> str:
    """Return a p-value in words, as papers print it."""
    if math.isnan(p):
        return "no p"
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".", 1)


def interval(value: float, low: float, high: float) -> str:
    """Return a signed number with its interval, if it has one."""
    return decimal(value) if math.isnan(low) else f"{decimal(value)} [{decimal(low)}, {decimal(high)}]"


def moved(value: float, difference: float, original: float) -> str:
    """Return a score times 100 (`changed`) with its difference in points, if it has one."""
    shown = changed(value, difference, original)
    return shown if math.isnan(difference) else f"{shown} ({points(difference)})"


def changed(value: float, difference: float, original: float) -> str:
    """Return a score times 100, after the original's of the same items if that differs from the given original."""
    rescaled = hundred(value - difference / 100)
    return (
        hundred(value)
        if math.isnan(difference) or rescaled == hundred(original)
        else f"{rescaled}{_ARROW}{hundred(value)}"
    )


def _three(value: float, sd: float) -> str:
    """Return a mean with three decimals, and its SD if it has one."""
    spread = "" if math.isnan(sd) else f" ± {sd:.3f}"
    return "–" if math.isnan(value) else f"{value:.3f}{spread}"


def named(name: str) -> str:
    """Return a readable name of a transformation, axis or task."""
    return name.upper() if name in ("sts", "str") else display(name, pooled=False)


MODELS_BESIDE = 4  # models a table of data sets, as in the paper


def datasets(results: PaperResults) -> list[Exhibit]:
    """Return HTEB's Tables 17 to 21, a few models a table; without an axis-balanced total PTEB's Tables 6, 9 and 10."""
    totals = tables.dataset_totals(results.scores)
    if totals["score"].notna().any():
        head = "HTEB" if results.axes.total == HTEB_TOTAL else "Total"
        return _dataset_parts(results, totals, "datasets", head, "axis-balanced scores")
    counted = results.scores[(results.scores["status"] == "evaluated") & (results.scores["transformation"] != ORIGINAL)]
    return [
        part
        for name in in_order(counted["transformation"].unique())
        for part in _dataset_parts(
            results,
            tables.dataset_totals(results.scores, name),
            f"datasets_{name}",
            "Transf.",
            f"scores on {named(name)}",
        )
    ]


def translated(results: PaperResults, original: str, translation: str, groups: Mapping[str, Sequence[str]]) -> Exhibit:
    """Return HTEB's Table 16: a data set and its translation, by groups of models."""
    frame = tables.translation_table(tables.dataset_totals(results.scores), original, translation, groups)
    rows = []
    for row in frame.to_dict(orient="records"):
        cells = {"Group": row["group"], "Model": row["model"]}
        for name, prefix in ((original, ""), (translation, "translated_")):
            cells[f"{name} Orig."] = hundred(row[f"{prefix}original"])
            cells[f"{name} {'HTEB' if results.axes.total == HTEB_TOTAL else 'Total'}"] = moved(
                row[f"{prefix}score"], row[f"{prefix}difference"], row[f"{prefix}original"]
            )
        rows.append(cells)
    caption = f"{original} and its translation {translation}: scores times 100, differences in points"
    return exhibit("translation", caption, frame, rows)


def _dataset_parts(results: PaperResults, totals: pd.DataFrame, name: str, head: str, what: str) -> list[Exhibit]:
    """Return a table for every few models; the last has the mean difference over all models (PTEB's column Average)."""
    averages = tables.dataset_averages(totals).assign(dataset="Average", task_type="")
    both = pd.concat([totals, averages], ignore_index=True)
    models = list(totals["model"].drop_duplicates())
    starts = range(0, len(models), MODELS_BESIDE)
    parts = []
    for part_number, start in enumerate(starts, 1):
        mine = models[start : start + MODELS_BESIDE]
        last = start + MODELS_BESIDE >= len(models)
        rows = []
        for (task, dataset), part in both.groupby(["task_type", "dataset"], sort=False):
            rows_of = part.set_index("model")
            row = {"Task": named(str(task)) if task else "", "Data set": str(dataset)}
            for model in mine:
                row |= _beside(rows_of.loc[model] if model in rows_of.index else None, model, head)
            if last:
                row["Mean difference"] = points(float(part["difference"].mean()))
            rows.append(row)
        frame = both[both["model"].isin(mine)]
        suffix, part_of = (
            (f"_{part_number}", f" (part {part_number} of {len(starts)})") if len(starts) > 1 else ("", "")
        )
        caption = f"Data sets, original and {what} times 100 ± SD over runs{part_of}"
        of_models = totals[totals["model"].isin(mine)]
        why = (*(results.of_total if name == "datasets" else ()), *reasons(of_models["dataset"], of_models["reason"]))
        parts.append(exhibit(name + suffix, caption, frame, rows, why))
    return parts


def _beside(row: pd.Series | None, model: str, head: str) -> dict[str, str]:
    """Return two cells: the original score, and the other with its SD."""
    if row is None:
        return {f"{model} Orig.": "–", f"{model} {head}": "–"}
    spread = "" if math.isnan(row["sd"]) else f" ± {hundred(row['sd'])}"
    score = changed(row["score"], row["difference"], row["original"])
    return {f"{model} Orig.": hundred(row["original"]), f"{model} {head}": f"{score}{spread}"}
