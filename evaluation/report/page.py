"""Write the report on an evaluated study: the papers' tables and figures as files, and one page with a summary.

Into `<study.folder>/report_evaluation/`: `index.html`, each table as CSV (all digits), Markdown and LaTeX in `tables/`,
each figure as SVG and PNG in `figures/`. Tables come from `evaluation.tables`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import pandas as pd
from cyclopts import Parameter

from annotation.campaign.records import LOOKS, PAIRS, RATINGS
from annotation.options import HomeOptions
from annotation.status.next_step import NextStep, next_step
from annotation.status.status import Status, once_ended, read_status
from annotation.status.text import in_short, say_next
from annotation.verdicts.rules import late_lines
from annotation.verdicts.tables import display
from evaluation.display import points
from evaluation.gate import CARRIED_OVER
from evaluation.models.encoder import ModelHost
from evaluation.records import ABSTENTION, ACCEPTED_SCORES, COMMAND, DRIFT, SCORES, EvaluationRecords
from evaluation.report import charts, paper_tables, sensitivity_tables
from evaluation.report.material import ReportMaterial, failed_models, missing_scores, read_material
from evaluation.report.paper_tables import SIGNIFICANT, PaperResults
from evaluation.tables.comparisons import kendall_table, shift_table
from evaluation.tables.datasets import drift_correlations
from evaluation.tables.scores import axis_table
from plumbline.cli import Named, Several, StudyOptions
from plumbline.errors import StudyError, nearest
from plumbline.exhibits.charts import Chart, figure
from plumbline.exhibits.page import Figure, PageWords, write_outlined
from plumbline.exhibits.table import Exhibit
from plumbline.manifest import stage
from plumbline.study import Study, load_study
from plumbline.study.transformations import AXES, in_order, total_axes
from plumbline.words import count

FOLDER = "report_evaluation"
_INPUTS = (SCORES, DRIFT, ACCEPTED_SCORES, ABSTENTION, LOOKS, PAIRS, RATINGS)
_RANKED = 3  # fewest models for a sentence on their order
_NOTHING = "No accepted transformation has a score, so the change is unknown."


@Parameter(name="*")
@dataclass(frozen=True)
class Choices:
    """Choices of the command line.

    Args:
        baseline: The model that others are compared with (default: the first).
        translation: A data set and its translation (HTEB, Table 16).
        multilingual: Models in the second group of the --translation table.
    """

    baseline: Annotated[str, Parameter(metavar="MODEL")] = ""
    translation: Annotated[tuple[str, str] | None, Parameter(metavar="NAME NAME")] = None
    multilingual: Annotated[tuple[str, ...], Several, Parameter(metavar="MODEL...")] = ()


_DEFAULT = Choices()


def headline(results: PaperResults, status: Status, doubts: Sequence[str], missing: Sequence[str]) -> tuple[str, ...]:
    """Return the answer, and sentences on doubts and the next step (the missing scores, if there are any)."""
    step = NextStep(status.study.command(COMMAND), "computes the missing scores") if missing else next_step(status)
    change, *others = answer(results)
    return (change, *others, *in_short("", doubts, step)[1:])


def answer(results: PaperResults) -> tuple[str, ...]:
    """Return sentences on how scores change on accepted transformations: mean and ends, the main axis, the order.

    Each mean is over the models that have the total's difference, or, if none has, a difference on the axis.

    """
    frame, axes = axis_table(results.scores, results.verdicts), results.axes
    scored = frame[frame[f"{axes.total}_difference"].notna()]
    if scored.empty:
        changes = {axis: frame[f"{axis}_difference"].dropna() for axis in axes.shown}
        axis_changes = [
            f"by {points(float(differences.mean()))} points on the axis {display(axis)}"
            f" ({count(len(differences), 'model')})"
            for axis, differences in changes.items()
            if len(differences)
        ]
        by_axis_alone = f"On accepted transformations scores change {', '.join(axis_changes)}."
        return (by_axis_alone, "There is no total of all axes.") if axis_changes else (_NOTHING,)
    change = scored.set_index("model")[f"{axes.total}_difference"].sort_values(kind="stable")
    by_axis = {axis: float(scored[f"{axis}_difference"].mean()) for axis in axes.of_total}
    most = max(by_axis, key=lambda axis: abs(by_axis[axis]))
    whose = count(len(change), "model") if len(change) > 1 else change.index[0]
    ends = f" on average, from {_of(change, 0)} to {_of(change, -1)}" if len(change) > 1 else ""
    mean = f"On accepted transformations the scores of {whose} change by {points(change.mean())} points{ends}."
    axis = (
        f"They change most on the axis {display(most)}: by {points(by_axis[most])} points{' on average' * bool(ends)}."
    )
    return tuple(filter(None, [mean, axis if len(by_axis) > 1 else "", _order(results)]))


def doubts_of(results: PaperResults, missing: Sequence[str], campaign: Sequence[str]) -> tuple[str, ...]:
    """Return a sentence for each doubt about the numbers; `campaign` are the doubts about the verdicts."""
    simulated = any(verdict.simulated for verdict in results.verdicts)
    frame = shift_table(results.scores)
    shifts = frame[frame["shift"].notna()]
    lines = []
    for n, part in shifts[~(shifts["p_holm"] < SIGNIFICANT)].groupby("n", sort=False):
        names = [display(name, pooled=False) for name in part["name"]]
        whose = f"all {len(names)} transformations" if len(names) == len(shifts) > 1 else ", ".join(names)
        over = count(int(str(n)), "data set")
        lines.append(f"over {over} the shift by {whose} may be due to chance (Wilcoxon, Holm's p of at least .05)")
    return (
        *(["the ratings behind the verdicts are SIMULATED: these numbers measure nothing"] if simulated else []),
        *(line.rstrip(".") for line in (*late_lines(results.verdicts), *missing)),
        *_left_out(results.scores),
        *lines,
        *campaign,
    )


def _left_out(scores: pd.DataFrame) -> list[str]:
    """Return sentences on transformations that no verdict accepts, on all data sets or some, or only a carried one."""
    refused = scores[scores["status"].isin(("left_out", "included_rejected"))]
    lines = []
    for name in in_order(refused["transformation"].unique()):
        n_refused, all_of_it = (
            frame.loc[frame["transformation"] == name, "dataset"].nunique() for frame in (refused, scores)
        )
        scope = "" if n_refused == all_of_it else f" on {n_refused} of {count(all_of_it, 'data set')}"
        lines.append(f"{display(name, pooled=False)}{scope}")
    carried = scores.loc[scores["reason"].str.contains(CARRIED_OVER, regex=False), "dataset"].unique()
    return [
        *([f"left out of all totals, as no verdict accepts them: {', '.join(lines)}"] if lines else []),
        *([f"{CARRIED_OVER} ({', '.join(carried)})"] if len(carried) else []),
    ]


def _order(results: PaperResults) -> str:
    """Return a sentence on how well models keep their order, or "" if there are too few models."""
    frame = kendall_table(results.scores)
    row = frame[frame["name"] == results.axes.total].iloc[0]
    if row["n_models"] < _RANKED or pd.isna(row["tau"]):
        return ""
    average = " on average over data sets" if row["n_datasets"] > 1 else ""
    return (
        "Kendall's tau between the models' rankings by original and by transformed scores is"
        f" {row['tau']:.2f}{average} (1: the same order)."
    )


def _of(change: pd.Series[float], position: int) -> str:
    return f"{points(float(change.iloc[position]))} ({change.index[position]})"


def write_report(
    study: Study, choices: Choices = _DEFAULT, compared: Study | None = None, prompts: Sequence[Study] = ()
) -> tuple[Path, Status]:
    """Write the report and return its page's path, and the study's status.

    `compared` is a study with another generator, for HTEB's Table 22; `prompts` are studies with the same generator
    under other prompts, for PTEB's Table 12.

    Raises DataError if scores or verdicts are missing or do not match (in any study), StudyError for a choice that
    the study does not have. Verdicts are not needed for scores that were included without them: no table treats
    them as accepted.

    """
    records = EvaluationRecords(study)
    material = read_material(
        records, EvaluationRecords(compared) if compared else None, [*map(EvaluationRecords, prompts)]
    )
    results = material.results
    exhibits = all_exhibits(material, _known(choices, results.scores, material.models))
    missing = [
        *missing_scores(records.scores, ModelHost.of(study).labels, study.command(COMMAND)),
        *failed_models(results.scores),
    ]
    status = replace(read_status(records, datetime.now(UTC), results.verdicts), writes="scores-report")
    doubts = doubts_of(results, missing, status.doubts)
    words = PageWords(
        f"Robustness of embedding models: study {study.name}",
        " ".join(material.warnings),
        headline(results, status, doubts, missing),
        doubts,
        about(study),
    )
    figures = all_figures(material, exhibits)
    outline = {
        heading: [name for name in dict.fromkeys((*figures, *exhibits)) if name.startswith(beginnings)]
        for heading, beginnings in _OUTLINE.items()
    }
    return write_outlined(study.folder / FOLDER, words, outline, exhibits, figures, _FOLDED), status


def about(study: Study) -> str:
    """Return the study's description, and how its numbers come about."""
    kinds = study.kinds.values()
    axes = total_axes(study.kinds, (kind.axis for kind in kinds))
    separate = dict.fromkeys(kind.axis for kind in kinds if kind.axis not in axes)
    mean = "the three axes" if axes == AXES else ", ".join(map(display, axes))
    mean += f", with {' and '.join(map(display, separate))} reported separately" if separate else ""
    method = (
        f"Protocol {study.evaluation.protocol!r}. Seeds are averaged first; an axis is the mean over its"
        f" transformations, the total the mean of {mean}. Only accepted transformations count."
    )
    return "\n\n".join(filter(None, [study.description, method]))


def _known(choices: Choices, scores: pd.DataFrame, short: Mapping[str, str]) -> Choices:
    """Return the choices with models' short names. Raises StudyError for models and data sets without scores."""
    models, datasets = list(short.values()), list(scores["dataset"].unique())

    def model(name: str) -> str:
        if short.get(name, name) not in models:
            raise StudyError(f"no model {name!r} has scores; {nearest(name, models)}")
        return short.get(name, name)

    for name in choices.translation or ():
        if name not in datasets:
            raise StudyError(f"--translation: no data set {name!r} has scores; {nearest(name, datasets)}")
    scored = scores[scores["score"].notna()]["model"]
    baseline = model(choices.baseline) if choices.baseline else (*scored, *scores["model"])[0]
    return Choices(baseline, choices.translation, tuple(map(model, choices.multilingual)))


def report_study(
    *,
    options: StudyOptions,
    choices: Choices = _DEFAULT,
    compare: Annotated[Named | None, Parameter(metavar="FILE")] = None,
    prompts: Annotated[tuple[Named, ...], Several, Parameter(metavar="FILE...")] = (),
) -> None:
    """Write the report on scores and drift: tables and figures.

    The report on an evaluated study has tables (CSV, Markdown, LaTeX), figures (SVG, PNG) and one HTML page.

    Example: plumbline scores-report --study studies/demo.yaml

    Args:
        options: The study.
        choices: What is compared.
        compare: An evaluated study with another generator, to compare with (HTEB, Tables 22 and 23).
        prompts: Evaluated studies with the same generator and other `prompts` (PTEB, Table 12).
    """
    compared = load_study(compare, options.exports) if compare else None
    prompted = [load_study(file, options.exports) for file in prompts]
    study = options.load()  # last, so that the titles of its transformations stand in the tables
    study.refuse_unfit("scores-report")
    if compared and compared.folder == study.folder:
        raise StudyError(f"--compare: {compare} is the study itself; name a study with another generator")
    folders = [named.folder for named in (study, *prompted)]
    if twice := [named for position, named in enumerate(prompted, 1) if named.folder in folders[:position]]:
        raise StudyError(f"--prompts: {twice[0].file} is named twice; name each study once, without {study.file}")
    pair = choices.translation
    if choices.multilingual and not pair:
        raise StudyError("--multilingual needs --translation; name a data set and its translation, too")
    if pair and pair[0] == pair[1]:
        raise StudyError(f"--translation: {pair[0]!r} is named twice; name a data set and its translation")
    inputs = [named.folder / file.name for named in (study, compared, *prompted) if named for file in _INPUTS]
    with stage(study, "evaluation report", inputs, [study.folder / FOLDER]) as manifest:
        page, status = write_report(study, choices, compared, prompted)
    print(f"{study.name}: tables and figures -> {page}")
    say_next(study, HomeOptions().home, once_ended(status, manifest))


_REFUSED = "_with_refused"  # the end of the names of tables that include rejected transformations
#: HTEB's figures by the names of their tables: the chart of a table's frame, and the caption.
_FIGURES: dict[str, tuple[Callable[[pd.DataFrame], Chart], str]] = {
    "axes": (
        charts.axis_shifts,
        "Scores of each model by axis (HTEB, Figure 4; a tick shows the score on the original texts of an axis's data"
        " sets and items, if the axis does not cover all)",
    ),
    "transformations": (
        charts.delta_map,
        "Mean difference in points from the original score of the same items (HTEB, Figure 6; *: not accepted)",
    ),
    "shifts": (charts.shift_intervals, "Hodges-Lehmann shifts; grey: Holm's p is at least .05 (HTEB, Figure 7)"),
    "sizes": (charts.size_lines, "Scores by size of model (HTEB, Figure 5)"),
    "drops": (charts.drops, "Drop against original score; lines: mean drops (HTEB, Figure 9)"),
    "profiles": (charts.axis_sizes, "How much each axis changes each model's scores (HTEB, Figures 10 and 11)"),
}
#: Headings, with the beginnings of the names of their figures and tables.
_OUTLINE = {
    "Scores by axis": ("axes",),
    "Scores by transformation": ("transformations",),
    "Shifts": ("shifts",),
    "Drift against ratings": ("drift",),
    "Sensitivity: accepted pairs only": ("accepted_",),
    "Sensitivity: the generator": ("generators", "lengths"),
    "Sensitivity: the generator's prompts": ("prompts",),
    "Sizes of the axes' effects": ("profiles", "drops"),
    "When models should not answer": ("abstention",),
    "Rankings": ("kendall", "split_half", "ranking"),
    "Differences between models": ("differences", "baseline"),
    "Sizes of models": ("sizes",),
    "Data sets": ("datasets", "translation"),
    "Left out": ("left_out",),
}
_FOLDED = [heading for heading in _OUTLINE if heading.startswith(("Sensitivity", "Data sets"))]


def all_exhibits(material: ReportMaterial, choices: Choices) -> dict[str, Exhibit]:
    """Return the tables by name, in the page's order, without empty ones."""
    results = material.results
    exhibits = [
        paper_tables.axes(results),
        paper_tables.transformations(results),
        paper_tables.shifts(results),
        paper_tables.drift(material.correlations, material.question),
        paper_tables.kendall(results),
        paper_tables.split_half(results),
        paper_tables.ranking(results, transformed=False),
        paper_tables.ranking(results, transformed=True),
        paper_tables.against_baseline(results, choices.baseline, pooled=True),
        paper_tables.against_baseline(results, choices.baseline, pooled=False),
        paper_tables.sizes(results),
        *paper_tables.datasets(results),
        sensitivity_tables.nauc(material.abstaining),
    ]
    if (results.scores["status"] == "included_rejected").any():
        exhibits.append(paper_tables.axes(results, include_rejected=True))
        exhibits.append(paper_tables.transformations(results, include_rejected=True))
    if choices.translation:
        english = tuple(m for m in results.scores["model"].unique() if m not in choices.multilingual)
        groups = (
            {"English-only": english, "Multilingual": choices.multilingual} if choices.multilingual else {"": english}
        )
        exhibits.append(paper_tables.translated(results, *choices.translation, groups))
    exhibits += [
        sensitivity_tables.accepted_alone(material.accepted, results.scores),
        sensitivity_tables.differences(results),
        sensitivity_tables.drops(results),
        sensitivity_tables.profiles(results),
    ]
    exhibits += material.comparisons
    notes = tuple(map(paper_tables.worded, results.notes))
    noted = [replace(exhibit, notes=(*exhibit.notes, *notes)) for exhibit in exhibits]
    # The notes of all other tables name what was left out.
    return {exhibit.name: exhibit for exhibit in (*noted, paper_tables.left_out(results)) if len(exhibit.frame)}


def all_figures(material: ReportMaterial, exhibits: Mapping[str, Exhibit]) -> dict[str, Figure]:
    """Return the figures by name, from the tables of `all_exhibits`, without empty ones: HTEB's, and Figure 3."""
    figures = dict[str, Figure]()
    for name, exhibit in exhibits.items():
        table, frame = name.removesuffix(_REFUSED), exhibit.frame
        nothing = (table == "axes" and name.replace("axes", "transformations") not in exhibits) or (
            table == "shifts" and frame["shift"].isna().all()
        )
        if table in _FIGURES and not nothing:
            draw, caption = _FIGURES[table]
            undrawn = charts.left_undrawn(frame) if table == "drops" else ""
            remark = "INCLUDING TRANSFORMATIONS THAT NO VERDICT ACCEPTS" if name.endswith(_REFUSED) else ""
            figures[name] = figure(draw(frame), "; ".join(filter(None, (caption, undrawn, remark))))
    if len(material.rated):
        figures["drift"] = _overview(material)
    for number, (model, part) in enumerate(material.rated.groupby("model", sort=False), 1):
        of_model = material.correlations[material.correlations["model"] == model]
        panels = charts.drift_figure(part, of_model, question=material.question, scale=material.scale)
        caption = f"{model}: drift against mean {material.question} (HTEB, Figure 3){_remarks(part)}"
        figures[f"drift_{number}"] = figure(panels, caption)
    return figures


def _overview(material: ReportMaterial) -> Figure:
    """Return the drift of all rated pairs in the first model's space against their mean ratings."""
    model = material.rated["model"].iloc[0]
    points = material.rated[material.rated["model"] == model]
    of_all = drift_correlations(points.assign(transformation="all", axis="all"), material.results.seed)
    scales = charts.DriftScales(material.question, material.scale, float(points["drift"].max()))
    chart = charts.drift_overview(points, of_all.to_dict("records")[0], scales)
    caption = (
        f"{model}: a point is a rated pair, the line the median drift of all pairs, the band holds the middle half"
    )
    return figure(chart, caption + _remarks(points))


def _remarks(points: pd.DataFrame) -> str:
    """Return what a caption of drift adds: how many points are drawn, and whether ratings are simulated."""
    undrawn = charts.left_undrawn(points)
    return (f"; {undrawn}" if undrawn else "") + ("; SIMULATED ratings" if points["simulated"].any() else "")
