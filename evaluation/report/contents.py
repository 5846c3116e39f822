"""What the report of an evaluated study holds: its tables and figures by name, and the page's order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import altair as alt
import pandas as pd

from evaluation import tables
from evaluation.report import (
    abstention_exhibits,
    board_charts,
    charts,
    dataset_tables,
    drift_charts,
    paper_tables,
    profile_charts,
    sensitivity_charts,
    sensitivity_tables,
)
from evaluation.report.paper_tables import Results
from evaluation.report.studies_beside import Other, Prompts
from plumbline.exhibits.page import Figure, Section
from plumbline.exhibits.table import Exhibit
from plumbline.study import Study
from plumbline.transformations import AXES, total_axes

Drawn = alt.LayerChart | alt.ConcatChart | alt.FacetChart
TICKS = "; ticks: originals of the data sets and items of an axis, where these are not all"
_PADDING = {"left": 30, "right": 40, "top": 5, "bottom": 15}


@dataclass(frozen=True)
class Choices:
    """What the command line chooses: the baseline (default: the first model), and Table 16's sides and models."""

    baseline: str = ""
    translation: tuple[str, str] | None = None
    multilingual: tuple[str, ...] = ()


@dataclass(frozen=True)
class Material:
    """What tables and figures are made of, models by the names that they have there.

    `rated` (with a column accepted) and `correlations` are the drift of rated pairs against `question` (on `scale`),
    `resampled` what resampled ratings accept (`evaluation.statistics.resampling`), `accepted` and `moved` the rows of
    `accepted_scores.parquet` and `text_drift.parquet`, `abstaining` those of `abstention.parquet`. Frames are empty
    where the records have nothing.
    """

    results: Results
    rated: pd.DataFrame
    correlations: pd.DataFrame
    question: str
    scale: tuple[int, int]
    resampled: pd.DataFrame
    accepted: pd.DataFrame
    moved: pd.DataFrame
    abstaining: pd.DataFrame
    other: Other | None = None
    prompts: Prompts | None = None


def all_exhibits(study: Study, material: Material, choices: Choices) -> dict[str, Exhibit]:
    """The tables by name, in the page's order; those that have no rows are left away."""
    results = material.results
    made = [
        paper_tables.axes(results),
        paper_tables.transformations(results),
        paper_tables.shifts(results),
        paper_tables.drift(results, material.correlations),
        paper_tables.kendall(results),
        paper_tables.split_half(results),
        paper_tables.ranking(results, transformed=False),
        paper_tables.ranking(results, transformed=True),
        paper_tables.against_baseline(results, choices.baseline, pooled=True),
        paper_tables.against_baseline(results, choices.baseline, pooled=False),
        paper_tables.sizes(results),
        *dataset_tables.datasets(results),
        abstention_exhibits.nauc(results, material.abstaining),
        abstention_exhibits.thresholds(results, material.abstaining),
        paper_tables.left_out(results),
    ]
    if (results.scores["status"] == "included_rejected").any():
        made.append(paper_tables.axes(results, include_rejected=True))
        made.append(paper_tables.transformations(results, include_rejected=True))
    if choices.translation:
        others = tuple(m for m in results.scores["model"].unique() if m not in choices.multilingual)
        groups = (
            {"English-only": others, "Multilingual": choices.multilingual} if choices.multilingual else {"": others}
        )
        made.append(dataset_tables.translated(results, *choices.translation, groups))
    made += _sensitivity(study, material)
    return {one.name: one for one in made if len(one.frame)}


def _sensitivity(study: Study, material: Material) -> list[Exhibit]:
    """The tables that ask how far the others hang on thresholds, ratings, pairs, models and generators."""
    results, rule = material.results, study.acceptance
    made = []
    if results.verdicts and not rule.rules:
        made.append(sensitivity_tables.decisions(results, rule, material.scale))
        made.append(sensitivity_tables.thresholds(results, rule, material.scale))
    made += [
        sensitivity_tables.accepted_alone(results, material.accepted),
        sensitivity_tables.accepted_drift(results, material.rated),
        sensitivity_tables.text_drift(results, material.moved),
        sensitivity_tables.differences(results),
        sensitivity_tables.drops(results),
        sensitivity_tables.profiles(results),
    ]
    if len(material.resampled):
        made.append(sensitivity_tables.acceptance(results, material.resampled))
        made.append(sensitivity_tables.uncertainty(results, material.resampled))
    if material.other:
        made.append(
            sensitivity_tables.generators(results, material.other.scores, material.other.labels, material.other.notes)
        )
        made.append(sensitivity_tables.lengths(results, material.other.lengths))
    if told := material.prompts:
        made.append(sensitivity_tables.prompts(results, told.scores, told.lengths, told.judgements, told.notes))
    return made


def all_figures(study: Study, material: Material) -> dict[str, Figure]:
    """The figures by name, in the page's order; those that would show nothing are left away."""
    results = material.results
    found = {**_papers(results), **_drifts(material), **_thresholds(study, material)}
    sizes = tables.size_table(results.scores)
    if len(sizes):
        found["sizes"] = figure(charts.size_lines(sizes), "Scores by size of model (HTEB, Figure 5)")
    lost = tables.drop_table(results.scores)
    if len(lost):
        found["drops"] = figure(
            profile_charts.drops(lost), "Drop against original score; lines: mean drops (HTEB, Figure 9)"
        )
    profiles = tables.profile_table(results.scores)
    if len(profiles):
        chart = profile_charts.axis_sizes(profiles)
        found["profiles"] = figure(chart, "How much each axis moves each model (HTEB, Figures 10 and 11)")
    return {**found, **_boards(material)}


def _boards(material: Material) -> dict[str, Figure]:
    """Ranks with their limits, and when models should not answer."""
    results, found = material.results, {}
    for transformed, name in ((False, "original"), (True, "transformed")):
        ranked = tables.ranking_table(results.scores, transformed=transformed, seed=results.seed)
        if "rank_low" in ranked and ranked["rank_low"].notna().any():
            chart = board_charts.rank_limits(ranked)
            found[f"ranking_{name}"] = figure(chart, f"{name.capitalize()} scores: {board_charts.CAPTION}")
    abstained = tables.abstention_curves(material.abstaining)
    for name in abstained["confidence"].unique():
        drawn = abstention_exhibits.curves(abstained, results, name)
        found[f"abstention_{name}"] = figure(drawn, abstention_exhibits.curve_caption(name))
    return found


def _papers(results: Results) -> dict[str, Figure]:
    """HTEB's Figures 4, 6 and 7, and the scores of each model."""
    found: dict[str, Figure] = {}
    for refused in (False, True) if (results.scores["status"] == "included_rejected").any() else (False,):
        end, says = ("_with_refused", "; WITH WHAT NO VERDICT ACCEPTS") if refused else ("", "")
        axes = tables.axis_table(results.scores, results.verdicts, include_rejected=refused)
        moved = tables.transformation_table(results.scores, include_rejected=refused)
        if moved.empty:
            continue
        found[f"axes{end}"] = figure(
            charts.axis_shifts(axes), f"Scores of each model by axis (HTEB, Figure 4{TICKS}){says}"
        )
        found[f"transformations{end}"] = figure(
            charts.delta_map(moved), f"Mean difference from the original in points (HTEB, Figure 6; *: refused){says}"
        )
        for number, (model, part) in enumerate(moved.groupby("model", sort=False), 1):
            chart = charts.score_shifts(part).properties(width=420)
            found[f"model_{number}{end}"] = figure(chart, f"{model}: original and transformed scores{says}")
    shifts = tables.shift_table(results.scores)
    if shifts["shift"].notna().any():
        found["shifts"] = figure(
            charts.shift_intervals(shifts), "Hodges-Lehmann shifts; grey: p of at least .05 by Holm (HTEB, Figure 7)"
        )
    return found


def _drifts(material: Material) -> dict[str, Figure]:
    """HTEB's Figure 3 for each model, and the drift of all texts."""
    found: dict[str, Figure] = {}
    for number, (model, part) in enumerate(material.rated.groupby("model", sort=False), 1):
        own = material.correlations[material.correlations["model"] == model]
        panels = drift_charts.drift_figure(part, own, question=material.question, scale=material.scale)
        says = "; SIMULATED ratings" if bool(part["simulated"].any()) else ""
        found[f"drift_{number}"] = figure(
            panels, f"{model}: drift against mean {material.question} (HTEB, Figure 3){says}"
        )
    moved = tables.text_drift_table(material.moved)
    if len(moved):
        says = "thin: 5% to 95% of the texts, thick: the middle half, point: the median"
        found["text_drift"] = figure(profile_charts.text_drifts(moved), f"Drift of all texts; {says}")
    return found


def _thresholds(study: Study, material: Material) -> dict[str, Figure]:
    """What other thresholds and other ratings would make of verdicts and totals."""
    results, rule = material.results, study.acceptance
    found: dict[str, Figure] = {}
    says = "; SIMULATED ratings" if any(verdict.simulated for verdict in results.verdicts) else ""
    if rule.rules:
        return found
    steps = tables.thresholds_of(material.scale)
    decisions = tables.threshold_decisions(results.verdicts, rule, steps)
    if len(decisions):
        chart = sensitivity_charts.threshold_decisions(decisions, rule.threshold)
        found["threshold_decisions"] = figure(chart, f"What the rule decides at each threshold{says}")
    at = tables.threshold_table(results.scores, results.verdicts, rule, steps)
    if at["original"].notna().any():
        chart_of_scores = sensitivity_charts.threshold_scores(at, rule.threshold)
        found["thresholds"] = figure(chart_of_scores, f"Scores of what each threshold lets in{says}")
    if len(material.resampled):
        uncertain = tables.uncertainty_table(results.scores, results.verdicts, material.resampled)
        if uncertain["low"].notna().any():
            chart = sensitivity_charts.total_intervals(uncertain)
            found["uncertainty"] = figure(
                chart, f"Totals with the 95% interval that uncertain verdicts give them{says}"
            )
    return found


def sections(study: Study, exhibits: Mapping[str, Exhibit], figures: Mapping[str, Figure]) -> list[Section]:
    """What the page says, in order: each figure under the heading of its tables."""
    about = [
        study.description,
        f"Protocol {study.evaluation.protocol!r}. Seeds are averaged first; an axis is the mean over its"
        f" transformations, the total the mean of {_axes_of_total(study)}. Only what people accepted counts. Each table"
        " is a file in tables/ (CSV with all digits, Markdown, LaTeX), each figure one in figures/ (SVG, PNG).",
    ]
    outline = {
        "Scores by axis": ("axes",),
        "Scores by transformation": ("transformations", "model_"),
        "Shifts": ("shifts",),
        "Drift against ratings": ("drift_",),
        "Drift of all texts": ("text_drift",),
        "Sensitivity: the threshold": ("threshold_decisions", "thresholds"),
        "Sensitivity: the raters": ("acceptance", "uncertainty"),
        "Sensitivity: accepted pairs alone": ("accepted_",),
        "Sensitivity: the generator": ("generators", "lengths"),
        "Sensitivity: the generator's prompts": ("prompts",),
        "What disrupts models": ("profiles", "drops"),
        "When models should not answer": ("abstention",),
        "Rankings": ("kendall", "split_half", "ranking"),
        "Models against each other": ("differences", "baseline"),
        "Size of models": ("sizes",),
        "Data sets": ("datasets", "translation"),
        "Left out": ("left_out",),
    }
    if study.acceptance.rules:
        about.append(
            "The study has rules of its own (acceptance.rules). What another threshold, or other ratings and raters,"
            " would make of verdicts is told of one threshold alone, and is left out."
        )
    made = [Section("This report", [part for part in about if part])]
    for heading, beginnings in outline.items():
        drawn = [figure for name, figure in figures.items() if name.startswith(beginnings)]
        shown = [one.table() for name, one in exhibits.items() if name.startswith(beginnings)]
        if drawn or shown:
            made.append(Section(heading, [*drawn, *shown]))
    return made


def _axes_of_total(study: Study) -> str:
    axes = total_axes(study.kinds, (kind.axis for kind in study.kinds.values()))
    others = [kind.axis for kind in study.kinds.values() if kind.axis not in axes]
    beside = f", beside which stands {' and '.join(dict.fromkeys(others))}" if others else ""
    return f"{'the three axes' if axes == AXES else ', '.join(axes)}{beside}"


def figure(chart: Drawn, caption: str) -> Figure:
    """A chart with room at its sides: a browser's letters may be wider than those that it was laid out with."""
    return Figure(chart.properties(padding=_PADDING), caption, f"{caption}; the numbers stand in the tables")
