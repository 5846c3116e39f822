"""Tables for people, from records: HTEB's Table 2 and the verdicts. Frames in, text out; nothing is computed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from annotation.records import Group, Verdict
from generation.command import columns

SIMULATED = "SIMULATED RATINGS: made up to show that the flow works; they measure nothing."


def agreement_table(groups: Sequence[Group]) -> pd.DataFrame:
    """Table 2 as a frame: a row a group; mean, SD, AC2 with its interval and n for each question."""
    rows = []
    for group in groups:
        row: dict[str, object] = {"level": group.level, "name": group.name, "axis": group.axis}
        for summary in group.questions:
            row |= {
                f"{summary.question}_mean": summary.mean,
                f"{summary.question}_low": summary.low,
                f"{summary.question}_high": summary.high,
                f"{summary.question}_sd": summary.sd,
                f"{summary.question}_ac2": summary.ac2,
                f"{summary.question}_ac2_low": summary.ac2_low,
                f"{summary.question}_ac2_high": summary.ac2_high,
                f"{summary.question}_n_pairs": summary.n_pairs,
                f"{summary.question}_n_ratings": summary.n_ratings,
            }
        row["simulated"] = group.simulated
        rows.append(row)
    return pd.DataFrame(rows)


def verdict_table(verdicts: Sequence[Verdict]) -> pd.DataFrame:
    """The verdicts as a frame: a row a transformation and language."""
    rows = []
    for verdict in verdicts:
        row: dict[str, object] = {
            "transformation": verdict.transformation,
            "language": verdict.language,
            "decision": verdict.decision,
            "reasons": "; ".join(verdict.reasons),
            "n_pairs": verdict.n_pairs,
            "n_ratings": verdict.n_ratings,
        }
        for summary in verdict.questions:
            row[f"{summary.question}_mean"] = summary.mean
            row[f"{summary.question}_low"] = summary.low
            row[f"{summary.question}_high"] = summary.high
            row[f"{summary.question}_ac2"] = summary.ac2
        row["simulated"] = verdict.simulated
        rows.append(row)
    return pd.DataFrame(rows)


def agreement_text(groups: Sequence[Group]) -> str:
    """Table 2 in the paper's form: mean ± SD and AC2 for each question; pools are indented below their axis."""
    questions = [summary.question.capitalize() for summary in groups[0].questions] if groups else []
    header = ["", *(f"{question} {what}" for question in questions for what in ("mean±SD", "AC2", "n"))]
    rows = []
    for group in groups:
        row = [f"  {display(group.name)}" if group.level == "pool" else display(group.name)]
        for summary in group.questions:
            row += [f"{number(summary.mean)}±{number(summary.sd)}", number(summary.ac2), str(summary.n_ratings)]
        rows.append(row)
    simulated = f"\n{SIMULATED}" if any(group.simulated for group in groups) else ""
    return columns(header, rows, "no ratings that count") + simulated


def verdict_text(verdicts: Sequence[Verdict]) -> str:
    """The verdicts with their reasons, one a line."""
    rows = [
        [
            display(verdict.transformation, pooled=False),
            verdict.language,
            verdict.decision,
            str(verdict.n_pairs),
            "; ".join(verdict.reasons),
        ]
        for verdict in verdicts
    ]
    simulated = f"\n{SIMULATED}" if any(verdict.simulated for verdict in verdicts) else ""
    return columns(["Transformation", "Language", "Verdict", "Pairs", "Reason"], rows, "no pairs") + simulated


def display(name: str, *, pooled: bool = True) -> str:
    """A name as people read it; the pool `translation` holds cross-translation too, and says so."""
    if pooled and name == "translation":
        return "(Cross-)Translation"
    special = {"lexical_stylistic": "Lexical/Stylistic", "cross_translation": "Cross-Translation"}
    return special.get(name, name.replace("_", " ").capitalize())


def number(value: float) -> str:
    """A number with two digits; an undefined one is a dash."""
    return "–" if math.isnan(value) else f"{value:.2f}"
