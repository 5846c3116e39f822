"""The papers' tables with a row for each data set, as exhibits of a report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from evaluation import tables
from evaluation.display import hundred, points
from evaluation.report.paper_tables import Results, changed, exhibit, moved, named
from plumbline.exhibits.table import Exhibit, reasons
from plumbline.transformations import HTEB_TOTAL, ORIGINAL, in_order

MODELS_BESIDE = 4  # in a table of data sets, as in the paper


def datasets(results: Results) -> list[Exhibit]:
    """HTEB, Tables 17 to 21, some models a table; where no axis-balanced total exists, PTEB's Tables 6, 9 and 10."""
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


def translated(results: Results, original: str, translation: str, groups: Mapping[str, Sequence[str]]) -> Exhibit:
    """HTEB, Table 16: a data set and its translation, by groups of models."""
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
    return exhibit(results, "translation", caption, frame, rows)


def _dataset_parts(results: Results, totals: pd.DataFrame, name: str, head: str, what: str) -> list[Exhibit]:
    """A table for every few models; the last has the mean difference over all models (PTEB's column Average)."""
    averages = tables.dataset_averages(totals).assign(dataset="Average", task_type="")
    both = pd.concat([totals, averages], ignore_index=True)
    models = list(totals["model"].drop_duplicates())
    starts = range(0, len(models), MODELS_BESIDE)
    made = []
    for place, start in enumerate(starts, 1):
        mine = models[start : start + MODELS_BESIDE]
        last = start + MODELS_BESIDE >= len(models)
        rows = []
        for (task, dataset), part in both.groupby(["task_type", "dataset"], sort=False):
            found = part.set_index("model")
            row = {"Task": named(str(task)) if task else "", "Data set": str(dataset)}
            for model in mine:
                row |= _beside(found.loc[model] if model in found.index else None, model, head)
            if last:
                row["Mean difference"] = points(float(part["difference"].mean()))
            rows.append(row)
        frame = both[both["model"].isin(mine)]
        suffix, part_of = (f"_{place}", f" (part {place} of {len(starts)})") if len(starts) > 1 else ("", "")
        caption = f"Data sets, original and {what} times 100 ± SD over runs{part_of}"
        own = totals[totals["model"].isin(mine)]
        why = (*(results.of_total if name == "datasets" else ()), *reasons(own["dataset"], own["reason"]))
        made.append(exhibit(results, name + suffix, caption, frame, rows, why))
    return made


def _beside(row: pd.Series | None, model: str, head: str) -> dict[str, str]:
    """Two cells: the original score, and the other with its SD."""
    if row is None:
        return {f"{model} Orig.": "–", f"{model} {head}": "–"}
    spread = "" if math.isnan(row["sd"]) else f" ± {hundred(row['sd'])}"
    score = changed(row["score"], row["difference"], row["original"])
    return {f"{model} Orig.": hundred(row["original"]), f"{model} {head}": f"{score}{spread}"}
