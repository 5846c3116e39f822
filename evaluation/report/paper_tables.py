"""The papers' tables as a report's exhibits: `evaluation.tables` in the form that HTEB, PTEB and MMTEB print."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from annotation.records import Verdict
from annotation.verdicts.rules import late_lines
from annotation.verdicts.tables import display
from evaluation.display import board_columns, board_notes, hundred, points, short_names
from evaluation.records import EvaluationRecords
from evaluation.tables.comparisons import baseline_table, kendall_table, ranking_table, shift_table, split_half_table
from evaluation.tables.datasets import (
    dataset_averages,
    dataset_totals,
    drift_by_quality,
    drift_correlations,
    size_table,
    translation_table,
)
from evaluation.tables.scores import axis_table, left_out_table, transformation_table
from plumbline.exhibits.table import (
    UNDEFINED,
    Cell,
    Exhibit,
    Row,
    cell,
    estimates,
    number,
    numbers,
    printed,
    reasons,
    spaced,
    word,
)
from plumbline.study.subject import KNOWN, ORIGINAL
from plumbline.study.transformations import AXES, HTEB_TOTAL, OWN_TOTAL, Axes, in_order
from plumbline.words import printable_line

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
        if self.axes.are_htebs:
            return []
        separate = [axis for axis in self.axes.shown if axis not in self.axes.of_total]
        without = f", without {', '.join(separate)}" if separate else ""
        return [f"Total: the mean over {', '.join(self.axes.of_total)}{without}"]


def p_value(p: float) -> str:
    """Return a p-value in words, as papers print it."""
    if math.isnan(p):
        return "no p"
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".", 1)


def p_cell(p: float) -> str:
    """Return a p-value for a column of p-values."""
    return UNDEFINED if math.isnan(p) else p_value(p).removeprefix("p ").removeprefix("= ")


def named(name: str) -> str:
    """Return a readable name of a transformation, axis or task."""
    return name.upper() if name in ("sts", "str") else display(name, pooled=False)


def moved(score: str, difference: str, original: str = "original") -> Cell:
    """Return a column of scores times 100 (`changed`) with their difference in points, if they have one."""

    def with_difference(row: Row) -> str:
        text = changed(row[score], row[difference], row[original])
        return text if math.isnan(row[difference]) else f"{text} ({points(row[difference])})"

    return with_difference


def changed(value: float, difference: float, original: float) -> str:
    """Return a score times 100, after the original's of the same items if that differs from the given original."""
    rescaled = hundred(value - difference / 100)
    same = math.isnan(difference) or rescaled == hundred(original)
    return hundred(value) if same else f"{rescaled}{_ARROW}{hundred(value)}"


def exhibit(
    name: str, caption: str, frame: pd.DataFrame, columns: Mapping[str, Cell] | pd.DataFrame, notes: Iterable[str] = ()
) -> Exhibit:
    """Return an exhibit with `notes` on what it lacks, in the displayed names of transformations and axes."""
    table = Exhibit.of(name, caption, frame, columns, map(worded, notes))
    compared = any(_ARROW in text for _, cells in table.printed.items() for text in cells)
    return replace(table, notes=(*table.notes, _OWN_ORIGINALS)) if compared else table


def worded(note: str) -> str:
    """Return a note with the names of transformations and axes as people read them."""
    for name in sorted((name for name in {*KNOWN, *AXES} if "_" in name), key=len, reverse=True):
        note = note.replace(name, display(name, pooled=False))
    return note


def _with_refused(table: Exhibit) -> Exhibit:
    caption = f"{table.caption}; INCLUDING TRANSFORMATIONS THAT NO VERDICT ACCEPTS"
    return replace(table, name=f"{table.name}_with_refused", caption=caption)


NAMED: dict[str, Cell] = {"Transformation": cell("transformation", named)}
OF: dict[str, Cell] = {"Of": cell("name", named)}
COUNTS: dict[str, Cell] = {"Data sets": "n_datasets", "Models": "n_models"}
P_HOLM: dict[str, Cell] = {"p (Holm)": cell("p_holm", p_cell)}
_SHIFT: dict[str, Cell] = {"Shift [95%]": estimates("shift", form=points), **P_HOLM}
_TEST: dict[str, Cell] = {"n": "n", "Test": cell("method", word)}


def axes(results: PaperResults, *, include_rejected: bool = False) -> Exhibit:
    """Return HTEB's Tables 14 and 15: original, axes and total by model, and their averages."""
    frame = axis_table(results.scores, results.verdicts, include_rejected=include_rejected)
    heads = results.heads
    columns: dict[str, Cell] = {
        "Model": lambda row: row["model"] + (REFUSED if row["included_rejected"] else ""),
        "Original": numbers("original", times=100),
        **{head: moved(name, f"{name}_difference") for name, head in heads.items()},
    }
    ends = ("", "_original", "_difference")
    average = frame[["original", *(f"{name}{end}" for name in heads for end in ends)]].mean(skipna=False)
    records = frame.to_dict(orient="records")
    rows = pd.DataFrame([*records, {"model": "Average", "included_rejected": "", **average}])
    caption = "Scores times 100 by axis; in brackets the difference in points from the original score of the same items"
    notes = [*results.of_total, *_axis_notes(records, heads)]
    table = exhibit("axes", caption, frame, printed(rows, columns), notes)
    return _with_refused(table) if include_rejected else table


def _axis_notes(rows: Sequence[Row], heads: Mapping[str, str]) -> list[str]:
    """Return the reasons for missing values of `axis_table`, one line each, with models and axis.

    A reason that holds for all models or all axes does not name them.
    """
    models_by_reason: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        by_head = {head: row[f"{name}_reason"] for name, head in heads.items()}
        same = len(set(by_head.values())) == 1
        for head, reason in [("", *set(by_head.values()))] if same else by_head.items():
            models_by_reason.setdefault((head, reason), []).append(row["model"])
    notes = []
    for (head, reason), models in models_by_reason.items():
        whose = [] if len(models) == len(rows) > 1 else models
        label = ", ".join([*whose, *([head] if head else [])])
        notes.append(f"{label or 'all models'}: {reason}" if reason else "")
    return list(filter(None, notes))


def transformations(results: PaperResults, *, include_rejected: bool = False) -> Exhibit:
    """Return HTEB's Figure 6 as a table: differences by model and transformation."""
    frame = transformation_table(results.scores, include_rejected=include_rejected)
    cells = {(row["model"], row["transformation"]): row for row in frame.to_dict(orient="records")}

    def difference(name: str) -> Cell:
        def of_model(row: Row) -> str:
            scores_of_model = cells.get((row["model"], name))
            return (
                UNDEFINED
                if scores_of_model is None
                else points(scores_of_model["difference"]) + REFUSED * scores_of_model["included_rejected"]
            )

        return of_model

    columns: dict[str, Cell] = {"Model": "model"}
    columns |= {named(name): difference(name) for name in in_order(frame["transformation"].unique())}
    caption = "Difference in points from the original score of the same items, by transformation"
    notes = reasons(map(named, frame["transformation"]), frame["reason"])
    table = exhibit("transformations", caption, frame, printed(frame.drop_duplicates("model"), columns), notes)
    return _with_refused(table) if include_rejected else table


def split_half(results: PaperResults) -> Exhibit:
    """Return HTEB's Table 3."""
    frame = split_half_table(results.scores, results.seed)
    columns: dict[str, Cell] = {"Axis": cell("axis", display), "rho": numbers("rho", sign="+"), "Splits": "n_splits"}
    caption = "Split-half reliability: median of Spearman's rho over splits of the data sets, stratified by task"
    notes = reasons(map(display, frame["axis"]), frame["reason"])
    return exhibit("split_half", caption, frame, columns | COUNTS, notes)


def kendall(results: PaperResults) -> Exhibit:
    """Return HTEB's Table 4."""
    frame = kendall_table(results.scores)

    def head(name: str) -> str:
        return _TAU_HEADS.get(name) or named(name)

    def tau(row: Row) -> str:
        return number(row["tau"], 3) + ("" if math.isnan(row["sd"]) else f" ± {number(row['sd'], 3)}")

    caption = "Kendall's tau between rankings of models by original and transformed scores: mean and SD over data sets"
    how = (
        "On each data set models are ranked by transformed scores; an axis's score is the mean over its"
        " transformations. SD: the sample standard deviation over data sets"
    )
    notes = (how, *results.of_total, *reasons(map(head, frame["name"]), frame["reason"]))
    return exhibit("kendall", caption, frame, {"Of": cell("name", head), "tau ± SD": tau, **COUNTS}, notes)


def shifts(results: PaperResults) -> Exhibit:
    """Return HTEB's Figure 7 as a table."""
    frame = shift_table(results.scores)
    caption = (
        "Hodges-Lehmann shift in points with 95% interval (not corrected), Wilcoxon's p corrected by Holm's method, and"
        " median absolute difference"
    )
    columns = {**OF, **_SHIFT, "Median absolute": numbers("median_absolute"), **_TEST}
    return exhibit("shifts", caption, frame, columns, reasons(map(named, frame["name"]), frame["reason"]))


def against_baseline(results: PaperResults, baseline: str, *, pooled: bool) -> Exhibit:
    """Return PTEB's Table 7 (runs pooled) or 14 (runs averaged)."""
    frame = baseline_table(results.scores, baseline, seed=results.seed if pooled else None)
    unit = "over pairs of data set and run, bootstrap interval" if pooled else "over data sets, runs averaged first"
    caption = (
        f"{baseline} against each model: Hodges-Lehmann shift in points, {baseline} minus the row's model (below 0"
        f" the row's model is better), {unit}"
    )
    name = "baseline_runs" if pooled else "baseline_averages"
    columns = {"Model": "model", **_SHIFT, **_TEST}
    return exhibit(name, caption, frame, columns, reasons(frame["model"], frame["reason"]))


def ranking(results: PaperResults, *, transformed: bool) -> Exhibit:
    """Return MMTEB's Table 2: Borda ranks and means, with intervals over data sets."""
    frame = ranking_table(results.scores, transformed=transformed, seed=results.seed)
    tasks = [name for name in results.scores["task_type"].unique() if name in frame.columns]
    which = "axis-balanced transformed scores" if transformed else "original scores"
    name = "ranking_transformed" if transformed else "ranking_original"
    n_datasets = int(frame["n_datasets"].max()) if len(frame) else 0
    on_board = [_AVERAGED, *board_notes(frame, n_datasets)]
    notes = (*on_board, *(results.of_total if transformed else ()), *reasons(frame["model"], frame["reason"]))
    return exhibit(name, f"Models ranked by {which}, times 100", frame, board_columns(frame, tasks, named), notes)


def sizes(results: PaperResults) -> Exhibit:
    """Return HTEB's Figure 5 as a table; empty if no family has two sizes."""
    frame = size_table(results.scores)
    columns: dict[str, Cell] = {"Model": "model", "Million parameters": cell("parameters", lambda n: f"{n:g}")}
    scores = {"Original": "original"} | {head: name for name, head in results.heads.items()}
    columns |= {head: numbers(name, times=100) for head, name in scores.items()}
    return exhibit("sizes", "Scores times 100 by size of model", frame, columns, results.of_total)


def drift(correlations: pd.DataFrame, question: str = "quality") -> Exhibit:
    """Return HTEB's Figure 3 as a table."""
    columns = {**NAMED, "Model": "model", "rho [95%]": estimates("rho", form=points), "Pairs": "n"}
    caption = (
        f"Spearman's rho between a pair's drift (1 - cos) and its mean {question}, with bootstrap interval over pairs"
    )
    notes = reasons(map(named, correlations["transformation"]), correlations["reason"])
    return exhibit("drift_correlations", caption, correlations, columns, notes)


def left_out(results: PaperResults) -> Exhibit:
    """Return a table of what was left out, failed, or was included despite the verdict, with reasons."""
    columns = {**NAMED, "Status": cell("status", spaced), "Reason": "reason", "Data sets": "datasets", "Seeds": "seeds"}
    caption = "Left out, failed, or included despite the verdict"
    return Exhibit.of("left_out", caption, left_out_table(results.scores), columns)


def left_out_lines(scores: pd.DataFrame) -> list[str]:
    """Return a line for each row of `left_out_table`."""
    every = set(scores["dataset"])
    return [
        printable_line(
            f"{named(row['transformation'])}, {spaced(row['status'])}: {row['reason']}"
            f" ({'all data sets' if set(row['datasets'].split(', ')) == every else row['datasets']})"
        )
        for row in left_out_table(scores).to_dict(orient="records")
    ]


MODELS_BESIDE = 4  # models a table of data sets, as in the paper


def datasets(results: PaperResults) -> list[Exhibit]:
    """Return HTEB's Tables 17 to 21, a few models a table; without an axis-balanced total PTEB's Tables 6, 9 and 10."""
    totals = dataset_totals(results.scores)
    if totals["score"].notna().any():
        return _dataset_parts(results, totals, "datasets", _total_head(results), "axis-balanced scores")
    counted = results.scores[(results.scores["status"] == "evaluated") & (results.scores["transformation"] != ORIGINAL)]
    return [
        part
        for name in in_order(counted["transformation"].unique())
        for part in _dataset_parts(
            results, dataset_totals(results.scores, name), f"datasets_{name}", "Transf.", f"scores on {named(name)}"
        )
    ]


def _total_head(results: PaperResults) -> str:
    return "HTEB" if results.axes.total == HTEB_TOTAL else "Total"


def translated(results: PaperResults, original: str, translation: str, groups: Mapping[str, Sequence[str]]) -> Exhibit:
    """Return HTEB's Table 16: a data set and its translation, by groups of models."""
    frame = translation_table(dataset_totals(results.scores), original, translation, groups)
    columns: dict[str, Cell] = {"Group": "group", "Model": "model"}
    for name, prefix in ((original, ""), (translation, "translated_")):
        score, difference, untransformed = (f"{prefix}{part}" for part in ("score", "difference", "original"))
        columns[f"{name} Orig."] = numbers(untransformed, times=100)
        columns[f"{name} {_total_head(results)}"] = moved(score, difference, untransformed)
    caption = f"{original} and its translation {translation}: scores times 100, differences in points"
    return exhibit("translation", caption, frame, columns)


def _dataset_parts(
    results: PaperResults, totals: pd.DataFrame, name: str, head: str, scores_name: str
) -> list[Exhibit]:
    """Return a table for every few models; the last has the mean difference over all models (PTEB's column Average)."""
    averages = dataset_averages(totals).assign(dataset="Average", task_type="")
    both = pd.concat([totals, averages], ignore_index=True)
    cells = {(row["task_type"], row["dataset"], row["model"]): row for row in both.to_dict(orient="records")}
    differences = both.groupby(["task_type", "dataset"])["difference"].mean()
    rows = both.drop_duplicates(["task_type", "dataset"])
    models = list(totals["model"].drop_duplicates())
    parts = [models[start : start + MODELS_BESIDE] for start in range(0, len(models), MODELS_BESIDE)]
    exhibits = []
    for number_of, mine in enumerate(parts, 1):
        columns: dict[str, Cell] = {
            "Task": cell("task_type", lambda task: named(task) if task else ""),
            "Data set": "dataset",
        }
        for model in mine:
            columns |= _of_model(cells, model, head)
        if number_of == len(parts):
            columns["Mean difference"] = lambda row: points(differences[row["task_type"], row["dataset"]])
        suffix, part_of = (f"_{number_of}", f" (part {number_of} of {len(parts)})") if len(parts) > 1 else ("", "")
        caption = f"Data sets, original and {scores_name} times 100 ± SD over runs{part_of}"
        of_models = totals[totals["model"].isin(mine)]
        notes = (*(results.of_total if name == "datasets" else ()), *reasons(of_models["dataset"], of_models["reason"]))
        frame = both[both["model"].isin(mine)]
        exhibits.append(exhibit(name + suffix, caption, frame, printed(rows, columns), notes))
    return exhibits


def _of_model(cells: Mapping[tuple[str, str, str], Mapping[Any, Any]], model: str, head: str) -> dict[str, Cell]:
    """Return a model's two columns: original scores, and the others with their SD."""

    def original(row: Row) -> str:
        scores_of_model = cells.get((row["task_type"], row["dataset"], model))
        return hundred(scores_of_model["original"]) if scores_of_model else UNDEFINED

    def score(row: Row) -> str:
        if (scores_of_model := cells.get((row["task_type"], row["dataset"], model))) is None:
            return UNDEFINED
        spread = "" if math.isnan(scores_of_model["sd"]) else f" ± {hundred(scores_of_model['sd'])}"
        return changed(scores_of_model["score"], scores_of_model["difference"], scores_of_model["original"]) + spread

    return {f"{model} Orig.": original, f"{model} {head}": score}


_SIMULATED = "The verdicts rest on SIMULATED ratings: these numbers measure nothing."


def report(records: EvaluationRecords, verdicts: Sequence[Verdict]) -> str:
    """Return the command's whole output: axes, transformations, data sets, units left out, and drift."""
    study, scores, drift = records.study, records.scores, records.drift
    short = short_names({*scores["model"], *drift["model"]})
    head = [f"Evaluation of {study.name!r}, protocol {study.evaluation.protocol!r}; scores times 100."]
    head += [_SIMULATED] if any(verdict.simulated for verdict in verdicts) else []
    parts = ["\n".join([*head, *late_lines(verdicts)])]
    parts.append(scores_text(scores.assign(model=scores["model"].map(short)), verdicts))
    if (ratings := records.sample_ratings) is not None:
        parts.append(_drift(records, drift.assign(model=drift["model"].map(short)), ratings))
    return "\n\n".join(parts)


def scores_text(scores: pd.DataFrame, verdicts: Sequence[Verdict]) -> str:
    """Return the tables of scores: axes, transformations, data sets, and units left out."""
    results = PaperResults(scores, verdicts, (), seed=0)  # nothing here is resampled
    exhibits = [axes(results), transformations(results)]
    if (scores["status"] == "included_rejected").any():
        exhibits.append(axes(results, include_rejected=True))
        exhibits.append(transformations(results, include_rejected=True))
    exhibits += datasets(results)
    lines = ["Left out, failed, or included despite the verdict, with reasons:"]
    lines += [f"  {line}" for line in left_out_lines(scores) or ["nothing"]]
    return "\n\n".join([*(table.text() for table in exhibits), "\n".join(lines)])


def _drift(records: EvaluationRecords, drifts: pd.DataFrame, ratings: pd.DataFrame) -> str:
    study, question = records.study, records.question
    if not question:
        return "Drift (1 - cos) cannot be compared with ratings: no question of the rubric has a scale"
    frame = drift_by_quality(records.sample, ratings, drifts, per_pair=study.raters.per_pair, question=question)
    if frame.empty:
        return "no drift was computed" if drifts.empty else "no pair has a drift and a rating that counts"
    return drift(drift_correlations(frame, study.sample.seed), question).text()
