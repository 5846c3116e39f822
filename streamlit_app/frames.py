"""Frames as people read them: words for names, two digits. No numbers made.

Streamlit puts this folder first on the import path, so no module here may have the name of a package that others
import (PyTables is called `tables`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
from pandas.io.formats.style import Styler

from annotation.tables import display, number
from evaluation.tables import TOTAL
from generation.transformations import AXES
from streamlit_app.data import Stage

# A mark, a word and a tint (light enough, or deep enough, to be read on a light and a dark page): never colour alone.
DECISIONS = {"accepted": "✔ accepted", "rejected": "✘ rejected", "undecided": "? undecided"}
_TINTS = {"accepted": "#0072B240", "rejected": "#D55E0059", "undecided": "#99999940"}


def stage_frame(stages: Sequence[Stage]) -> pd.DataFrame:
    """The flow: a row a stage."""
    rows = [
        {
            "Stage": stage.name,
            "State": "✔ done" if stage.finished_at else "– not yet",
            "Last ended": stage.finished_at.replace("T", " ").replace("+00:00", " UTC"),
            "Took": "" if stage.seconds is None else f"{stage.seconds:.1f} s",
        }
        for stage in stages
    ]
    return pd.DataFrame(rows)


def verdict_frame(table: pd.DataFrame, questions: Sequence[str]) -> Styler:
    """`annotation.tables.verdict_table` for the page: decision first, means with their intervals."""
    rows = []
    for row in table.to_dict(orient="records"):
        shown = {
            "Transformation": display(row["transformation"], pooled=False),
            "Decision": DECISIONS[row["decision"]],
        }
        for question in questions:
            name = question.capitalize()
            shown[f"{name} [95% interval]"] = with_interval(
                row[f"{question}_mean"], row[f"{question}_low"], row[f"{question}_high"]
            )
            shown[f"AC2 ({question})"] = number(row[f"{question}_ac2"])
        shown |= {"Pairs": row["n_pairs"], "Ratings": row["n_ratings"], "Language": row["language"]}
        shown["Reasons"] = row["reasons"]
        shown["Raters"] = "simulated" if row["simulated"] else "people"
        rows.append(shown)
    frame = pd.DataFrame(rows)
    tints = {DECISIONS[name]: f"background-color: {tint}" for name, tint in _TINTS.items()}
    return frame.style.map(lambda value: tints[value], subset=["Decision"])


def refusals(table: pd.DataFrame) -> list[str]:
    """A line for each verdict of `verdict_table` that lets nothing through, with its reasons."""
    return [
        f"{display(row['transformation'], pooled=False)} ({row['language']}), {row['decision']}: {row['reasons']}"
        for row in table[table["decision"] != "accepted"].to_dict(orient="records")
    ]


def axis_frame(table: pd.DataFrame) -> pd.DataFrame:
    """`evaluation.tables.axis_table` for the page: scores times 100, with the difference from the original."""
    rows = []
    for row in table.to_dict(orient="records"):
        shown = {"Model": row["model"], "Data sets": row["n_datasets"], "Original": _hundred(row["original"])}
        for name in (*AXES, TOTAL):
            shown[_axis(name)] = f"{_hundred(row[name])} ({_points(row[f'{name}_difference'])})"
        notes = [f"{_axis(name)}: {row[f'{name}_reason']}" for name in (*AXES, TOTAL) if row[f"{name}_reason"]]
        if row["included_rejected"]:
            notes.insert(0, f"not accepted, but included: {row['included_rejected']}")
        shown["Notes"] = "; ".join(notes)
        rows.append(shown)
    return pd.DataFrame(rows)


def left_out_frame(table: pd.DataFrame) -> pd.DataFrame:
    """`evaluation.tables.left_out` for the page."""
    shown = table.assign(
        transformation=table["transformation"].map(lambda name: display(name, pooled=False)),
        status=table["status"].str.replace("_", " "),
    )
    return shown.rename(columns=lambda name: {"datasets": "Data sets"}.get(name, name.capitalize()))


def with_interval(value: float, low: float, high: float) -> str:
    """A number with its interval, or without one where there is none."""
    if math.isnan(low) or math.isnan(high):
        return number(value)
    return f"{number(value)} [{number(low)}, {number(high)}]"


def _axis(name: str) -> str:
    return "HTEB total" if name == TOTAL else display(name)


def _hundred(value: float) -> str:
    return number(100 * value)


def _points(value: float) -> str:
    return number(value) if math.isnan(value) else f"{value:+.2f}"
