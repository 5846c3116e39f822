"""Exhibits on sensitivity to ratings, pairs, models and generators, and on abstention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from annotation.verdicts.tables import display
from evaluation.display import points
from evaluation.report.paper_tables import COUNTS, NAMED, OF, P_HOLM, REFUSED, PaperResults, exhibit, moved, named
from evaluation.tables.comparisons import difference_table
from evaluation.tables.datasets import abstention_table, accepted_table, not_searches, profile_table, score_drops
from evaluation.tables.generators import generator_table, prompt_table
from plumbline.exhibits.table import Cell, Exhibit, Row, cell, estimates, interval, numbers, printed, reasons
from plumbline.statistics.abstention import CONFIDENCES
from plumbline.study.subject import ORIGINAL

_FEW = 100  # queries; a note names data sets with fewer
_NAUC = (
    "nAUC: the area between the curve of scores by share of answers and the flat line, as a share of the best possible;"
    " 1: the worst queries are left out first, 0: confidence is uninformative, below 0: it misleads (MMTEB, F.1)."
    " max: the largest similarity of a query; std: the similarities' standard deviation; diff1: the largest similarity"
    " minus the second largest. In square brackets: a 95%"
    " interval over queries (bootstrap; in simulations of 50 to 300 queries 93% to 95% covered the true value). In"
    " round brackets: nAUC of the same queries' original texts."
)
_SPREAD = (
    "An item counts if people rated and accepted all its texts (both sentences of a pair) in that run, so a sample"
    " over many data sets and runs leaves few items"
)


def accepted_alone(rows: pd.DataFrame, scores: pd.DataFrame) -> Exhibit:
    """Return scores on the items of accepted pairs only."""
    frame = accepted_table(rows, scores)
    columns = {
        "Model": "model",
        **NAMED,
        "Data sets": "n_datasets",
        "Items": "n_items",
        "Original": numbers("original", times=100),
        "Transformed": numbers("score", times=100),
        "Difference": numbers("difference", sign="+"),
        "Of all items": numbers("difference_all", sign="+"),
    }
    caption = (
        "Scores times 100 on items of accepted pairs only, and the difference in points from the original score, beside"
        " the difference on all items of the same data sets"
    )
    notes = reasons(map(named, frame["transformation"]), frame["reason"])
    return exhibit("accepted_pairs", caption, frame, columns, (*([_SPREAD] if notes else []), *notes))


def differences(results: PaperResults) -> Exhibit:
    """Return the differences between models, by the paired bootstrap."""
    frame = difference_table(results.scores, results.seed)
    columns = {
        "Model": "first",
        "Against": "second",
        "Difference [95%]": estimates("difference", form=points),
        **P_HOLM,
        "Data sets": "n",
    }
    caption = "Differences between models' axis-balanced scores in points: paired bootstrap over data sets"
    return exhibit(
        "differences", caption, frame, columns, reasons(frame["first"] + " and " + frame["second"], frame["reason"])
    )


def drops(results: PaperResults) -> Exhibit:
    """Return HTEB's Figure 9 as a table: mean drops by setting; the file has all points."""
    frame = score_drops(results.scores)
    means = frame.groupby("setting", sort=False)["drop"].agg(["mean", "size"]).reset_index()
    columns = {"Texts": "setting", "Mean drop": numbers("mean", sign="+"), "Points": "size"}
    caption = "Mean drop in points from the original score, over data sets, models and transformations"
    return exhibit("drops", caption, frame, printed(means, columns))


def profiles(results: PaperResults) -> Exhibit:
    """Return HTEB's Figures 10 and 11 as a table."""
    frame = profile_table(results.scores)
    sizes = frame.pivot(index=["model", "ordering"], columns="axis", values="size")
    rows = sizes.reindex(pd.MultiIndex.from_frame(frame[["model", "ordering"]]).unique()).reset_index()
    columns: dict[str, Cell] = {
        "Model": "model",
        **{display(axis): numbers(axis) for axis in results.axes.of_total if axis in rows},
        "From largest to smallest": cell("ordering", lambda names: " > ".join(map(display, names.split(" > ")))),
    }
    caption = "Sizes of the axes' differences in points from the original score"
    return exhibit("profiles", caption, frame, printed(rows, columns))


def generators(
    results: PaperResults, second_scores: pd.DataFrame, labels: tuple[str, str], notes: Sequence[str]
) -> Exhibit:
    """Return HTEB's Table 22: this study's scores beside those with another generator."""
    frame, total = generator_table(results.scores, second_scores), results.axes.total
    first, second = labels
    if len(frame) and frame["included_rejected"].any():
        second += REFUSED
    columns = {
        "Of": cell("name", lambda name: "Total" if name == total else named(name)),
        "Original": numbers("original", times=100),
        first: moved("first", "first_difference"),
        second: moved("second", "second_difference"),
        "Change": numbers("change", sign="+"),
        **COUNTS,
    }
    caption = (
        "Scores times 100 under two generators; in brackets the difference in points from the original score; change:"
        f" the difference under {second} minus the difference under {first}"
    )
    every_note = [*results.of_total, *reasons(map(named, frame["name"]), frame["reason"]), *notes]
    return exhibit("generators", caption, frame, columns, every_note)


def lengths(frame: pd.DataFrame) -> Exhibit:
    """Return HTEB's Table 23, from `generation.output_tables.length_table`."""
    columns = {
        **OF,
        "Generator": "generator",
        "Original": numbers("original", 1),
        "Words": numbers("words", 1),
        "Ratio": numbers("ratio"),
        "% failed": numbers("failed", 1),
        "Edit distance": numbers("distance"),
        "Difference in words": numbers("words_difference", 1, "+"),
    }
    return exhibit("lengths", "Words of originals and outputs, and how different they are", frame, columns)


def prompts(
    scores: Mapping[str, pd.DataFrame],
    lengths_of: pd.DataFrame,
    judgements: Mapping[str, pd.DataFrame],
    notes: Sequence[str],
) -> Exhibit:
    """Return PTEB's Table 12: similarity, edits and scores under several prompts of one generator."""
    frame = prompt_table(scores, lengths_of, judgements)
    columns = {
        "Transformation": cell("name", named),
        "Prompts": lambda row: f"{row['prompts']}{REFUSED * row['included_rejected']}",
        "Similarity": numbers("similarity"),
        "Judged": numbers("n_judged", 0),
        "Judges": "n_judges",
        "Edit distance": numbers("distance"),
        "% failed": numbers("failed", 1),
        "Score": moved("score", "difference"),
        "Change": numbers("change", sign="+"),
        **COUNTS,
    }
    caption = (
        "One generator under several prompts (PTEB, Table 12): judges' mean similarity, of outputs that the same judges"
        " rated under all prompts; edit distance in words, 0 to 1; scores times 100, in brackets the difference in"
        " points from the original score; change: this difference minus the difference under"
        f" {next(iter(scores))}"
    )
    notes_of_rows = reasons(
        (f"{named(name)}, {by}" for name, by in zip(frame["name"], frame["prompts"], strict=True)), frame["reason"]
    )
    return exhibit("prompts", caption, frame, columns, [*notes_of_rows, *notes])


def nauc(rows: pd.DataFrame) -> Exhibit:
    """Return nAUC by model and transformation, beside the originals'."""
    frame = abstention_table(rows)
    columns = {
        "Model": "model",
        **NAMED,
        **{f"nAUC ({name})": _nauc(name) for name in CONFIDENCES},
        "Data sets": "n_datasets",
        "Queries": numbers("n_queries", 0),
    }
    left_out = not_searches(rows)
    least = min((int(n) for n in rows["n"] if n), default=_FEW)
    few = [f"Few queries ({least} in a data set): nAUC is sensitive to each query"] if least < _FEW else []
    notes = [
        _NAUC,
        *few,
        *(
            f"{', '.join(name for name in left_out if left_out[name] == reason)}: {reason}"
            for reason in dict.fromkeys(left_out.values())
        ),
        *reasons(map(named, frame["transformation"]), frame["reason"]),
    ]
    caption = "Quality of models' confidence for finding the queries to leave unanswered"
    return exhibit("abstention", caption, frame, columns, notes)


def _nauc(name: str) -> Cell:
    """Return a column of one confidence's nAUC with its interval, and that of the original texts."""

    def with_original(row: Row) -> str:
        value = interval(row[f"nauc_{name}"], row[f"nauc_low_{name}"], row[f"nauc_high_{name}"], points)
        return value if row["transformation"] == ORIGINAL else f"{value} ({points(row[f'nauc_original_{name}'])})"

    return with_original
