"""Exhibits on sensitivity to ratings, pairs, models and generators, and on abstention."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from annotation.verdicts.tables import display
from evaluation import tables
from evaluation.display import decimal, hundred, points
from evaluation.report.paper_tables import REFUSED, PaperResults, exhibit, interval, moved, named, p_value
from generation.output_statistics import shown
from plumbline.exhibits.table import Exhibit, reasons
from plumbline.statistics.abstention import CONFIDENCES
from plumbline.transformations import ORIGINAL

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


def accepted_alone(results: PaperResults, rows_of: pd.DataFrame) -> Exhibit:
    """Return scores on the items of accepted pairs only."""
    frame = tables.accepted_table(rows_of, results.scores)
    rows = [
        {"Model": row["model"], "Transformation": named(row["transformation"]), "Data sets": str(row["n_datasets"])}
        | {"Items": str(row["n_items"]), "Original": hundred(row["original"]), "Transformed": hundred(row["score"])}
        | {"Difference": points(row["difference"]), "Of all items": points(row["difference_all"])}
        for row in frame.to_dict(orient="records")
    ]
    caption = (
        "Scores times 100 on items of accepted pairs only, and the difference in points from the original score, beside"
        " the difference on all items of the same data sets"
    )
    why = reasons(map(named, frame["transformation"]), frame["reason"])
    return exhibit("accepted_pairs", caption, frame, rows, (*([_SPREAD] if why else []), *why))


def differences(results: PaperResults) -> Exhibit:
    """Return the differences between models, by the paired bootstrap."""
    frame = tables.difference_table(results.scores, results.seed)
    rows = [
        {"Model": row["first"], "Against": row["second"]}
        | {"Difference [95%]": interval(row["difference"], row["low"], row["high"])}
        | {"p (Holm)": p_value(row["p_holm"]).removeprefix("p ").removeprefix("= "), "Data sets": str(row["n"])}
        for row in frame.to_dict(orient="records")
    ]
    caption = "Differences between models' axis-balanced scores in points: paired bootstrap over data sets"
    names = [f"{row['first']} and {row['second']}" for row in frame.to_dict(orient="records")]
    return exhibit("differences", caption, frame, rows, reasons(names, frame["reason"]))


def drops(results: PaperResults) -> Exhibit:
    """Return HTEB's Figure 9 as a table: mean drops by setting; the file has all points."""
    frame = tables.drop_table(results.scores)
    rows = [
        {"Texts": str(setting), "Mean drop": points(float(part["drop"].mean())), "Points": str(len(part))}
        for setting, part in frame.groupby("setting", sort=False)
    ]
    caption = "Mean drop in points from the original score, over data sets, models and transformations"
    return exhibit("drops", caption, frame, rows)


def profiles(results: PaperResults) -> Exhibit:
    """Return HTEB's Figures 10 and 11 as a table."""
    frame = tables.profile_table(results.scores)
    rows = [
        {"Model": str(model), **{display(axis): "–" for axis in results.axes.of_total}}
        | {display(row["axis"]): shown(row["size"], 2) for row in part.to_dict(orient="records")}
        | {"From largest to smallest": " > ".join(map(display, part["ordering"].iloc[0].split(" > ")))}
        for model, part in frame.groupby("model", sort=False)
    ]
    return exhibit("profiles", "Sizes of the axes' differences in points from the original score", frame, rows)


def generators(
    results: PaperResults, second_scores: pd.DataFrame, labels: tuple[str, str], notes: Sequence[str]
) -> Exhibit:
    """Return HTEB's Table 22: this study's scores beside those with another generator."""
    frame = tables.generator_table(results.scores, second_scores)
    first, second = labels
    if len(frame) and frame["included_rejected"].any():
        second += REFUSED
    rows = [
        {
            "Of": "Total" if row["name"] == results.axes.total else named(row["name"]),
            "Original": hundred(row["original"]),
        }
        | {first: moved(row["first"], row["first_difference"], row["original"])}
        | {second: moved(row["second"], row["second_difference"], row["original"])}
        | {"Change": points(row["change"]), "Data sets": str(row["n_datasets"]), "Models": str(row["n_models"])}
        for row in frame.to_dict(orient="records")
    ]
    caption = (
        "Scores times 100 under two generators; in brackets the difference in points from the original score; change:"
        f" the difference under {second} minus the difference under {first}"
    )
    why = [*results.of_total, *reasons(map(named, frame["name"]), frame["reason"]), *notes]
    return exhibit("generators", caption, frame, rows, why)


def lengths(frame: pd.DataFrame) -> Exhibit:
    """Return HTEB's Table 23, from `generation.output_tables.length_table`."""
    rows = [
        {"Of": named(row["name"]), "Generator": row["generator"], "Original": shown(row["original"])}
        | {"Words": shown(row["words"]), "Ratio": shown(row["ratio"], 2), "% failed": shown(row["failed"])}
        | {
            "Edit distance": shown(row["distance"], 2),
            "Difference in words": shown(row.get("words_difference", 0), 1, "+"),
        }
        for row in frame.to_dict(orient="records")
    ]
    return exhibit("lengths", "Words of originals and outputs, and how different they are", frame, rows)


def prompts(
    scores: Mapping[str, pd.DataFrame],
    lengths_of: pd.DataFrame,
    judgements: Mapping[str, pd.DataFrame],
    notes: Sequence[str],
) -> Exhibit:
    """Return PTEB's Table 12: similarity, edits and scores under several prompts of one generator."""
    frame = tables.prompt_table(scores, lengths_of, judgements)
    rows = [
        {"Transformation": named(row["name"]), "Prompts": f"{row['prompts']}{REFUSED * row['included_rejected']}"}
        | {"Similarity": shown(row["similarity"], 2), "Judged": f"{row['n_judged']:,}", "Judges": str(row["n_judges"])}
        | {"Edit distance": shown(row["distance"], 2), "% failed": shown(row["failed"])}
        | {"Score": moved(row["score"], row["difference"], row["original"]), "Change": points(row["change"])}
        | {"Data sets": str(row["n_datasets"]), "Models": str(row["n_models"])}
        for row in frame.to_dict(orient="records")
    ]
    caption = (
        "One generator under several prompts (PTEB, Table 12): judges' mean similarity, of outputs that the same judges"
        " rated under all prompts; edit distance in words, 0 to 1; scores times 100, in brackets the difference in"
        " points from the original score; change: this difference minus the difference under"
        f" {next(iter(scores))}"
    )
    why = reasons(
        (f"{named(name)}, {by}" for name, by in zip(frame["name"], frame["prompts"], strict=True)), frame["reason"]
    )
    return exhibit("prompts", caption, frame, rows, [*why, *notes])


def nauc(rows: pd.DataFrame) -> Exhibit:
    """Return nAUC by model and transformation, beside the originals'."""
    frame = tables.abstention_table(rows)
    cells_of = []
    for row in frame.to_dict(orient="records"):
        cells = {"Model": row["model"], "Transformation": named(row["transformation"])}
        for name in CONFIDENCES:
            cell = decimal(row[f"nauc_{name}"])
            if not math.isnan(row[f"nauc_low_{name}"]):
                cell += f" [{decimal(row[f'nauc_low_{name}'])}, {decimal(row[f'nauc_high_{name}'])}]"
            original = row["transformation"] == ORIGINAL
            cells[f"nAUC ({name})"] = cell if original else f"{cell} ({decimal(row[f'nauc_original_{name}'])})"
        cells_of.append(cells | {"Data sets": str(row["n_datasets"]), "Queries": f"{row['n_queries']:,}"})
    others = tables.not_searches(rows)
    least = min((int(n) for n in rows["n"] if n), default=_FEW)
    few = [f"Few queries ({least} in a data set): nAUC is sensitive to each query"] if least < _FEW else []
    why = [
        _NAUC,
        *few,
        *(f"{', '.join(n for n in others if others[n] == why)}: {why}" for why in dict.fromkeys(others.values())),
        *reasons(map(named, frame["transformation"]), frame["reason"]),
    ]
    return exhibit(
        "abstention", "Quality of models' confidence for finding the queries to leave unanswered", frame, cells_of, why
    )
