"""What the report of an evaluated study holds: its tables and figures by name, and the page's order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from annotation.verdicts.rules import late_lines
from evaluation import tables
from evaluation.report import boards, charts, drift_charts, paper_tables, sensitivity_tables
from evaluation.report.material import ReportMaterial
from plumbline.exhibits.charts import figure
from plumbline.exhibits.page import Figure, Section
from plumbline.exhibits.table import Exhibit
from plumbline.study.campaign import AcceptanceSpec

TICKS = "; ticks: originals of the data sets and items of an axis, where these are not all"


@dataclass(frozen=True)
class Choices:
    """What the command line chooses: the baseline (default: the first model), and Table 16's sides and models."""

    baseline: str = ""
    translation: tuple[str, str] | None = None
    multilingual: tuple[str, ...] = ()


def all_exhibits(material: ReportMaterial, rule: AcceptanceSpec, choices: Choices) -> dict[str, Exhibit]:
    """The tables by name, in the page's order; those that have no rows are left away."""
    results = material.results
    exhibits = [
        paper_tables.axes(results),
        paper_tables.transformations(results),
        paper_tables.shifts(results),
        paper_tables.drift(material.correlations),
        paper_tables.kendall(results),
        paper_tables.split_half(results),
        paper_tables.ranking(results, transformed=False),
        paper_tables.ranking(results, transformed=True),
        paper_tables.against_baseline(results, choices.baseline, pooled=True),
        paper_tables.against_baseline(results, choices.baseline, pooled=False),
        paper_tables.sizes(results),
        *paper_tables.datasets(results),
        sensitivity_tables.nauc(material.abstaining),
        sensitivity_tables.abstention_thresholds(material.abstaining),
    ]
    if (results.scores["status"] == "included_rejected").any():
        exhibits.append(paper_tables.axes(results, include_rejected=True))
        exhibits.append(paper_tables.transformations(results, include_rejected=True))
    if choices.translation:
        others = tuple(m for m in results.scores["model"].unique() if m not in choices.multilingual)
        groups = (
            {"English-only": others, "Multilingual": choices.multilingual} if choices.multilingual else {"": others}
        )
        exhibits.append(paper_tables.translated(results, *choices.translation, groups))
    exhibits += _sensitivity(material, rule)
    noted = [paper_tables.with_notes(exhibit, results.notes) for exhibit in exhibits]
    # What was left out stands in the notes of all others.
    return {exhibit.name: exhibit for exhibit in (*noted, paper_tables.left_out(results)) if len(exhibit.frame)}


def _sensitivity(material: ReportMaterial, rule: AcceptanceSpec) -> list[Exhibit]:
    """The tables that ask how far the others hang on thresholds, ratings, pairs, models and generators."""
    results = material.results
    exhibits = []
    if results.verdicts and not rule.rules:
        exhibits.append(sensitivity_tables.decisions(results, rule, material.scale))
        exhibits.append(sensitivity_tables.thresholds(results, rule, material.scale))
    exhibits += [
        sensitivity_tables.accepted_alone(results, material.accepted),
        sensitivity_tables.accepted_drift(material.rated),
        sensitivity_tables.text_drift(material.moved),
        sensitivity_tables.differences(results),
        sensitivity_tables.drops(results),
        sensitivity_tables.profiles(results),
    ]
    if len(material.resampled):
        exhibits.append(sensitivity_tables.acceptance(results, material.resampled))
        exhibits.append(sensitivity_tables.uncertainty(results, material.resampled))
    if material.second:
        exhibits.append(
            sensitivity_tables.generators(
                results, material.second.scores, material.second.labels, material.second.notes
            )
        )
        exhibits.append(sensitivity_tables.lengths(material.second.lengths))
    if prompts := material.prompts:
        exhibits.append(sensitivity_tables.prompts(prompts.scores, prompts.lengths, prompts.judgements, prompts.notes))
    return exhibits


def all_figures(material: ReportMaterial, threshold: float, exhibits: Mapping[str, Exhibit]) -> dict[str, Figure]:
    """The figures by name, in the page's order, of the numbers in the tables; those that would show nothing are none.

    `exhibits` are those of `all_exhibits`.
    """
    frames = {name: exhibit.frame for name, exhibit in exhibits.items()}
    figures = {**_papers(frames), **_drifts(material, frames), **_thresholds(material, threshold, frames)}
    if "sizes" in frames:
        figures["sizes"] = figure(charts.size_lines(frames["sizes"]), "Scores by size of model (HTEB, Figure 5)")
    if "drops" in frames:
        figures["drops"] = figure(
            charts.drops(frames["drops"]), "Drop against original score; lines: mean drops (HTEB, Figure 9)"
        )
    if "profiles" in frames:
        chart = charts.axis_sizes(frames["profiles"])
        figures["profiles"] = figure(chart, "How much each axis moves each model (HTEB, Figures 10 and 11)")
    return {**figures, **_boards(material, frames)}


def _boards(material: ReportMaterial, frames: Mapping[str, pd.DataFrame]) -> dict[str, Figure]:
    """Ranks with their limits, and when models should not answer."""
    results, figures = material.results, {}
    for name in ("original", "transformed"):
        ranked = frames.get(f"ranking_{name}", pd.DataFrame())
        if "rank_low" in ranked and ranked["rank_low"].notna().any():
            chart = charts.rank_limits(ranked)
            figures[f"ranking_{name}"] = figure(chart, f"{name.capitalize()} scores: {boards.CAPTION}")
    abstained = tables.abstention_curves(material.abstaining)
    for name in abstained["confidence"].unique():
        drawn = charts.abstention_curves(abstained, results.axes, name)
        figures[f"abstention_{name}"] = figure(drawn, sensitivity_tables.curve_caption(name))
    return figures


def _papers(frames: Mapping[str, pd.DataFrame]) -> dict[str, Figure]:
    """HTEB's Figures 4, 6 and 7, and the scores of each model."""
    figures: dict[str, Figure] = {}
    for end, says in ("", ""), ("_with_refused", "; WITH WHAT NO VERDICT ACCEPTS"):
        if f"transformations{end}" not in frames:
            continue
        axes, moved = frames[f"axes{end}"], frames[f"transformations{end}"]
        figures[f"axes{end}"] = figure(
            charts.axis_shifts(axes), f"Scores of each model by axis (HTEB, Figure 4{TICKS}){says}"
        )
        figures[f"transformations{end}"] = figure(
            charts.delta_map(moved), f"Mean difference from the original in points (HTEB, Figure 6; *: refused){says}"
        )
        for number, (model, part) in enumerate(moved.groupby("model", sort=False), 1):
            chart = charts.score_shifts(part).properties(width=420)
            figures[f"model_{number}{end}"] = figure(chart, f"{model}: original and transformed scores{says}")
    if "shifts" in frames and frames["shifts"]["shift"].notna().any():
        figures["shifts"] = figure(
            charts.shift_intervals(frames["shifts"]),
            "Hodges-Lehmann shifts; grey: p of at least .05 by Holm (HTEB, Figure 7)",
        )
    return figures


def _drifts(material: ReportMaterial, frames: Mapping[str, pd.DataFrame]) -> dict[str, Figure]:
    """HTEB's Figure 3 for each model, and the drift of all texts."""
    figures: dict[str, Figure] = {}
    for number, (model, part) in enumerate(material.rated.groupby("model", sort=False), 1):
        of_model = material.correlations[material.correlations["model"] == model]
        panels = drift_charts.drift_figure(part, of_model, question=material.question, scale=material.scale)
        says = f"; {undrawn}" if (undrawn := drift_charts.left_undrawn(part)) else ""
        says += "; SIMULATED ratings" if bool(part["simulated"].any()) else ""
        figures[f"drift_{number}"] = figure(
            panels, f"{model}: drift against mean {material.question} (HTEB, Figure 3){says}"
        )
    if "text_drift" in frames:
        says = "thin: 5% to 95% of the texts, thick: the middle half, point: the median"
        figures["text_drift"] = figure(charts.text_drifts(frames["text_drift"]), f"Drift of all texts; {says}")
    return figures


def _thresholds(material: ReportMaterial, threshold: float, frames: Mapping[str, pd.DataFrame]) -> dict[str, Figure]:
    """What other thresholds and other ratings would make of verdicts and totals."""
    figures: dict[str, Figure] = {}
    says = "; SIMULATED ratings" if any(verdict.simulated for verdict in material.results.verdicts) else ""
    says += "".join(f"; {line.rstrip('.')}" for line in late_lines(material.results.verdicts))
    if "threshold_decisions" in frames:
        chart = charts.threshold_decisions(frames["threshold_decisions"], threshold)
        figures["threshold_decisions"] = figure(chart, f"What the rule decides at each threshold{says}")
    if "thresholds" in frames and frames["thresholds"]["original"].notna().any():
        chart_of_scores = charts.threshold_scores(frames["thresholds"], threshold)
        figures["thresholds"] = figure(chart_of_scores, f"Scores of what each threshold lets in{says}")
    if "uncertainty" in frames and frames["uncertainty"]["low"].notna().any():
        chart = charts.total_intervals(frames["uncertainty"])
        figures["uncertainty"] = figure(chart, f"Totals with the 95% interval that uncertain verdicts give them{says}")
    return figures


def sections(about: Sequence[str], exhibits: Mapping[str, Exhibit], figures: Mapping[str, Figure]) -> list[Section]:
    """What the page says, in order: what it is `about`, and each figure under the heading of its tables."""
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
    page_sections = [Section("This report", about)]
    for heading, beginnings in outline.items():
        drawn = [figure for name, figure in figures.items() if name.startswith(beginnings)]
        shown = [exhibit.table() for name, exhibit in exhibits.items() if name.startswith(beginnings)]
        if drawn or shown:
            page_sections.append(Section(heading, [*drawn, *shown]))
    return page_sections
