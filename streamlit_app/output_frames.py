"""What is said about generators' outputs, as people read it: words for names, two digits."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from annotation.verdicts.tables import display, number
from generation.compare import OVERALL
from generation.errors import RATES
from plumbline.error_types import LABELS


def error_frame(table: pd.DataFrame, by: str) -> pd.DataFrame:
    """`generation.errors.error_rates` in words, rates in % with two digits."""
    heads = {str(flag): label.removesuffix(" Rate") for flag, label in LABELS.items()} | {RATES[-1]: "Total"}
    shown = table.rename(columns={"generator": "Generator", by: by.capitalize()} | heads)
    if by == "transformation":
        shown["Transformation"] = [display(name, pooled=False) for name in table[by]]
    for head in heads.values():
        shown[head] = [number(value) for value in shown[head]]
    shown["language_told"] = [number(value) for value in table["language_told"]]
    counts = {"n": "Outputs", "failed": "Failed", "unanswered": "Unanswered", "language_told": "Language told"}
    return shown.rename(columns=counts)


def length_frame(table: pd.DataFrame) -> pd.DataFrame:
    """`generation.compare.length_table` in words, two digits; differences are to the first generator."""
    heads = {
        "generator": "Generator",
        "datasets": "Data sets",
        "texts": "Texts",
        "original": "Words before",
        "words": "Words after",
        "ratio": "Ratio",
        "distance": "Edit distance",
        "failed": "Failed, %",
        "unanswered": "Unanswered, %",
    }
    exact = {"generator", "datasets", "texts"}
    shown = pd.DataFrame({"Of": [_length_name(row) for row in table.to_dict(orient="records")]})
    for name, head in heads.items():
        for column, title in ((name, head), (f"{name}_difference", f"{head}: difference")):
            if column in table:
                shown[title] = list(table[column]) if name in exact else [number(value) for value in table[column]]
    return shown


def _length_name(row: Mapping[Hashable, Any]) -> str:
    """A transformation, indented below its axis."""
    name = str(row["name"])
    if name == OVERALL:
        return "Overall"
    return display(name) if name == row["axis"] else f"  {display(name, pooled=False)}"
