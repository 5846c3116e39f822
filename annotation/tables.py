"""Tables for people, from records: HTEB's Table 2 and the verdicts. Frames in, text out; nothing is computed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from annotation.records import Group, Verdict

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
    rows = []
    for group in groups:
        row = {"": f"  {display(group.name)}" if group.level == "pool" else display(group.name)}
        for summary in group.questions:
            question = summary.question.capitalize()
            row[f"{question} mean±SD"] = f"{number(summary.mean)}±{number(summary.sd)}"
            row[f"{question} AC2"] = number(summary.ac2)
            row[f"{question} n"] = str(summary.n_ratings)
        rows.append(row)
    lines = [aligned(rows), f"{SIMULATED}" if any(group.simulated for group in groups) else ""]
    return "\n".join(line for line in lines if line)


def verdict_text(verdicts: Sequence[Verdict]) -> str:
    """The verdicts with their reasons, one a line."""
    rows = [
        {
            "Transformation": display(verdict.transformation, pooled=False),
            "Language": verdict.language,
            "Verdict": verdict.decision,
            "Pairs": str(verdict.n_pairs),
            "Reason": "; ".join(verdict.reasons),
        }
        for verdict in verdicts
    ]
    lines = [aligned(rows), SIMULATED if any(verdict.simulated for verdict in verdicts) else ""]
    return "\n".join(line for line in lines if line)


def display(name: str, *, pooled: bool = True) -> str:
    """A name as people read it; the pool `translation` holds cross-translation too, and says so."""
    if pooled and name == "translation":
        return "(Cross-)Translation"
    special = {"lexical_stylistic": "Lexical/Stylistic", "cross_translation": "Cross-Translation"}
    return special.get(name, name.replace("_", " ").capitalize())


def number(value: float) -> str:
    """A number with two digits; an undefined one is a dash."""
    return "–" if math.isnan(value) else f"{value:.2f}"


def aligned(rows: Sequence[dict[str, str]]) -> str:
    """Rows of text as columns: the first and all wordy ones to the left, numbers to the right."""
    if not rows:
        return "(nothing)"
    columns = list(rows[0])
    widths = {c: max(len(c), *(len(row[c]) for row in rows)) for c in columns}
    left = {c for c in columns if c == columns[0] or any(row[c][:1].isalpha() for row in rows)}

    def line(row: dict[str, str]) -> str:
        cells = (row[c].ljust(widths[c]) if c in left else row[c].rjust(widths[c]) for c in columns)
        return "  ".join(cells).rstrip()

    return "\n".join([line({c: c for c in columns}), "  ".join("-" * widths[c] for c in columns), *map(line, rows)])
