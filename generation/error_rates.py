"""HTEB's Table 5, the rates of the ten error types, a row a generator.

A rate is the share of a transformation's outputs, over all texts and seeds, that have an error type; the table shows
its mean over the transformations, as A.2 does. First attempts count unless asked otherwise: they are what the generator
does by itself. Outputs without an answer have no error type; they are counted beside, and so are those that are stored
as failed.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from generation import output_statistics
from generation.flags import KNOWN
from generation.output_statistics import OutputMeasure, shown
from plumbline import cli
from plumbline.error_types import FLAGS, LABELS
from plumbline.errors import DataError
from plumbline.exhibits.files import write_csv
from plumbline.identity import identity
from plumbline.study import Study, load_study
from plumbline.study.transformations import EIGHT, Transformation

TOTAL = "total"
RATES = (*FLAGS, TOTAL)


def errors_measure(kinds: Mapping[str, Transformation] = EIGHT, *, after_retries: bool) -> OutputMeasure:
    """The error types of the first attempts' outputs, or (`after_retries`) of the last, of these transformations.

    Sums: one a flag; `total` (outputs with any); `answered` (outputs of which an answer is known: the rates'
    denominator); `told` (those of which the identifier knows the language that they should be in).
    """
    column = "flags" if after_retries else "first_flags"

    def of(row: dict[str, Any]) -> tuple[float, ...]:
        if row["status"] == "unanswered" or not row["attempts"]:
            return (0,) * (len(RATES) + 2)
        kind = kinds.get(row["transformation"])
        if kind is None:
            raise DataError(
                f"an output of the transformation {row['transformation']!r}, which the study does not have: its file"
                " is damaged; delete it and generate again"
            )
        identifiable = kind.output_language(row["source_language"], row["language"]) in KNOWN
        flags = row[column]
        return (*(flag in flags for flag in FLAGS), bool(flags), 1, identifiable)

    dumped = {name: kind.model_dump(mode="json") for name, kind in kinds.items()}
    columns = (column, "attempts", "transformation", "source_language", "language")
    return OutputMeasure(columns, (*RATES, "answered", "told"), of, identity("errors", column, dumped))


def error_rates(sums: pd.DataFrame, by: str = "") -> pd.DataFrame:
    """Table 5 from the sums of `errors_measure`: a row for each generator, or for each and a value of the column `by`.

    Columns: generator; `by`; the ten error types and `total`, in % (means over the transformations that have answers;
    NaN where none has; an output with several types counts once in the total); n (outputs behind the rates), failed,
    unanswered (numbers of outputs, a text counting once for each place); language_told (% of n).
    """
    rows = ["generator", by] if by else ["generator"]
    numbers = [*RATES, "answered", "told", "failed", "unanswered"]
    cells = sums.groupby(list(dict.fromkeys([*rows, "transformation"])), sort=False)[numbers].sum()
    rates = 100 * cells[list(RATES)].div(cells["answered"].replace(0, np.nan), axis=0)
    table = rates.groupby(level=rows, sort=False).mean()
    counts = cells.groupby(level=rows, sort=False)[["answered", "told", "failed", "unanswered"]].sum()
    table["n"] = counts["answered"].astype(int)
    table[["failed", "unanswered"]] = counts[["failed", "unanswered"]].astype(int)
    table["language_told"] = 100 * counts["told"] / counts["answered"].replace(0, np.nan)
    return table.reset_index()


def _printed(table: pd.DataFrame, by: str) -> str:
    """The table for a terminal; generators whose outputs are not complete have a star."""
    heads = [LABELS[flag].removesuffix(" Rate") for flag in FLAGS]
    header = ["generator", *([by] if by else []), *heads, "Total", "n", "failed", "unanswered"]
    incomplete = set(table.loc[table["unanswered"] > 0, "generator"])
    rows = []
    for row in table.to_dict(orient="records"):
        name = row["generator"] + (" *" if row["generator"] in incomplete else "")
        rates = [shown(row[rate]) for rate in RATES]
        counts = [f"{row[count]:,}" for count in ("n", "failed", "unanswered")]
        rows.append([name, *([row[by]] if by else []), *rates, *counts])
    return cli.columns(header, rows)


def _notes(table: pd.DataFrame, options: argparse.Namespace, studies: Sequence[Study]) -> list[str]:
    """What the reader of the table has to know."""
    attempts = "last attempts" if options.after_retries else "first attempts"
    mean = "" if options.by == "transformation" else ", means over the transformations"
    notes = [
        f"In % of n, {attempts}{mean} (HTEB, Table 5). A text counts once for each of its places in the data sets."
    ]
    shares = table["language_told"].dropna()
    if len(shares):
        span = " to ".join(dict.fromkeys([shown(shares.min()), shown(shares.max())]))
        notes.append(
            f"Wrong Lang. can be told for {span}% of n, what should be in a language that the identifier knows."
        )
    if (table["unanswered"] > 0).any():
        notes.append("* not complete: the unanswered are in no rate; the next run asks for them.")
    return [*notes, *output_statistics.not_counted(studies), *filter(None, [output_statistics.incomparable(studies)])]


def run(options: argparse.Namespace) -> int:
    """Print the table of the studies that the options name."""
    studies = output_statistics.by_generator([load_study(file, options.exports) for file in options.study])
    measure = errors_measure(output_statistics.kinds_of(studies), after_retries=options.after_retries)
    table = error_rates(output_statistics.tally(studies, measure), options.by)
    print(_printed(table, options.by))
    print(*_notes(table, options, studies), sep="\n")
    if options.csv:
        write_csv(table, options.csv)
        print(f"-> {options.csv}")
    return 0
