"""Tables of generators' outputs: the rates of their error types (HTEB, Table 5), and how long they are (Table 23).

By default first attempts count, which show the generator without retries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from cyclopts import Parameter
from rapidfuzz.distance import Levenshtein

from generation import output_statistics
from generation.flags import KNOWN
from generation.output_statistics import OutputMeasure
from plumbline import cli
from plumbline.cli import Choice, Local, Named
from plumbline.error_types import FLAGS, LABELS
from plumbline.errors import DataError
from plumbline.exhibits.table import number, write_csv
from plumbline.study import Study, load_study
from plumbline.study.transformations import AXES, EIGHT, Transformation, axes_in_order, in_order, total_axes
from plumbline.words import count_words

TOTAL = "total"
RATES = (*FLAGS, TOTAL)


def errors_measure(kinds: Mapping[str, Transformation] = EIGHT, *, after_retries: bool) -> OutputMeasure:
    """Return the measure of error types of the first attempts' outputs, or (`after_retries`) of the last.

    Sums: one per flag; `total` (outputs with any); `answered` (outputs with an answer: the rates' denominator); `told`
    (outputs whose expected language the identifier knows). `kinds` are the transformations that may occur.
    """
    column = "flags" if after_retries else "first_flags"

    def of(row: dict[str, Any]) -> tuple[float, ...]:
        if row["status"] == "unanswered" or not row["attempts"]:
            return (0,) * (len(RATES) + 2)
        kind = kinds.get(row["transformation"])
        if kind is None:
            raise DataError(
                f"an output has the transformation {row['transformation']!r}, which the study does not have, so the"
                " file is damaged; delete it and generate again"
            )
        identifiable = kind.output_language(row["source_language"], row["language"]) in KNOWN
        flags = row[column]
        return (*(flag in flags for flag in FLAGS), bool(flags), 1, identifiable)

    columns = (column, "attempts", "transformation", "source_language", "language")
    return OutputMeasure(columns, (*RATES, "answered", "told"), of)


def error_rates(sums: pd.DataFrame, by: str | None = None) -> pd.DataFrame:
    """Return Table 5 from the sums of `errors_measure`: a row for each generator, and each value of `by`.

    Columns: generator; `by` (if given); the ten error types and `total`, in % (means over the transformations that have
    answers; NaN if none has; an output with several types counts once in the total); n (outputs behind the rates),
    failed, unanswered (numbers of outputs; a text counts once for each occurrence); language_told (% of n).
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


def _notes_on_rates(table: pd.DataFrame, by: str | None, *, after_retries: bool) -> list[str]:
    attempts = "last attempts" if after_retries else "first attempts"
    mean = "" if by == "transformation" else ", averaged over the transformations"
    notes = [
        f"Numbers are percentages of n, from the {attempts}{mean} (HTEB, Table 5). A text counts once for each"
        " occurrence in the data sets."
    ]
    shares = table["language_told"].dropna()
    if len(shares):
        span = " to ".join(dict.fromkeys([number(shares.min(), 1), number(shares.max(), 1)]))
        notes.append(
            f"Wrong Lang. is checked for {span}% of n: outputs expected in a language that the identifier supports."
        )
    if (table["unanswered"] > 0).any():
        notes.append("* incomplete: rates leave out unanswered outputs; the next run asks for them.")
    return notes


@Parameter(name="*")
@dataclass(frozen=True)
class TableOptions:
    """The studies of a table, and the file to which it is written too.

    Args:
        study: A study; repeat to report on several.
        exports: The folder of the records (default: exports/).
        csv: Also write the table to this file, unrounded.
    """

    study: Annotated[tuple[Named, ...], Parameter(metavar="FILE")]
    exports: Annotated[Named | None, Parameter(metavar="DIR")] = None
    csv: Local | None = None

    def load(self) -> list[Study]:
        """Return the studies, one for each generator. Raises StudyError as `load_study`."""
        return output_statistics.by_generator([load_study(file, self.exports) for file in self.study])


def show_error_rates(
    *,
    options: TableOptions,
    by: Annotated[Literal["transformation", "dataset", "language"] | None, Choice] = None,
    after_retries: bool = False,
) -> None:
    """Show each generator's error rates.

    The table has a row for a study's generator and each candidate, and a column for each type of error (HTEB, Table 5).

    Example: plumbline errors --study studies/demo.yaml

    Args:
        options: The studies, and a file for the table.
        by: Split the rates by this, one row for each value.
        after_retries: Count the errors of the last attempts instead of the first attempts.
    """
    studies = options.load()
    measure = errors_measure(output_statistics.kinds_of(studies), after_retries=after_retries)
    table = error_rates(output_statistics.tally(studies, measure), by)
    notes = _notes_on_rates(table, by, after_retries=after_retries)
    heads = [LABELS[flag].removesuffix(" Rate") for flag in FLAGS]
    header = ["generator", *([by] if by else []), *heads, "Total", "n", "failed", "unanswered"]
    incomplete = set(table.loc[table["unanswered"] > 0, "generator"])
    rows = []
    for row in table.to_dict(orient="records"):
        name = row["generator"] + (" *" if row["generator"] in incomplete else "")
        rates = [number(row[rate], 1) for rate in RATES]
        counts = [f"{row[count]:,}" for count in ("n", "failed", "unanswered")]
        rows.append([name, *([row[by]] if by else []), *rates, *counts])
    _show(options, studies, table, [cli.columns(header, rows), *notes])


def _show(options: TableOptions, studies: Sequence[Study], table: pd.DataFrame, lines: Sequence[str]) -> None:
    """Print a table and its notes, and write it to the file that the options name."""
    print(*lines, sep="\n")
    names = [name for study in studies for name, kind in study.transforming.items() if kind.made_by != "generator"]
    if names:
        print(f"Not counted, as no generator made them: {', '.join(dict.fromkeys(names))}.")
    if line := output_statistics.incomparable(studies):
        print(line)
    if options.csv:
        write_csv(table, options.csv)
        print(f"-> {options.csv}")


OVERALL = "overall"
_AVERAGED = ["original", "words", "failed", "unanswered", "distance"]
_DIFFERENCES = ["words", "ratio", "failed", "distance"]


def lengths_measure() -> OutputMeasure:
    """Return the measure of lengths of usable outputs: original words, output words, edit distance."""

    def of(row: dict[str, Any]) -> tuple[float, ...]:
        if row["status"] != "ok":
            return (0, 0, 0)
        text, output = row["text"], row["output"]
        return (count_words(text), count_words(output), edit_distance(text, output))

    return OutputMeasure(("text", "output"), ("original_words", "words", "distance"), of)


def edit_distance(original: str, transformed: str) -> float:
    """Return the words to insert, delete or replace, divided by the longer text's words: 0 (equal) to 1.

    White space separates words; in scripts without spaces each character counts as a word. Source: PTEB, 3.2.2.
    """
    return Levenshtein.normalized_distance(_tokens(original), _tokens(transformed))


def length_table(sums: pd.DataFrame, kinds: Mapping[str, Transformation] = EIGHT) -> pd.DataFrame:
    """Return Table 23 from the sums of `lengths_measure`: transformations below their axes, and `overall`.

    A row for each generator; `kinds` are the transformations by name; overall is the mean over `total_axes`.

    Columns: name (transformation, axis or overall), axis, generator; datasets, texts (numbers; a text counts once for
    each occurrence); original, words (mean numbers of words of texts with an output); ratio (of these two means);
    failed, unanswered (% of texts without a usable output: failed; not answered, or not asked for yet); distance (0 to
    1); and `<column>_difference` to the first generator, if there are several. NaN without output, and overall if an
    axis has none.
    """
    means = _transformation_means(sums, kinds)
    generators = list(means["generator"].unique())
    parts, of_axes = [], []
    wanted = total_axes(means["name"], means["axis"])
    for axis in axes_in_order(means["axis"]):
        part = means[means["axis"] == axis]
        of_axes.append(_mean_of(part, axis, axis))
        parts += [of_axes[-1], part]
    axes = pd.concat(of_axes)
    axes = axes[axes["name"].isin(wanted)]
    parts.append(_mean_of(axes, OVERALL, ""))
    table = pd.concat(parts, ignore_index=True)
    incomplete = axes.groupby("generator")["words"].count() < len(wanted)
    undefined = (table["name"] == OVERALL) & table["generator"].map(incomplete)
    table.loc[undefined, _AVERAGED] = np.nan
    table["ratio"] = table["words"] / table["original"]
    table = table[["name", "axis", "generator", "datasets", "texts", "original", "words", "ratio", *_AVERAGED[2:]]]
    if len(generators) > 1:
        base = table[table["generator"] == generators[0]].set_index("name")
        for column in _DIFFERENCES:
            table[f"{column}_difference"] = table[column] - table["name"].map(base[column])
    return table


def _transformation_means(sums: pd.DataFrame, kinds: Mapping[str, Transformation]) -> pd.DataFrame:
    """Return the means over texts, then seeds, then data sets: a row for each transformation and generator."""
    numbers = ["texts", "ok", "failed", "unanswered", "original_words", "words", "distance"]
    units = sums.groupby(["transformation", "generator", "dataset", "seed"], sort=False)[numbers].sum()
    usable = units["ok"].replace(0, np.nan)
    means = pd.DataFrame(
        {
            "original": units["original_words"] / usable,
            "words": units["words"] / usable,
            "failed": 100 * units["failed"] / units["texts"],
            "unanswered": 100 * units["unanswered"] / units["texts"],
            "distance": units["distance"] / usable,
        }
    )
    datasets = means.groupby(level=["transformation", "generator", "dataset"], sort=False).mean()
    rows = datasets.groupby(level=["transformation", "generator"], sort=False)
    runs = units["texts"].groupby(level=["transformation", "generator", "seed"]).sum()
    texts = runs.groupby(level=["transformation", "generator"]).max()
    table = rows.mean().assign(datasets=rows.size(), texts=texts).reset_index()
    table = table.rename(columns={"transformation": "name"})
    table["axis"] = [kinds[name].axis for name in table["name"]]
    order = {name: number for number, name in enumerate(in_order(table["name"]))}
    return table.sort_values("name", key=lambda names: names.map(order), kind="stable")


def _mean_of(rows: pd.DataFrame, name: str, axis: str) -> pd.DataFrame:
    groups = rows.groupby("generator", sort=False)
    table = groups[_AVERAGED].mean().assign(**groups[["datasets", "texts"]].max())
    return table.reset_index().assign(name=name, axis=axis)


def _tokens(text: str) -> list[str]:
    """Return the words of a text, and the characters of words in scripts written without spaces."""
    words = text.split()
    if count_words(text) == len(words):
        return words
    return [token for word in words for token in ([word] if count_words(word) == 1 else word)]


def _printed_lengths(table: pd.DataFrame) -> str:
    several = "words_difference" in table
    header = ["transformation", "generator", "original", "words", "ratio", "% failed", "% unanswered", "distance"]
    header += ["words +-", "ratio +-", "failed +-", "distance +-"] if several else []
    rows = []
    for row in table.to_dict(orient="records"):
        name = row["name"] if row["name"] in (row["axis"], OVERALL) else f"  {row['name']}"
        values = [("original", 1), ("words", 1), ("ratio", 2), ("failed", 1), ("unanswered", 1), ("distance", 2)]
        cells = [number(row[column], digits) for column, digits in values]
        digits_of = dict(values)
        if several:
            cells += [number(row[f"{column}_difference"], digits_of[column], "+") for column in _DIFFERENCES]
        rows.append([name, row["generator"], *cells])
    return cli.columns(header, rows)


def _notes_on_lengths(table: pd.DataFrame) -> list[str]:
    notes = [
        "Mean numbers of words over texts, seeds and data sets (HTEB, Table 23); distance: word edits, from 0 to 1"
        " (PTEB, 3.2.2)."
    ]
    generators = list(table["generator"].unique())
    if len(generators) > 1:
        notes.append(f"+-: the difference from {generators[0]}.")
    if (table["unanswered"] > 0).any():
        notes.append("Incomplete: unanswered texts have no output yet, and the means of words leave them out.")
    axes = total_axes(table["name"], filter(None, table["axis"]))
    if axes != AXES or set(table["axis"]) - {*AXES, ""}:
        notes.append(f"Overall is the mean over the {'axis' if len(axes) == 1 else 'axes'} {', '.join(axes)}.")
    if table.loc[table["name"] == OVERALL, "words"].isna().any():
        which = "the three axes" if axes == AXES else "these axes"
        notes.append(f"Overall is the mean of {which}; it is undefined unless each has outputs.")
    return notes


def show_lengths(*, options: TableOptions) -> None:
    """Show how generators' outputs differ.

    The table says how long the outputs of a study's generator and candidates are, and how far they are from their
    originals (HTEB, Table 23; PTEB's edit distance). `plumbline evaluate` scores embedding models on them (Table 22).

    Example: plumbline compare --study studies/demo.yaml

    Args:
        options: The studies, and a file for the table.
    """
    studies = options.load()
    table = length_table(output_statistics.tally(studies, lengths_measure()), output_statistics.kinds_of(studies))
    _show(options, studies, table, [_printed_lengths(table), *_notes_on_lengths(table)])
